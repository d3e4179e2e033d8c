//! Is a value a secret, or a placeholder, a word, or a name in code?

use std::sync::LazyLock;

use crate::base::text::escape;
use crate::memory::redact::chars::{WORD, count, holds, leading, split_end, turns};
use crate::memory::redact::rules::words;

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
        let both = (sort(two[0]), sort(two[1]));
        // A capitalised word does not count as a change.
        changes += usize::from(both.0 != both.1 && both != (b'A', b'a'));
        if two[0].is_ascii_alphabetic() && two[1].is_ascii_alphabetic() {
            pairs += 1;
            common += usize::from(follows(two[0], two[1]));
        }
    }
    let changing = changes as f32 / (value.len() - 1) as f32;
    let worded = if pairs == 0 { 0.5 } else { common as f32 / pairs as f32 };
    let digits = count(value, u8::is_ascii_digit);
    let is_random = match changing {
        // Hexadecimal digits include few letters.
        some if some >= 0.12 && digits * 4 >= value.len() => true,
        many if many >= 0.33 => worded < 0.85,
        some if some >= 0.12 => worded < 0.60,
        _ => pairs >= 11 && pairs + 1 == value.len() && worded < 0.50,
    };
    is_random && !version(value)
}

/// The version of a package: `1:4.13+dfsg1-1+deb12u1`, `2.36-9ubuntu3.1`. Its first two numbers are joined by a full stop, and
/// its parts are short: small letters and digits, which change places seldom.
pub(super) fn version(value: &[u8]) -> bool {
    let epoch = memchr::memchr(b':', value).unwrap_or_default();
    let (epoch, number) = (&value[..epoch], value[epoch..].strip_prefix(b":").unwrap_or(value));
    let major = leading(number, 8, |byte| byte.is_ascii_digit());
    let is_part = |part: &[u8]| {
        part.len() <= 12
            && turns(part) <= 3
            && part.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    epoch.len() <= 2
        && epoch.iter().all(u8::is_ascii_digit)
        && value.len() <= WORDY
        && matches!(number[major..], [b'.', b'0'..=b'9', ..])
        && major > 0
        && number.split(|byte| b".+-~".contains(byte)).all(is_part)
}

/// The names of fields, joined by colons: `pw_name:pw_uid:pw_gid`.
fn fields(value: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let mut names = value.split(|byte| *byte == b':');
    names.clone().count() > 2
        && names.all(|name| (1..=16).contains(&name.len()) && name.iter().all(is_letter))
}

/// Could a person have chosen it as a password: letters with digits or other characters?
pub(super) fn password(value: &[u8]) -> bool {
    if !(6..=128).contains(&value.len()) || value.iter().any(u8::is_ascii_whitespace) {
        return false;
    }
    let digits = count(value, u8::is_ascii_digit);
    let letters = count(value, |byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    // `-`, `_`, `.`, `/` and `:` also join words, and brackets enclose them.
    let signs = count(value, |byte| byte.is_ascii_punctuation() && !b"-_./:[]<>(){}|".contains(byte));
    letters > 0 && (digits > 0 || (signs > 0 && letters + signs >= 8)) && different(value) >= 4
}

/// Did a person or a generator make it, and is it no placeholder?
pub(super) fn made(value: &[u8]) -> bool {
    !placeholder(value) && (password(value) || random(value))
}

/// Can it be a secret where a flag says that it is one? Nearly anything can.
pub(super) fn flagged(value: &[u8]) -> bool {
    let number = value.len() >= 6 && value.iter().all(u8::is_ascii_digit);
    !matches!(value.first(), Some(b'-' | b'$' | b'@' | b'/'))
        && (made(value) || (number || phrase(value)) && !placeholder(value))
}

static JOINING: LazyLock<Vec<&str>> = LazyLock::new(|| words("joining"));

/// A passphrase: three words or more that a sign joins, or two with a blank.
pub(super) fn phrase(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return false };
    let words: Vec<&str> = text.split(['-', ' ']).collect();
    let is_word =
        |word: &&str| !word.is_empty() && word.len() <= 24 && word.chars().all(char::is_alphanumeric);
    let blank = value.contains(&b' ');
    (10..=64).contains(&value.len())
        && (3 - usize::from(blank)..=8).contains(&words.len())
        && words.iter().all(is_word)
        && (blank || !words.iter().any(|word| JOINING.contains(word)))
        && words.iter().filter(|word| word.len() > 2 && word.chars().all(char::is_alphabetic)).count()
            > usize::from(!blank)
        && text.chars().any(char::is_lowercase)
        && !words.iter().all(|word| is_made_of(word.as_bytes(), &[&PLACEHOLDERS, &CODE]))
        && !numbered(value)
}

/// `x.y`: names that a full stop joins.
pub(super) fn dotted(value: &[u8]) -> bool {
    value.windows(2).any(|two| two[0] == b'.' && two[1].is_ascii_alphabetic())
}

const KINDS: [fn(&u8) -> bool; 4] =
    [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit, u8::is_ascii_punctuation];

/// Has it capitals and small letters, digits and signs, or three of these?
pub(super) fn strong(value: &[u8]) -> bool {
    let many = KINDS.iter().filter(|kind| value.iter().any(kind)).count();
    // What may also be code must have all four, and a sign that is seldom there.
    let may_be_code = dotted(value) || value.iter().any(|byte| b";=".contains(byte));
    let has_sign = || value[..value.len() - 1].iter().any(|byte| b"!#%^*+~@".contains(byte));
    (many > 3 && has_sign() || many > 2 && !may_be_code)
        && password(value)
        && !value.iter().any(|byte| b"()[]{}<>\"'`|\\/".contains(byte))
        && !numbered(value)
}

/// Did a person make it up, where nothing else says that it is not code: no number, no name with a number?
pub(super) fn chosen(value: &[u8]) -> bool {
    if value.len() > WORDY {
        return false;
    }
    // `self.password2`, `path/to/file2`, `Kind::Two2`
    let is_path = || dotted(value) || holds(value, &["::", "/"]);
    let (core, _) = split_end(value.trim_ascii_end(), WORDY, |byte| b"!?@".contains(&byte));
    (value.iter().any(u8::is_ascii_digit) || core.iter().any(is_sign))
        && !value.iter().any(|byte| b"()[]{}<>\"'`,;|\\$=&".contains(byte))
        && !is_path()
        && password(value)
        && !numbered(value)
        && !of_words(value, &[&PLACEHOLDERS, &CODE])
}

/// Did a generator make it, of capitals, small letters and digits?
pub(super) fn mixed(value: &[u8]) -> bool {
    (16..=256).contains(&value.len())
        && KINDS[..3].iter().all(|kind| value.iter().any(kind))
        && random(value)
        && !value.starts_with(b"sha")
        && !value.iter().any(|byte| b"()[]{}<>\"'`\\@".contains(byte))
}

/// Four words or more that dice chose, and no sentence.
pub(super) fn dice(value: &[u8]) -> bool {
    let words = || value.split(|byte| b"- ".contains(byte));
    words().count() > 3
        && words().all(|word| (4..=9).contains(&word.len()) && word.iter().all(u8::is_ascii_lowercase))
        && phrase(value)
}

/// Hexadecimal digits of a length that no common hash has.
pub(super) fn odd_hex(value: &[u8]) -> bool {
    (30..=256).contains(&value.len())
        && ![32, 40, 56, 64, 96, 128].contains(&value.len())
        && value.iter().all(u8::is_ascii_hexdigit)
        && random(value)
}

/// Is it a password as people make it up, which no name of code looks like?
pub(super) fn made_up(value: &[u8]) -> bool {
    let many = |kind: fn(&u8) -> bool| count(value, kind);
    (8..=40).contains(&value.len())
        && many(u8::is_ascii_lowercase) > 1
        && !value.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
        && (many(u8::is_ascii_digit) > 2
            || strong(value) && value.iter().any(is_sign)
            || random(value) && KINDS[..3].iter().all(|kind| value.iter().any(kind)))
        && (chosen(value) || count(value, |byte| *byte == b'.') == 1 && password(value))
        && (!value[0].is_ascii_digit() || random(value))
        && !value.contains(&b'_')
        && count(value, |byte| *byte == b'%') < 2
        && !value.windows(3).any(|three| escape(three).is_some())
}

/// Signs that people put into passwords and not between words.
pub(super) fn is_sign(byte: &u8) -> bool {
    b"!#%^*+?@~".contains(byte)
}

/// A size, a date, a version, or hexadecimal: `128KiB`, `2024-01-02T03`, `v1.2.3-rc4`, `0x12ab`.
pub(super) fn numbered(value: &[u8]) -> bool {
    let number = value.strip_prefix(b"v").or(value.strip_prefix(b"V")).unwrap_or(value);
    let many = leading(number, WORDY, |byte| byte.is_ascii_digit() || b".-:_+".contains(&byte));
    many > 0
        && (number.len() - many <= 3
            || value.starts_with(b"0x")
            || memchr::memchr2(b'.', b'-', &number[..many]).is_some())
}

/// Is it, as a whole, a placeholder or a reference to a value elsewhere? A part of a password may be any word.
pub(super) fn placeholder(value: &[u8]) -> bool {
    let sample = &value[..value.len().min(SAMPLE)];
    let opens = match sample {
        [] | [b'*', b'*', ..] | [b'%', .., b'%'] | [b'%', _] => true,
        [b'<', .., b'>'] | [b'[', .., b']'] | [b'(', .., b')'] => true,
        [b'{', inside @ .., b'}'] => !random(inside),
        [b'$', next, ..] => next.is_ascii_alphabetic() || b"{(_[".contains(next),
        [b'&', next, ..] => next.is_ascii_alphabetic(),
        _ => false,
    };
    opens
        || (sample.iter().any(|byte| b".*{$#<:\xe2xX%".contains(byte)) && holds(sample, REFERENCES))
        || fields(sample)
        || PLAIN.iter().any(|form| fits(form.as_bytes(), sample))
        || [&b"EXAMPLE"[..], b"EXAMPLEKEY"].iter().any(|end| sample.ends_with(end))
        || sample == b"s3cr3t"
        || counted(sample)
        || value.len() <= WORDY && of_words(sample, &[&PLACEHOLDERS])
}

/// Forms of what is not secret: times, addresses of hardware, packages.
static PLAIN: LazyLock<Vec<&str>> = LazyLock::new(|| words("plain"));

fn fits(form: &[u8], value: &[u8]) -> bool {
    match (form, value) {
        ([], _) => value.is_empty(),
        ([b'*', rest @ ..], _) => (0..=value.len()).any(|at| fits(rest, &value[at..])),
        ([b'9', rest @ ..], [b'0'..=b'9', value @ ..]) => fits(rest, value),
        ([b'A', rest @ ..], [byte, value @ ..]) if byte.is_ascii_alphabetic() => fits(rest, value),
        ([b'F', rest @ ..], [byte, value @ ..]) if byte.is_ascii_hexdigit() => fits(rest, value),
        ([one, rest @ ..], [byte, value @ ..]) => one == byte && fits(rest, value),
        _ => false,
    }
}

/// Is it a name of code: words that `_` joins, in which letters and digits change places seldom, and none is random?
pub(super) fn identifier(value: &[u8]) -> bool {
    let changes = |two: &&[u8]| {
        let (one, next) = (sort(two[0]), sort(two[1]));
        one != next && (one, next) != (b'A', b'a') && ![one, next].contains(&b'.')
    };
    value.contains(&b'_')
        && value.iter().all(|byte| WORD.has(*byte))
        && value.windows(2).filter(changes).count() * 4 <= value.len()
        && !value.split(|byte| *byte == b'_').any(random)
}

/// The longest placeholder that is made of words.
const WORDY: usize = 64;

/// Signs of a template, of something left out, or of an address.
const REFERENCES: &[&str] = &["...", "…", "xxxx", "XXXX", "****", "•••", "${", "{{", "#{", "<%", "://"];

/// `sk-xxxxxxxxxxxx`: a form with nothing in it.
pub(super) fn blanked(value: &[u8]) -> bool {
    value.ends_with(b"EXAMPLE")
        || value.windows(6).any(|six| b"xX*".contains(&six[0]) && six.iter().all(|byte| *byte == six[0]))
}

/// `1234567890`, `abcdefgh`, `00000000`: most characters follow from the one before.
fn counted(value: &[u8]) -> bool {
    let follows = |two: &&[u8]| {
        two[1] == two[0] || two[1] == two[0].wrapping_add(1) || [&b"90"[..], b"9a", b"0a"].contains(two)
    };
    value.is_ascii() && value.len() >= 6 && value.windows(2).filter(follows).count() * 10 >= value.len() * 6
}

/// Does it consist of nothing but these words, the signs between them, and a number that only counts?
fn of_words(value: &[u8], lists: &[&[&str]]) -> bool {
    if value.len() > SAMPLE || value.iter().any(is_sign) {
        return false;
    }
    let counts =
        |number: &[u8]| number.len() < 2 || b"1234567890".starts_with(number) || SIZES.contains(&number);
    let mut letters = false;
    value
        .split(|byte| !byte.is_ascii_alphanumeric())
        .flat_map(|word| word.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()))
        .all(|part| {
            let number = part[0].is_ascii_digit();
            letters |= !number;
            if number { counts(part) } else { is_made_of(part, lists) }
        })
        && letters
}

