//! A program's help, in one place: `--help`, the man page and the completions are made from its `About`.

use crate::base::cli::flag::{Completes, Flag, FlagRule, Words, flag, one_of};
use crate::base::text::wrap;
use std::fmt::Write;

/// Everything that help, man page and completions say about a program, and how its command line is read.
#[derive(Debug)]
pub struct About {
    pub name: &'static str,
    /// What it does, in less than a line, without a full stop.
    pub caption: &'static str,
    /// One line for each form.
    pub usage: &'static [&'static str],
    pub commands: &'static [Command],
    /// Other names of commands: `("ls", "list")`.
    pub aliases: &'static [(&'static str, &'static str)],
    pub flags: &'static [Flag],
    pub words: Words,
    /// What a shell offers for words, behind a command if there are commands.
    pub completes: Completes,
    pub rules: &'static [FlagRule],
    /// Paragraphs, separated by blank lines; lines that begin with four spaces are verbatim. From the first `## HEADING`
    /// on it is for the man page alone, in the form of [`crate::base::cli::Manual::text`].
    pub text: &'static str,
}

/// The first word on the command line: `axe-agents show`.
pub type Command = (&'static str, &'static str);

/// The flags that every program has.
static COMMON: [Flag; 3] = [
    one_of("color", "WHEN", &["auto", "always", "never"], "auto, always or never"),
    flag("help", "print this help").short('h'),
    flag("version", "print the version").short('V'),
];

const WIDTH: usize = 79;

impl About {
    /// What most programs do not have.
    pub const BLANK: About = About {
        name: "",
        caption: "",
        usage: &[],
        commands: &[],
        aliases: &[],
        flags: &[],
        words: Words::AtMost(0),
        completes: Completes::Nothing,
        rules: &[],
        text: "",
    };

    pub(super) fn all_flags(&self) -> impl Iterator<Item = &'static Flag> + use<> {
        self.flags.iter().chain(&COMMON)
    }

    pub(super) fn flag(&self, long: &str) -> Option<&'static Flag> {
        self.flags.iter().find(|flag| flag.long == long)
    }

    /// Its text for help, and the sections of the man page alone.
    pub(super) fn texts(&self) -> (&'static str, &'static str) {
        let at = self.text.find("\n## ").map_or(self.text.len(), |at| at + 1);
        let (help, sections) = self.text.split_at(at);
        (help.trim_end(), sections)
    }

    /// The other names of a command.
    pub(super) fn aliases_of<'a>(&'a self, command: &'a str) -> impl Iterator<Item = &'a str> {
        self.aliases.iter().filter(move |(_, name)| *name == command).map(|(alias, _)| *alias)
    }

    /// `print notes (also: show)`
    pub(super) fn with_aliases(&self, command: &str, help: &str) -> String {
        match &self.aliases_of(command).collect::<Vec<_>>()[..] {
            [] => help.to_owned(),
            aliases => format!("{help} (also: {})", aliases.join(", ")),
        }
    }

    /// What `--help` prints: at most 40 lines of 79 columns (a test checks this).
    pub fn help(&self) -> String {
        let mut out = format!("{} - {}\n\n", self.name, self.caption);
        for (n, line) in self.usage.iter().enumerate() {
            let _ = writeln!(out, "{} {line}", if n == 0 { "Usage:" } else { "      " });
        }
        if !self.commands.is_empty() {
            out.push('\n');
            table(
                &mut out,
                self.commands.iter().map(|(name, help)| ((*name).to_owned(), self.with_aliases(name, help))),
            );
        }
        out.push('\n');
        table(&mut out, self.all_flags().map(|flag| (flag.spelling(), flag.help.to_owned())));
        for paragraph in self.texts().0.split("\n\n") {
            out.push('\n');
            if is_verbatim(paragraph) {
                let _ = writeln!(out, "{}", paragraph.trim_end().trim_start_matches('\n'));
            } else {
                for line in wrap(paragraph, WIDTH) {
                    let _ = writeln!(out, "{line}");
                }
            }
        }
        out
    }
}

/// Examples and layouts: every line is indented by four spaces.
pub(super) fn is_verbatim(paragraph: &str) -> bool {
    paragraph.lines().filter(|line| !line.is_empty()).all(|line| line.starts_with("    "))
}

fn table(out: &mut String, rows: impl Iterator<Item = (String, String)>) {
    let rows: Vec<_> = rows.collect();
    let left = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, help) in rows {
        for (n, line) in wrap(&help, WIDTH - left - 4).iter().enumerate() {
            let _ = writeln!(out, "  {:left$}  {line}", if n == 0 { name.as_str() } else { "" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cli::flag::value;

    const SAMPLE: About = About {
        name: "axe-sample",
        caption: "show how help looks",
        usage: &["axe-sample [-n] FILE", "axe-sample --all"],
        flags: &[flag("dry-run", "change nothing").short('n'), value("model", "P/M", "use this model")],
        text: "One paragraph.\n\n    axe-sample x | wc\n\n## MORE\n\nFor the page.\n",
        ..About::BLANK
    };

    #[test]
    fn help_reads_from_name_to_example() {
        let expected = "axe-sample - show how help looks\n\nUsage: axe-sample [-n] FILE\n       axe-sample --all\n\n  \
             -n, --dry-run  change nothing\n  --model P/M    use this model\n  --color WHEN   auto, always or never\n  \
             -h, --help     print this help\n  -V, --version  print the version\n\nOne paragraph.\n\n    axe-sample x | wc\n";
        assert_eq!(SAMPLE.help(), expected);
    }
}
