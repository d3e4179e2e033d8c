//! What a text looks like: invisible characters left out, and characters that look like ASCII replaced by it (UTS 39).
//! Both sides of each comparison are read in this form, so that an odd spelling is the same text.

use crate::base::text::is_hidden;
use std::borrow::Cow;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;

/// The characters that look like one of ASCII, sorted, and that one. The file has a line for each of ASCII, with the others in
/// hexadecimal. It comes from Unicode's confusables.txt (© Unicode, Inc., unicode.org/terms_of_use); a test compares it with
/// the crate `unicode-security`, whose tables of everything that looks alike take 350 KB of each program.
static LOOKALIKES: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
    let lines = include_str!("lookalikes.txt").lines().filter_map(|line| line.split_at_checked(1));
    let pairs = lines.flat_map(|(like, codes)| {
        let codes = codes.split_ascii_whitespace().filter_map(|code| u32::from_str_radix(code, 16).ok());
        codes.filter_map(char::from_u32).zip(like.chars().cycle())
    });
    let mut all: Vec<_> = pairs.collect();
    all.sort_unstable();
    all
});

/// The text as a reader sees it. Lines stay lines.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_ascii() {
            seen.push(c);
            continue;
        }
        let next = chars.peek().copied();
        match c {
            // The Japanese full stop is a dot within a host, and ends a sentence elsewhere.
            '。' | '｡'
                if seen.ends_with(|c: char| c.is_ascii_alphanumeric())
                    && next.is_some_and(|c| c.is_ascii_alphanumeric()) =>
            {
                seen.push('.');
            }
            '\u{2028}' | '\u{2029}' => seen.push('\n'),
            '‐'..='―' | '−' | '﹣' | '－' => seen.push('-'),
            c if is_hidden(c) => {}
            c => seen.extend(c.nfkc().map(lookalike)),
        }
    }
    Cow::Owned(seen)
}

/// The ASCII character that it looks like, if it looks like one. Letters with an accent are themselves.
fn lookalike(c: char) -> char {
    LOOKALIKES.binary_search_by_key(&c, |(other, _)| *other).map_or(c, |at| LOOKALIKES[at].1)
}

/// The words of a sentence in lower case, without the punctuation around them. What a hyphen or a slash joins is several
/// words, unless it has other marks: numbers, flags, paths and addresses stay as they are typed. Of scripts without blanks,
/// each run of characters is a word.
pub(super) fn words_of(text: &str) -> Vec<String> {
    let seen = plain(text);
    let mut words = Vec::new();
    for token in seen.split(|c: char| c.is_whitespace() || "，、。；：！？".contains(c)) {
        let bare = bare(token);
        let is_joined = bare.chars().all(|c| c.is_alphanumeric() || "-/".contains(c))
            && bare.starts_with(char::is_alphanumeric);
        match is_joined {
            true => words.extend(bare.split(['-', '/']).filter(|word| !word.is_empty()).map(str::to_owned)),
            false if bare.contains(|c: char| c.is_alphanumeric() || "<>=+*~".contains(c)) => words.push(bare),
            false => {}
        }
    }
    words
}

/// A word without quotes, marks of code and emphasis, and the punctuation of its sentence.
fn bare(token: &str) -> String {
    let is_edge = |c: char| "\"'`“”„‘’‚«»()[]{}.,;:!?…¡¿".contains(c);
    let mut word = token.trim_start_matches(|c| is_edge(c) && c != '.').trim_end_matches(is_edge);
    for mark in ["**", "__", "*", "_"] {
        word = word.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark)).unwrap_or(word);
    }
    // A dash of prose, and no flag.
    if word.strip_prefix('-').is_some_and(|rest| rest.len() > 2 && rest.starts_with(char::is_alphabetic)) {
        word = &word[1..];
    }
    word.chars().filter(|c| !"\"'`’".contains(*c)).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_security::skeleton;

    #[test]
    fn characters_look_alike_where_unicode_says_so() {
        for c in ('\u{80}'..=char::MAX).filter(|c| !c.is_ascii()) {
            let mut buffer = [0; 4];
            let mut like = skeleton(c.encode_utf8(&mut buffer));
            let expected = match (like.next(), like.next()) {
                (Some(one), None) if one.is_ascii() => one,
                _ => c,
            };
            assert_eq!(lookalike(c), expected, "{}", c.escape_unicode());
        }
    }

    #[test]
    fn a_text_is_read_as_it_looks() {
        for (raw, seen) in [
            ("gіthub.com", "github.com"),
            ("ｃｕｒｌ　－ｋ", "curl -k"),
            ("ev\u{200b}il.c\u{ad}om", "evil.com"),
            ("𝐜𝐮𝐫𝐥 𝟒𝟑𝟏𝟎 ⓒⓤⓡⓛ", "curl 4310 curl"),
            ("evil。com", "evil.com"),
            ("終わり。次", "終わり。次"),
            ("Größe, ñandú, straße", "Größe, ñandú, straße"),
            ("—no-verify", "-no-verify"),
            ("https:／／evil․example⁄x", "https://evil.example/x"),
            ("a\u{2028}b", "a\nb"),
            ("рaypal ѕh", "paypal sh"),
        ] {
            assert_eq!(plain(raw), seen);
        }
        assert!(matches!(plain("ascii"), Cow::Borrowed(_)));
    }
}
