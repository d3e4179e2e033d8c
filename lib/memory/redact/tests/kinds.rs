//! The table of kinds: how secrets are written where people and programs leave them, one line for each form. It was
//! made from the documentation of the programs and issuers, apart from the finders, so that it can tell what they
//! miss.

use crate::memory::redact::tests::{Dice, base64_of};
use crate::memory::redact::{Redactor, wallet};
use std::collections::BTreeMap;

/// `«…»` encloses a secret, and `{…}` is made anew for each text: see [`made`].
#[rustfmt::skip]
const KINDS: &[(&str, &[&str])] = &[
    // Clouds
    ("aws key id", &["«AKIA{B16}»", "aws_access_key_id = «ASIA{B16}»\n"]),
    ("aws secret key", &["AWS_SECRET_ACCESS_KEY=«{b40}»", "aws_secret_access_key = «{b40}»\n", "aws configure set aws_secret_access_key «{b40}»\n", "\"SecretAccessKey\": \"«{b40}»\","]),
    ("aws session token", &["AWS_SESSION_TOKEN=«IQoJb3JpZ2luX2Vj{b320}»"]),
    ("aws signed url", &["https://b.s3.amazonaws.com/k?X-Amz-Expires=900&X-Amz-Signature=«{h64}»"]),
    ("aws mws token", &["mws: «amzn.mws.{uuid}»"]),
    ("aws bedrock key", &["«ABSKQmVkcm9ja0FQSUtleS{b100}»"]),
    ("google api key", &["«AIza{w35}»", "https://maps.googleapis.com/maps/api/js?key=«AIza{w35}»&v=3"]),
    ("google oauth token", &["access: «ya29.{w130}»"]),
    ("google client secret", &["\"client_secret\":\"«GOCSPX-{w28}»\""]),
    ("google refresh token", &["refresh_token: «1//0{w60}»"]),
    ("google service account", &["{ \"type\": \"service_account\", \"private_key_id\": \"«{h40}»\", \"client_email\": \"x@y.iam\" }"]),
    ("google signed url", &["https://storage.googleapis.com/b/o?X-Goog-Expires=60&X-Goog-Signature=«{h128}»"]),
    ("firebase server key", &["key=«AAAA{w7}:APA91b{w134}»"]),
    ("azure client secret", &["AZURE_CLIENT_SECRET=«{a3}8Q~{a34}»", "value «{a3}7Q~{a34}» until May"]),
    ("azure storage key", &["DefaultEndpointsProtocol=https;AccountName=x;AccountKey=«{b86}»==;EndpointSuffix=core.windows.net"]),
    ("azure sas", &["https://x.blob.core.windows.net/c?sv=2024-01-01&sp=r&sig=«{a43}»%3D", "SharedAccessSignature sr=https%3a%2f%2fx&sig=«{a43}»%3d&se=1700000000&skn=root"]),
    ("azure devops pat", &["AZURE_DEVOPS_EXT_PAT=«{c52}»", "git -c http.extraheader x https://«{c52}»@dev.azure.com/o/p", "the PAT is «{c52}»", "«{a76}AZDO{a4}»"]),
    ("azure service bus", &["Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{b43}»="]),
    ("azure cosmos", &["AccountEndpoint=https://x.documents.azure.com:443/;AccountKey=«{b86}»==;"]),
    ("azure app configuration", &["Endpoint=https://x.azconfig.io;Id=ab-l0-s0:{a20};Secret=«{b43}»="]),
    ("azure function key", &["https://f.azurewebsites.net/api/run?code=«{w44}AzFu{w8}»=="]),
    ("azure openai", &["AZURE_OPENAI_API_KEY=«{h32}»", "Ocp-Apim-Subscription-Key: «{h32}»"]),
    ("alibaba key", &["«LTAI5t{a18}»"]),
    ("tencent key", &["secretId: «AKID{a32}»"]),
    ("yandex key", &["«AQVN{w35}»", "Api-Key «AQVN{w36}»"]),
    ("digitalocean token", &["«dop_v1_{h64}»"]),
    ("heroku key", &["HEROKU_API_KEY=«{uuid}»", "«HRKU-AA{w58}»"]),
    ("cloudflare", &["CLOUDFLARE_API_TOKEN=«{w40}»", "X-Auth-Key: «{h37}»", "«v1.0-{h24}-{h146}»"]),
    ("flyio token", &["FLY_API_TOKEN=\"FlyV1 «fm2_{b200}»\""]),
    ("planetscale", &["«pscale_tkn_{w43}»", "«pscale_pw_{w43}»"]),
    ("supabase key", &["«sbp_{h40}»", "«sb_secret_{w31}»"]),
    ("netlify token", &["«nfp_{a40}»"]),
    ("vercel token", &["VERCEL_TOKEN=«{a24}»", "vercel deploy --token «{a24}»"]),
    ("render key", &["«rnd_{a32}»"]),
    ("railway token", &["RAILWAY_TOKEN=«{uuid}»"]),
    ("databricks token", &["«dapi{h32}-2»"]),
    ("linode token", &["LINODE_TOKEN=«{h64}»"]),
    ("hetzner token", &["HCLOUD_TOKEN=«{a64}»", "hcloud_token = \"«{a64}»\""]),
    ("scaleway secret", &["SCW_SECRET_KEY=«{uuid}»", "secret_key: «{uuid}»"]),
    ("openstack", &["OS_PASSWORD=«{pw}»", "export OS_PASSWORD='«{strong}»'"]),
    ("ibm cloud key", &["IBMCLOUD_API_KEY=«{w44}»", "ibmcloud login --apikey «{w44}»"]),
    // Forges and registries
    ("github token", &["«ghp_{a36}»", "«gho_{a36}»", "«ghs_{a36}»", "«ghr_{a76}»", "git clone https://«ghp_{a36}»@github.com/o/r"]),
    ("github fine grained", &["«github_pat_{a22}_{a59}»"]),
    ("gitlab token", &["«glpat-{w20}»", "PRIVATE-TOKEN: «glpat-{w20}»", "«gldt-{w20}»"]),
    ("gitlab runner", &["«glrt-{w20}»", "«GR1348941{w20}»"]),
    ("gitea token", &["GITEA_TOKEN=«{h40}»", "Authorization: token «{h40}»"]),
    ("bitbucket password", &["«ATBB{a32}»"]),
    ("atlassian token", &["«ATATT3xFfGF0{w170}={H8}»"]),
    ("npm token", &["«npm_{a36}»", "//registry.npmjs.org/:_authToken=«{uuid}»", "_auth=«{basic}»\n"]),
    ("pypi token", &["«pypi-AgEIcHlwaS5vcmc{w150}»"]),
    ("crates io token", &["token = \"«cio{a32}»\"", "«cio{a32}»"]),
    ("rubygems key", &["«rubygems_{h48}»"]),
    ("nuget key", &["«oy2{l43}»", "nuget push x.nupkg -ApiKey «oy2{l43}»"]),
    ("docker token", &["«dckr_pat_{w27}»"]),
    ("docker config auth", &["{\"auths\":{\"https://index.docker.io/v1/\":{\"auth\":\"«{basic}»\"}}}"]),
    ("artifactory", &["«AKCp{a69}»", "«cmVmdGtu{b56}»"]),
    ("sourcegraph", &["«sgp_{h40}»"]),
    ("buildkite", &["«bkua_{h40}»"]),
    ("circleci", &["«CCIPAT_{a22}_{h40}»", "Circle-Token: «{h40}»"]),
    ("jenkins token", &["JENKINS_API_TOKEN=«11{h32}»", "curl -u admin:«11{h32}» https://ci.example.org/x"]),
    ("codecov token", &["CODECOV_TOKEN=«{uuid}»"]),
    ("sonar token", &["«squ_{h40}»", "«sqp_{h40}»", "sonar-scanner -Dsonar.login=«{h40}»"]),
    ("snyk token", &["SNYK_TOKEN=«{uuid}»"]),
    ("packagist token", &["«packagist_ort_{h62}»"]),
    ("clojars token", &["«CLOJARS_{h60}»"]),
    ("terraform token", &["«{a14}.atlasv1.{w67}»"]),
    ("vault token", &["«hvs.{w95}»", "VAULT_TOKEN=«s.{a24}»", "X-Vault-Token: «{uuid}»"]),
    ("consul token", &["CONSUL_HTTP_TOKEN=«{uuid}»", "X-Consul-Token: «{uuid}»"]),
    // Chat and social
    ("slack token", &["«xoxb-{d12}-{d12}-{a24}»", "«xoxp-{d12}-{d12}-{d12}-{h32}»", "«xapp-1-A{B10}-{d13}-{h64}»"]),
    ("slack webhook", &["https://hooks.slack.com/services/«T{B9}/B{B9}/{a24}»"]),
    ("discord token", &["«MT{w22}.{w6}.{w38}»"]),
    ("discord webhook", &["https://discord.com/api/webhooks/«{d18}/{w68}»"]),
    ("teams webhook", &["https://x.webhook.office.com/webhookb2/«{uuid}@{uuid}/IncomingWebhook/{h32}/{uuid}»"]),
    ("power automate url", &["https://prod-1.logic.azure.com/workflows/{h32}/triggers/manual/paths/invoke?sp=%2Ft&sv=1.0&sig=«{w43}»"]),
    ("telegram token", &["«7{d9}:AA{w33}»", "https://api.telegram.org/bot«7{d9}:AA{w33}»/getMe"]),
    ("twilio", &["«SK{h32}»", "TWILIO_AUTH_TOKEN=«{h32}»", "curl -u AC{h32}:«{h32}» https://api.twilio.com/x"]),
    ("facebook token", &["«EAAG{a160}»", "access_token=«{d15}|{w27}»"]),
    ("instagram token", &["«IGQVJ{w140}»"]),
    ("twitter", &["«AAAAAAAAAAAAAAAAAAAAA{a80}»", "TWITTER_ACCESS_TOKEN_SECRET=«{a45}»", "consumer_secret: «{a50}»"]),
    ("linkedin secret", &["LINKEDIN_CLIENT_SECRET=«{a16}»"]),
    ("twitch", &["oauth:«{l30}»", "TWITCH_CLIENT_SECRET=«{l30}»"]),
    // Payment and mail
    ("stripe key", &["«sk_live_{a24}»", "«rk_test_{a99}»", "curl https://api.stripe.com/v1 -u «sk_live_{a24}»:"]),
    ("stripe webhook secret", &["«whsec_{a32}»"]),
    ("square token", &["«sq0atp-{w22}»", "«EAAA{w60}»"]),
    ("paypal", &["«access_token$production${l16}${h32}»", "PAYPAL_CLIENT_SECRET=«E{w79}»"]),
    ("shopify token", &["«shpat_{h32}»"]),
    ("adyen key", &["«AQE{a20}-{b60}»=-{a12}"]),
    ("razorpay", &["«rzp_live_{a14}»", "RAZORPAY_KEY_SECRET=«{a24}»"]),
    ("plaid", &["«access-production-{uuid}»", "PLAID_SECRET=«{h30}»"]),
    ("flutterwave", &["«FLWSECK-{h32}-X»"]),
    ("mollie", &["«live_{a30}»"]),
    ("mercadopago", &["«APP_USR-{d16}-{d6}-{h32}-{d9}»"]),
    ("sendgrid key", &["«SG.{w22}.{w43}»"]),
    ("mailgun key", &["«key-{h32}»", "MAILGUN_API_KEY=«{h32}-{h8}-{h8}»"]),
    ("mailchimp key", &["«{h32}-us12»"]),
    ("mandrill key", &["«md-{w22}»"]),
    ("brevo key", &["«xkeysib-{h64}-{a16}»"]),
    ("postmark token", &["X-Postmark-Server-Token: «{uuid}»", "POSTMARK_API_TOKEN=«{uuid}»"]),
    ("resend key", &["«re_{a8}_{a24}»"]),
    ("mailersend key", &["«mlsn.{h64}»"]),
    // LLM vendors
    ("anthropic key", &["«sk-ant-api03-{w93}AA»", "x-api-key: «sk-ant-api03-{w93}AA»"]),
    ("openai key", &["«sk-proj-{w156}»", "«sk-{a48}»"]),
    ("openrouter key", &["«sk-or-v1-{h64}»"]),
    ("deepseek key", &["«sk-{h32}»"]),
    ("huggingface token", &["«hf_{a34}»"]),
    ("groq key", &["«gsk_{a52}»"]),
    ("xai key", &["«xai-{a80}»"]),
    ("perplexity key", &["«pplx-{a48}»"]),
    ("replicate token", &["«r8_{a37}»"]),
    ("fireworks key", &["«fw_{a24}»"]),
    ("nvidia key", &["«nvapi-{w64}»"]),
    ("elevenlabs key", &["«sk_{h48}»"]),
    ("langsmith key", &["«lsv2_pt_{h32}_{h10}»"]),
    ("langfuse key", &["«sk-lf-{uuid}»"]),
    ("mistral key", &["MISTRAL_API_KEY=«{a32}»"]),
    ("cohere key", &["CO_API_KEY=«{a40}»", "COHERE_API_KEY=«{a40}»"]),
    ("pinecone key", &["«pcsk_{a6}_{a63}»", "PINECONE_API_KEY=«{uuid}»"]),
    ("voyage key", &["«pa-{w43}»"]),
    ("tavily key", &["«tvly-dev-{a32}»", "«tvly-{a32}»"]),
    ("jina key", &["«jina_{w60}»"]),
    ("firecrawl key", &["«fc-{h32}»"]),
    ("wandb key", &["WANDB_API_KEY=«{h40}»", "wandb login «{h40}»"]),
    ("deepgram key", &["DEEPGRAM_API_KEY=«{h40}»", "Authorization: Token «{h40}»"]),
    ("runpod key", &["«rpa_{u40}»"]),
    ("e2b key", &["«e2b_{h40}»"]),
    // Monitoring, planning, design
    ("datadog key", &["DD_API_KEY=«{h32}»", "DD-APPLICATION-KEY: «{h40}»"]),
    ("newrelic key", &["«NRAK-{u27}»", "«{h36}NRAL»"]),
    ("sentry token", &["«sntryu_{h64}»", "«sntrys_{b180}»"]),
    ("grafana token", &["«glsa_{a32}_{h8}»", "«glc_{b150}»"]),
    ("dynatrace token", &["«dt0c01.{B24}.{B64}»"]),
    ("honeycomb key", &["«hcaik_{l58}»"]),
    ("pagerduty key", &["PAGERDUTY_TOKEN=«{w20}»", "Authorization: Token token=«{w20}»"]),
    ("splunk hec", &["Authorization: Splunk «{uuid}»"]),
    ("linear key", &["«lin_api_{a40}»"]),
    ("notion token", &["«ntn_{d11}{a35}»", "«secret_{a43}»"]),
    ("figma token", &["«figd_{w40}»"]),
    ("airtable token", &["«pat{a14}.{h64}»", "AIRTABLE_API_KEY=«key{a14}»"]),
    ("postman key", &["«PMAK-{h24}-{h34}»"]),
    ("contentful token", &["«CFPAT-{w43}»"]),
    ("asana token", &["«1/{d16}:{h32}»", "«2/{d16}/{d16}:{h32}»"]),
    ("clickup token", &["«pk_{d8}_{B32}»"]),
    ("trello token", &["«ATTA{h64}»", "https://api.trello.com/1/boards?key={h32}&token=«{h64}»"]),
    ("dropbox token", &["«sl.{w140}»"]),
    ("mapbox secret", &["«sk.eyJ1Ijoi{w60}.{w22}»"]),
    ("hubspot token", &["«pat-na1-{uuid}»", "https://api.hubapi.com/x?hapikey=«{uuid}»"]),
    ("salesforce session", &["«00D{a12}!{w80}»"]),
    ("launchdarkly key", &["«sdk-{uuid}»", "LAUNCHDARKLY_API_KEY=«api-{uuid}»"]),
    ("typeform token", &["«tfp_{w44}_{w14}»"]),
    ("doppler token", &["«dp.pt.{a43}»"]),
    ("infisical token", &["«st.{h24}.{h32}.{h32}»"]),
    ("pulumi token", &["«pul-{h40}»"]),
    ("tailscale key", &["«tskey-auth-{a16}-{a32}»"]),
    ("ngrok token", &["ngrok config add-authtoken «{a27}_{a21}»", "authtoken: «{a49}»"]),
    ("onepassword token", &["«ops_eyJ{b300}»"]),
    ("prefect key", &["«pnu_{a36}»"]),
    ("readme key", &["«rdme_xn8s9h{h60}»"]),
    ("easypost key", &["«EZAK{h32}{a22}»"]),
    ("shippo token", &["«shippo_live_{h40}»"]),
    ("open weather map", &["https://api.openweathermap.org/data/2.5/weather?q=Berlin&appid=«{h32}»", "?appid=«{h32}»&units=metric"]),
    ("key in a query", &["https://api.example.com/v1?key=«{a32}»", "GET /v1/x?apikey=«{a24}»&q=1", "https://x.example.com/cb?access_token=«{w40}»#top"]),
    // Keys
    ("private key block", &["{pem:RSA }", "{pem:OPENSSH }", "key: |\n{pem:EC }", "{pem:}", "{pem:ENCRYPTED }"]),
    ("private key in json", &["\"private_key\": \"{pemj:}\""]),
    ("private key in a diff", &["{pemd:RSA }"]),
    ("pgp private key", &["-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n«{b64}»\n«{b64}»\n={b4}\n-----END PGP PRIVATE KEY BLOCK-----"]),
    ("putty key", &["PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 1\n{b64}\nPrivate-Lines: 2\n«{b64}»\n«{b40}»\nPrivate-MAC: {h64}\n"]),
    ("openvpn static key", &["-----BEGIN OpenVPN Static key V1-----\n«{h32}»\n«{h32}»\n-----END OpenVPN Static key V1-----"]),
    ("wireguard key", &["[Interface]\nPrivateKey = «{b43}»=\nAddress = 10.0.0.2/32", "PresharedKey = «{b43}»="]),
    ("age key", &["«AGE-SECRET-KEY-1{C58}»"]),
    ("kubeconfig key", &["client-key-data: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt{b400}»", "    token: «{a60}»\n"]),
    ("jwk private part", &["{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"{w43}\",\"y\":\"{w43}\",\"d\":\"«{w43}»\"}"]),
    ("jwt", &["«eyJhbGciOi{a27}.eyJ{w120}.{w43}»"]),
    ("extended private key", &["«xprv9s21ZrQH143K{A95}»"]),
    ("bitcoin wif", &["private key: «5K{A49}»", "wif = \"«L{A51}»\""]),
    ("ethereum key", &["PRIVATE_KEY=«0x{h64}»", "private key: «{h64}»", "privateKey: \"«0x{h64}»\""]),
    ("seed phrase", &["seed phrase: «{seed12}»", "My wallet's recovery phrase is \"«{seed24}»\".", "mnemonic = \"«{seed12}»\"", "«{seed12}»", "{seedlist}"]),
    ("totp secret", &["otpauth://totp/Acme:bob?secret=«{C32}»&issuer=Acme", "TOTP_SECRET=«{C32}»"]),
    // Hashes of passwords
    ("shadow hash", &["root:«$6${a16}${.86}»:19000:0:99999:7:::", "bob:«$y$j9T${.22}${.43}»:19500:0:99999:7:::"]),
    ("htpasswd hash", &["bob:«$apr1${a8}${.22}»", "bob:«$2y$05${.53}»", "bob:{SHA}«{b27}»="]),
    ("bcrypt hash", &["password_hash: «$2b$12${.53}»"]),
    ("argon2 hash", &["«$argon2id$v=19$m=65536,t=3,p=4${b22}${b43}»"]),
    ("django hash", &["«pbkdf2_sha256$600000${a22}${b43}»="]),
    ("ldap hash", &["userPassword: {SSHA}«{b32}»"]),
    // In configuration files
    ("env file", &["DB_PASSWORD=«{pw}»\n", "export SMTP_PASS='«{pw}»'\n", "PGPASSWORD=«{pw}» psql -h db app\n"]),
    ("a placeholder's word inside", &["DB_PASSWORD=«SuperSecret{d4}!»\n", "password: \"«MyTestPassword{d2}x»\"", "API_PASSWORD=«sample{d3}Tiger»\n", "postgres://app:«TestDB{d3}xyz»@db/prod", "admin_password = \"«Yourself{d3}!»\"", "PASS=«fake{l5}news{d2}»\n", "secret_token: \"«mock{a20}»\""]),
    ("ini file with blanks", &["[db]\nuser = app\npassword = «{pw}»\n", "[client]\nuser=root\npassword = \"«{pw}»\"\n", "smtp_pass = «{strong}»\n"]),
    ("pypirc", &["[pypi]\nusername = bob\npassword = «{pw}»\n"]),
    ("my.cnf", &["[client]\nuser = root\npassword = «{pw}»\nhost = db\n"]),
    ("properties file", &["spring.datasource.password=«{pw}»\n", "spring.datasource.password = «{pw}»\n", "javax.net.ssl.keyStorePassword=«{pw}»\n"]),
    ("yaml value", &["db:\n  user: app\n  password: «{pw}»\n  port: 5432\n", "redis_password: '«{pw}»'\n", "secret: «{pw}»\n"]),
    ("kubernetes env", &["- name: DB_PASSWORD\n  value: «{pw}»\n", "        - name: API_TOKEN\n          value: \"«{a32}»\"\n", "{\"name\": \"DB_PASSWORD\", \"value\": \"«{pw}»\"}"]),
    ("kubernetes secret", &["apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  config: «{k16}»\n  a.b: «{k12}»\n", "apiVersion: v1\nstringData:\n  anything: «{pw}»\nkind: Secret\n", "{\"kind\": \"Secret\", \"data\": {\"conf\": \"«{k20}»\"}}"]),
    ("kubectl create secret", &["kubectl create secret generic x --from-literal=db=«{pw}»\n", "kubectl create secret generic x --from-literal=other='«{pw}»' -n y\n", "kubectl create secret generic x '--from-literal=db=«{pw} und mehr»' -n y\n"]),
    ("docker compose", &["    environment:\n      - POSTGRES_PASSWORD=«{pw}»\n      - TZ=UTC\n", "      MYSQL_ROOT_PASSWORD: «{pw}»\n"]),
    ("dockerfile", &["ENV DB_PASSWORD «{pw}»\n", "ARG NPM_TOKEN=«{a36}»\n"]),
    ("helm and terraform", &["helm install x y --set postgres.password=«{pw}»\n", "  password = \"«{pw}»\"\n", "terraform apply -var db_password=«{pw}»\n"]),
    ("ansible", &["ansible_password: «{pw}»\n", "web1 ansible_host=10.0.0.1 ansible_ssh_pass=«{pw}»\n", "ansible_become_pass=«{pw}»\n", "vault_db_password: \"«{pw}»\"\n"]),
    ("odbc", &["Driver={SQL Server};Server=db;Uid=sa;Pwd=«{pw}»;", "DSN=x;UID=app;PWD=«{strong}»"]),
    ("ado.net", &["Server=db;Database=x;User Id=sa;Password=«{pw}»;Encrypt=true", "\"DefaultConnection\": \"Server=db;User ID=app;Password=«{strong}»;\""]),
    ("jdbc", &["jdbc:postgresql://db/x?user=app&password=«{pw}»", "jdbc:sqlserver://db:1433;databaseName=x;user=sa;password=«{pw}»;", "jdbc:oracle:thin:scott/«{pw}»@//db:1521/x", "jdbc:mysql://app:«{pw}»@db:3306/x"]),
    ("netrc", &["machine api.example.com login bob password «{pw}»\n", "machine api.example.com\n  login bob\n  password «{pw}»\n", "default login anonymous password «{strong}»\n"]),
    ("pgpass", &["db.example.com:5432:app:bob:«{pw}»\n", "*:*:*:postgres:«{pw}»\n", "localhost:5432:*:app:«{strong}»\n"]),
    ("wpa supplicant", &["network={\n  ssid=\"home\"\n  psk=\"«{pw}»\"\n}", "psk=«{h64}»\n", "wpa_passphrase=«{pw}»\n"]),
    ("network manager", &["[wifi-security]\nkey-mgmt=wpa-psk\npsk=«{pw}»\n", "nmcli dev wifi connect home password «{pw}»\n"]),
    ("xml attribute", &["<user name=\"bob\" password=\"«{pw}»\"/>", "<add key=\"ApiSecret\" value=\"«{a32}»\" />", "<property name=\"password\" value=\"«{pw}»\"/>", "<Resource username='sa' password='«{strong}»' />"]),
    ("xml element", &["<server><id>x</id><password>«{pw}»</password></server>", "<AutoLogon><Password><Value>«{pw}»</Value></Password></AutoLogon>"]),
    ("markdown table", &["| user | password |\n|---|---|\n| admin | «{pw}» |\n", "| Password | «{pw}» |\n", "| **API key** | `«{a32}»` |\n", "| Host | User | Passwort |\n|:--|--|--:|\n| db | root | `«{pw}»` |\n| web | bob | «{pw}» |\n"]),
    ("markdown list", &["- **Password:** `«{pw}»`\n", "* Password: «{pw}»\n", "- Passwort: «{pw}»\n"]),
    ("csv with a header", &["user,password\nbob,«{pw}»\nann,«{pw}»\n"]),
    ("redis and rabbit", &["requirepass «{pw}»\n", "rabbitmqctl add_user bob «{pw}»\n", "redis-cli -h db -a «{pw}» ping\n", "default_pass = «{pw}»\n"]),
    ("rclone and s3cfg", &["secret_access_key = «{b40}»\n", "secret_key = «{b40}»\n", "pass = «{w27}»\n"]),
    ("wordpress", &["define('DB_PASSWORD', '«{pw}»');", "define( 'AUTH_KEY', '«{s64}»' );", "define('SECURE_AUTH_SALT', '«{s64}»');"]),
    ("framework secrets", &["SECRET_KEY = '«{s50}»'\n", "secret_key_base: «{h128}»\n", "APP_KEY=base64:«{b43}»=\n", "NEXTAUTH_SECRET=«{b43}»=\n", "JWT_SECRET=«{pw}»\n"]),
    ("git credentials", &["https://bob:«{pw}»@git.example.com\n", "url = https://bob:«{strong}»@git.example.com/x.git\n"]),
    ("android signing", &["storePassword=«{pw}»\nkeyAlias=x\n", "    keyPassword \"«{pw}»\"\n", "    storePassword '«{pw}»'\n"]),
    ("systemd credential", &["Environment=\"DB_PASSWORD=«{pw}»\"\n", "Environment=API_TOKEN=«{a32}»\n"]),
    ("composer auth", &["{\"http-basic\": {\"repo.example.com\": {\"username\": \"bob\", \"password\": \"«{pw}»\"}}}"]),
    ("registry file", &["\"DefaultPassword\"=\"«{pw}»\"\n"]),
    // On command lines
    ("sudo -S", &["echo «{pw}» | sudo -S apt update\n", "echo '«{pw}»' | sudo -S -p '' ls\n", "echo \"«{strong}»\" | sudo -kS id\n", "sudo -S id <<< '«{pw}»'\n"]),
    ("mysql -p", &["mysql -u root -p«{pw}» app\n", "mysqldump -uroot -p'«{pw}»' app > x.sql\n", "mysql --user=root --password=«{pw}» app\n"]),
    ("docker login", &["docker login -u bob -p «{pw}» registry.example.com\n", "podman login -u bob -p '«{pw}»' quay.io\n", "docker login --username bob --password «{pw}»\n", "echo «{pw}» | docker login -u bob --password-stdin\n"]),
    ("curl -u", &["curl -u admin:«{pw}» https://x.example.com\n", "curl -s --user 'admin:«{pw}»' https://x.example.com\n", "curl -uadmin:«{pw}» https://x.example.com\n", "curl --proxy-user bob:«{pw}» https://x.example.com\n", "curl.exe -u admin:«{pw}» https://x.example.com\n", "curl https://x.example.com/y?a=1&b=2 -u admin:«{pw}»\n", "curl <url> --user admin:«{pw}»\n"]),
    ("sshpass", &["sshpass -p «{pw}» ssh root@web1\n", "sshpass -p'«{strong}»' scp a b:\n"]),
    ("ldap tools", &["ldapsearch -x -D cn=admin -w «{pw}» -b dc=x\n"]),
    ("mongo and cassandra", &["mongosh -u admin -p «{pw}» --host db\n", "cqlsh db -u bob -p '«{pw}»'\n", "mongodb://root:«{pw}»@db:27017/x?authSource=admin"]),
    ("sqlcmd", &["sqlcmd -S db -U sa -P «{pw}» -Q 'select 1'\n", "sqlplus scott/«{pw}»@db\n"]),
    ("smb", &["smbclient //fs/share -U bob%«{pw}»\n", "net use Z: \\\\fs\\share /user:bob «{pw}»\n", "mount -t cifs //fs/x /mnt -o username=bob,password=«{pw}»\n"]),
    ("windows accounts", &["net user bob «{pw}» /add\n", "cmdkey /add:web1 /user:bob /pass:«{pw}»\n", "xfreerdp /u:bob /p:«{pw}» /v:web1\n"]),
    ("powershell", &["ConvertTo-SecureString \"«{pw}»\" -AsPlainText -Force\n", "ConvertTo-SecureString -String '«{strong}»' -AsPlainText\n", "$pw = '«{pw}»' | ConvertTo-SecureString -AsPlainText -Force\n"]),
    ("openssl and keytool", &["openssl rsa -in k.pem -passin pass:«{pw}»\n", "keytool -list -keystore x.jks -storepass «{pw}»\n", "openssl enc -aes-256-cbc -k «{pw}» -in a\n", "openssl pkcs12 -export -passout pass:«{strong}»\n"]),
    ("archives", &["unzip -P «{pw}» a.zip\n", "7z x -p«{pw}» a.7z\n", "zip -e -P '«{strong}»' a.zip b\n"]),
    ("accounts", &["echo 'bob:«{pw}»' | chpasswd\n", "htpasswd -bc .htpasswd bob «{pw}»\n", "echo «{pw}» | passwd --stdin bob\n"]),
    ("long flags", &["./run --password «{pw}»\n", "./run --password=«{pw}» x\n", "gpg --batch --passphrase «{pw}» -d a.gpg\n", "wget --user=bob --password='«{pw}»' https://x.example.com\n", "./run --api-key «{a32}»\n", "svn co --username bob --password «{pw}» https://x\n"]),
    ("secrets set on a platform", &["fly secrets set DATABASE_PASSWORD=«{pw}»\n", "gh secret set DEPLOY_TOKEN --body «{a32}»\n", "heroku config:set SMTP_PASSWORD=«{pw}»\n", "vault kv put secret/x password=«{pw}»\n"]),
    ("sql", &["CREATE USER app IDENTIFIED BY '«{pw}»';", "ALTER ROLE app WITH PASSWORD '«{pw}»';", "CREATE LOGIN app WITH PASSWORD = '«{strong}»';", "ALTER USER 'root'@'localhost' IDENTIFIED WITH caching_sha2_password BY '«{pw}»';"]),
    // In code
    ("python", &["requests.get(url, auth=('bob', '«{pw}»'))", "connect(host=\"db\", user=\"app\", password=\"«{pw}»\")", "os.environ['API_KEY'] = '«{a32}»'", "HTTPBasicAuth('bob', '«{pw}»')"]),
    ("go", &["req.SetBasicAuth(\"bob\", \"«{pw}»\")", "const apiToken = \"«{a32}»\"", "Password: \"«{pw}»\","]),
    ("java", &["ds.setPassword(\"«{pw}»\");", ".password(\"«{pw}»\")", "DriverManager.getConnection(url, \"app\", \"«{pw}»\")"]),
    ("php and perl", &["mysqli_connect('db', 'app', '«{pw}»', 'x')", "$password = '«{pw}»';", "new PDO($dsn, 'root', '«{pw}»');"]),
    ("javascript", &["const client = new Client({ user: 'app', password: '«{pw}»' })", "process.env.SECRET = \"«{a32}»\"", "auth: { user: \"me\", pass: \"«{pw}»\" }"]),
    ("csharp", &["new NetworkCredential(\"bob\", \"«{pw}»\")", "string apiKey = \"«{a32}»\";", "var password = \"«{pw}»\";"]),
    ("ruby and shell", &["password: '«{pw}»',", "PASSWORD=\"«{pw}»\" ./run", "read -r pw <<< \"x\"; DB_PASS=«{pw}»"]),
    ("expect", &["expect \"assword:\"\nsend \"«{pw}»\\r\"\n"]),
    ("nix and toml", &["password = \"«{pw}»\";\n", "hashedPassword = \"«$6${a16}${.86}»\";\n", "api_key = \"«{a32}»\"\n"]),
    // Headers
    ("bearer header", &["Authorization: Bearer «{w40}»", "-H 'authorization: bearer «{h40}»'", "\"Authorization\": \"Bearer «{w60}»\""]),
    ("basic header", &["Authorization: Basic «{basic}»", "Proxy-Authorization: Basic «{basic}»"]),
    ("api key header", &["X-Api-Key: «{a32}»", "-H \"api-key: «{h32}»\"", "Authorization: ApiKey «{b60}»", "X-Auth-Token: «{h32}»"]),
    ("aws header", &["Authorization: AWS4-HMAC-SHA256 Credential=x/20240101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=«{h64}»"]),
    ("cookie header", &["Cookie: session=«{a32}»; theme=dark", "cookie: sessionid=«{l32}»; csrftoken=«{a32}»", "curl -b 'sid=«{h40}»' https://x.example.com", "curl -H 'Cookie: auth=«{w64}»' https://x.example.com"]),
    ("set-cookie header", &["Set-Cookie: sid=«{w40}»; Path=/; HttpOnly", "set-cookie: connect.sid=«s%3A{w32}.{w43}»; Path=/; Secure", "Set-Cookie: PHPSESSID=«{l26}»; path=/"]),
    ("cookie elsewhere", &["JSESSIONID=«{H32}»", "document.cookie = \"remember_token=«{w40}»\"", "PHPSESSID=«{l26}»"]),
    // In sentences
    ("english sentence", &["the password is «{pw}»", "Use the password «{pw}» for now.", "My password for the router is \"«{pw}»\".", "I set the root password to «{pw}» yesterday", "its password was changed to «{strong}».", "pw: «{pw}»", "the passphrase is `«{pw}»`", "password for bob is now «{pw}», ok?"]),
    ("german sentence", &["Das Passwort lautet «{pw}»", "Das Kennwort ist «{pw}».", "Mein Passwort für den Server ist «{pw}».", "Passwort: «{pw}»"]),
    ("french sentence", &["Le mot de passe est «{pw}»", "mot de passe : «{pw}»", "Le mot de passe du serveur est «{pw}».", "mdp: «{pw}»"]),
    ("spanish sentence", &["La contraseña es «{pw}»", "contraseña: «{pw}»", "La clave es «{pw}».", "La contraseña del servidor es «{pw}»"]),
    ("portuguese sentence", &["A senha é «{pw}»", "senha: «{pw}»", "A senha do banco é «{pw}»."]),
    ("italian sentence", &["La password è «{pw}»", "La password del router è «{pw}».", "parola d'ordine: «{pw}»"]),
    ("dutch sentence", &["Het wachtwoord is «{pw}»", "wachtwoord: «{pw}»"]),
    ("polish sentence", &["Hasło to «{pw}»", "hasło: «{pw}»", "Hasło do serwera to «{pw}»."]),
    ("russian sentence", &["Пароль: «{pw}»", "пароль от сервера — «{pw}»", "Пароль — «{pw}»"]),
    ("chinese sentence", &["密码是«{pw}»", "密码：«{pw}»", "密碼是 «{pw}»"]),
    ("japanese sentence", &["パスワードは«{pw}»です", "パスワード：«{pw}»"]),
    ("nordic and turkish sentence", &["Lösenordet är «{pw}»", "Adgangskoden er «{pw}»", "Salasana on «{pw}»", "Şifre: «{pw}»", "passordet er «{pw}»"]),
    ("login sentence", &["log in as admin / «{pw}»", "Log in with admin and «{pw}».", "login: admin / «{pw}»", "log in as bob with «{pw}»", "sign in as root / «{strong}»", "user bob, password «{pw}»"]),
    ("credentials", &["creds: admin:«{pw}»", "credentials: root / «{pw}»", "Credentials are bob / «{pw}»", "user/pass: admin/«{pw}»", "Zugangsdaten: admin / «{pw}»", "admin credentials: admin:«{strong}»", "identifiants : admin / «{pw}»"]),
    ("token in a sentence", &["the token is «{a32}»", "Here is my API key: «{a32}»", "use this API key «{a32}» please", "our access token is `«{h40}»`", "the secret is «{w32}»"]),
    ("pin", &["the PIN is «{d4}»", "PIN: «{d6}»", "my pin code is «{d4}»", "Die PIN lautet «{d4}»", "le code PIN est «{d4}»", "SIM PIN «{d4}»"]),
    ("one-time code", &["your verification code is «{d6}»", "OTP: «{d6}»", "2FA code «{d6}»"]),
    ("card", &["«{card}»", "card number «{cardplain}»", "«{carddash}»", "Visa: «{cardplain}»", "Amex «{amex}»", "CVV: «{d3}»"]),
    // Anywhere on the line of a secret's word
    ("word behind it", &["tmux send-keys -t 0 «{a10}7Rt9x» Enter  # sudo password", "it's now «{strong}». That was the old password's last day."]),
    ("chat", &["[10:41] mo: what's the redis pass\n[10:42] an: «Otter{d4}»\n", "<wei> root pw on it?\n<sven> «Tundra.Boat{d3}»\n"]),
    ("key in a sentence", &["the key you need is «{a32}Qx7z» (see the header)", "La chiave API è «{a30}Zr4k», nel file", "вот токен: «{h40}» только"]),
    ("grouped key", &["FileVault recovery key: «{B4}-{B4}-{B4}-{B4}-7K2M-{B4}»", "setup key: «m7ny {c4} {c4} 3ny5 {c4} q2cy {c4}»"]),
    ("login in other words", &["Melde dich als admin mit «gravel{d5}SI» an.", "accedi come chiara con «{strong}»", "connecte-toi en tant que lu avec «{strong}»"]),
    ("dice", &["passphrase is \"«cobalt puzzle otter meadow»\"", "secret: \"«zephyr walnut otter umber»\"", "пароль «orchid-lichen-velvet-puzzle»\n"]),
    ("pin in other words", &["code secret : «{d6}»", "De toegangscode van de deur is «{d5}»", "код от двери «{d4}», потом", "alarm_code: «{d6}»"]),
    ("markup", &["<wsse:Password Type=\"#PasswordText\">«{pw}»</wsse:Password>", "<secret><![CDATA[«{a14}<&F9y»]]></secret>", "api_secret    | «{a30}9z»\n", "<member><name>password</name><value><string>«{strong}»</string></value></member>"]),
    ("columns", &["NAME      TOKEN         EXPIRES\nci        «{a32}Qx7z»  2026\ndeploy    «{a32}Rz4k»  never\n", "user\tpass\thost\nled\t«Velvet{d4}»\tdb01\n"]),
    ("list of bytes", &["uint8_t aes_key[] = {«0x5a, 0xfc, 0x20, 0x9b, 0xcc, 0x12, 0x28, 0x13»};", "char pw[] = {«'T', '3', 'A', '8', '8', 'v', 'S', 'P'»};"]),
    ("switch", &["username admin privilege 15 secret 0 «cobalt{d5}MD»\n", "enable secret «K0duHHT{d2}U»\n", " snmp-server community «puzzle{d5}TO» RW\n"]),
    ("mail login", &["C: AUTH PLAIN «AG1hcmFAbGVkLmlv{b20}»\nS: 235", "334 UGFzc3dvcmQ6\n> «TzBSTDYj{b12}»\n"]),
    ("netscape cookie", &[".x.com\tTRUE\t/\tTRUE\t1790000000\tuser_session\t«{w48}»\n"]),
    ("hex dump", &["00000000: 6462 5f70 6173 7377 6f72 643d «4c72» «3871»  db_password=«Lr8q»\n00000010: «5656 4b35 2321»                           «VVK5#!»\n"]),
    ("wide base64", &["unicodePwd:: «IgBJAG4AZABpAGcAMABfAG4AeQBjADkAIgA=»"]),
    ("pkcs12", &["IOS_CERT_P12=«MIIJzwIBAzCCCYUGCSqGSIb3{b200}»\n", "$ base64 c.p12\n«MIIJzwIBAzCCCYUGCSqGSIb3{b40}»\n«{b64}»\n«{b64}»\n"]),
    ("boxed token", &["│ T=«github_pat_11A{a30}» │\n│ «{a30}_2{a16}» │\n"]),
    // What looks like something else
    ("token with a prefix", &["the token is «svc_prod_pdKEzbyeVzUDNgn9p2»", "access token «tok_0076279a53586751b14605fa» for ci", "the api key is «app_9mmkmwf18btiormervyv»"]),
    ("password like a date", &["password: «2024-05-06{pwa}»", "DB_PASSWORD=«1999-12-31_{strong}»", "the pw is `«12/May/2024:{pwa}»`"]),
    ("password like a name", &["password=\"«{pwa}:all»\"", "secret=«arn:{strong}»", "password: «{pwa}A-Za-z{d2}»", "password: «#{pwa}:+{d2}»"]),
    ("password with asterisks", &["password: «{pwa}**77»", "--password=«ab**{d2}»", "postgres://bob:«x**{pwa}»@db/x"]),
    ("token of an input", &["INPUT_TOKEN=«{a32}»", "outputToken = \"«{h40}»\""]),
    ("csv with an empty head", &[",user,password\n0,bob,«{pw}»\n1,ann,x", "user,password,\nbob,«{pw}»,\n", "id,,password\n1,,«{pw}»\n"]),
    ("pgpass of one host", &["db.example.org:*:shop:bobby:«{pw}»\n"]),
    ("pgpass with a colon", &["db:5432:shop:bob:«Hm{d1}\\:kqQ{d1}zLw»\n", "*:*:*:bob:«Hm{d1}\\:kqQ{d1}zLw»\n"]),
    ("curl without a user", &["curl https://x.example.com -u :«{pw}»\n"]),
    ("curl with a slash", &["curl.exe -u admin:«{a3}/{pw}» https://x.example.com\n", "curl https://x.example.com --user 'admin:«/{pw}»'\n"]),
    ("sql with blanks", &["CREATE USER bob IDENTIFIED BY      '«{pw}»';", "CREATE USER bob IDENTIFIED BY      \"«{pw}»\";"]),
    ("password like a mention", &["wifi «@{pwa}Kutter»", "melde dich an mit bob «@Krabbe{d2}Kutter»"]),
    ("next line after a comma", &["what is the wifi pass,\n«zx{d2}qpl{d2}»", "bob: the pass again,\nann: «kp{d2}vq{d2}»"]),
    ("groups without mixed ones", &["recovery «{d5} abcde {d5} fghij {d5} kkkzz»", "master key: «{d4} ABCD {d4} EFGH {d4} IJKL»"]),
    ("said before a tab", &["«Krabbe{d2}Kutter» is the password\tok"]),
    ("word with eleven", &["password: «root11»", "DB_PASSWORD=«string11»"]),
    // Encoded or broken
    ("percent-encoded address", &["postgres%3A%2F%2Fapp%3A«{a16}»%40db%2Fprod", "redirect=https%3A%2F%2Fbob%3A«{pwa}»%40host.example.com%2Fx", "amqp%3a%2f%2fbob%3a«{a14}»%40mq"]),
    ("address", &["postgres://app:«{pw}»@db.example.com:5432/prod", "redis://:«{pwa}»@cache:6379/0", "amqp://bob:«{pwa}»@mq/x", "ftp://bob:«{pwa}»@files.example.com/", "https://bob:«{strongu}»@host.example.com/x"]),
    ("wrapped token", &["see «ghp_{a14}»\n«{a22}» there", "key: «sk-ant-api03-{w47}»\n«{w46}AA»\n", "«glpat-{w9}»\\\n«{w11}»", "x «AKIA{B7}»\n    «{B9}» y", "> «ghp_{a12}»\n> «{a24}»\n", "Bearer «{w30}»\n«{w30}»\n"]),
    ("token in a soft break", &["«ghp_{a20}»=\n«{a16}»", "token=«{a30}»=\r\n«{a30}»\n"]),
    ("token with zero width", &["«ghp_{a10}»\u{200b}«{a26}»", "«sk-proj-{w60}»\u{200c}«{w96}»", "«AKIA{B6}»\u{feff}«{B10}»", "pass\u{200b}word=«{pw}»\n", "«ghp_{a10}»\u{ad}«{a26}»"]),
    ("token with colours", &["«ghp_{a10}»\u{1b}[1;31m«{a26}»\u{1b}[0m", "\u{1b}[32mghp_\u{1b}[0m«{a36}»", "«AKIA{B6}»\u{1b}[m\u{1b}[7m«{B10}»\u{1b}[27m", "PASSWORD\u{1b}[0m=\u{1b}[33m«{pw}»\u{1b}[0m\n", "«ghp_{a10}»\\u001b[31m«{a26}»\\u001b[0m"]),
    ("token in a diff", &["+token = \"«ghp_{a18}»\n+«{a18}»\"\n", "-  key: «sk-ant-api03-{w47}»\n-  «{w46}AA»\n", "+AWS_SECRET_ACCESS_KEY=«{b40}»\n", "[-«ghp_{a36}»-]{+«ghp_{a36}»+}", "+password = «{pw}»\n", " «ghp_{a10}»[-x-]{+«{a26}»+}"]),
    ("token in json escapes", &["\"«ghp\\u005f{a36}»\"", "\"\\u0067hp_«{a36}»\"", "{\\\"password\\\":\\\"«{pw}»\\\"}", "\"postgres:\\/\\/app:«{pwa}»@db\\/x\"", "\"password\\u0022:\\u0022«{pw}»\\u0022\"", "\"Bearer\\u0020«{w40}»\""]),
    ("token in html entities", &["ghp&#95;«{a36}»", "password&#61;«{pwa}»\n", "&quot;password&quot;: &quot;«{pw}»&quot;"]),
    ("token in joined strings", &["\"«ghp_{a16}»\" + \"«{a20}»\"", "\"«AKIA{B8}»\" \"«{B8}»\"", "'«sk-ant-api03-{w40}»' . '«{w53}AA»'"]),
    ("percent-encoded token", &["ghp%5F«{a36}»", "token%3D«{a32}»%26x", "password%3D«{pwa}»%26user%3Dx"]),
];

