use super::*;
use rustix::time::{ClockId, clock_gettime};

mod kinds;

/// Numbers that look random and are the same in each run (xorshift).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// So many characters of these.
    fn of(&mut self, set: &str, many: usize) -> String {
        (0..many).map(|_| char::from(self.pick(set.as_bytes()))).collect()
    }
}

const DIGIT: &str = "0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SIGNED: &str = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789!#$%^*_+-";

/// A family's name and how one of its secrets is made, piece by piece: plain text, or `class number`.
/// The shapes are written anew here and not read from the tables that are tested.
const SHAPES: &[(&str, &[(&str, usize)])] = &[
    ("aws-key-id", &[("=AK", 0), ("=IA", 0), (UPPER, 16)]),
    ("aws-session-token", &[("=IQoJb3JpZ2lu", 0), ("=X2VjE", 0), (BASE64, 300)]),
    ("google-api-key", &[("=AI", 0), ("=za", 0), (URL, 35)]),
    ("google-oauth", &[("=ya", 0), ("=29.", 0), (URL, 120)]),
    ("google-oauth", &[("=GOC", 0), ("=SPX-", 0), (URL, 28)]),
    ("azure-secret", &[(ALNUM, 3), (DIGIT, 1), ("=Q~", 0), (ALNUM, 34)]),
    ("digitalocean-token", &[("=dop_", 0), ("=v1_", 0), (HEX, 64)]),
    ("heroku-key", &[("=HRKU-", 0), ("=AA", 0), (URL, 58)]),
    ("databricks-token", &[("=da", 0), ("=pi", 0), (HEX, 32)]),
    ("github-token", &[("=gh", 0), ("=p_", 0), (ALNUM, 36)]),
    ("github-token", &[("=gh", 0), ("=o_", 0), (ALNUM, 36)]),
    ("github-token", &[("=gh", 0), ("=u_", 0), (ALNUM, 36)]),
    ("github-token", &[("=gh", 0), ("=s_", 0), (ALNUM, 36)]),
    ("github-token", &[("=gh", 0), ("=r_", 0), (ALNUM, 76)]),
    ("github-token", &[("=github", 0), ("=_pat_", 0), (ALNUM, 22), ("=_", 0), (ALNUM, 59)]),
    ("gitlab-token", &[("=gl", 0), ("=pat-", 0), (URL, 20)]),
    ("gitlab-token", &[("=gl", 0), ("=dt-", 0), (URL, 20)]),
    ("gitlab-token", &[("=glrt", 0), ("=-t1_", 0), (URL, 20)]),
    ("bitbucket-token", &[("=AT", 0), ("=BB", 0), (ALNUM, 32)]),
    ("atlassian-token", &[("=AT", 0), ("=ATT3xFfGF0", 0), (URL, 170), ("==", 0), (UPPER, 8)]),
    ("npm-token", &[("=np", 0), ("=m_", 0), (ALNUM, 36)]),
    ("pypi-token", &[("=py", 0), ("=pi-AgEIcHlwaS5vcmc", 0), (URL, 130)]),
    ("crates-io-token", &[("=ci", 0), ("=o", 0), (ALNUM, 32)]),
    ("docker-token", &[("=dckr", 0), ("=_pat_", 0), (URL, 27)]),
    ("slack-token", &[("=xo", 0), ("=xb-", 0), (DIGIT, 12), ("=-", 0), (DIGIT, 12), ("=-", 0), (ALNUM, 24)]),
    ("slack-token", &[("=xa", 0), ("=pp-1-A", 0), (UPPER, 10), ("=-", 0), (DIGIT, 13), ("=-", 0), (HEX, 64)]),
    ("discord-token", &[("=M", 0), ("=T", 0), (ALNUM, 22), ("=.", 0), (URL, 6), ("=.", 0), (URL, 38)]),
    ("telegram-token", &[("=7", 0), (DIGIT, 9), ("=:A", 0), ("=A", 0), (URL, 33)]),
    ("stripe-key", &[("=sk_", 0), ("=live_", 0), (ALNUM, 24)]),
    ("stripe-key", &[("=rk_", 0), ("=test_", 0), (ALNUM, 99)]),
    ("stripe-webhook-secret", &[("=wh", 0), ("=sec_", 0), (ALNUM, 32)]),
    ("square-token", &[("=sq0", 0), ("=csp-", 0), (URL, 43)]),
    ("square-token", &[("=EA", 0), ("=AA", 0), (URL, 60)]),
    ("paypal-token", &[("=access", 0), ("=_token$production$", 0), (LOWER, 16), ("=$", 0), (HEX, 32)]),
    ("shopify-token", &[("=sh", 0), ("=pat_", 0), (HEX, 32)]),
    ("twilio-key", &[("=S", 0), ("=K", 0), (HEX, 32)]),
    ("sendgrid-key", &[("=S", 0), ("=G.", 0), (URL, 22), ("=.", 0), (URL, 43)]),
    ("mailgun-key", &[("=ke", 0), ("=y-", 0), (HEX, 32)]),
    ("mailchimp-key", &[(HEX, 32), ("=-u", 0), ("=s", 0), (DIGIT, 2)]),
    ("vault-token", &[("=hv", 0), ("=s.", 0), (URL, 95)]),
    ("terraform-token", &[(ALNUM, 14), ("=.atlas", 0), ("=v1.", 0), (URL, 67)]),
    ("age-key", &[("=AGE-SECRET", 0), ("=-KEY-1", 0), (BASE32, 58)]),
    ("anthropic-key", &[("=sk-", 0), ("=ant-api03-", 0), (URL, 93), ("=AA", 0)]),
    ("openai-key", &[("=sk-", 0), ("=proj-", 0), (URL, 156)]),
    ("openai-key", &[("=s", 0), ("=k-", 0), (ALNUM, 48)]),
    ("openai-key", &[("=s", 0), ("=k-", 0), (HEX, 32)]),
    ("openrouter-key", &[("=sk-", 0), ("=or-v1-", 0), (HEX, 64)]),
    ("huggingface-token", &[("=h", 0), ("=f_", 0), (ALNUM, 34)]),
    ("groq-key", &[("=gs", 0), ("=k_", 0), (ALNUM, 52)]),
    ("xai-key", &[("=xa", 0), ("=i-", 0), (ALNUM, 80)]),
    ("perplexity-key", &[("=pp", 0), ("=lx-", 0), (ALNUM, 48)]),
    ("replicate-token", &[("=r", 0), ("=8_", 0), (ALNUM, 37)]),
    ("sentry-token", &[("=sn", 0), ("=tryu_", 0), (HEX, 64)]),
    ("newrelic-key", &[("=NR", 0), ("=AK-", 0), (UPPER, 27)]),
    ("grafana-token", &[("=gl", 0), ("=sa_", 0), (ALNUM, 32), ("=_", 0), (HEX, 8)]),
    ("linear-key", &[("=lin_", 0), ("=api_", 0), (ALNUM, 40)]),
    ("notion-token", &[("=nt", 0), ("=n_", 0), (DIGIT, 11), (ALNUM, 35)]),
    ("figma-token", &[("=fi", 0), ("=gd_", 0), (URL, 40)]),
    ("airtable-token", &[("=pa", 0), ("=t", 0), (ALNUM, 14), ("=.", 0), (HEX, 64)]),
    ("postman-key", &[("=PM", 0), ("=AK-", 0), (HEX, 24), ("=-", 0), (HEX, 34)]),
    (
        "jwt",
        &[
            ("=ey", 0),
            ("=JhbGciOi", 0),
            (ALNUM, 27),
            ("=.ey", 0),
            ("=J", 0),
            (URL, 120),
            ("=.", 0),
            (URL, 43),
        ],
    ),
];

