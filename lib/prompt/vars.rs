//! Variables: `{{name}}` in an agent's texts and in the prompt, with values from `[vars]` and `--set`.

use crate::base::error::{Error, Result};
use crate::base::text::{did_you_mean, is_name};
use std::collections::{BTreeMap, BTreeSet};

/// Replaces every `{{name}}` in `texts`. `declared` are the names of the agent's file with their values, of which an empty
/// one counts as missing; `set` are words of the form NAME=VALUE, which come first. Without both, braces are text.
///
/// A value is not searched for further names.
pub fn fill<'a>(
    declared: &BTreeMap<String, String>,
    set: &[&str],
    texts: impl IntoIterator<Item = &'a mut String>,
) -> Result<()> {
    let mut values: BTreeMap<&str, &str> = BTreeMap::new();
    for word in set {
        let (name, value) = word.split_once('=').filter(|(name, _)| is_name(name)).ok_or_else(|| {
            Error::usage(format!("option \"--set\" takes NAME=VALUE, got \"{word}\""))
                .hint("a name has letters, digits, _ and -, and begins with a letter")
        })?;
        if values.insert(name, value).is_some() {
            return Err(Error::usage(format!("option \"--set\" gives \"{name}\" twice")));
        }
    }
    if declared.is_empty() && set.is_empty() {
        return Ok(());
    }
    let named: Vec<&str> = values.keys().copied().collect();
    for (name, value) in declared.iter().filter(|(_, value)| !value.is_empty()) {
        values.entry(name).or_insert(value);
    }
    let mut found = BTreeSet::new();
    for text in texts {
        *text = filled(text, &values, &mut found);
    }
    let is_used = |name: &str| declared.contains_key(name) || found.contains(name);
    if let Some(unknown) = named.into_iter().find(|name| !is_used(name)) {
        let known = found.iter().chain(declared.keys()).map(String::as_str);
        let error =
            Error::usage(format!("option \"--set\" gives \"{unknown}\", but there is no {{{{{unknown}}}}}"));
        let elsewhere = || "write it in the system prompt, the prompt or a file pattern".to_owned();
        return Err(error.hint(did_you_mean(unknown, known).unwrap_or_else(elsewhere)));
    }
    match found.iter().find(|name| !values.contains_key(name.as_str())) {
        Some(missing) => Err(Error::usage(format!("{{{{{missing}}}}} has no value"))
            .hint(format!("give it with --set {missing}=VALUE, or write {{{{ {missing} }}}} if it is text"))),
        None => Ok(()),
    }
}

/// `text` with its values in place. The names go to `found`; one without a value stays as it is.
fn filled(text: &str, values: &BTreeMap<&str, &str>, found: &mut BTreeSet<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        // No further than the name goes: the rest of the text is not searched again and again.
        let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let end = 2 + from[2..].find(ends).unwrap_or(from.len() - 2);
        let (name, after) = (&from[2..end], from[end..].strip_prefix("}}"));
        match after.filter(|_| is_name(name)) {
            Some(after) => {
                found.insert(name.to_owned());
                filled.push_str(values.get(name).copied().unwrap_or(&from[..name.len() + 4]));
                rest = after;
            }
            None => {
                filled.push('{');
                rest = &from[1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(declared: &[(&str, &str)], set: &[&str], text: &str) -> Result<String, String> {
        let declared = declared.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut text = text.to_owned();
        match fill(&declared.collect(), set, [&mut text]) {
            Ok(()) => Ok(text),
            Err(error) => Err(error.line()),
        }
    }

    #[test]
    fn names_become_values_and_values_are_not_searched() {
        let a = ("a", "1");
        for (declared, set, text, expected) in [
            (&[][..], &[][..], "{{a}} {{ b }} ${{c}}", "{{a}} {{ b }} ${{c}}"),
            (&[a], &[], "{{a}}{{a}} {{ a }} {a} {{a b}}", "11 {{ a }} {a} {{a b}}"),
            (&[a], &["a=2"], "{{a}}", "2"),
            (&[a], &["a="], "<{{a}}>", "<>"),
            (&[], &["a={{b}}", "b={{a}}"], "{{a}}{{b}}", "{{b}}{{a}}"),
            (&[], &["a=x=y"], "{{{a}}} {{", "{x=y} {{"),
            (&[("a", "")], &[], "nothing", "nothing"),
            (&[a], &[], "{{ä}} {{1}} {{}} {{\n}}", "{{ä}} {{1}} {{}} {{\n}}"),
        ] {
            assert_eq!(ended(declared, set, text).unwrap(), expected, "{declared:?} {set:?} {text}");
        }
    }

    /// Twice as many braces take twice as long: a minute each if the rest were searched for the end of each name.
    #[test]
    fn a_text_of_braces_is_read_once() {
        let braces = "{{".repeat(1 << 20);
        let text = format!("{braces} }}}}");
        assert!(ended(&[("a", "1")], &[], &text).unwrap() == text);
    }

    #[test]
    fn what_is_missing_unknown_or_given_twice_is_named() {
        for (declared, set, text, why) in [
            (&[("a", "")][..], &[][..], "{{a}}", "{{a}} has no value; give it with --set a=VALUE"),
            (&[("a", "1")], &[], "{{a}} {{b}}", "{{b}} has no value; "),
            (
                &[],
                &["lang=fr"],
                "{{langs}}",
                "option \"--set\" gives \"lang\", but there is no {{lang}}; did you mean",
            ),
            (&[], &["x=1"], "", "option \"--set\" gives \"x\", but there is no {{x}}; write it"),
            (&[], &["a=1", "a=1"], "{{a}}", "option \"--set\" gives \"a\" twice"),
            (&[], &["a"], "{{a}}", "option \"--set\" takes NAME=VALUE, got \"a\""),
            (&[], &["=1"], "", "option \"--set\" takes NAME=VALUE, got \"=1\""),
            (&[], &["a b=1"], "", "option \"--set\" takes NAME=VALUE, got \"a b=1\""),
        ] {
            let error = ended(declared, set, text).unwrap_err();
            assert!(error.starts_with(why), "{why}: {error}");
        }
    }
}