/// Words that people build passwords from; some are also words of placeholders.
const WORDS: &[&str] = &[
    "Summer", "winter", "Tiger", "Secret", "Test", "Sample", "Your", "Mock", "Fake", "Example", "Password",
    "dragon", "Kitten", "Berlin", "hunter", "Coffee", "Insert", "Hidden", "monkey", "Admin",
];
const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// One character of a class, as a template names it.
fn class(name: char) -> Option<&'static str> {
    Some(match name {
        'a' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        'A' => BASE58,
        'h' => "0123456789abcdef",
        'H' => "0123456789ABCDEF",
        'd' => "0123456789",
        'B' | 'u' => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        'l' => "abcdefghijklmnopqrstuvwxyz0123456789",
        'b' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        'w' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        'c' => "abcdefghijklmnopqrstuvwxyz234567",
        'C' => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        '.' => "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        's' => "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789!#$%^*_+-",
        _ => return None,
    })
}

/// A password as a person makes it up.
fn chosen(dice: &mut Dice, signs: bool) -> String {
    let word = dice.pick(WORDS);
    let digits = {
        let many = 1 + dice.below(3);
        format!("{}{}", 2 + dice.below(7), dice.of("2579", many))
    };
    let sign = if signs { dice.pick(&["!", "_", "*", "+", "!!"]) } else { "" };
    match dice.below(if signs { 6 } else { 2 }) {
        0 | 1 => format!("{word}{digits}"),
        2 => format!("{word}{digits}{sign}"),
        3 => format!("{word}{sign}{digits}"),
        4 => format!("{}{}", word.replace('e', "3").replace('s', "5"), digits),
        _ => format!("{}{digits}", dice.of("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789", 7)),
    }
}

