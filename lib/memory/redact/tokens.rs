//! Tokens with the prefix of their issuer, which exists so that they can be found. The shapes come from the issuers'
//! documentation and from real (revoked) tokens.

use crate::memory::redact::cues::{CUES, Cue};
use crate::memory::redact::near::{Done, Near};
use crate::memory::redact::span::{Certainty, CharClass, Runs, Span, begins, ends};
use crate::memory::redact::value::{random, varied};

/// A run of characters of one class: the fewest and the most.
type Run = (CharClass, usize, usize);

/// The first two bytes, in lower case.
fn key(text: &[u8]) -> u16 {
    let lower = |byte: Option<&u8>| u16::from(byte.map_or(0, u8::to_ascii_lowercase));
    lower(text.first()) << 8 | lower(text.get(1))
}

/// No limit.
const ANY: usize = usize::MAX;
const DOT: Run = (CharClass::Dot, 1, 1);
const DASH: Run = (CharClass::Dash, 1, 1);

/// One shape of an issuer's tokens.
struct Shape {
    kind: &'static str,
    /// The token begins with one of these, after [`Shape::before`]. At least two characters.
    prefixes: &'static [&'static str],
    body: &'static [Run],
    /// What comes before the prefix if the recognisable part is in the middle.
    before: Option<Run>,
    /// The prefix is an address and not secret: it stays.
    keep: bool,
    /// Words may begin with the prefix too, so the body must look random.
    doubt: bool,
}

