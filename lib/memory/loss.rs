//! What a rewritten text must still hold: links, addresses, paths, numbers and names from code. A model that
//! smooths a text loses these first, and they are what a note is for.

use std::collections::BTreeSet;
use unicode_segmentation::UnicodeSegmentation;

/// The share of facts that a rewrite must keep, in percent.
const KEPT_PERCENT: usize = 99;

/// The facts of a text that another lacks.
pub(crate) struct Loss<'a> {
    /// In their order.
    pub(super) missing: Vec<&'a str>,
    /// How many there were.
    of: usize,
}

impl Loss<'_> {
    /// Are more facts gone than a rewrite may lose?
    pub(crate) fn is_too_much(&self) -> bool {
        self.missing.len() * 100 > self.of * (100 - KEPT_PERCENT)
    }
}

/// The facts of `old` that `new` lacks; those that `may_go` are none.
pub(crate) fn loss<'a>(old: &'a str, new: &str, may_go: impl Fn(&str) -> bool) -> Loss<'a> {
    let facts: Vec<&str> = facts(old).into_iter().filter(|fact| !may_go(fact)).collect();
    let kept: BTreeSet<&str> = self::facts(new).into_iter().collect();
    // A name may stand in the new text with other marks around it; a number may not stand in a longer one.
    let stands = |fact: &str| !fact.starts_with(|c: char| c.is_ascii_digit()) && new.contains(fact);
    let missing = facts.iter().copied().filter(|fact| !kept.contains(fact) && !stands(fact)).collect();
    Loss { missing, of: facts.len() }
}

/// The facts of `old` that `new` lacks, in their order; none if it keeps enough of them.
pub(crate) fn lost<'a>(old: &'a str, new: &str) -> Vec<&'a str> {
    let loss = loss(old, new, |_| false);
    if loss.is_too_much() { loss.missing } else { Vec::new() }
}

/// So many different words make a text of which something must be left, and so much of them, in percent: a text in
/// plain words has few facts that could be missed.
const WORDS: usize = 20;
const WORDS_PERCENT: usize = 25;

/// Of how many different words of `old` how few are left in `new`; `None` if enough are.
pub(super) fn emptied(old: &str, new: &str) -> Option<(usize, usize)> {
    let words = |text: &str| -> BTreeSet<String> { text.unicode_words().map(str::to_lowercase).collect() };
    let (old, new) = (words(old), words(new));
    let kept = old.intersection(&new).count();
    (old.len() >= WORDS && kept * 100 < old.len() * WORDS_PERCENT).then_some((kept, old.len()))
}

/// Every fact of a text once: the words that are more than words.
fn facts(text: &str) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    text.split(|c: char| c.is_whitespace() || "`\"'<>|,;".contains(c))
        .map(|word| word.trim_matches(|c: char| "()*.:!?{}#".contains(c)))
        .map(|word| if word.contains("[[") { word } else { word.trim_matches(['[', ']']) })
        .filter(|word| is_fact(word) && seen.insert(*word))
        .collect()
}

fn is_fact(word: &str) -> bool {
    let inner =
        |mark: char| word.char_indices().any(|(at, c)| c == mark && at > 0 && at + c.len_utf8() < word.len());
    let mut letters = word.chars().filter(|c| c.is_alphabetic());
    // `camelCase`, `HTTPServer`: a capital after the first letter, beside small ones.
    let is_camel = letters.next().is_some()
        && letters.clone().any(char::is_uppercase)
        && word.chars().any(char::is_lowercase);
    word.contains("[[")
        || word.contains("://")
        || word.contains('/') && word.chars().any(char::is_alphanumeric) && word != "and/or"
        || word.chars().any(|c| c.is_ascii_digit())
        || word.starts_with('$') && word.len() > 1
        || word.starts_with("--") && word.len() > 2
        || inner('_')
        || inner('.')
        || word.contains("::")
        || word.contains("()")
        || is_camel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_links_addresses_paths_numbers_and_names() {
        let text = "Use `retry_after` (see [[id__a1B2c3]]), at most 3.5 s; https://h/x?y=1 and src/main.rs, \
                    --no-verify, $HOME, HTTPServer::new(), config.toml. Plain words, even Capital ones, are not.";
        assert_eq!(
            facts(text),
            [
                "retry_after", "[[id__a1B2c3]]", "3.5", "https://h/x?y=1", "src/main.rs", "--no-verify",
                "$HOME", "HTTPServer::new", "config.toml"
            ]
        );
    }

    #[test]
    fn another_wording_with_the_same_facts_loses_nothing() {
        assert!(lost("Wait 30 s before src/a.rs is read.", "src/a.rs: read it after 30 s").is_empty());
        assert!(lost("no facts here", "").is_empty());
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(lost("port 8081 on host db.local", "the port of the host"), ["8081", "db.local"]);
    }

    #[test]
    fn one_in_a_hundred_may_go() {
        let old: Vec<String> = (1000..1100).map(|n| n.to_string()).collect();
        assert!(lost(&old.join(" "), &old[1..].join(" ")).is_empty());
        assert_eq!(lost(&old.join(" "), &old[2..].join(" ")), ["1000", "1001"]);
    }

    #[test]
    fn what_may_go_is_not_missed() {
        let old = "see [[id__a1B2c3]] and port 8081";
        assert!(loss(old, "port 8081", |fact| fact == "[[id__a1B2c3]]").missing.is_empty());
        assert_eq!(lost(old, "port 8081"), ["[[id__a1B2c3]]"]);
    }

    #[test]
    fn a_text_in_plain_words_may_be_shortened_but_not_emptied() {
        let old = "Guards must be pure because the machine may call them twice, and nobody wants a second letter \
                   sent; put whatever talks to the world into actors, whose failures the machine can see.";
        assert_eq!(emptied(old, "Guards must be pure; what talks to the world goes into actors."), None);
        assert_eq!(emptied(old, "Notes about guards.").map(|(kept, _)| kept), Some(1));
        assert_eq!(emptied("A short note about guards.", "Nothing."), None);
    }
}
