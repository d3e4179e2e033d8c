//! Names for secrets: the words they end in, what their values look like, and how they are marked.

use crate::memory::redact::span::{Certainty, CharClass, Span};
use crate::memory::redact::value::{chosen, password, placeholder, random, varied};

/// The longest name, in bytes.
pub(super) const NAME: usize = 64;
/// The longest value, in bytes.
pub(super) const VALUE: usize = 16 * 1024;

/// A name for a secret.
pub(super) struct SecretName<'a> {
    pub(super) text: &'a [u8],
    kind: &'static str,
    pub(super) capitals: bool,
    rule: ValueRule,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueRule {
    /// A person may have chosen it: it may be short.
    Password,
    /// Made by a machine: it must be random.
    Token,
    /// Made by a machine, or by a person who had no time.
    Secret,
    /// For AWS: 40 characters of base64, which may look like a path.
    Forty,
}

impl SecretName<'_> {
    /// `readable`: the value is a literal and not code, so that a short password counts.
    pub(super) fn accepts(&self, value: &[u8], readable: bool) -> bool {
        if self.rule == ValueRule::Forty && value.len() == 40 {
            return varied(value) && value.iter().all(|byte| CharClass::Base64.has(*byte));
        }
        if value.len() > VALUE || number(value) || is_path(value) {
            return false;
        }
        // Whether it is a placeholder costs the most, so it is asked last.
        let is_secret = match self.rule {
            ValueRule::Password => random(value) || readable && password(value),
            ValueRule::Secret if readable && chosen(value) => true,
            ValueRule::Secret | ValueRule::Token | ValueRule::Forty => {
                random(value) || readable && value.len() >= 8 && short_token(value)
            }
        };
        is_secret && !placeholder(value)
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Option<Span> {
        Some(Span { start, end, kind: self.kind(), certainty: Certainty::Named })
    }

    /// Is it the name of a header whose value begins with a scheme?
    pub(super) fn authorizes(&self) -> bool {
        self.kind == "auth"
    }

    /// How the secret is marked: by its vendor, if the name has one. Asked only where there is a secret.
    pub(super) fn kind(&self) -> &'static str {
        let vendors = matches!(self.rule, ValueRule::Token | ValueRule::Secret) && self.kind != "azure-key";
        let name: Vec<u8> = self.text.iter().filter(|byte| byte.is_ascii_alphanumeric()).copied().collect();
        let name = name.to_ascii_lowercase();
        let is_in = |(part, _): &&(&str, &str)| memchr::memmem::find(&name, part.as_bytes()).is_some();
        VENDORS.iter().filter(|_| vendors).find(is_in).map_or(self.kind, |(_, vendor)| vendor)
    }
}

/// `/etc/passwd:ro`, `core::fmt::Debug`
fn is_path(value: &[u8]) -> bool {
    let second = value.get(1..).and_then(|rest| memchr::memchr(b'/', rest));
    let absolute = value.starts_with(b"/")
        && second.is_some_and(|second| value[1..=second].iter().all(u8::is_ascii_lowercase));
    absolute
        || memchr::memmem::find(value, b"::").is_some()
            && value.iter().all(|byte| CharClass::Word.has(*byte) || *byte == b':')
}

/// `0x8007_0057`, `-2147024809i32`, `1.2.840.113549`
fn number(value: &[u8]) -> bool {
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    letters == 0 || value.len() < 20 && (value.starts_with(b"0x") || value.starts_with(b"-"))
}

/// A short token: alternating letters and digits.
fn short_token(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let turns = value.windows(2).filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit()).count();
    value.iter().all(u8::is_ascii_graphic) && digits >= 2 && turns >= 3 && digits < value.len() - 2
}

/// The last words of names for secrets, without separators; what the values look like; how they are marked. The first
/// match counts. A word with fewer than six letters must be a whole word: `pass`, not `compass`.
const WORDS: &[(&[&str], ValueRule, &str)] = &[
    (&["secretaccesskey", "awssecretkey", "awssecret"], ValueRule::Forty, "aws-secret"),
    (&["awssessiontoken", "awssecuritytoken"], ValueRule::Token, "aws-session-token"),
    (&["accountkey", "sharedaccesskey", "subscriptionkey"], ValueRule::Token, "azure-key"),
    (
        &["password", "passwort", "passwd", "passphrase", "passcode", "pass", "pwd"],
        ValueRule::Password,
        "password",
    ),
    (&["privatekey"], ValueRule::Token, "private-key"),
    (
        &["clientsecret", "secret", "secretkey", "appsecret", "signingkey", "secretkeybase", "keysecret"],
        ValueRule::Secret,
        "secret",
    ),
    (&["encryptionkey", "masterkey", "sessionkey", "credential", "credentials"], ValueRule::Secret, "secret"),
    (
        &["authsalt", "keysalt", "loggedinsalt", "noncesalt", "loggedinkey", "noncekey", "presharedkey"],
        ValueRule::Token,
        "secret",
    ),
    (&["apikey", "appkey", "applicationkey", "authkey", "accesskey"], ValueRule::Token, "api-key"),
    (&["licensekey", "servicekey", "servicerolekey", "serverkey"], ValueRule::Token, "api-key"),
    (&["deploykey"], ValueRule::Token, "api-key"),
    (&["token"], ValueRule::Token, "token"),
    (&["devopspat"], ValueRule::Token, "azure-secret"),
    (&["authorization", "auth"], ValueRule::Token, "auth"),
];

/// Endings after the word, besides digits: `PASSWORD_PROD`, `SECRET_BASE64`.
const ENDINGS: &[&str] =
    &["base", "value", "string", "prod", "production", "live", "staging", "dev", "old", "new", "default"];