/// Numbers in the names of types and methods.
const SIZES: &[&[u8]] = &[
    b"16", b"32", b"64", b"128", b"224", b"256", b"384", b"512", b"1024", b"2048", b"4096", b"509", b"1305",
    b"25519",
];

/// Can the letters be cut into words of the lists, without a rest?
fn is_made_of(letters: &[u8], lists: &[&[&str]]) -> bool {
    const LONGEST: usize = 64;
    if !(2..=LONGEST).contains(&letters.len()) {
        return letters.len() < 2;
    }
    let mut can_end = [false; LONGEST + 1];
    can_end[0] = true;
    for from in 0..letters.len() {
        if !can_end[from] {
            continue;
        }
        for word in lists.iter().copied().flatten() {
            let to = from + word.len();
            if letters.get(from..to).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes())) {
                can_end[to] = true;
            }
        }
    }
    can_end[letters.len()]
}

/// Words of placeholders.
static PLACEHOLDERS: LazyLock<Vec<&str>> = LazyLock::new(|| words("placeholders"));

/// Words of names in code that stand after a name for secrets.
static CODE: LazyLock<Vec<&str>> = LazyLock::new(|| words("code"));

/// The first of the characters that are like this one.
fn sort(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => b'a',
        b'A'..=b'Z' => b'A',
        b'0'..=b'9' => b'0',
        _ => b'.',
    }
}

/// The common letter pairs, one bit for each second letter.
static FOLLOWERS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let bits = |letters: &&str| letters.bytes().fold(0, |so_far, letter| so_far | 1 << (letter & 31));
    words("pairs").iter().map(bits).collect()
});

fn follows(first: u8, second: u8) -> bool {
    let first = usize::from(first.to_ascii_lowercase().wrapping_sub(b'a'));
    FOLLOWERS.get(first).is_some_and(|seconds| seconds >> (second & 31) & 1 == 1)
}
