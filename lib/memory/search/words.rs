//! Splits text into words.
//!
//! A word is a run of letters and digits of any script, in lower case and without accents. Names of programmers
//! are split as well: `getUserName`, `user-name`, `lib/user.rs` and `1.89` give their parts and, without the
//! characters between them, the compound. Scripts without spaces between words give each pair of neighbouring
//! characters, the usual way to search such text without a dictionary.

/// Another number for each change of what this module makes of a text: caches hold words that were split before.
pub(super) const TOKENIZER: u64 = 1;

/// A longer word is cut to this many bytes.
const LONGEST: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// A word, or a part of a compound.
    Part,
    /// All parts of a compound, joined; follows the last of them.
    Compound,
    /// One character of a longer run without spaces.
    Character,
}

#[derive(Debug, Clone, Copy)]
pub struct Word<'a> {
    pub text: &'a str,
    pub kind: WordKind,
    /// Byte offset in the text.
    pub start: usize,
    pub end: usize,
}

/// What follows a part.
enum Following {
    /// Another part begins at `at`. `keep`: the separator that stays in the compound.
    Part { at: usize, keep: Option<char> },
    /// No more parts; the text goes on at `at`.
    End { at: usize },
}

/// Calls `found` with every word of `text`, in order.
pub fn each(text: &str, mut found: impl FnMut(Word<'_>)) {
    let bytes = text.as_bytes();
    let class = |at: usize| bytes.get(at).map_or(ByteClass::Gap, |b| CLASSES[usize::from(*b)]);
    let mut part = String::new();
    let mut whole = String::new();
    let mut at = 0;
    while at < bytes.len() {
        match class(at) {
            ByteClass::Gap | ByteClass::Separator => at += 1,
            first @ (ByteClass::Lower | ByteClass::Upper) => {
                // Nearly all words are lower case, perhaps after a capital, and have one part.
                let mut end = at + 1;
                while class(end) == ByteClass::Lower {
                    end += 1;
                }
                let plain = match class(end) {
                    ByteClass::Gap => true,
                    ByteClass::Separator => class(end + 1) == ByteClass::Gap,
                    ByteClass::Lower | ByteClass::Upper | ByteClass::Other => false,
                };
                if plain && end - at <= LONGEST {
                    let mut word = &text[at..end];
                    if first == ByteClass::Upper {
                        part.clear();
                        part.push_str(word);
                        part.make_ascii_lowercase();
                        word = &part;
                    }
                    found(Word { text: word, kind: WordKind::Part, start: at, end });
                    at = end;
                } else {
                    at = compound(text, at, &mut part, &mut whole, &mut found);
                }
            }
            ByteClass::Other => {
                let Some(c) = char_at(text, at) else { break };
                if is_unspaced(c) {
                    at = pairs(text, at, &mut part, &mut found);
                } else if c.is_alphanumeric() {
                    at = compound(text, at, &mut part, &mut whole, &mut found);
                } else {
                    at += c.len_utf8();
                }
            }
        }
    }
}

/// What a byte means for the splitting of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Gap,
    /// A lower-case letter or digit.
    Lower,
    Upper,
    /// May stand between two parts.
    Separator,
    /// Part of a character beyond ASCII.
    Other,
}

const CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Gap; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => ByteClass::Lower,
            b'A'..=b'Z' => ByteClass::Upper,
            b'_' | b':' | b'-' | b'.' | b'/' | b'@' | b',' | b'\'' => ByteClass::Separator,
            128..=255 => ByteClass::Other,
            _ => ByteClass::Gap,
        };
        byte += 1;
    }
    classes
};

/// The words of `text`.
#[cfg(test)]
fn all(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each(text, |word| words.push(word.text.to_owned()));
    words
}

fn char_at(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}

