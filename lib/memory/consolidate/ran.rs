//! Commands that sessions ran, as evidence for and against the notes that name them. One that ended without an error renews the
//! notes that say to run it. One that failed because there is no such command, target, option or file is shown to the model
//! beside the notes that name it; nothing else comes of it, since anything can print such a line.

use crate::base::ago::utc_day;
use crate::base::text::one_line;
use crate::harness::turn::ToolCall;
use crate::memory::lists::List;
use crate::memory::outside::{COMMANDS, led_to};
use crate::memory::search::is_common_command;
use crate::memory::service::belongs_to;
use crate::store::entry::{Entry, Meta};
use crate::store::journal::entry::QueueEntry;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// So many commands of a call, of a note, and words of a command count.
const COMMANDS_OF_ONE: usize = 40;
const WORDS: usize = 20;
/// A longer line of output says nothing about a command, in bytes.
const LINE: usize = 400;
/// So many characters are shown of a command and of a line.
const SHOWN: usize = 200;
/// So many failures are shown beside a note.
const FAILURES: usize = 3;
/// A note is renewed once in so many days at most: AGENTS.md files show the day, and may be committed.
const RENEWED: i32 = 7;

/// A command that ran in the session's repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// See [`keys`].
    words: Vec<String>,
    /// What there is no such thing as; `None`: the command worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<CommandFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CommandFailure {
    /// The word of the command that the line names.
    word: String,
    line: String,
}

/// What a session's calls say about commands, as words that are compared: the name of the program without its directory, and
/// the other words without the values of options.
fn keys(words: Vec<String>) -> Vec<String> {
    let key = |(at, word): (usize, String)| match word.split_once('=').filter(|_| word.starts_with('-')) {
        Some((name, _)) => name.to_owned(),
        None if at == 0 => word.rsplit('/').next().unwrap_or_default().to_owned(),
        None => word.strip_prefix("./").map_or(word.clone(), str::to_owned),
    };
    words.into_iter().take(WORDS).enumerate().map(key).collect()
}

impl Ran {
    /// Of a call that ran these commands, what it says about them. `output` has `=>` before it, and no secrets.
    pub(super) fn of(
        commands: Vec<Vec<String>>,
        call: Option<&ToolCall>,
        has_worked: bool,
        output: &str,
        is_clean: impl Fn(&str) -> bool,
    ) -> Vec<Ran> {
        let Some(call) = call.filter(|_| !commands.is_empty()) else { return Vec::new() };
        let line = call.arguments.iter().find(|(name, _)| COMMANDS.contains(&name.as_str()));
        let is_behind =
            call.arguments.iter().any(|(name, value)| name.ends_with("background") && value == "true");
        let is_known = has_worked
            && !is_behind
            && !output.lines().nth(2).is_some_and(|first| first.contains("running in background"))
            && line.is_some_and(|(_, line)| is_one_outcome(line));
        // Most lines have none of the phrases.
        let phrases =
            || ["missing after", "missing before"].into_iter().flat_map(|list| List(list).phrases());
        let lines = output.lines().filter(|line| !is_known && line.len() <= LINE);
        let lines = lines.map(|line| (line, line.to_ascii_lowercase()));
        let lines: Vec<(&str, String)> =
            lines.filter(|(_, lower)| phrases().any(|phrase| lower.contains(phrase))).collect();
        let commands = commands.into_iter().take(COMMANDS_OF_ONE).map(keys);
        let ran = commands.filter_map(|words| {
            let failed = if is_known { None } else { Some(missing(&words, &lines)?) };
            let asks = |word: &String| ["--help", "--version", "help"].contains(&word.as_str());
            let says_something = failed.is_some() || !is_everyday(&words) && !words.iter().any(asks);
            (says_something && is_clean(&words.join(" "))).then_some(Ran { words, failed })
        });
        ran.collect()
    }

    fn shown(&self) -> Option<String> {
        let missing = self.failed.as_ref()?;
        Some(format!("| $ {}\n| {}\n", one_line(&self.words.join(" "), SHOWN), missing.line))
    }

    /// Is it what the words of a note say, perhaps with more behind or between them?
    fn is(&self, told: &[String]) -> bool {
        let mut rest = self.words.iter();
        self.words.first() == told.first() && told.iter().all(|word| rest.any(|other| other == word))
    }
}

/// Does the exit code of this line say how each of its commands ended? Behind `|` and `;` it is that of the last one.
fn is_one_outcome(line: &str) -> bool {
    let rest = line.trim().replace("&&", " ").replace("2>&1", " ").replace("&>", " ");
    !rest.contains(['|', ';', '&', '\n', '`', '!']) && !rest.contains("$(") && !rest.contains("<(")
}

