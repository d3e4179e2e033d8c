//! The words of a sentence, as they are compared.

use crate::memory::record::plain::plain;

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
