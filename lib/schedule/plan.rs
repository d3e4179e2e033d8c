//! What an installation consists of, as plain data.

use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    Launchd,
    Systemd,
    Crontab,
}

impl Scheduler {
    pub const ALL: [Scheduler; 3] = [Scheduler::Launchd, Scheduler::Systemd, Scheduler::Crontab];

    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Launchd => "launchd",
            Scheduler::Systemd => "systemd",
            Scheduler::Crontab => "crontab",
        }
    }

    pub fn from_name(name: &str) -> Option<Scheduler> {
        Scheduler::ALL.into_iter().find(|scheduler| scheduler.name() == name)
    }
}

/// A command's words.
pub type Words = Vec<String>;

/// In the order in which it is carried out.
#[derive(Debug)]
pub struct InstallPlan {
    pub scheduler: Scheduler,
    /// Directories that the scheduler does not create.
    pub dirs: Vec<PathBuf>,
    pub files: Vec<(PathBuf, String)>,
    /// What goes into the crontab, including the markers.
    pub block: Option<String>,
    pub commands: Vec<Words>,
    /// What differs from the request.
    pub remarks: Vec<String>,
}

pub fn words(words: &[&str]) -> Words {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The words as a shell would read them.
pub fn line(words: &Words) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// The template with its placeholders replaced. Inserted text is not searched for placeholders.
pub(super) fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let (mut text, mut rest) = (String::new(), template);
    while let Some(at) = rest.find('@') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        match values.iter().find_map(|(place, value)| Some((rest.strip_prefix(place)?, value))) {
            Some((after, value)) => {
                text.push_str(value);
                rest = after;
            }
            None => {
                text.push('@');
                rest = &rest[1..];
            }
        }
    }
    text + rest
}

/// Is the text this template, with anything in the place of these placeholders?
pub(super) fn is_filled(text: &str, template: &str, placeholders: &[&str]) -> bool {
    let marked = placeholders.iter().fold(template.to_owned(), |marked, place| marked.replace(place, "\0"));
    let mut fixed = marked.split('\0');
    let (first, last) = (fixed.next().unwrap_or_default(), fixed.next_back());
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in fixed {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_template_is_known_again() {
        let is_it = |text: &str| is_filled(text, "a @A@ b @B@ c", &["@A@", "@B@"]);
        assert!(is_it("a 1 b 2 c") && is_it("a  b  c") && is_it("a b b c c b  c"));
        assert!(!is_it("a 1 b 2 c ") && !is_it("a 1 c") && !is_it("1 b 2 c") && !is_it("a 1 b c"));
        assert!(is_filled("a", "a", &["@A@"]) && !is_filled("ab", "a", &["@A@"]));
    }

    #[test]
    fn inserted_text_is_not_searched() {
        let values = [("@A@", "@B@"), ("@B@", "ü@")];
        assert_eq!(filled("a@b @A@ @B@ @C@@", &values), "a@b @B@ ü@ @C@@");
    }
}
