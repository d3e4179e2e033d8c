//! Is a value a secret, or a placeholder, a word, or a name in code?

/// How much of a value is checked, in bytes: a random value is random from the start.
const SAMPLE: usize = 128;

/// Does it have enough different characters, unlike `xxxxxxxx`?
pub(super) fn varied(value: &[u8]) -> bool {
    different(&value[..value.len().min(SAMPLE)]) >= 6
}

fn different(value: &[u8]) -> usize {
    let mut seen = [false; 256];
    value.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// Was it made by a random generator? Words rarely change between lower case, upper case, digits and other
/// characters, and their letter pairs are those of a language; random characters differ in both.
pub(super) fn random(value: &[u8]) -> bool {
    let value = &value[..value.len().min(SAMPLE)];
    if value.len() < 12 || !value.iter().all(u8::is_ascii_graphic) || !varied(value) {
        return false;
    }
    let (mut changes, mut pairs, mut common) = (0, 0, 0);
    for two in value.windows(2) {
        let (a, b) = (char_kind(two[0]), char_kind(two[1]));
        // A capitalised word does not count as a change.
        if a != b && (a, b) != (CharKind::Upper, CharKind::Lower) {
            changes += 1;
        }
        if two[0].is_ascii_alphabetic() && two[1].is_ascii_alphabetic() {
            pairs += 1;
            common += usize::from(follows(two[0], two[1]));
        }
    }
    let changing = changes as f32 / (value.len() - 1) as f32;
    let worded = if pairs == 0 { 0.5 } else { common as f32 / pairs as f32 };
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    match changing {
        // Hexadecimal digits include few letters.
        some if some >= 0.12 && digits * 4 >= value.len() => true,
        many if many >= 0.33 => worded < 0.85,
        some if some >= 0.12 => worded < 0.60,
        _ => pairs >= 11 && pairs + 1 == value.len() && worded < 0.50,
    }
}

/// Could a person have chosen it as a password: letters with digits or other characters?
pub(super) fn password(value: &[u8]) -> bool {
    if !(6..=128).contains(&value.len()) || value.iter().any(u8::is_ascii_whitespace) {
        return false;
    }
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii()).count();
    // `-`, `_`, `.`, `/` and `:` also join words, and brackets enclose them.
    let signs =
        value.iter().filter(|byte| byte.is_ascii_punctuation() && !b"-_./:[]<>(){}|".contains(byte)).count();
    letters > 0 && (digits > 0 || (signs > 0 && letters + signs >= 8)) && different(value) >= 4
}

/// Is it a placeholder or a reference to a value elsewhere?
pub(super) fn placeholder(value: &[u8]) -> bool {
    let lower = value[..value.len().min(SAMPLE)].to_ascii_lowercase();
    let has = |part: &str| memchr::memmem::find(&lower, part.as_bytes()).is_some();
    let opens = match &*lower {
        [] => true,
        [b'$', next, ..] => next.is_ascii_alphabetic() || matches!(next, b'{' | b'(' | b'_'),
        [b'&', next, ..] => next.is_ascii_alphabetic(),
        [b'%', .., last] => *last == b'%' || lower.len() == 2,
        [b'<', .., last] => *last == b'>',
        [b'{', .., last] => *last == b'}',
        [b'[', .., last] => *last == b']',
        [b'(', .., last] => *last == b')',
        _ => false,
    };
    opens || PLACEHOLDERS.iter().any(|part| has(part))
}

/// Text that no secret contains, in lower case.
const PLACEHOLDERS: &[&str] = &[
    "...", "…", "xxxx", "***", "•••", "${", "$(", "{{", "#{", "<%", "changeme", "change-me", "change_me",
    "your", "example", "placeholder", "dummy", "redacted", "insert", "replace", "password", "passwd",
    "hidden", "sample", "todo", "://", "1234567890", "abcdef", "foobar", "test", "fake", "mock", "secret",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Lower,
    Upper,
    Digit,
    Sign,
}

fn char_kind(byte: u8) -> CharKind {
    match byte {
        b'a'..=b'z' => CharKind::Lower,
        b'A'..=b'Z' => CharKind::Upper,
        b'0'..=b'9' => CharKind::Digit,
        _ => CharKind::Sign,
    }
}

/// The 210 most common letter pairs in code and English prose: for each first letter, the second ones. They are 90 % of
/// the pairs there and 31 % of random pairs, counted over some thousand files.
const COMMON: [&str; 26] = [
    "bcdgilmnprstuvy", "aeilou", "aehiklortu", "adeiosu", "acdefglmnpqrstvxy", "aefiloru", "ehirs", "aeiot",
    "abcdefglmnoprstvz", "", "e", "adeilostuy", "aeimopsu", "acdefgiostuv", "bcdlmnoprstuvw", "aeiloprstuy",
    "u", "acdegimnorstuy", "acehiopstuy", "acehiloprstuy", "bceilmnprst", "aei", "ahior", "ept", "ps", "e",
];

/// [`COMMON`] with one bit per second letter.
static FOLLOWERS: [u32; 26] = {
    let mut table = [0; 26];
    let mut first = 0;
    while first < 26 {
        let seconds = COMMON[first].as_bytes();
        let mut at = 0;
        while at < seconds.len() {
            table[first] |= 1 << (seconds[at] - b'a');
            at += 1;
        }
        first += 1;
    }
    table
};

fn follows(first: u8, second: u8) -> bool {
    let letter = |byte: u8| byte.to_ascii_lowercase().wrapping_sub(b'a');
    FOLLOWERS.get(usize::from(letter(first))).is_some_and(|seconds| seconds >> (letter(second) & 31) & 1 == 1)
}
