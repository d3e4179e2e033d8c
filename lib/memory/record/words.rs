//! The words of a sentence, as they are compared.

use crate::memory::record::plain::plain;

/// The words of a sentence in the form in which they are compared: letters and digits in lower case. Of scripts without
/// blanks, each run of characters is a word. What a hyphen joins is several.
pub(super) fn words_of(text: &str) -> Vec<String> {
    let seen = plain(text);
    let bare = |word: &str| -> String {
        word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    seen.split(|c: char| c.is_whitespace() || "-/，、。；：！？".contains(c))
        .map(bare)
        .filter(|word| !word.is_empty())
        .collect()
}
