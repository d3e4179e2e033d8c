//! What a rewritten text must still hold: links, addresses, paths, numbers and names from code. A model that
//! smooths a text loses these first, and they are what a note is for.

use std::collections::BTreeSet;

/// The share of facts that a rewrite must keep, in percent.
pub(crate) const KEPT_PERCENT: usize = 99;

/// The facts of `old` that `new` lacks, in their order; none if it keeps enough of them.
pub(crate) fn lost<'a>(old: &'a str, new: &str) -> Vec<&'a str> {
    let facts = facts(old);
    let kept: BTreeSet<&str> = self::facts(new).into_iter().collect();
    // A name may stand in the new text with other marks around it; a number may not stand in a longer one.
    let stands = |fact: &str| !fact.starts_with(|c: char| c.is_ascii_digit()) && new.contains(fact);
    let missing: Vec<&str> =
        facts.iter().copied().filter(|fact| !kept.contains(fact) && !stands(fact)).collect();
    if missing.len() * 100 > facts.len() * (100 - KEPT_PERCENT) { missing } else { Vec::new() }
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
                "retry_after",
                "[[id__a1B2c3]]",
                "3.5",
                "https://h/x?y=1",
                "src/main.rs",
                "--no-verify",
                "$HOME",
                "HTTPServer::new",
                "config.toml"
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
}
