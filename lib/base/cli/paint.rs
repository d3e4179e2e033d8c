//! Colours by what a text means. Where none are wanted, a text stays as it is.

use crate::base::env::Env;
use anstyle::{AnsiColor, Style};
use std::borrow::Cow;
use std::ops::Range;

/// What a text means to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Heading,
    /// Of a command to copy, or of all that is well.
    Good,
    Warning,
    Error,
    Hot,
    Cold,
    /// A line that a change adds or removes.
    Added,
    Removed,
    /// A word that was searched for.
    Found,
    /// Less important than the text around it.
    Faint,
}

impl Meaning {
    fn style(self) -> Style {
        let color = |color: AnsiColor| color.on_default();
        match self {
            Meaning::Heading => Style::new().bold(),
            Meaning::Good | Meaning::Added => color(AnsiColor::Green),
            Meaning::Warning => color(AnsiColor::Yellow),
            Meaning::Error => color(AnsiColor::Red).bold(),
            Meaning::Removed => color(AnsiColor::Red),
            Meaning::Hot => color(AnsiColor::Magenta),
            Meaning::Cold => color(AnsiColor::Cyan),
            Meaning::Found => color(AnsiColor::Yellow).bold(),
            Meaning::Faint => Style::new().dimmed(),
        }
    }
}

/// Whether output is coloured, on a terminal or not; `None`: on a terminal alone. `choice` is what `--color` says. Without
/// it, or with `auto`, the environment decides.
pub(super) fn is_colored(choice: Option<&str>, env: &Env) -> Option<bool> {
    let is = |name: &str, value: &str| env.text(name) == Some(value);
    let is_able = || env.text("TERM").is_some_and(|term| term != "dumb") && !is("CLICOLOR", "0");
    match choice {
        Some("always") => Some(true),
        Some("never") => Some(false),
        _ if env.os("NO_COLOR").is_some() => Some(false),
        _ if env.os("CLICOLOR_FORCE").is_some() && !is("CLICOLOR_FORCE", "0") => Some(true),
        _ if is_able() => None,
        _ => Some(false),
    }
}

/// Whether texts are coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Paint(pub(super) bool);

impl Paint {
    /// The text in the colour of its meaning. It must be one that may stand on a terminal.
    pub fn paint(self, meaning: Meaning, text: &str) -> Cow<'_, str> {
        let style = meaning.style();
        match self.0 && !text.is_empty() {
            true => Cow::Owned(format!("{style}{text}{style:#}")),
            false => Cow::Borrowed(text),
        }
    }

    /// The same for parts of it, which are in order.
    pub fn parts(self, meaning: Meaning, text: &str, parts: &[Range<usize>]) -> String {
        let (mut painted, mut end) = (String::with_capacity(text.len()), 0);
        for part in parts.iter().filter(|part| part.end <= text.len()) {
            painted.push_str(&text[end..part.start.max(end)]);
            painted.push_str(&self.paint(meaning, &text[part.start.max(end)..part.end.max(end)]));
            end = part.end.max(end);
        }
        painted + &text[end..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;

    #[test]
    fn the_flag_wins_then_the_environment_then_the_terminal() {
        let xterm = ("TERM", "xterm");
        for (choice, is_terminal, vars, expected) in [
            (None, true, &[xterm][..], true),
            (Some("auto"), false, &[xterm], false),
            (None, true, &[], false),
            (None, true, &[("TERM", "dumb")], false),
            (None, true, &[xterm, ("NO_COLOR", "1")], false),
            (None, true, &[xterm, ("NO_COLOR", "")], true),
            (None, true, &[xterm, ("CLICOLOR", "0")], false),
            (None, false, &[("CLICOLOR_FORCE", "1")], true),
            (None, false, &[("CLICOLOR_FORCE", "0")], false),
            (None, false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (Some("always"), false, &[("NO_COLOR", "1"), ("TERM", "dumb")], true),
            (Some("never"), true, &[xterm, ("CLICOLOR_FORCE", "1")], false),
        ] {
            let is_colored = is_colored(choice, &pretend(vars)).unwrap_or(is_terminal);
            assert_eq!(is_colored, expected, "{choice:?} {is_terminal} {vars:?}");
        }
    }

    #[test]
    fn parts_are_painted_and_the_rest_stays() {
        let text = "a port and a port";
        let parts = [2..6, 4..6, 13..17, 16..40];
        assert_eq!(Paint(false).parts(Meaning::Found, text, &parts), text);
        let painted = Paint(true).parts(Meaning::Found, text, &parts);
        assert_eq!(painted.matches("port").count(), 2);
        assert!(painted.starts_with("a \u{1b}[") && painted.contains("m and a \u{1b}["), "{painted:?}");
    }
}
