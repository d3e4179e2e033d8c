//! Secrets, and patterns of the user's own.

use crate::base::text::border;
use crate::fuzz::{choice, is_told, parts, text};
use crate::memory::redact::Redactor;

/// Secrets that can be told from what stands around them: on a line of its own each goes. In pieces here, so that no
/// scanner takes them for real ones.
const TOKENS: &[&str] = &[
    concat!("gh", "p_1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX"),
    concat!("AK", "IAQ3EGRZ7M2XYVTN5P"),
    "password=\"c0rrect-h0rse-B4ttery\"",
    "https://user:s3cr3tW0rd99@host.example/path",
    concat!("Authorization: Bearer ey", "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"),
];
const SECRETS: &[&str] = &[
    "1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX",
    "Q3EGRZ7M2XYVTN5P",
    "c0rrect-h0rse-B4ttery",
    "s3cr3tW0rd99",
    "dozjgNryP4J3jVmNHl0w5N",
];

pub fn holds(bytes: &[u8]) {
    let (token, bytes) = choice(bytes, TOKENS.len());
    let [patterns, input] = parts::<2>(bytes);
    let input = text(input);
    let patterns: Vec<String> =
        text(patterns).lines().filter(|line| !line.is_empty()).take(5).map(str::to_owned).collect();
    let plain = Redactor::new(true, &[]).unwrap();
    is_done_once(&plain, &input);
    match Redactor::new(true, &patterns) {
        Ok(own) => is_done_once(&own, &input),
        Err(why) => is_told(why.message()),
    }
    assert_eq!(Redactor::new(false, &[]).unwrap().cleaned(&input), input);
    // A cut anywhere is a text too.
    is_done_once(&plain, &input[..border(&input, input.len() / 2)]);
    is_done_once(&plain, &input[border(&input, input.len() / 3)..]);
    // A secret goes, whatever stands on the lines around it.
    let planted = format!("{input}\n{}\n{input}", TOKENS[token]);
    if !input.contains(SECRETS[token]) {
        let cleaned = plain.cleaned(&planted);
        assert!(!cleaned.contains(SECRETS[token]), "{} stays in {cleaned:?}", TOKENS[token]);
    }
}

fn is_done_once(redactor: &Redactor, input: &str) {
    let redacted = redactor.redact(input);
    let found: usize = redacted.counts.values().sum();
    assert_eq!(found == 0, redacted.text == input);
    assert_eq!(redactor.kinds(input).is_empty(), found == 0);
    let again = redactor.redact(&redacted.text);
    assert_eq!(again.text, redacted.text, "a second time takes more out of {input:?}");
    // Marks are all that is added.
    assert!(redacted.text.len() <= input.len() + found * 40);
    let lines = |text: &str| text.matches('\n').count();
    assert!(lines(&redacted.text) <= lines(input));
}