/// Secrets that only their names tell: how one is marked, the names, and its characters.
const NAMED: &[(&str, &[&str], &str, usize)] = &[
    ("aws-secret", &["AWS_SECRET_ACCESS_KEY", "aws_secret_access_key", "SecretAccessKey"], BASE64, 40),
    ("azure-key", &["AccountKey", "AZURE_STORAGE_ACCOUNT_KEY"], BASE64, 86),
    ("cloudflare-token", &["CLOUDFLARE_API_TOKEN", "cloudflareApiKey"], URL, 40),
    ("datadog-key", &["DD_API_KEY", "datadog_app_key"], HEX, 32),
    ("twilio-token", &["TWILIO_AUTH_TOKEN", "twilioAuthToken"], HEX, 32),
    ("paypal-secret", &["PAYPAL_CLIENT_SECRET"], URL, 80),
    ("mistral-key", &["MISTRAL_API_KEY"], ALNUM, 32),
    ("api-key", &["API_KEY", "apiKey", "api-key", "x-api-key", "ACCESS_KEY"], ALNUM, 32),
    ("secret", &["client_secret", "SECRET_KEY", "appSecret", "JWT_SECRET"], HEX, 64),
    ("token", &["token", "ACCESS_TOKEN", "refreshToken", "auth_token"], URL, 40),
    ("password", &["password", "DB_PASSWORD", "dbPass", "PGPASSWORD", "passwd"], SIGNED, 16),
];