/// The line that says that there is no such thing as one of the command's words; of these lines, each also in small letters.
fn missing(words: &[String], lines: &[(&str, String)]) -> Option<CommandFailure> {
    lines.iter().find_map(|(line, lower)| {
        let is_mark = |c: char| c.is_whitespace() || "\"'`‘’“”,()".contains(c);
        let is_edge = |c: char| is_mark(c) || c == ':';
        let after = List("missing after").phrases().iter().filter_map(|phrase| {
            let (_, rest) = line.split_at_checked(lower.find(phrase)? + phrase.len())?;
            rest.trim_start_matches(is_edge).split(is_mark).next()
        });
        let before = List("missing before").phrases().iter().filter_map(|phrase| {
            let (rest, _) = line.split_at_checked(lower.find(phrase)?)?;
            rest.trim_end_matches(is_edge).rsplit(is_mark).next()
        });
        let word = after.chain(before).find_map(|name| {
            let name = name.trim_end_matches(['.', ':', ';']);
            words.iter().enumerate().find(|(at, word)| is_name(name, word, *at == 0)).map(|(_, word)| word)
        })?;
        Some(CommandFailure { word: word.clone(), line: one_line(line, SHOWN) })
    })
}

/// Is a name in a message this word of the command?
fn is_name(name: &str, word: &str, is_program: bool) -> bool {
    let option = name.split('=').next().unwrap_or_default().trim_start_matches('-');
    match word.strip_prefix('-') {
        _ if word.is_empty() => false,
        Some(rest) => !option.is_empty() && rest.trim_start_matches('-') == option,
        None => {
            let name = name.strip_prefix("./").unwrap_or(name);
            let is_below = |dir: &str| dir.ends_with('/') && (is_program || name.starts_with('/'));
            name == word || name.strip_suffix(word).is_some_and(is_below)
        }
    }
}

/// A command that a note names.
struct Named {
    words: Vec<String>,
    /// The note says to run it.
    is_told: bool,
}

/// The commands that a note names, without those that it advises against.
fn named(entry: &Entry) -> Vec<Named> {
    let meta = entry.meta();
    let body = String::from_utf8_lossy(entry.body());
    let mut found = Vec::new();
    let mut prose = format!("{}\n\n{}\n\n", meta.title, meta.summary);
    let mut fence: Option<(bool, String)> = None;
    for line in body.lines() {
        match (line.trim_start().strip_prefix("```"), fence.take()) {
            (Some(language), None) => {
                const SHELLS: [&str; 8] =
                    ["", "bash", "console", "fish", "sh", "shell", "shell-session", "zsh"];
                fence = Some((SHELLS.contains(&language.trim()), String::new()));
            }
            (Some(_), Some((is_shell, text))) => {
                let is_told = !has(last_sentence(&prose), "told not to run");
                if is_shell && is_told {
                    add(&mut found, &session(&text), true);
                }
                add_spans(&mut found, &std::mem::take(&mut prose));
            }
            (None, Some((is_shell, text))) => fence = Some((is_shell, text + line + "\n")),
            (None, None) => prose = prose + line + "\n",
        }
    }
    add_spans(&mut found, &prose);
    found.truncate(COMMANDS_OF_ONE);
    found
}

/// The lines of a terminal's session that were typed; all of them if none bears a prompt.
fn session(text: &str) -> String {
    let typed: Vec<&str> = text.lines().filter_map(|line| line.trim_start().strip_prefix("$ ")).collect();
    if typed.is_empty() { text.to_owned() } else { typed.join("\n") }
}

/// Is a word of the text in this list?
fn has(text: &str, list: &'static str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '\'';
    let mut said = text.split(|c| !is_part(c));
    said.any(|word| List(list).has(&word.to_lowercase().replace('’', "'")))
}

/// What follows the last end of a sentence, or of a paragraph or an item of a list.
fn last_sentence(text: &str) -> &str {
    let ends = [". ", ".\n", "! ", "? ", "\n\n", "\n- ", "\n* "];
    let text = text.trim_end();
    let at = ends.iter().filter_map(|end| text.rfind(end).map(|at| at + end.len())).max();
    &text[at.unwrap_or_default()..]
}