/// Reads one word with its parts, from `start`, and returns where it ends.
fn compound(
    text: &str,
    start: usize,
    part: &mut String,
    whole: &mut String,
    found: &mut impl FnMut(Word<'_>),
) -> usize {
    whole.clear();
    let mut parts = 0;
    let mut at = start;
    loop {
        part.clear();
        let (end, following) = read_part(text, at, part);
        // Empty if it has nothing but accents.
        if !part.is_empty() {
            found(Word { text: part, kind: WordKind::Part, start: at, end });
            parts += 1;
        }
        if whole.len() < LONGEST {
            whole.push_str(part);
        }
        match following {
            Following::Part { at: next, keep } => {
                whole.extend(keep);
                at = next;
            }
            Following::End { at: next } => {
                if parts > 1 && whole.len() < LONGEST {
                    found(Word { text: whole, kind: WordKind::Compound, start, end });
                }
                return next.max(start + 1);
            }
        }
    }
}

/// Reads one part into `part`, and returns where it ends and what follows.
fn read_part(text: &str, start: usize, part: &mut String) -> (usize, Following) {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b' ');
    let mut at = start;
    loop {
        let b = byte(at);
        if is_plain(b) {
            // Nearly all text is such runs: copying them whole takes a third of the time.
            let run = bytes[at..].iter().take_while(|b| is_plain(**b)).count();
            let room = LONGEST.saturating_sub(part.len());
            part.push_str(&text[at..at + run.min(room)]);
            at += run;
        } else if b.is_ascii_uppercase() {
            if at > start && is_hump(byte(at - 1), byte(at + 1), byte(at + 2)) {
                return (at, Following::Part { at, keep: None });
            }
            if part.len() < LONGEST {
                part.push(char::from(b.to_ascii_lowercase()));
            }
            at += 1;
        } else if b == b'\'' || (!b.is_ascii() && text[at..].starts_with('’')) {
            let next = at + if b == b'\'' { 1 } else { '’'.len_utf8() };
            let rest = &bytes[next..];
            let ending = &rest[..rest.iter().take(3).take_while(|b| b.is_ascii_alphabetic()).count()];
            let is = |word: &str| ending.eq_ignore_ascii_case(word.as_bytes());
            // The letter of `don't` belongs to the word, the ending of `Ann's` and `we're` does not; then `l'eau`, and a quote.
            if is("t") && !part.is_empty() {
                part.push('t');
                at = next + 1;
            } else if ["s", "d", "m", "re", "ve", "ll"].into_iter().any(is) {
                return (at, next_part(text, at, next + ending.len()));
            } else if char_at(text, next).is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c)) {
                return (at, Following::Part { at: next, keep: None });
            } else {
                return (at, Following::End { at: next });
            }
        } else if b.is_ascii() {
            return (at, next_part(text, at, at));
        } else {
            let Some(c) = char_at(text, at).filter(|c| !is_unspaced(*c) && is_in_word(*c)) else {
                return (at, Following::End { at });
            };
            if part.len() < LONGEST {
                fold(c, part);
            }
            at += c.len_utf8();
        }
    }
}

