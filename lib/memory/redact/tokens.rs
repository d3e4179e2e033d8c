//! Tokens with the prefix of their issuer, which exists so that they can be found. The shapes come from the issuers'
//! documentation and from real (revoked) tokens.

use crate::memory::redact::span::{Certainty, CharClass, Runs, Span, begins, ends};
use crate::memory::redact::value::{random, varied};

/// A run of characters of one class: the fewest and the most.
type Run = (CharClass, usize, usize);

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

use CharClass::{Alnum, Base64, Digit, Dollar, Dotted, Hex, Path, Percent, Tilde, UpperDigit, Url, Word};

/// The first match counts.
static SHAPES: &[Shape] = &[
    // Clouds
    shape("aws-key-id", &["AKIA", "ASIA", "ABIA", "ACCA"], &[(UpperDigit, 16, 16)]),
    shape("aws-session-token", &["IQoJb3JpZ2lu", "FwoGZXIvYXdz"], &[(Base64, 100, ANY)]),
    shape("aws-bedrock-key", &["ABSKQmVkcm9ja0FQSUtleS"], &[(Base64, 60, ANY)]),
    shape("google-api-key", &["AIza"], &[(Url, 35, 35)]),
    shape("google-oauth", &["ya29."], &[(Dotted, 20, ANY)]),
    shape("google-oauth", &["GOCSPX-"], &[(Url, 20, 40)]),
    shape("google-oauth", &["1//0"], &[(Url, 30, ANY)]),
    shape("azure-secret", &["Q~"], &[(Tilde, 31, 35)]).after((Tilde, 4, 4)),
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
    shape("elevenlabs-key", &["sk_"], &[(Hex, 48, 48)]),
    shape("langsmith-key", &["lsv2_pt_", "lsv2_sk_"], &[(Word, 32, 64)]),
    // Monitoring, planning and design
    shape("sentry-token", &["sntrys_", "sntryu_"], &[(Base64, 60, ANY)]),
    shape("newrelic-key", &["NRAK-", "NRJS-", "NRII-", "NRRA-", "NRIQ-"], &[(Url, 19, 42)]),
    shape("newrelic-key", &["NRAL"], &[]).after((Hex, 36, 36)),
    shape("grafana-token", &["glsa_"], &[(Word, 32, 64)]),
    shape("grafana-token", &["glc_"], &[(Base64, 32, 400)]).doubtful(),
    shape("dynatrace-token", &["dt0c01.", "dt0s01."], &[(UpperDigit, 24, 24), DOT, (UpperDigit, 64, 64)]),
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

/// The shapes by their first byte.
pub(super) struct TokenFinder {
    /// One bit for each [`hash`] of the first three bytes of a prefix. A prefix of two sets a bit for every third byte.
    starts: Box<[u64; HASHES / 64]>,
    by_first: Vec<Vec<(&'static [u8], &'static Shape)>>,
}

impl TokenFinder {
    pub(super) fn new() -> TokenFinder {
        let mut tokens = TokenFinder { starts: Box::new([0; HASHES / 64]), by_first: vec![Vec::new(); 256] };
        for shape in SHAPES {
            for prefix in shape.prefixes {
                let prefix = prefix.as_bytes();
                let thirds = prefix.get(2).map_or(0..=255, |third| *third..=*third);
                for third in thirds {
                    let hash = prefix[..2].iter().chain([&third]).fold(0, |so_far, byte| hash(so_far, *byte));
                    tokens.starts[hash / 64] |= 1 << (hash % 64);
                }
                tokens.by_first[usize::from(prefix[0])].push((prefix, shape));
            }
        }
        tokens
    }

    pub(super) fn find(&self, bytes: &[u8], spans: &mut Vec<Span>) {
        let mut runs = Runs::new(bytes);
        let mut at = 0;
        while let Some(next) = self.next(&bytes[at..]) {
            at += next;
            // Compare the second character first: most prefixes differ in it.
            let second = bytes.get(at + 1).copied();
            let shapes = self.by_first[usize::from(bytes[at])].iter();
            let mut shapes = shapes.filter(|(prefix, _)| prefix.get(1).copied() == second);
            match shapes.find_map(|(prefix, shape)| fit(&mut runs, at, prefix, shape)) {
                Some(span) => {
                    at = span.end;
                    spans.push(span);
                }
                None => at += 1,
            }
        }
    }

    /// The next position with three characters that may begin a token.
    fn next(&self, bytes: &[u8]) -> Option<usize> {
        let mut last = hash(hash(0, *bytes.first()?), *bytes.get(1)?);
        let mut at = 2;
        // A plain loop, because it runs for every byte of every note.
        while let Some(&byte) = bytes.get(at) {
            last = hash(last, byte);
            if self.starts[last / 64] >> (last % 64) & 1 == 1 {
                return Some(at - 2);
            }
            at += 1;
        }
        None
    }
}

const HASHES: usize = 1 << 15;

/// A hash of the last three bytes: each byte shifts it by five bits.
#[inline(always)]
fn hash(so_far: usize, byte: u8) -> usize {
    (so_far << 5 ^ usize::from(byte)) % HASHES
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
