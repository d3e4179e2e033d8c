//! The schedulers that the memory programs know, and the words of their commands.

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

pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The words as a shell would read them.
pub fn line(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}
