//! A note's id: `id__` and six characters of base58. It is made once, from the note's first title and time of
//! creation, and never changes: links, file names and aliases refer to it.

use crate::base::text::{base58, is_word, written_as_text};
use memchr::memmem;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// With what every id of a note begins.
pub const ID_PREFIX: &str = "id__";
const DIGITS: usize = 6;
const LENGTH: usize = ID_PREFIX.len() + DIGITS;

/// The id with its prefix, like `id__a1B2c3`. Stored inline, because a search holds ten thousand of them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EntryId([u8; LENGTH]);

impl EntryId {
    /// Accepts what people and models write: `id__a1B2c3`, `a1B2c3` or `[[id__a1B2c3]]`.
    pub fn parse(text: &str) -> Option<EntryId> {
        let linked = text.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"));
        match linked {
            Some(whole) => EntryId::whole(whole),
            None => EntryId::of_digits(text.strip_prefix(ID_PREFIX).unwrap_or(text)),
        }
    }

    /// Accepts only `id__a1B2c3`, the form in files.
    pub fn whole(text: &str) -> Option<EntryId> {
        EntryId::of_digits(text.strip_prefix(ID_PREFIX)?)
    }

    /// The id at the end of a note's file name: `slug -- id__a1B2c3.md`.
    pub fn at_end_of(name: &str) -> Option<EntryId> {
        let stem = name.strip_suffix(".md")?;
        EntryId::whole(stem.get(stem.len().checked_sub(LENGTH)?..)?)
    }

    /// Accepts only `a1B2c3`.
    pub fn of_digits(digits: &str) -> Option<EntryId> {
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() && !matches!(byte, b'0' | b'I' | b'O' | b'l');
        (digits.len() == DIGITS && digits.bytes().all(is_digit)).then(|| EntryId::new(digits))
    }

    fn new(digits: &str) -> EntryId {
        let mut text = [0; LENGTH];
        let bytes = ID_PREFIX.bytes().chain(digits.bytes());
        text.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        EntryId(text)
    }