fn made(dice: &mut Dice, shape: &[(&str, usize)]) -> String {
    let piece = |(set, many): &(&str, usize)| match set.strip_prefix('=') {
        Some(text) => text.to_owned(),
        None => dice.of(set, *many),
    };
    shape.iter().map(piece).collect()
}

/// The text around a secret that has a shape of its own: `@` is its place.
const AROUND: &[&str] = &[
    "export SOME_VALUE=@\n",
    "SOME_VALUE=\"@\"",
    "{\"some\": \"@\", \"other\": 1}",
    "{\\\"some\\\": \\\"@\\\"}",
    "some:\n  value: @\n  other: 1\n",
    "client = Client(\"@\", timeout=3)",
    "client = Client('@')",
    "curl -H 'X-Some: @' https://api.example.com/v1/things",
    "2026-01-02T03:04:05Z ERROR refused (value @) at step 3",
    "Use `@` for now.",
    "It is @. Keep it.",
    "| name | @ |",
    "one line\\n@\\nanother",
    "https://api.example.com/things?value=@&page=2",
    "\u{1b}[32m@\u{1b}[0m",
    "@",
];

/// The text around a secret with a name: `NAME` and `@` are the places.
const ASSIGNED: &[&str] = &[
    "export NAME=@\n",
    "NAME=@",
    "NAME=\"@\"\n",
    "NAME='@' ./run\n",
    "{\"NAME\": \"@\", \"other\": 1}",
    "{\\\"NAME\\\": \\\"@\\\", \\\"other\\\": 1}",
    "  NAME: @\n  other: 1\n",
    "NAME = \"@\"  # here\n",
    "config[\"NAME\"] = '@'\n",
    "let NAME: &str = \"@\";",
    "const NAME = '@';",
    "env\\nNAME=@\\nOTHER=1",
    "<NAME>@</NAME>",
    "run(NAME=\"@\", other=2)",
    "The NAME is: nothing; NAME: `@`\n",
    "setenv(\"NAME\", \"@\", 1)",
    "'NAME' => '@',",
    "run --NAME @ --verbose\n",
];

fn plain() -> Redactor {
    Redactor::new(true, &[]).unwrap()
}

/// How many of how many were found, and what was marked otherwise.
#[derive(Default)]
struct Recall {
    made: usize,
    found: usize,
    first_missed: String,
}

#[test]
fn generated_secrets_are_found() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let redactor = plain();
    let mut all: BTreeMap<&str, Recall> = BTreeMap::new();
    let mut check = |kind: &'static str, secret: &str, text: &str| {
        let redacted = redactor.redact(text);
        let recall = all.entry(kind).or_default();
        recall.made += 1;
        // Not one half of it may stay, whatever the mark says.
        let half = &secret[secret.len() / 2..];
        if !redacted.text.contains(half) && redacted.text.contains(MARK) {
            recall.found += 1;
        } else if recall.first_missed.is_empty() {
            recall.first_missed = format!("{text} -> {}", redacted.text);
        }
    };
    for (kind, shape) in SHAPES {
        for at in 0..240 {
            let secret = made(&mut dice, shape);
            check(kind, &secret, &AROUND[at % AROUND.len()].replace('@', &secret));
        }
    }
    for (kind, names, set, many) in NAMED {
        for at in 0..360 {
            let secret = dice.of(set, *many);
            let text = ASSIGNED[at % ASSIGNED.len()].replace("NAME", dice.pick(names));
            check(kind, &secret, &text.replace('@', &secret));
        }
    }
    for at in 0..240 {
        let secret = dice.of(SIGNED, 14).replace('#', "%23");
        let scheme = dice.pick(&["postgres", "redis", "https", "mongodb+srv", "amqp"]);
        let url = format!("{scheme}://admin:{secret}@host.example.com:5432/things");
        check("url", &secret, &AROUND[at % AROUND.len()].replace('@', &url));
        let secret = dice.of(URL, 40);
        check(
            "bearer",
            &secret,
            &AROUND[at % AROUND.len()].replace('@', &format!("Authorization: Bearer {secret}")),
        );
        let secret = base64_of(&format!("user:{}", dice.of(ALNUM, 18)));
        check(
            "basic",
            &secret,
            &AROUND[at % AROUND.len()].replace('@', &format!("Authorization: Basic {secret}")),
        );
        let secret = format!("T{}/B{}/{}", dice.of(UPPER, 9), dice.of(UPPER, 9), dice.of(ALNUM, 24));
        let url = format!("https://hooks.slack.{}/{secret}", "com/services");
        check("slack-webhook", &secret, &AROUND[at % AROUND.len()].replace('@', &url));
        let secret = format!("{}/{}", dice.of(DIGIT, 18), dice.of(URL, 68));
        let url = format!("https://discord.com/api/{}/{secret}", "webhooks");
        check("discord-webhook", &secret, &AROUND[at % AROUND.len()].replace('@', &url));
        let secret = format!("{}%3D", dice.of(ALNUM, 43));
        let url = format!("https://x.blob.example.net/c/f?sv=2024-01-01&sp=r&sig={secret}");
        check("azure-sas", &secret, &AROUND[at % AROUND.len()].replace('@', &url));
        let secret = dice.of(SIGNED, 14);
        check("curl-login", &secret, &format!("curl -s -u 'admin:{secret}' https://x.example.com\n"));
        let block = pem(&mut dice, "RSA ", 20);
        let secret = block.lines().nth(5).unwrap().to_owned();
        let text = match at % 4 {
            0 => block,
            1 => format!("{{\"private_key\": \"{}\"}}", block.replace('\n', "\\n")),
            2 => block[..block.len() / 2].to_owned(),
            _ => block[block.len() / 4..].replace('\n', "\r\n"),
        };
        check("private-key", &secret, &text);
    }
    let (mut made, mut found) = (0, 0);
    for (kind, recall) in &all {
        #[allow(clippy::print_stderr, reason = "the figures are this test's second result")]
        {
            eprintln!("{kind:24} {:4} of {:4}  {}", recall.found, recall.made, recall.first_missed);
        }
        (made, found) = (made + recall.made, found + recall.found);
    }
    for (kind, recall) in &all {
        let Recall { made, found, first_missed } = recall;
        assert!(found * 100 >= made * 97, "{kind}: {found} of {made}: {first_missed}");
    }
    assert!(all.len() >= 25 && found * 100 >= made * 99, "{found} of {made}");
}