fn is_plain(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

/// Whether a part begins at a capital, as in `userName` and `HTTPServer`; not at the last one of `URLs`.
fn is_hump(before: u8, after: u8, second: u8) -> bool {
    let plural = after == b's' && !second.is_ascii_lowercase();
    before.is_ascii_lowercase() || (before.is_ascii_uppercase() && after.is_ascii_lowercase() && !plural)
}

/// What follows a part that ended at `end`, looking from `at` on.
fn next_part(text: &str, end: usize, at: usize) -> Following {
    let bytes = text.as_bytes();
    let Some(&b) = bytes.get(at) else { return Following::End { at } };
    let next = match b {
        b'_' => at + bytes[at..].iter().take(8).take_while(|b| **b == b'_').count(),
        b':' if bytes.get(at + 1) == Some(&b':') => at + 2,
        b'-' | b'.' | b'/' | b'@' | b':' | b',' => at + 1,
        _ => return Following::End { at },
    };
    let Some(c) = char_at(text, next).filter(|c| c.is_alphanumeric() && !is_unspaced(*c)) else {
        return Following::End { at };
    };
    let numbers = c.is_ascii_digit() && end.checked_sub(1).is_some_and(|last| bytes[last].is_ascii_digit());
    match b {
        b',' | b':' if next == at + 1 && !numbers => Following::End { at },
        // 3,000 becomes 3000, but 1.89 stays 1.89, and 8:15 stays 8:15.
        b'.' | b':' | b'/' if numbers => Following::Part { at: next, keep: Some(char::from(b)) },
        _ => Following::Part { at: next, keep: None },
    }
}

/// A run of a script without spaces: each pair of neighbours, and each character for queries of one character.
fn pairs(text: &str, start: usize, part: &mut String, found: &mut impl FnMut(Word<'_>)) -> usize {
    let mut before: Option<(usize, char)> = None;
    let mut at = start;
    let mut length = 0;
    while let Some(c) = char_at(text, at).filter(|c| is_unspaced(*c)) {
        let end = at + c.len_utf8();
        if let Some((from, first)) = before {
            part.clear();
            part.push(first);
            found(Word { text: part, kind: WordKind::Character, start: from, end: at });
            part.push(c);
            found(Word { text: part, kind: WordKind::Part, start: from, end });
        }
        before = Some((at, c));
        at = end;
        length += 1;
    }
    if let Some((from, last)) = before {
        part.clear();
        part.push(last);
        let kind = if length == 1 { WordKind::Part } else { WordKind::Character };
        found(Word { text: part, kind, start: from, end: at });
    }
    at
}

/// Scripts without spaces between words, and Hangul, whose word endings do not matter to pairs.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E01..=0x0EFF          // Thai, Lao
        | 0x1000..=0x109F        // Myanmar
        | 0x1780..=0x17DD        // Khmer
        | 0x3005..=0x3007 | 0x3041..=0x3096 | 0x309D..=0x309F | 0x30A1..=0x30FA | 0x30FC..=0x30FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF
        | 0xAC00..=0xD7A3 | 0xFF66..=0xFF9D)
}

fn is_accent(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || is_accent(c)
}

/// U+00C0 to U+017F in lower case, without diacritics.
const LATIN: &[u8; 192] = b"\
    aaaaaaaceeeeiiiidnooooo?ouuuuytsaaaaaaaceeeeiiiidnooooo?ouuuuyty\
    aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll\
    lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";
/// The same for U+1E00 to U+1EFF.
const LATIN_MORE: &[u8; 256] = b"\
    aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmm\
    mmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvv\
    wwwwwwwwwwxxxxyyzzzzzzhtwyassssdaaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee\
    eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyyllvvyy";

/// Appends `c` in lower case and without accents.
fn fold(c: char, to: &mut String) {
    match c {
        'ß' | 'ẞ' => to.push_str("ss"),
        'æ' | 'Æ' => to.push_str("ae"),
        'œ' | 'Œ' => to.push_str("oe"),
        'þ' | 'Þ' => to.push_str("th"),
        '\u{c0}'..='\u{17f}' => to.push(latin(LATIN, u32::from(c) - 0xC0)),
        '\u{1e00}'..='\u{1eff}' => to.push(latin(LATIN_MORE, u32::from(c) - 0x1E00)),
        // Full-width letters and digits.
        '\u{ff10}'..='\u{ff5a}' => {
            to.extend(char::from_u32(u32::from(c) - 0xFEE0).map(|c| c.to_ascii_lowercase()));
        }
        _ => to.extend(c.to_lowercase().filter(|c| !is_accent(*c)).map(|c| match c {
            'ά' => 'α',
            'έ' => 'ε',
            'ή' => 'η',
            'ί' | 'ϊ' | 'ΐ' => 'ι',
            'ό' => 'ο',
            'ύ' | 'ϋ' | 'ΰ' => 'υ',
            'ώ' => 'ω',
            'ς' => 'σ',
            'ё' => 'е',
            c => c,
        })),
    }
}