    pub fn as_str(&self) -> &str {
        // Letters and digits alone.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Without `id__`.
    pub fn digits(&self) -> &str {
        &self.as_str()[ID_PREFIX.len()..]
    }

    /// The id of a note that was created at `created_at_ms` (Unix time in milliseconds).
    ///
    /// SHA-256 over the title, a NUL and the decimal time; its first eight bytes as a big-endian number,
    /// modulo 58⁶. While that id is taken, the byte 1 (2, 3 …, then two bytes) is appended to the input.
    pub fn make(title: &str, created_at_ms: i64, is_taken: impl Fn(&EntryId) -> bool) -> EntryId {
        let input = format!("{title}\0{created_at_ms}");
        let mut attempt = 0_u64;
        loop {
            let bytes = attempt.to_le_bytes();
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let digest = Sha256::new().chain_update(&input).chain_update(&bytes[..used]).finalize();
            let number = digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            let id = EntryId::of_number(number);
            if !is_taken(&id) {
                return id;
            }
            attempt += 1;
        }
    }

    fn of_number(number: u64) -> EntryId {
        EntryId::new(&base58(number, DIGITS))
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EntryId").field(&self.as_str()).finish()
    }
}

written_as_text!(EntryId, EntryId::parse, "an id like id__a1B2c3");

/// Every `[[id__XXXXXX]]` in a text, in order, repeated ones too.
pub fn links(body: &str) -> Vec<EntryId> {
    const LINK: usize = "[[".len() + LENGTH + "]]".len();
    memmem::find_iter(body.as_bytes(), b"[[id__")
        .filter_map(|at| EntryId::parse(body.get(at..at + LINK)?))
        .collect()
}

/// Every id in a text, linked or not, repeated ones too. A part of a longer word is none.
pub fn mentioned(text: &str) -> impl Iterator<Item = EntryId> {
    memmem::find_iter(text.as_bytes(), ID_PREFIX.as_bytes()).filter_map(move |at| {
        let end = at + ID_PREFIX.len() + DIGITS;
        let id = EntryId::parse(text.get(at..end)?)?;
        let is_whole = !text[..at].ends_with(is_word) && !text[end..].starts_with(is_word);
        is_whole.then_some(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::text::BASE58;

    fn id(text: &str) -> EntryId {
        EntryId::whole(text).unwrap()
    }

    #[test]
    fn an_id_is_found_in_prose_and_in_commands() {
        let found = |text: &str| mentioned(text).map(|id| id.to_string()).collect::<Vec<_>>();
        let text = "see id__a1B2c3, [[id__Zz9yX1]] and \"x -- id__k3K3k3.md\"; xid__a1B2c3 id__a1B2c34 id__a1B2c id__é1B2c3";
        assert_eq!(found(text), ["id__a1B2c3", "id__Zz9yX1", "id__k3K3k3"]);
        assert!(found("id__").is_empty());
    }

    #[test]
    fn three_spellings_are_one_id_and_nothing_else_is() {
        for text in ["id__a1B2c3", "a1B2c3", "[[id__a1B2c3]]"] {
            assert_eq!(EntryId::parse(text).unwrap().as_str(), "id__a1B2c3");
        }
        for text in [
            "", "id__", "a1B2c", "a1B2c34", "id__a1B2c", "id__a1B2c34", "id_a1B2c3", "a1B2c0", "a1B2cO",
            "a1B2cI", "a1B2cl", "[[a1B2c3]]", "[id__a1B2c3]", "[[id__a1B2c3]", " a1B2c3", "a1B2c3\n",
            "../a1B", "ä1B2c", "id__id__a1B2c3", "[[[[id__a1B2c3]]]]", "ID__a1B2c3",
        ] {
            assert_eq!(EntryId::parse(text), None, "{text:?}");
        }
        assert_eq!(EntryId::whole("a1B2c3"), None);
    }

    // The numbers come from another program: python's hashlib and a base58 of five lines.
    #[test]
    fn an_id_follows_from_title_and_time() {
        let never = |_: &EntryId| false;
        assert_eq!(EntryId::make("xstate guard patterns", 1_771_000_000_000, never), id("id__1fk1TH"));
        assert_eq!(EntryId::make("", 0, never), id("id__o5BoBV"));
        assert_eq!(EntryId::make("Grüße 🦀", -5, never), id("id__KTuAUi"));
    }

    #[test]
    fn a_taken_id_is_followed_by_the_next() {
        let made = |taken: &[&str]| EntryId::make("", 0, |id| taken.contains(&id.as_str()));
        assert_eq!(made(&["id__o5BoBV"]), id("id__c519tA"));
        assert_eq!(made(&["id__o5BoBV", "id__c519tA"]), id("id__FEroJf"));
        // After the byte 255 come the bytes 0 and 1.
        let count = std::cell::Cell::new(0);
        let late = EntryId::make("", 0, |_| count.replace(count.get() + 1) < 256);
        assert_eq!(late, id("id__9c7K9j"));
    }

    #[test]
    fn digits_are_those_of_base58() {
        for byte in 0..128_u8 {
            let is_digit = EntryId::parse(&format!("aaaaa{}", char::from(byte))).is_some();
            assert_eq!(is_digit, BASE58.contains(&byte), "{:?}", char::from(byte));
        }
    }

    #[test]
    fn small_numbers_are_padded() {
        assert_eq!(EntryId::of_number(0), id("id__111111"));
        assert_eq!(EntryId::of_number(57), id("id__11111z"));
        assert_eq!(EntryId::of_number(58), id("id__111121"));
        assert_eq!(EntryId::of_number(58_u64.pow(6)), id("id__111111"));
    }

    #[test]
    fn links_are_found_wherever_they_stand() {
        let body = "[[id__a1B2c3]] and[[id__Zz9yX1]], [[id__nope]] [[id__a1B2c3|x]] [[[id__a1B2c3]]] [[id__ä1B2c]] [[id__";
        assert_eq!(links(body), [id("id__a1B2c3"), id("id__Zz9yX1"), id("id__a1B2c3")]);
    }

    #[test]
    fn json_is_checked() {
        assert_eq!(serde_json::to_string(&id("id__a1B2c3")).unwrap(), r#""id__a1B2c3""#);
        assert_eq!(serde_json::from_str::<EntryId>(r#""[[id__a1B2c3]]""#).unwrap(), id("id__a1B2c3"));
        let error = serde_json::from_str::<EntryId>(r#""../x""#).unwrap_err();
        assert!(error.to_string().contains("\"../x\" is not an id like id__a1B2c3"), "{error}");
    }
}