fn base64_of(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// A block as OpenSSL prints it.
fn pem(dice: &mut Dice, sort: &str, lines: usize) -> String {
    let label = format!("{sort}PRIVATE {}-----", "KEY");
    let body: String = (0..lines).map(|_| dice.of(BASE64, 64) + "\n").collect();
    format!("-----BEGIN {label}\n{body}{}==\n-----END {label}\n", dice.of(BASE64, 30))
}

#[test]
fn only_the_secret_goes() {
    let mut dice = Dice(7);
    let redactor = plain();
    let mut is = |text: &str, shape: &[(&str, usize)], expected: &str| {
        let secret = made(&mut dice, shape);
        assert_eq!(redactor.redact(&text.replace('@', &secret)).text, expected);
    };
    let secret: &[(&str, usize)] = &[(ALNUM, 20), ("=9x", 0), (ALNUM, 18)];
    is("AWS_SECRET_ACCESS_KEY=@", secret, "AWS_SECRET_ACCESS_KEY=[redacted:aws-secret]");
    is("Authorization: Bearer @\n", secret, "Authorization: Bearer [redacted:bearer]\n");
    is("{\\\"api_key\\\": \\\"@\\\"}", secret, "{\\\"api_key\\\": \\\"[redacted:api-key]\\\"}");
    is("see https://u:@# x", &[(ALNUM, 12), ("=%40x@h/p", 0)], "see https://u:[redacted:password]@h/p# x");
    is("token=@, next", &[("=gh", 0), ("=p_", 0), (ALNUM, 36)], "token=[redacted:github-token], next");
    is("c '--from-literal=k=a @ b' -n y", &[(ALNUM, 12)], "c '--from-literal=k=[redacted:secret]' -n y");
    is("c --from-literal='k=a @ b' -n y", &[(ALNUM, 12)], "c --from-literal='k=[redacted:secret]' -n y");
    is("c --from-literal=k=\"@\"", &[("=S3cr'", 0), (ALNUM, 8)], "c --from-literal=k=\"[redacted:secret]\"");
    is("IDENTIFIED BY '@';", &[("=S3cr\"", 0), (ALNUM, 8)], "IDENTIFIED BY '[redacted:password]';");
    is("h:5999:*:bob:@", &[("=S3", 0), (ALNUM, 8)], "h:5999:*:bob:[redacted:password]");
    is("curl x -u corp/bob:@", &[("=S3", 0), (ALNUM, 8)], "curl x -u corp/bob:[redacted:password]");
    let block = pem(&mut Dice(3), "OPENSSH ", 6);
    assert_eq!(redactor.redact(&format!("a\n{block}b")).text, "a\n[redacted:private-key]\nb");
    let redacted = redactor.redact(&block);
    assert_eq!(redacted.counts, BTreeMap::from([("private-key", 1)]));
}

/// What looks like a secret and is none; each line counts.
const HARMLESS: &str = r##"
arn:aws:lambda:*:123456789012:function:process-v2
commit 3f786850e387550fdab836ed7e6dc881de23001b
checksum = "ef8f7726da4807b58ea5c96fdc122f80702030edc33b35aff9190a51148ccc85"
"integrity": "sha512-oRjTw/97aTBN0RHbYCdtF1MQfvusSIBQM0IZEgzl6426+8jSC0nF1a/GmnVLpfB9yyr6g6FTqWqiZVbxrtaCIg==",
id: 123e4567-e89b-12d3-a456-426614174000
background: url(data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)
color: #a1b2c3; border-color: #00ff00aa
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
token = self.next_token()
let token: Token = lexer.peek()?;
password: String,
password = getpass.getpass("Password: ")
const apiKey = process.env.API_KEY;
api_key: ${API_KEY}
API_KEY=<your-api-key-here>
export GITHUB_TOKEN=$(gh auth token)
token: "{{ secrets.token }}"
secret: changeme
password=hunter
"password": "Enter your new password"
max_tokens: 4096
tokens = tokenize(text1, text2)
token_type=bearer
access_token_url = "https://example.com/oauth2/token"
private_key_path = "/etc/ssl/private/key1.pem"
auth: Auth2Client::new(config),
use crate::auth::token::TokenKind2;
self.password = password1
if (token == TokenKind.Identifier2) {
The password is checked against the hash in the database.
basic authentication and bearer tokens are explained below
Basic understanding of colons
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
sk-your-key-goes-right-here
postgres://user:password@localhost/db
postgres://${USER}:${PASSWORD}@localhost/db
http://localhost:8080/@scope/package@1.2.3
git@github.com:owner/repository.git
sk-spinner-three-bounce-animation-delay
key-0123456789
!function(e,t){"object"==typeof exports?module.exports=t():e.token=t(n(1),n(2))}(this,function(){});
test result::tests::token_of_kind_2_is_parsed_before_3 ... ok
docker run -u 1000:1000 -p 8080:80 image
const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
1.3.6.1.5.5.7.3.1
eyJhbGciOiJIUzI1NiJ9
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
starts_with("-----BEGIN RSA PRIVATE KEY-----")
"##;

#[test]
fn source_code_stays() {
    let redactor = plain();
    let sample: Vec<&str> = HARMLESS.lines().filter(|line| plain_changes(&redactor, line)).collect();
    assert!(sample.is_empty(), "{sample:#?}");
    let (mut lines, mut flagged) = (0, Vec::new());
    for dir in ["lib", "bins", "tests", "benches"] {
        let mut waiting = vec![std::path::PathBuf::from(dir)];
        while let Some(path) = waiting.pop() {
            if path.is_dir() {
                waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                lines += text.lines().count();
                flagged.extend(text.lines().filter(|line| plain_changes(&redactor, line)).map(str::to_owned));
            }
        }
    }
    assert!(lines > 10_000 && flagged.len() * 1000 <= lines, "{} of {lines}: {flagged:#?}", flagged.len());
}

fn plain_changes(redactor: &Redactor, line: &str) -> bool {
    redactor.redact(line).text != line
}

/// Parts of secrets and of what stands around them, put together at random.
#[test]
fn no_text_makes_it_panic_and_the_second_time_changes_nothing() {
    let mut dice = Dice(99);
    let redactor = Redactor::new(true, &["ACME-[0-9]+".into(), "badge: (.*)".into()]).unwrap();
    let parts = [
        "password", "token", "=", ": ", "\"", "\\\"", "'", "\\n", "\n", " ", "://", "@", "u:", "-----BEGIN ",
        "PRIVATE KEY", "-----", "-----END ", "eyJ", ".", "sk-", "gh", "p_", "Bearer ", "Basic ", "ä", "🦀",
        "[redacted:", "]", "[redacted:jwt]", "<", ">", "</", "--", "ACME-", "badge: ", "sig=", "curl -u ",
        "(", ")", ",", "Q~", ":AA", "-us", "%3D", "\u{1b}[3m", "\\", "AccountKey", "SK", "&", ";",
    ];
    for _ in 0..4_000 {
        let mut text = String::new();
        for _ in 0..dice.below(24) {
            match dice.below(4) {
                0 => {
                    let (set, many) = (dice.pick(&[HEX, ALNUM, URL, BASE64, DIGIT, SIGNED]), dice.below(50));
                    text += &dice.of(set, many);
                }
                _ => text += dice.pick(&parts),
            }
        }
        let once = redactor.redact(&text).text.into_owned();
        let twice = redactor.redact(&once);
        assert_eq!(twice.text, once, "from {text:?}");
        assert!(twice.counts.is_empty());
    }
}

/// Each of these took forever if a finder looked at the rest of the text from each place in it.
#[test]
fn hostile_text_costs_no_more_than_its_length() {
    let redactor = Redactor::new(true, &["ACME-[0-9]+".into()]).unwrap();
    let begin = "-----BEGIN RSA PRIVATE KEY-----";
    let end = "-----END RSA PRIVATE KEY-----";
    for part in [
        begin,
        end,
        "-----BEGIN ",
        "://",
        "://u:",
        "eyJ",
        "eyJ-",
        "eyJ.",
        "token=",
        "token='",
        "token=\\\"",
        "a=",
        "=",
        ":",
        "password: ",
        "Bearer ",
        "bearer a",
        "sig=",
        "SK",
        "Q~",
        ":AA",
        "glc_-",
        "[redacted:",
        "[redacted:x",
        "\\",
        "\"",
        "ACME-",
        "1234567890abcdef",
        "<token>",
        "--token ",
        " -u",
        "login password ",
        "-----BEGIN RSA PRIVATE KEY-----\n\n",
        "ghp_",
        "MT",
        "password ",
        "password is ",
        "login: a/b ",
        "kind: Secret\ndata:\n  a: b\n",
        "|password|\n|-|\n",
        "user,password\n",
        ":*:",
        "curl -u ",
        "mysql ",
        "echo x | sudo -S ",
        "name: token value: ",
        "Cookie: a=b; ",
        "?key=",
        "\"d\":",
        "Private-Lines: 9\n",
        "%41",
        "\u{200b}",
        "\u{1b}[0m",
        "ghp_a\n",
        "AKIA\"+\"",
        "4111 ",
        "abandon ability ",
        "a2b3c4d5e6f7",
        "SetPassword(\"a\",",
    ] {
        let text = part.repeat(30_000 / part.len());
        // The processor's time of this thread: other programs change nothing.
        let spent = || clock_gettime(ClockId::ThreadCPUTime).tv_sec;
        let started = spent();
        redactor.redact(&text);
        assert!(spent() - started < 10, "{part:?} took {} s", spent() - started);
    }
}

#[test]
fn a_users_pattern_redacts_its_first_group_or_all() {
    let redactor = |pattern: &str| Redactor::new(true, &[pattern.to_owned()]).unwrap();
    let text = "badge: 12345, ACME-77 and ACME-8\nbadge: 9";
    assert_eq!(
        redactor("ACME-[0-9]+").redact(text).text,
        "badge: 12345, [redacted:custom] and [redacted:custom]\nbadge: 9"
    );
    assert_eq!(
        redactor("badge: ([0-9]+)").redact(text).text,
        "badge: [redacted:custom], ACME-77 and ACME-8\nbadge: [redacted:custom]"
    );
    assert_eq!(redactor("(?i)acme-(7+)?").redact("ACME-8").text, "[redacted:custom]8");
    assert_eq!(redactor("x*").redact("ab").text, "ab");
    assert_eq!(redactor(".*").redact("a\nb").text, "[redacted:custom]\n[redacted:custom]");
    let long = format!("{}ACME-1{}", "ä ".repeat(9000), "é".repeat(9000));
    assert_eq!(redactor("ACME-[0-9]").redact(&long).counts["custom"], 1);
}

#[test]
fn a_wrong_pattern_is_named() {
    let fault = |patterns: &[&str]| {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Redactor::new(true, &patterns).err().unwrap().message().to_owned()
    };
    assert!(fault(&["a", "b("]).starts_with("pattern 2 'b(': "), "{}", fault(&["a", "b("]));
    assert_eq!(fault(&[""]), "pattern 1 '': it is empty");
    assert!(fault(&[&"a".repeat(5000)]).ends_with("it is longer than 4096 bytes"));
    assert!(fault(&["(a{1000}){1000}"]).contains("pattern 1"));
    assert!(fault(&["a"; 101]).contains("at most 100"));
}

#[test]
fn nothing_is_done_when_it_is_off() {
    let text = format!("token=gh{}_{}", "p", Dice(5).of(ALNUM, 36));
    let redacted = Redactor::new(false, &[]).unwrap().redact(&text);
    assert!(matches!(redacted.text, Cow::Borrowed(_)) && redacted.counts.is_empty());
}

#[test]
fn kinds_tell_the_first_line_and_how_many_and_no_more() {
    let token = format!("ghp_{}", "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW2xY4");
    let text = format!("a\n\nb {token}\n{token} [redacted:github-token] AKIAQYLPMN5HHHFPZAM2\n");
    let kinds = Redactor::new(true, &[]).unwrap().kinds(&text);
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), [("aws-key-id", (4, 1)), ("github-token", (3, 2))]);
    assert!(Redactor::new(false, &[]).unwrap().kinds(&text).is_empty());
    assert!(Redactor::new(true, &[]).unwrap().kinds("no secret here").is_empty());
}