fn latin(table: &[u8], at: u32) -> char {
    table.get(at as usize).map_or('?', |b| char::from(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_way_to_split_has_another_number() {
        let text = "The worker's `getUserName` in lib/store/run_log.rs: --no-fail-fast, v1.89.0 and 3,000 at 8:15.\n\
            Don't parseHTTPHeaders; URLs, PDFs, tokio::select!, snake_case__twice, user@example.org, 'quoted', l\u{2019}eau.\n\
            E\u{301}t\u{e9} NAÏVE Straße Đà Nẵng Ёлка Ὀδυσσεύς ＡＢＣ １２ 日本語の設定 ภาษาไทย 한국어 \u{1f980} x\u{0}y \u{202e}z";
        let sum =
            crate::base::packed::checksum(all(&[text, &"long".repeat(50)].join(" ")).join(" ").as_bytes());
        assert_eq!(
            (TOKENIZER, sum),
            (1, 16_941_231_057_549_137_850),
            "if words are split differently now, count TOKENIZER up"
        );
    }

    #[test]
    fn words_are_folded() {
        assert_eq!(all("Él dijo: NAÏVE Straße, Đà Nẵng!"), ["el", "dijo", "naive", "strasse", "da", "nang"]);
        assert_eq!(all("cafe\u{301} ＡＢＣ Ёлка"), ["cafe", "abc", "елка"]);
        assert_eq!(all("Ὀδυσσεύς ΣΊΣΥΦΟΣ")[1], "σισυφοσ");
    }

    #[test]
    fn compounds_give_their_parts_and_the_whole() {
        assert_eq!(all("getUserName"), ["get", "user", "name", "getusername"]);
        assert_eq!(all("parseHTTPHeader"), ["parse", "http", "header", "parsehttpheader"]);
        assert_eq!(all("topic__x"), ["topic", "x", "topicx"]);
        assert_eq!(all("lib/store/run_log.rs"), ["lib", "store", "run", "log", "rs", "libstorerunlogrs"]);
        assert_eq!(all("tokio::select!"), ["tokio", "select", "tokioselect"]);
        assert_eq!(all("URLs and PDFs"), ["urls", "and", "pdfs"]);
        assert_eq!(all("end. Next - one, --flag"), ["end", "next", "one", "flag"]);
    }

    #[test]
    fn numbers_stay_findable() {
        assert_eq!(all("1.89, 0x1f v2"), ["1", "89", "1.89", "0x1f", "v2"]);
        assert_eq!(all("3,000 at 8:15"), ["3", "000", "3000", "at", "8", "15", "8:15"]);
        assert_eq!(all("port:8080, a,b"), ["port", "8080", "a", "b"]);
    }

    #[test]
    fn apostrophes_belong_to_words() {
        assert_eq!(
            all("don't Ann's we’re 'quoted' O'Brien l’eau"),
            ["dont", "ann", "we", "quoted", "o", "brien", "obrien", "l", "eau", "leau"]
        );
        assert_eq!(all("' '' 's it's' users'"), ["s", "it", "users"]);
    }

    #[test]
    fn text_without_spaces_gives_pairs() {
        assert_eq!(all("日本語 x"), ["日", "日本", "本", "本語", "語", "x"]);
        assert_eq!(all("猫"), ["猫"]);
        assert_eq!(all("Rust言語"), ["rust", "言", "言語", "語"]);
    }

    #[test]
    fn long_words_are_cut_and_offsets_are_right() {
        let long = "x".repeat(1000);
        assert_eq!(all(&long), ["x".repeat(LONGEST)]);
        let text = "é naïve-Été x";
        let mut seen = Vec::new();
        each(text, |word| seen.push(&text[word.start..word.end]));
        assert_eq!(seen, ["é", "naïve", "Été", "naïve-Été", "x"]);
    }
}