fn luhn(mut digits: String) -> String {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = u32::from(digit - b'0');
            if at % 2 == 1 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
        })
        .sum();
    digits.push(char::from(b'0' + ((10 - sum % 10) % 10) as u8));
    digits
}

fn in_fours(digits: &str, between: &str) -> String {
    let fours: Vec<String> =
        digits.as_bytes().chunks(4).map(|four| String::from_utf8_lossy(four).into_owned()).collect();
    fours.join(between)
}

/// Words of a wallet's list, the last with the checksum of all.
fn seed(dice: &mut Dice, many: usize) -> Vec<&'static str> {
    use sha2::Digest;
    let words: Vec<&str> = wallet::WORDS.lines().collect();
    let bytes: Vec<u8> = (0..many * 4 / 3).map(|_| dice.below(256) as u8).collect();
    let check = sha2::Sha256::digest(&bytes)[0];
    let bits: Vec<u8> =
        bytes.iter().chain([&check]).flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
    let index = |eleven: &[u8]| eleven.iter().fold(0, |so_far, bit| so_far << 1 | usize::from(*bit));
    bits[..many * 11].chunks(11).map(|eleven| words[index(eleven)]).collect()
}

fn block(dice: &mut Dice, label: &str, before: &str, between: &str) -> String {
    let label = format!("{label}PRIVATE {}-----", "KEY");
    let body: Vec<String> =
        (0..12).map(|_| format!("{before}«{}»{between}", dice.of(class('b').unwrap(), 64))).collect();
    format!("{before}-----BEGIN {label}{between}{}{before}-----END {label}{between}", body.concat())
}

