//! What an installation consists of, as plain data.

use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheduler {
    Launchd,
    Systemd,
    Crontab,
}

impl Scheduler {
    pub(crate) const ALL: [Scheduler; 3] = [Scheduler::Launchd, Scheduler::Systemd, Scheduler::Crontab];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheduler::Launchd => "launchd",
            Scheduler::Systemd => "systemd",
            Scheduler::Crontab => "crontab",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Scheduler> {
        Scheduler::ALL.into_iter().find(|scheduler| scheduler.name() == name)
    }
}

/// All of them, for messages.
pub(crate) const NAMES: &str = "launchd, systemd or crontab";

/// A command's words.
pub(crate) type Words = Vec<String>;

/// In the order in which it is carried out.
#[derive(Debug)]
pub(crate) struct InstallPlan {
    pub(crate) scheduler: Scheduler,
    /// Directories that the scheduler does not create.
    pub(crate) dirs: Vec<PathBuf>,
    pub(crate) files: Vec<(PathBuf, String)>,
    /// What goes into the crontab, including the markers.
    pub(crate) block: Option<String>,
    pub(crate) commands: Vec<Words>,
    /// What differs from the request.
    pub(crate) remarks: Vec<String>,
}

pub(crate) fn words(words: &[&str]) -> Words {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The words as a shell would read them.
pub(crate) fn line(words: &Words) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_text_is_not_searched() {
        let values = [("@A@", "@B@"), ("@B@", "ü@")];
        assert_eq!(filled("a@b @A@ @B@ @C@@", &values), "a@b @B@ ü@ @C@@");
    }
}