/// Names that end like a secret's but are not secret, such as positions in a list or guards against replays.
const HARMLESS: &[&str] = &[
    "pagetoken", "nexttoken", "previoustoken", "continuationtoken", "csrftoken", "xsrftoken", "synctoken",
    "maxtoken", "pertoken", "publictoken", "canceltoken", "cancellationtoken", "changetoken", "requesttoken",
    "publickey", "idempotencytoken", "starttoken", "endtoken",
];

/// Vendors whose secrets have no recognisable form, by a part of the name.
const VENDORS: &[(&str, &str)] = &[
    ("heroku", "heroku-key"),
    ("cloudflare", "cloudflare-token"),
    ("datadog", "datadog-key"),
    ("ddapikey", "datadog-key"),
    ("ddappkey", "datadog-key"),
    ("ddapplicationkey", "datadog-key"),
    ("twilio", "twilio-token"),
    ("paypal", "paypal-secret"),
    ("mailgun", "mailgun-key"),
    ("newrelic", "newrelic-key"),
    ("azure", "azure-secret"),
    ("mistral", "mistral-key"),
    ("cohere", "cohere-key"),
    ("together", "together-key"),
    ("deepseek", "deepseek-key"),
    ("bitbucket", "bitbucket-token"),
    ("discord", "discord-token"),
    ("okta", "okta-token"),
    ("algolia", "algolia-key"),
    ("snyk", "snyk-token"),
];

/// The name at the end of `before`, if it is one for secrets. In prose there may be spaces between its words.
pub(super) fn name(before: &[u8], prose: bool) -> Option<SecretName<'_>> {
    if !may_end(before) {
        return None;
    }
    let part = |byte: &u8| CharClass::Dotted.has(*byte) || prose && *byte == b' ';
    let length = before.iter().rev().take(NAME).take_while(|byte| part(byte)).count();
    let text = &before[before.len() - length..];
    let mut flat = [0u8; NAME];
    let mut size = 0;
    for byte in text.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
        flat[size] = byte.to_ascii_lowercase();
        size += 1;
    }
    let mut flat = &flat[..size];
    flat = &flat[..size - digits(flat)];
    if let Some(ending) = ENDINGS.iter().find(|ending| flat.ends_with(ending.as_bytes())) {
        flat = &flat[..flat.len() - ending.len()];
    }
    // Compare the last letter first: most words differ in it.
    let ends = |word: &str| word.as_bytes().last() == flat.last() && flat.ends_with(word.as_bytes());
    let is_last = |word: &&str| ends(word) && (word.len() > 5 || alone(text, word));
    let (_, rule, kind) = *WORDS.iter().find(|(words, ..)| words.iter().any(&is_last))?;
    if HARMLESS.iter().any(|word| ends(word)) {
        return None;
    }
    let capitals = !text.iter().any(u8::is_ascii_lowercase);
    Some(SecretName { text, kind, capitals, rule })
}

/// Is `word` the whole last word of the name, as in `dbPass` or `DB_PASS`?
fn alone(text: &[u8], word: &str) -> bool {
    let Some(at) = text.len().checked_sub(word.len()) else { return false };
    if !text[at..].eq_ignore_ascii_case(word.as_bytes()) {
        return word == "token";
    }
    match text[..at].last() {
        None => true,
        Some(before) => {
            !before.is_ascii_alphanumeric()
                || before.is_ascii_lowercase() && text[at].is_ascii_uppercase()
                || word == "token"
        }
    }
}

/// The number of digits at the end of a name that only number it.
fn digits(name: &[u8]) -> usize {
    match name {
        [.., last] if !last.is_ascii_digit() => 0,
        _ => name.iter().rev().take(3).take_while(|byte| byte.is_ascii_digit()).count(),
    }
}

/// Can a name that ends here be one for secrets? The last three letters rule out nearly all others.
#[inline(always)]
pub(super) fn may_end(before: &[u8]) -> bool {
    // Most words end in letters, and most bytes of a note are in words.
    match before {
        [.., a, b, c] if c.is_ascii_alphabetic() => may_be_last(*a, *b, *c),
        _ => may_end_numbered(before),
    }
}

fn may_end_numbered(before: &[u8]) -> bool {
    let mut end = before.len() - digits(before);
    if end > 3 && matches!(before[end - 1], b'_' | b'-') {
        end -= 1;
    }
    end >= 3 && end < before.len() && may_be_last(before[end - 3], before[end - 2], before[end - 1])
}

#[inline(always)]
fn may_be_last(a: u8, b: u8, c: u8) -> bool {
    let (a, b, c) = (usize::from(a | 0x20), usize::from(b | 0x20), u32::from(c | 0x20));
    let (a, b, c) = (a.wrapping_sub(0x61), b.wrapping_sub(0x61), c.wrapping_sub(0x61));
    a < 26 && b < 26 && c < 26 && LAST_THREE[a * 26 + b] >> c & 1 == 1
}

/// The last three letters of all [`WORDS`] and [`ENDINGS`], as one bit for each third letter.
static LAST_THREE: [u32; 26 * 26] = {
    let mut table = with_last_three([0; 26 * 26], ENDINGS);
    let mut group = 0;
    while group < WORDS.len() {
        table = with_last_three(table, WORDS[group].0);
        group += 1;
    }
    table
};

const fn with_last_three(mut table: [u32; 26 * 26], words: &[&str]) -> [u32; 26 * 26] {
    let mut at = 0;
    while at < words.len() {
        let word = words[at].as_bytes();
        let (a, b, c) = (word[word.len() - 3], word[word.len() - 2], word[word.len() - 1]);
        table[(a - b'a') as usize * 26 + (b - b'a') as usize] |= 1 << (c - b'a');
        at += 1;
    }
    table
}