const fn shape(kind: &'static str, prefixes: &'static [&'static str], body: &'static [Run]) -> Shape {
    Shape { kind, prefixes, body, before: None, keep: false, doubt: false }
}

impl Shape {
    const fn doubtful(self) -> Shape {
        Shape { doubt: true, ..self }
    }
    const fn after(self, before: Run) -> Shape {
        Shape { before: Some(before), ..self }
    }
    const fn kept(self) -> Shape {
        Shape { keep: true, ..self }
    }
}

use CharClass::{
    Alnum, Base64, Crypt, Digit, Dollar, Dotted, Hex, HexDash, Path, Percent, Phc, Tilde, Token68 as Token,
    UpperDigit, Url, Word,
};

/// The first match counts.
static SHAPES: &[Shape] = &[
    // Clouds
    shape("aws-key-id", &["AKIA", "ASIA", "ABIA", "ACCA"], &[(UpperDigit, 16, 16)]),
    shape("aws-session-token", &["IQoJb3JpZ2lu", "FwoGZXIvYXdz"], &[(Base64, 100, ANY)]),
    shape("aws-bedrock-key", &["ABSKQmVkcm9ja0FQSUtleS"], &[(Base64, 60, ANY)]),
    shape("aws-mws-key", &["amzn.mws."], &[(Url, 36, 36)]),
    // With `APA91b` it is a key of a server, and without it may be anything.
    shape("google-api-key", &["AAAA"], &[(Url, 7, 7), (CharClass::Colon, 1, 1), (Url, 100, 180)]),
    shape("azure-secret", &["AZDO"], &[(Alnum, 4, 4)]).after((Alnum, 76, 76)),
    shape("azure-key", &["AzFu"], &[(Base64, 8, 12)]).after((Url, 40, 48)),
    shape("tencent-key", &["AKID"], &[(Alnum, 32, 32)]).doubtful(),
    shape("yandex-key", &["AQVN"], &[(Url, 34, 40)]).doubtful(),
    shape("render-key", &["rnd_"], &[(Alnum, 28, 40)]).doubtful(),
    shape("google-api-key", &["AIza"], &[(Url, 35, 35)]),
    shape("google-oauth", &["ya29."], &[(Dotted, 20, ANY)]),
    shape("google-oauth", &["GOCSPX-"], &[(Url, 20, 40)]),
    shape("google-oauth", &["1//0"], &[(Url, 30, ANY)]),
    shape("azure-secret", &["Q~"], &[(Tilde, 31, 35)]).after((Tilde, 4, 4)),
    shape("alibaba-key", &["LTAI5t"], &[(Alnum, 14, 24)]),
    shape("alibaba-key", &["LTAI"], &[(Alnum, 16, 24)]).doubtful(),
    shape("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], &[(Hex, 64, 64)]),
    shape("heroku-key", &["HRKU-"], &[(Url, 36, 80)]),
    shape("cloudflare-key", &["v1.0-"], &[(Hex, 24, 24), DASH, (Hex, 100, 160)]),
    shape("flyio-token", &["fm1_", "fm1r_", "fm2_"], &[(Base64, 80, ANY)]),
    shape("flyio-token", &["fo1_"], &[(Url, 40, 48)]),
    shape("planetscale-token", &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], &[(Dotted, 32, 64)]),
    shape("supabase-key", &["sbp_"], &[(Hex, 40, 40)]),
    shape("supabase-key", &["sb_secret_"], &[(Url, 20, 64)]),
    shape("netlify-token", &["nfp_", "nfc_", "nfo_"], &[(Alnum, 36, 64)]),
    shape("databricks-token", &["dapi"], &[(Hex, 32, 32), (CharClass::Dash, 0, 1), (Digit, 0, 2)]),
    // Forges and registries
    shape("github-token", &["ghp_", "gho_", "ghu_", "ghr_"], &[(Alnum, 36, 255)]),
    shape("github-token", &["ghs_"], &[(Dotted, 36, ANY)]),
    shape("github-token", &["github_pat_"], &[(Word, 50, 255)]),
    shape(
        "gitlab-token",
        &[
            "glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-",
            "gloas-", "glsoat-", "glffct-", "glwt-",
        ],
        &[(Dotted, 20, 320)],
    ),
    shape("gitlab-token", &["GR1348941"], &[(Url, 20, 32)]),
    shape("bitbucket-token", &["ATBB"], &[(Alnum, 28, 40)]).doubtful(),
    shape("atlassian-token", &["ATATT3", "ATCTT3", "ATSTT3"], &[(Base64, 60, ANY)]),
    shape("npm-token", &["npm_"], &[(Alnum, 36, 36)]),
    shape("pypi-token", &["pypi-AgE"], &[(Url, 40, ANY)]),
    shape("crates-io-token", &["cio"], &[(Alnum, 32, 32)]).doubtful(),
    shape("rubygems-key", &["rubygems_"], &[(Hex, 48, 48)]),
    shape("nuget-key", &["oy2"], &[(Alnum, 43, 43)]).doubtful(),
    shape("docker-token", &["dckr_pat_", "dckr_oat_"], &[(Url, 20, 64)]),
    shape("artifactory-key", &["AKCp"], &[(Alnum, 60, 80)]).doubtful(),
    shape("artifactory-key", &["cmVmdGtu"], &[(Base64, 50, 80)]).doubtful(),
    shape("sonar-token", &["squ_", "sqp_", "sqa_"], &[(Hex, 40, 40)]),
    shape("packagist-token", &["packagist_ort_", "packagist_out_", "packagist_uut_"], &[(Hex, 60, 80)]),
    shape("clojars-token", &["CLOJARS_"], &[(Hex, 60, 60)]),
    shape("sourcegraph-token", &["sgp_"], &[(Word, 40, 80)]).doubtful(),
    shape("sourcegraph-token", &["sgamp_user_"], &[(Word, 40, 120)]),
    shape("buildkite-token", &["bkua_"], &[(Hex, 40, 40)]),
    shape("circleci-token", &["CCIPAT_", "CCIPRJ_"], &[(Word, 40, 100)]),
    // Chat
    shape("slack-token", &["xoxe.xox"], &[(Percent, 20, ANY)]),
    shape(
        "slack-token",
        &["xoxb-", "xoxp-", "xoxa-", "xoxo-", "xoxr-", "xoxs-", "xoxe-", "xoxc-", "xoxd-", "xapp-"],
        &[(Percent, 16, ANY)],
    )
    .doubtful(),
    shape(
        "slack-webhook",
        &["hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"],
        &[(Path, 20, 120)],
    )
    .kept(),
    shape(
        "discord-webhook",
        &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        &[(Path, 60, 160)],
    )
    .kept(),
    // Begins with the base64 of a user's number: `M`, `N` or `O` and what the digits give.
    shape(
        "discord-token",
        &["MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"],
        &[(Url, 21, 26), DOT, (Url, 6, 7), DOT, (Url, 27, 45)],
    ),
    shape("teams-webhook", &["webhook.office.com/webhookb2/"], &[(Path, 60, 300)]).kept(),
    shape("telegram-token", &[":AA"], &[(Url, 32, 33)]).after((Digit, 8, 10)),
    shape("facebook-token", &["EAA"], &[(Alnum, 90, 400)]).doubtful(),
    shape("instagram-token", &["IGQ", "IGAA"], &[(Url, 100, 300)]).doubtful(),
    shape("twitter-token", &["AAAAAAAAAAAAAAAAAAAAA"], &[(Token, 60, 120)]).doubtful(),
    shape("twitch-token", &["oauth:"], &[(Alnum, 30, 30)]),
    // Payment and mail
    shape("stripe-key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_"], &[(Alnum, 16, 255)]),
    shape("stripe-webhook-secret", &["whsec_"], &[(Base64, 24, 80)]),
    shape("square-token", &["sq0atp-", "sq0csp-", "sq0idp-"], &[(Url, 20, 48)]),
    shape("square-token", &["EAAA"], &[(Url, 60, 60)]).doubtful(),
    shape("paypal-token", &["access_token$"], &[(Dollar, 40, 80)]),
    shape("paypal-token", &["A21AA"], &[(Url, 80, 120)]).doubtful(),
    shape("shopify-token", &["shpat_", "shpca_", "shppa_", "shpss_", "shptka_"], &[(Hex, 32, 32)]),
    shape("twilio-key", &["SK"], &[(Hex, 32, 32)]),
    shape("sendgrid-key", &["SG."], &[(Url, 16, 32), DOT, (Url, 32, 64)]),
    shape("mailgun-key", &["key-"], &[(Hex, 32, 32)]),
    shape("adyen-key", &["AQE"], &[(Token, 60, 160)]).doubtful(),
    shape("razorpay-key", &["rzp_live_", "rzp_test_"], &[(Alnum, 14, 14)]),
    shape("plaid-token", &["access-production-", "access-development-", "access-sandbox-"], &[(Url, 36, 36)]),
    shape("flutterwave-key", &["FLWSECK-", "FLWSECK_TEST-", "FLWSECK_"], &[(Url, 30, 50)]),
    shape("mollie-key", &["live_", "test_"], &[(Alnum, 30, 40)]).doubtful(),
    shape("mercadopago-token", &["APP_USR-"], &[(Url, 40, 90)]),
    shape("mandrill-key", &["md-"], &[(Url, 22, 22)]).doubtful(),
    shape("resend-key", &["re_"], &[(Alnum, 8, 8), (CharClass::Underscore, 1, 1), (Alnum, 20, 28)])
        .doubtful(),
    shape("mailersend-key", &["mlsn."], &[(Hex, 64, 64)]),
    shape("easypost-key", &["EZAK", "EZTK"], &[(Alnum, 54, 54)]),
    shape("shippo-token", &["shippo_live_", "shippo_test_"], &[(Hex, 40, 40)]),
    shape("mailchimp-key", &["-us"], &[(Digit, 1, 2)]).after((Hex, 32, 32)),
    shape("brevo-key", &["xkeysib-"], &[(Hex, 64, 64), DASH, (Alnum, 16, 16)]),
    // Vaults and infrastructure
    shape("vault-token", &["hvs.", "hvb.", "hvr."], &[(Url, 24, ANY)]),
    shape("terraform-token", &[".atlasv1."], &[(Url, 60, 80)]).after((Alnum, 14, 14)),
    shape("age-key", &["AGE-SECRET-KEY-1"], &[(UpperDigit, 58, 58)]),
    shape(
        "doppler-token",
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        &[(Dotted, 40, 80)],
    ),
    shape("pulumi-token", &["pul-"], &[(Hex, 40, 40)]),
    shape("tailscale-key", &["tskey-"], &[(Url, 20, 80)]).doubtful(),
    shape("onepassword-token", &["ops_eyJ"], &[(Base64, 200, ANY)]),
    // Base64 of a PEM block's first line, as Kubernetes' files have it.
    shape(
        "private-key",
        &[
            "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt",
            "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS",
            "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS",
            "LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ",
        ],
        &[(Base64, 40, ANY)],
    ),
    // LLM vendors
    shape("anthropic-key", &["sk-ant-"], &[(Url, 20, 200)]),
    shape("openrouter-key", &["sk-or-v1-"], &[(Hex, 64, 64)]),
    shape("openai-key", &["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"], &[(Url, 20, 260)]).doubtful(),
    // Also DeepSeek, Moonshot and others that use OpenAI's shape.
    shape("openai-key", &["sk-"], &[(Alnum, 32, 64)]).doubtful(),
    shape("huggingface-token", &["hf_", "api_org_"], &[(Alnum, 30, 40)]).doubtful(),
    shape("groq-key", &["gsk_"], &[(Alnum, 40, 64)]).doubtful(),
    shape("xai-key", &["xai-"], &[(Alnum, 64, 100)]).doubtful(),
    shape("perplexity-key", &["pplx-"], &[(Alnum, 40, 64)]).doubtful(),
    shape("replicate-token", &["r8_"], &[(Alnum, 36, 42)]).doubtful(),
    shape("fireworks-key", &["fw_"], &[(Alnum, 22, 32)]).doubtful(),
    shape("nvidia-key", &["nvapi-"], &[(Url, 50, 80)]),
    shape("cerebras-key", &["csk-"], &[(Alnum, 40, 64)]).doubtful(),
    shape("langfuse-key", &["sk-lf-"], &[(Url, 36, 36)]),
    shape("pinecone-key", &["pcsk_"], &[(Word, 50, 90)]),
    shape("voyage-key", &["pa-"], &[(Url, 43, 43)]).doubtful(),
    shape("tavily-key", &["tvly-"], &[(Url, 28, 60)]).doubtful(),
    shape("jina-key", &["jina_"], &[(Url, 50, 70)]).doubtful(),
    shape("firecrawl-key", &["fc-"], &[(Hex, 32, 32)]),
    shape("runpod-key", &["rpa_"], &[(Alnum, 36, 60)]).doubtful(),
    shape("e2b-key", &["e2b_"], &[(Hex, 40, 40)]),
    shape("elevenlabs-key", &["sk_"], &[(Hex, 48, 48)]),
    shape("langsmith-key", &["lsv2_pt_", "lsv2_sk_"], &[(Word, 32, 64)]),
    // Monitoring, planning and design
    shape("sentry-token", &["sntrys_", "sntryu_"], &[(Base64, 60, ANY)]),
    shape("newrelic-key", &["NRAK-", "NRJS-", "NRII-", "NRRA-", "NRIQ-"], &[(Url, 19, 42)]),
    shape("newrelic-key", &["NRAL"], &[]).after((Hex, 36, 36)),
    shape("grafana-token", &["glsa_"], &[(Word, 32, 64)]),
    shape("grafana-token", &["glc_"], &[(Base64, 32, 400)]).doubtful(),
    shape("dynatrace-token", &["dt0c01.", "dt0s01."], &[(UpperDigit, 24, 24), DOT, (UpperDigit, 64, 64)]),
    shape("honeycomb-key", &["hcaik_", "hcxik_", "hcbik_"], &[(Alnum, 50, 64)]),
    shape("asana-token", &["1/", "2/"], &[(Digit, 14, 18), (CharClass::Colon, 1, 1), (Hex, 32, 32)]),
    shape(
        "asana-token",
        &["2/"],
        &[
            (Digit, 14, 18),
            (CharClass::Slash, 1, 1),
            (Digit, 14, 18),
            (CharClass::Colon, 1, 1),
            (Hex, 32, 32),
        ],
    ),
    shape("clickup-token", &["pk_"], &[(Digit, 6, 10), (CharClass::Underscore, 1, 1), (UpperDigit, 32, 32)]),
    shape("trello-token", &["ATTA"], &[(Hex, 60, 72)]),
    shape("dropbox-token", &["sl."], &[(Dotted, 60, ANY)]).doubtful(),
    shape("mapbox-token", &["sk.eyJ"], &[(Dotted, 40, 200)]),
    shape("hubspot-token", &["pat-na1-", "pat-eu1-", "pat-na2-", "pat-ap1-"], &[(Url, 36, 36)]),
    shape("salesforce-token", &["00D"], &[(Alnum, 12, 15), (CharClass::Bang, 1, 1), (Dotted, 60, 160)]),
    shape("launchdarkly-key", &["sdk-", "api-"], &[(HexDash, 36, 36)]),
    shape("typeform-token", &["tfp_"], &[(Url, 40, 80)]).doubtful(),
    shape("infisical-token", &["st."], &[(Hex, 24, 24), DOT, (Hex, 32, 32), DOT, (Hex, 32, 32)]),
    shape("prefect-key", &["pnu_", "pnb_"], &[(Alnum, 36, 36)]),
    shape("readme-key", &["rdme_"], &[(Alnum, 60, 80)]).doubtful(),
    shape("wallet-key", &["xprv", "yprv", "zprv", "tprv"], &[(Alnum, 100, 112)]),
    shape(
        "password-hash",
        &["$6$", "$5$", "$1$", "$apr1$"],
        &[(Crypt, 1, 40), (CharClass::DollarSign, 1, 1), (Crypt, 22, 90)],
    ),
    shape(
        "password-hash",
        &["$6$rounds=", "$5$rounds="],
        &[
            (Digit, 1, 9),
            (CharClass::DollarSign, 1, 1),
            (Crypt, 1, 40),
            (CharClass::DollarSign, 1, 1),
            (Crypt, 40, 90),
        ],
    ),
    shape(
        "password-hash",
        &["$y$", "$gy$", "$7$"],
        &[
            (Crypt, 1, 8),
            (CharClass::DollarSign, 1, 1),
            (Crypt, 1, 90),
            (CharClass::DollarSign, 1, 1),
            (Crypt, 40, 90),
        ],
    ),
    shape(
        "password-hash",
        &["$2a$", "$2b$", "$2y$", "$2x$"],
        &[(Digit, 2, 2), (CharClass::DollarSign, 1, 1), (Crypt, 53, 53)],
    ),
    shape(
        "password-hash",
        &[
            "$argon2id$", "$argon2i$", "$argon2d$", "$scrypt$", "$pbkdf2-sha256$", "$pbkdf2-sha512$",
            "pbkdf2_sha256$", "pbkdf2_sha512$", "pbkdf2_sha1$", "argon2$argon2",
        ],
        &[(Phc, 40, 300)],
    ),
    shape("password-hash", &["{SSHA}", "{SHA}", "{SSHA256}", "{SSHA512}", "{SMD5}"], &[(Base64, 26, 140)]),
    shape("linear-key", &["lin_api_", "lin_oauth_", "lin_wh_"], &[(Alnum, 32, 64)]),
    shape("notion-token", &["ntn_"], &[(Alnum, 40, 50)]),
    shape("notion-token", &["secret_"], &[(Alnum, 43, 43)]).doubtful(),
    shape("figma-token", &["figd_", "figo_", "figor_"], &[(Url, 36, 64)]).doubtful(),
    shape("airtable-token", &["pat"], &[(Alnum, 14, 14), DOT, (Hex, 64, 64)]),
    shape("postman-key", &["PMAK-"], &[(Hex, 24, 24), DASH, (Hex, 34, 34)]),
    shape("contentful-token", &["CFPAT-"], &[(Url, 40, 48)]),
    // From any issuer: two or more parts in base64; the first is a JSON object.
    shape("jwt", &["eyJ"], &[(Url, 10, ANY), DOT, (Dotted, 20, ANY)]).doubtful(),
];