/// A text from a template: `{a36}` is 36 characters of a class, `{pw}` a password that a person chose, and so on.
fn made(dice: &mut Dice, template: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (before, behind) = rest.split_at(open);
        text += before;
        let end = behind.find('}');
        let said = end.map_or("", |end| &behind[1..end]);
        let number = said.get(1..).and_then(|number| number.parse().ok());
        let set = said.chars().next().and_then(class);
        let made = match (said, set, number) {
            ("pw", ..) => chosen(dice, true),
            ("pwa", ..) => chosen(dice, false),
            ("strong", ..) => {
                dice.of("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789!_*+-^~", 14) + "7"
            }
            ("strongu", ..) => {
                dice.of("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789!_*+-~", 14) + "7"
            }
            ("uuid", ..) => {
                let parts = [8, 4, 4, 4, 12].map(|many| dice.of("0123456789abcdef", many));
                parts.join("-")
            }
            ("basic", ..) => base64_of(&format!("bob:{}", chosen(dice, true))),
            ("card", ..) => in_fours(&luhn(format!("4{}", dice.of("0123456789", 14))), " "),
            ("carddash", ..) => in_fours(&luhn(format!("53{}", dice.of("0123456789", 13))), "-"),
            ("cardplain", ..) => luhn(format!("4{}", dice.of("0123456789", 14))),
            ("amex", ..) => luhn(format!("37{}", dice.of("0123456789", 12))),
            ("seed12", ..) => seed(dice, 12).join(" "),
            ("seed24", ..) => seed(dice, 24).join(" "),
            ("seedlist", ..) => {
                let words = seed(dice, 12);
                words.iter().enumerate().map(|(at, word)| format!("{}. «{word}»\n", at + 1)).collect()
            }
            (block_of, ..) if block_of.starts_with("pem:") => block(dice, &block_of[4..], "", "\n"),
            (block_of, ..) if block_of.starts_with("pemj:") => block(dice, &block_of[5..], "", "\\n"),
            (block_of, ..) if block_of.starts_with("pemd:") => block(dice, &block_of[5..], "+", "\n"),
            (coded, _, Some(many)) if coded.starts_with('k') => {
                base64_of(&dice.of(class('a').unwrap(), many))
            }
            (_, Some(set), Some(many)) => dice.of(set, many),
            _ => {
                text.push('{');
                rest = &behind[1..];
                continue;
            }
        };
        text += &made;
        rest = &behind[said.len() + 2..];
    }
    text + rest
}

