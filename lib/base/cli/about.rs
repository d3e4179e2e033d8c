//! A program's help, in one place: `--help`, the man page and the completions are made from its `About`.

use crate::base::text::wrap;
use std::fmt::Write;

/// Everything that help, man page and completions say about a program.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) name: &'static str,
    /// What it does, in less than a line, without a full stop.
    pub(crate) caption: &'static str,
    /// One line for each form.
    pub(crate) usage: &'static [&'static str],
    pub(crate) commands: &'static [Command],
    pub(crate) flags: &'static [Flag],
    /// Paragraphs, separated by blank lines. Lines that begin with four spaces are verbatim.
    pub(crate) more: &'static str,
    /// Further sections of the man page: title and text. A text that has its own headings comes without a title. The
    /// form is that of [`crate::base::cli::Manual::text`].
    pub(crate) sections: &'static [(&'static str, &'static str)],
}

/// The first word on the command line: `axe-agents show`.
pub(crate) type Command = (&'static str, &'static str);

#[derive(Debug)]
pub(crate) struct Flag {
    pub(super) long: &'static str,
    pub(super) short: Option<char>,
    pub(super) value: Option<&'static str>,
    pub(super) help: &'static str,
}

pub(crate) const fn flag(long: &'static str, help: &'static str) -> Flag {
    Flag { long, short: None, value: None, help }
}

pub(crate) const fn value(long: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { long, short: None, value: Some(value), help }
}

impl Flag {
    pub(crate) const fn short(mut self, short: char) -> Flag {
        self.short = Some(short);
        self
    }

    /// `-p, --prompt TEXT`
    pub(super) fn spelling(&self) -> String {
        let mut text = match self.short {
            Some(short) => format!("-{short}, --{}", self.long),
            None => format!("--{}", self.long),
        };
        if let Some(value) = self.value {
            text.push(' ');
            text.push_str(value);
        }
        text
    }
}

/// The flags that every program has.
const COMMON: [Flag; 2] =
    [flag("help", "print this help").short('h'), flag("version", "print the version").short('V')];

const WIDTH: usize = 79;

impl About {
    pub(super) fn all_flags(&self) -> impl Iterator<Item = &Flag> {
        self.flags.iter().chain(&COMMON)
    }

    /// What `--help` prints: at most 40 lines of 79 columns (a test checks this).
    pub(crate) fn help(&self) -> String {
        let mut out = format!("{} - {}\n\n", self.name, self.caption);
        for (n, line) in self.usage.iter().enumerate() {
            let _ = writeln!(out, "{} {line}", if n == 0 { "Usage:" } else { "      " });
        }
        if !self.commands.is_empty() {
            out.push('\n');
            table(&mut out, self.commands.iter().map(|(name, help)| ((*name).to_owned(), *help)));
        }
        out.push('\n');
        table(&mut out, self.all_flags().map(|flag| (flag.spelling(), flag.help)));
        for paragraph in self.more.split("\n\n") {
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

fn table<'a>(out: &mut String, rows: impl Iterator<Item = (String, &'a str)>) {
    let rows: Vec<_> = rows.collect();
    let left = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, help) in rows {
        for (n, line) in wrap(help, WIDTH - left - 4).iter().enumerate() {
            let _ = writeln!(out, "  {:left$}  {line}", if n == 0 { name.as_str() } else { "" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: About = About {
        name: "axe-sample",
        caption: "show how help looks",
        usage: &["axe-sample [-n] FILE", "axe-sample --all"],
        commands: &[],
        flags: &[flag("dry-run", "change nothing").short('n'), value("model", "P/M", "use this model")],
        more: "One paragraph.\n\n    axe-sample x | wc",
        sections: &[],
    };

    #[test]
    fn help_reads_from_name_to_example() {
        let expected = "axe-sample - show how help looks\n\nUsage: axe-sample [-n] FILE\n       axe-sample --all\n\n  \
             -n, --dry-run  change nothing\n  --model P/M    use this model\n  -h, --help     print this help\n  \
             -V, --version  print the version\n\nOne paragraph.\n\n    axe-sample x | wc\n";
        assert_eq!(SAMPLE.help(), expected);
    }
}