/// What may begin at a place: a token, or a word near which secrets are written.
#[derive(Clone, Copy)]
enum Rule {
    Shape(&'static Shape),
    Cue(&'static Cue),
}

struct Beginning {
    key: u16,
    text: &'static [u8],
    rule: Rule,
}

/// The beginnings of all shapes and cues, sorted by their first two bytes in lower case. One pass over the text looks
/// for all of them.
pub(super) struct TokenFinder {
    /// One bit for each [`hash`] of the first three bytes.
    threes: Box<[u64; HASHES / 64]>,
    /// The same of the beginnings that have no fourth.
    shorts: Box<[u64; HASHES / 64]>,
    /// One bit for each hash of the first four bytes.
    fours: Box<[u64; HASHES / 64]>,
    sorted: Vec<Beginning>,
    /// Where in `sorted` those with this first byte in lower case begin and end.
    by_first: [(u16, u16); 256],
}

impl TokenFinder {
    pub(super) fn new() -> TokenFinder {
        let mut tokens = TokenFinder {
            threes: Box::new([0; HASHES / 64]),
            shorts: Box::new([0; HASHES / 64]),
            fours: Box::new([0; HASHES / 64]),
            sorted: Vec::with_capacity(640),
            by_first: [(0, 0); 256],
        };
        for shape in SHAPES {
            for prefix in shape.prefixes {
                tokens.add(prefix.as_bytes(), Rule::Shape(shape));
            }
        }
        for cue in CUES {
            for word in cue.words {
                tokens.add(word.as_bytes(), Rule::Cue(cue));
            }
        }
        // Stable: the first match counts.
        tokens.sorted.sort_by_key(|beginning| beginning.key);
        for (at, beginning) in tokens.sorted.iter().enumerate() {
            let place = &mut tokens.by_first[usize::from(beginning.text[0].to_ascii_lowercase())];
            *place = (if place.1 == 0 { at as u16 } else { place.0 }, at as u16 + 1);
        }
        tokens
    }

    fn add(&mut self, text: &'static [u8], rule: Rule) {
        match rule {
            Rule::Shape(shape) => {
                let class = shape.body.first().map(|(class, ..)| *class);
                self.start(text, class);
            }
            Rule::Cue(_) => {
                // As it is, capitalised, in capitals.
                let upper = text.to_ascii_uppercase();
                let capital = [&upper[..1], &text[1..]].concat();
                for spelling in [text, &capital, &upper] {
                    self.start(spelling, None);
                }
            }
        }
        self.sorted.push(Beginning { key: key(text), text, rule });
    }

    /// Sets the bits of a beginning; `next` is what may follow a short one.
    fn start(&mut self, text: &[u8], next: Option<CharClass>) {
        let fits = |byte: u8| next.is_none_or(|class| class.has(byte));
        let word = |bytes: &[u8]| bytes.iter().fold(0, |so_far, byte| so_far << 8 | u32::from(*byte));
        match text {
            [_, _, _, _, ..] => {
                set(&mut self.threes, word(&text[..3]));
                set(&mut self.fours, word(&text[..4]));
            }
            [_, _, _] => {
                set(&mut self.threes, word(text));
                set(&mut self.shorts, word(text));
            }
            _ => {
                for third in (0..=255).filter(|byte| fits(*byte)) {
                    set(&mut self.threes, word(text) << 8 | u32::from(third));
                    set(&mut self.shorts, word(text) << 8 | u32::from(third));
                }
            }
        }
    }

    pub(super) fn find(&self, bytes: &[u8], spans: &mut Vec<Span>) {
        let mut runs = Runs::new(bytes);
        let mut done = Done::default();
        let mut at = 0;
        while let Some(next) = self.next(&bytes[at..]) {
            at += next;
            let found = spans.len();
            self.begin(&mut runs, at, &mut done, spans);
            at = match spans.get(found) {
                Some(span) if span.start <= at && span.end > at => span.end,
                _ => at + 1,
            };
        }
    }

    /// The tokens only, without the words near secrets.
    pub(super) fn find_tokens(&self, bytes: &[u8], spans: &mut Vec<Span>) {
        let mut runs = Runs::new(bytes);
        let mut at = 0;
        while let Some(next) = self.next(&bytes[at..]) {
            at += next;
            let token = self.near(bytes, at).find_map(|beginning| match beginning.rule {
                Rule::Shape(shape) => fit(&mut runs, at, beginning.text, shape),
                Rule::Cue(_) => None,
            });
            at = token.map_or(at + 1, |token| token.end);
            spans.extend(token);
        }
    }

    /// Does a token begin in the text, although it need not end there?
    pub(super) fn begins_in(&self, bytes: &[u8]) -> bool {
        let mut at = 0;
        while let Some(next) = self.next(&bytes[at..]) {
            at += next;
            let is = |beginning: &Beginning| match beginning.rule {
                Rule::Shape(_) => bytes[at..].starts_with(beginning.text),
                Rule::Cue(_) => false,
            };
            if self.near(bytes, at).any(is) {
                return true;
            }
            at += 1;
        }
        false
    }

    fn near(&self, bytes: &[u8], at: usize) -> impl Iterator<Item = &Beginning> {
        let first = bytes[at].to_ascii_lowercase();
        let (from, to) = self.by_first[usize::from(first)];
        let all = &self.sorted[usize::from(from)..usize::from(to)];
        let wanted = key(&bytes[at..]);
        let from = all.partition_point(|beginning| beginning.key < wanted);
        all[from..].iter().take_while(move |beginning| beginning.key == wanted)
    }

    fn begin(&self, runs: &mut Runs, at: usize, done: &mut Done, spans: &mut Vec<Span>) {
        let bytes = runs.bytes;
        for beginning in self.near(bytes, at) {
            match beginning.rule {
                Rule::Shape(shape) => {
                    if let Some(span) = fit(runs, at, beginning.text, shape) {
                        spans.push(span);
                        return;
                    }
                }
                Rule::Cue(cue) => {
                    let end = at + beginning.text.len();
                    let said =
                        bytes.get(at..end).is_some_and(|said| said.eq_ignore_ascii_case(beginning.text));
                    if said && (!cue.word || begins(bytes, at)) {
                        (cue.find)(&mut Near { bytes, at, end, done, spans });
                    }
                }
            }
        }
    }

    /// The next position where one of the beginnings may be.
    fn next(&self, bytes: &[u8]) -> Option<usize> {
        let mut last = u32::from(*bytes.first()?) << 8 | u32::from(*bytes.get(1)?);
        let mut at = 2;
        // A plain loop, because it runs for every byte of every note.
        while let Some(&byte) = bytes.get(at) {
            last = (last << 8 | u32::from(byte)) & 0xff_ffff;
            if is_set(&self.threes, last) {
                let four = bytes.get(at + 1).map(|fourth| last << 8 | u32::from(*fourth));
                if is_set(&self.shorts, last) || four.is_some_and(|four| is_set(&self.fours, four)) {
                    return Some(at - 2);
                }
            }
            at += 1;
        }
        None
    }
}

/// The number of bits in a table of hashes.
const HASHES: usize = 1 << 16;

/// A hash of some bytes.
#[inline(always)]
fn hash(word: u32) -> usize {
    (word.wrapping_mul(0x9e37_79b1) >> 16) as usize
}

#[inline(always)]
fn is_set(table: &[u64; HASHES / 64], word: u32) -> bool {
    let hash = hash(word);
    table[hash / 64] >> (hash % 64) & 1 == 1
}

fn set(table: &mut [u64; HASHES / 64], word: u32) {
    let hash = hash(word);
    table[hash / 64] |= 1 << (hash % 64);
}

/// The token of this shape whose prefix stands at `at`.
fn fit(runs: &mut Runs, at: usize, prefix: &[u8], shape: &'static Shape) -> Option<Span> {
    let bytes = runs.bytes;
    if !bytes[at..].starts_with(prefix) {
        return None;
    }
    let start = match shape.before {
        // The prefix is a host name: anything may come before it.
        None if shape.keep => at,
        None => begins(bytes, at).then_some(at)?,
        Some((class, least, most)) => {
            let many = bytes[..at].iter().rev().take(most).take_while(|byte| class.has(**byte)).count();
            let start = at - many;
            let apart = start == 0 || !class.has(bytes[start - 1]) || begins(bytes, start);
            (many >= least && apart).then_some(start)?
        }
    };
    let body = at + prefix.len();
    let mut end = body;
    for (class, least, most) in shape.body {
        let many = runs.end(*class, end) - end;
        // Exactly one of what may be repeated, like `-` between two parts.
        let many = if *least == *most && *most == 1 { many.min(1) } else { many };
        if !(*least..=*most).contains(&many) {
            return None;
        }
        end += many;
    }
    // A full stop after a token ends the sentence.
    while end > body && bytes[end - 1] == b'.' {
        end -= 1;
    }
    let telling = if end - body < 16 { &bytes[start..end] } else { &bytes[body..end] };
    if !ends(bytes, end) || !varied(telling) || (shape.doubt && !random(telling)) {
        return None;
    }
    let start = if shape.keep { body } else { start };
    Some(Span { start, end, kind: shape.kind, certainty: Certainty::Token })
}