/// The commands between backticks.
fn add_spans(found: &mut Vec<Named>, text: &str) {
    let parts: Vec<&str> = text.split('`').collect();
    let mut was_told = false;
    for at in (1..parts.len().saturating_sub(1)).step_by(2) {
        let before = last_sentence(parts[at - 1]);
        let end = parts[at + 1].find([',', '.', ';', ':', '(', ')']).unwrap_or(parts[at + 1].len());
        let is_joined = ["and", "or", "then", "and then", "&&", "+", ""]
            .contains(&before.trim_matches(|c: char| c.is_whitespace() || c == ','));
        let is_told = has(before, "told to run") || is_joined && was_told;
        let is_against = has(before, "told not to run") || has(&parts[at + 1][..end], "told to fail");
        was_told = is_told && !is_against;
        if !is_against {
            add(found, parts[at], is_told);
        }
    }
}

/// Each of them up to the first word that stands for something else.
fn add(found: &mut Vec<Named>, code: &str, is_told: bool) {
    let is_said =
        |word: &String| !word.is_empty() && !word.contains(['<', '>', '…', '*', '\u{fffd}', '$', '[']);
    for words in led_to(code.trim_start_matches(['$', ' '])) {
        let words = keys(words.into_iter().take_while(is_said).collect());
        let says_enough = words.len() > 2 || words.len() == 2 && !is_common_command(&words.join(" "));
        if says_enough || !is_everyday(&words) {
            found.push(Named { is_told: is_told && says_enough, words });
        }
    }
}

/// True for no words.
fn is_everyday(words: &[String]) -> bool {
    words.first().is_none_or(|program| List("everyday").has(program))
}

/// What sessions ran in their repositories, in their order.
#[derive(Debug, Default)]
pub(super) struct Runs(BTreeMap<String, Vec<(Date, Ran)>>);

impl Runs {
    /// What a session ran, at a time if its program noted that down.
    pub(super) fn add(&mut self, session: &QueueEntry, at: Option<Timestamp>, ran: &Ran) {
        if let Some(repo) = &session.context.repo {
            self.0
                .entry(repo.clone())
                .or_default()
                .push((utc_day(at.unwrap_or(session.timestamp)), ran.clone()));
        }
    }

    pub(super) fn has_worked(&self) -> bool {
        self.0.values().flatten().any(|(_, ran)| ran.failed.is_none())
    }

    fn of<'r>(&'r self, meta: &'r Meta) -> impl Iterator<Item = &'r (Date, Ran)> {
        self.0.iter().filter(|(repo, _)| belongs_to(meta, repo)).flat_map(|(_, ran)| ran)
    }

    /// What failed of the commands that a note names, and did not work later: as text for the model; empty if nothing did.
    pub(super) fn against(&self, entry: &Entry) -> String {
        if self.of(entry.meta()).all(|(_, ran)| ran.failed.is_none()) {
            return String::new();
        }
        let mut failures: BTreeSet<String> = BTreeSet::new();
        for named in named(entry) {
            let its = self.of(entry.meta()).map(|(_, ran)| ran).filter(|ran| ran.is(&named.words));
            let is_against =
                |ran: &&Ran| ran.failed.as_ref().is_some_and(|failed| named.words.contains(&failed.word));
            let last = its.filter(|ran| ran.failed.is_none() || is_against(ran)).last();
            failures.extend(last.and_then(Ran::shown));
        }
        failures.into_iter().take(FAILURES).collect()
    }

    /// The day on which a command worked last that a note says to run, if that is news: after the note was changed and
    /// confirmed, and none of its commands failed.
    pub(super) fn renewed(&self, entry: &Entry, now: Timestamp) -> Option<Date> {
        let (meta, today) = (entry.meta(), utc_day(now));
        let said = utc_day(Timestamp::from_millisecond(meta.updated_at.max(meta.created_at)).ok()?);
        let is_old = |day: Date, on: Date| day.checked_add(RENEWED.days()).is_ok_and(|end| end <= on);
        let worked = |(on, ran): &&(Date, Ran)| {
            ran.failed.is_none()
                && *on > said
                && meta.confirmed.is_none_or(|day| is_old(day, *on))
                && *on <= today
        };
        let worked: Vec<&(Date, Ran)> = self.of(meta).filter(worked).collect();
        if worked.is_empty() {
            return None;
        }
        let told: Vec<Named> = named(entry).into_iter().filter(|named| named.is_told).collect();
        let its = worked.iter().filter(|(_, ran)| told.iter().any(|named| ran.is(&named.words)));
        its.map(|(on, _)| *on).max().filter(|_| self.against(entry).is_empty())
    }
}

#[cfg(test)]
mod tests;