/// The text without the marks, and its secrets.
fn unmarked(text: &str) -> (String, Vec<String>) {
    let secrets =
        text.split('«').skip(1).filter_map(|rest| Some(rest.split_once('»')?.0.to_owned())).collect();
    (text.replace(['«', '»'], ""), secrets)
}

/// Is nothing of it left that helps to guess the rest?
fn is_gone(secret: &str, text: &str) -> bool {
    let half = secret.chars().count() / 2;
    let second: String = secret.chars().skip(half).collect();
    let first: String = secret.chars().take(half).collect();
    match secret.len() {
        ..16 => !text.contains(secret),
        16..32 => !text.contains(&second),
        _ => !text.contains(&second) && !text.contains(&first),
    }
}

const EACH: usize = 24;

#[test]
fn every_kind_of_secret_is_found() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let redactor = Redactor::new(true, &[]).unwrap();
    let (mut sum, mut all) = (0, 0);
    let mut failed = Vec::new();
    for (kind, templates) in KINDS {
        let (mut found, mut missed) = (0, BTreeMap::new());
        for at in 0..EACH {
            let template = templates[at % templates.len()];
            let (text, secrets) = unmarked(&made(&mut dice, template));
            let clean = redactor.cleaned(&text);
            if secrets.iter().all(|secret| is_gone(secret, &clean)) {
                found += 1;
            } else {
                missed.insert(template, (text, clean));
            }
        }
        (sum, all) = (sum + found, all + EACH);
        #[allow(clippy::print_stderr, reason = "the table is this test's second result")]
        {
            eprintln!("{kind:32} {found:3} of {EACH}");
        }
        if found * 100 < EACH * 80 {
            failed.push(format!("{kind}: {found} of {EACH}: {missed:#?}"));
        }
    }
    #[allow(clippy::print_stderr, reason = "the figures are this test's second result")]
    {
        let zero = failed.iter().filter(|kind| kind.contains(": 0 of")).count();
        eprintln!(
            "{sum} of {all}, {:.2} %; {} kinds, {zero} at 0",
            sum as f64 * 100.0 / all as f64,
            KINDS.len()
        );
    }
    assert!(KINDS.len() >= 150);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(sum * 100 >= all * 97, "{sum} of {all}");
}