#[test]
fn around_a_mark_only_a_part_of_a_long_line_is_searched_again() {
    let long = "ä".repeat(500_000);
    let text = format!("{long}{MARK}token]{long}");
    let mark = (long.len(), long.len() + MARK.len() + 6);
    let windows = around(&text, &[mark]);
    let [(from, to)] = windows[..] else { panic!("{windows:?}") };
    assert!(from < mark.0 && mark.1 < to && to - from < 3 * (super::AROUND + super::LINE), "{windows:?}");
    assert!(text.get(from..to).is_some(), "no character is split: {windows:?}");

    let words = "word ".repeat(100_000);
    let text = format!("{words}{MARK}token] {words}");
    let [(from, to)] = around(&text, &[(words.len(), words.len() + MARK.len() + 6)])[..] else { panic!() };
    assert!(text[from..to].starts_with("word") && text[from..to].ends_with("word "), "no word is split");
}

#[test]
fn every_rule_can_be_read_and_is_a_regular_expression() {
    let lines: Vec<&str> = rules::section("rules").collect();
    let (rules, _) = rules::all();
    let checks: Vec<(&str, &str)> = rules.iter().map(|rule| (rule.kind, rule.check)).collect();
    let mut read = checks.iter();
    // In their order: the first line that no rule was made of is named.
    for line in &lines {
        let said: Vec<&str> = line.split_whitespace().take(2).collect();
        assert_eq!(read.next(), Some(&(said[0], said[1])), "cannot be read: {line}");
    }
    assert_eq!(rules.len(), lines.len() + rules::section("commands").count());
    for (_, check) in checks {
        assert!(search::RuleCheck::of(check).is_some(), "{check}");
    }
    for line in lines {
        let pattern = line.split_whitespace().nth(2).map(|first| &line[line.find(first).unwrap()..]).unwrap();
        let pattern = pattern.split("\n").map(str::trim_start).collect::<String>();
        assert!(regex_lite::Regex::new(&pattern).is_ok(), "{pattern}");
    }
}

/// Both orders, with quotes or none, in ten languages; assignments, tables and strings of any syntax.
#[test]
fn a_secret_is_found_however_it_is_written() {
    let ways = [
        ("I set it to KEY (that's the db password)", "Tr4mline#9"),
        ("use KEY as the password for the staging login", "jSk6eu=.B9zv!g"),
        ("try KEY, that was the old admin password", "moss+Gully3"),
        ("The password, by the way, is KEY.", "moss+Gully3"),
        ("password (for prod): KEY", "moss+Gully3"),
        ("here's the api key I use, KEY", "q8Zt3LmWv0Xy7Rb2Nc5K"),
        ("the pin for the door is KEY", "4471"),
        ("el pin de la tarjeta es KEY", "9042"),
        ("Die PIN für die Haustür ist KEY", "6603"),
        ("le code de la porte c'est KEY", "7731"),
        ("the alarm code is KEY", "77410"),
        ("KEY — это пароль от роутера", "j11dATtGcsLnn0"),
        ("поставь KEY паролем для теста", "Balalaika#3str"),
        ("用KEY作为测试账号的密码", "Dengta_9haoan"),
        ("KEYをテストユーザーのパスワードに設定して", "Kazami-dori7"),
        ("şifresi KEY", "Lale!Bahce9"),
        ("KEY es la clave del servidor", "WpXRa+uj=4hDC"),
        ("**Password**\n`KEY`", "Tidal-Wren!58x"),
        ("Password ....... KEY", "Tidal-Wren!58x"),
        ("- password\n  - KEY", "Tidal-Wren!58x"),
        (r#"{"content": "password: |\n  KEY\nuser: x"}"#, "Tidal-Wren!58x"),
        ("password (base64): KEY", "VGlkYWwtV3JlbiE1OHg="),
        ("password_b64 = \"KEY\"", "VGlkYWwtV3JlbiE1OHg="),
        ("password_hex=KEY", "546964616c2d5772656e21353878"),
        ("<entry key=\"db.password\">KEY</entry>", "kelp7forest"),
        ("login;password\nbo;KEY\n", "kelp7forest"),
        ("user\tpassword\nbo\tKEY\n", "kelp7forest"),
        ("INSERT INTO users (name, password) VALUES ('bo', 'KEY');", "kelp7forest"),
        ("#define WIFI_PASS \"KEY\"", "kelp7forest"),
        (r#"{"ParameterKey":"DbPassword","ParameterValue":"KEY"}"#, "kelp7forest"),
    ];
    for (text, key) in ways {
        let clean = plain().cleaned(&text.replace("KEY", key));
        assert!(!clean.contains(key), "{clean}");
    }
    for honest in [
        "audit login ok subject=claim mechanism=password mfa=totp ip=10.1.4.5",
        "await page.fill('#pw', process.env.E2E_PASSWORD!);",
        "    private String password;\n    private String user2name;\n",
        "we pin the version for node, 2024 is the year",
        "<label for=\"password\">Password (min. 8)</label>",
        "ii  login         1:4.13+dfsg1-1+deb12u1  amd64  system login tools",
        "ii  passwd        1:4.13+dfsg1-1+deb12u1  amd64  change and administer password data",
        "ii  sudo          1.9.13p3-1+deb12u1      amd64  limited super user privileges",
        "passwd 1:4.13+dfsg1-1+deb12u1\nlogin 1:4.13+dfsg1-1+deb12u1\npasswd 4.13+dfsg1-1\n",
        "passwd/stable,now 1:4.13+dfsg1-1+deb12u1 amd64 [installed]",
        "apt install passwd=1:4.13+dfsg1-1+deb12u1 login=1:4.13+dfsg1-1+deb12u1",
        "A line is pw_name:pw_passwd:pw_uid:pw_gid:pw_gecos:pw_dir:pw_shell",
    ] {
        assert_eq!(plain().cleaned(honest), honest);
    }
    // What looks nearly so is none.
    for (text, key) in [
        ("password: KEY", "4.8.2019-anna"),
        ("ii  login  1:KEY  amd64", "4.13+x9q4r2k8w3z7"),
        ("ii  login  1:KEY  amd64", "4.13+dfsg1-Xk9qTw2"),
        ("the password is KEY", "qz_x:vk_j:wq_z9"),
    ] {
        let clean = plain().cleaned(&text.replace("KEY", key));
        assert!(!clean.contains(key), "{clean}");
    }
}

#[test]
fn an_empty_secret_is_none() {
    for text in ["See [recovery codes][1].", "the password (", "check_password (\n"] {
        assert_eq!(plain().cleaned(text), text);
    }
    let veiled = "Read(\"\\u0061\")\nread(\"/h/token\") output\":\"\u{200b}\" x";
    assert!(plain().cleaned(veiled).ends_with("\" x"));
}

/// `SECRETS=FILE cargo test --lib secrets_score -- --ignored --nocapture`: the share of a file's secrets that is found, for
/// each group. A line is an object with `group`, `kind`, `text` and `secrets`. With `MISSED` set, each kind that is not
/// always found is printed with its first text. `HONEST=FILE` is a text without secrets: its false alarms are counted.
#[test]
#[ignore = "needs a file of secrets"]
#[allow(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "whoever measures names a file and reads the figures"
)]
fn secrets_score() {
    let read = |name: &str| std::env::var_os(name).map(|path| std::fs::read_to_string(path).unwrap());
    let (mut groups, mut missed) = (BTreeMap::<String, (usize, usize)>::new(), BTreeMap::new());
    for line in read("SECRETS").iter().flat_map(|text| text.lines()) {
        let example: serde_json::Value = serde_json::from_str(line).unwrap();
        let [group, kind, text] =
            ["group", "kind", "text"].map(|key| example[key].as_str().unwrap_or_default());
        let clean = plain().cleaned(text);
        let secrets = example["secrets"].as_array().unwrap().iter().filter_map(|secret| secret.as_str());
        let mut parts = secrets.flat_map(str::lines).map(str::trim).filter(|part| !part.is_empty());
        let is_found = parts.all(|part| !clean.contains(part));
        if !is_found {
            missed.entry(format!("{group}: {kind}")).or_insert(clean);
        }
        let group = groups.entry(group.to_owned()).or_default();
        *group = (group.0 + usize::from(is_found), group.1 + 1);
    }
    for (group, (found, all)) in &groups {
        eprintln!("{group:16} {found:4} of {all:4}  {:.1} %", *found as f64 * 100.0 / *all as f64);
    }
    if std::env::var_os("MISSED").is_some() {
        missed.iter().for_each(|(kind, text)| eprintln!("{kind}\n    {text:?}"));
    }
    if let Some(text) = read("HONEST") {
        let alarms: usize = plain().redact(&text).counts.values().sum();
        eprintln!("{alarms} false alarms, {:.2} a MB", alarms as f64 * 1e6 / text.len() as f64);
        text.lines().filter(|line| plain_changes(&plain(), line)).for_each(|line| eprintln!("    {line}"));
    }
}
