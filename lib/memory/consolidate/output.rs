//! What a prompt shows of a tool's output: the lines that can teach something. These are errors with the lines around
//! them, lines that have changed since the same command ran before, lines that hold a fact of an existing note, the first
//! and the last. Runs of passing tests, progress and repeated lines become a count. Lines stay whole, but for very long
//! ones, and what is cut is marked and counted.

use crate::base::text::{cut, cut_mark, excerpt};
use crate::memory::facts::facts;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// So many bytes are shown of an output, and so many where there are errors.
const BUDGET: usize = 2500;
const WITH_ERRORS: usize = 8000;
/// Of these the first and the last lines have so many each.
const ENDS: usize = 500;
/// A longer line is cut to its beginning and its end, in bytes.
const LINE: usize = 1000;
const LINE_ENDS: (usize, usize) = (700, 200);
/// So many lines before and after an error are shown with it.
const AROUND: usize = 2;
/// So many equal lines, or lines that say little, are counted and not shown.
const RUN: usize = 4;
/// A fact that stands in more lines of an output says nothing about any of them.
const FACT_LINES: usize = 5;
/// Shorter facts stand everywhere, by chance.
const FACT_BYTES: usize = 4;
/// Errors that differ in their numbers only are shown so often.
const ERRORS: usize = 3;
/// The outputs of so many commands are remembered, to see what changed.
const COMMANDS: usize = 64;

/// The facts of existing notes, in lower case.
pub type Facts = HashSet<String>;

/// Adds the facts of a note.
pub fn add_facts(text: &str, all: &mut Facts) {
    for fact in facts(text, |_| true) {
        all.extend(names(fact).map(str::to_ascii_lowercase));
    }
}

/// The names that a text holds: its words, and what stands on either side of `=` and `:` in one.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_border = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;|".contains(c);
    text.split(is_border)
        .flat_map(move |word| {
            let parts = word.split(['=', ':']).filter(move |part| part.len() < word.len());
            let is_address = word.contains("://");
            std::iter::once(word).chain(parts.filter(move |_| !is_address))
        })
        .map(|name| name.trim_matches(|c: char| ".:!?*=#".contains(c)))
        .filter(|name| name.len() >= FACT_BYTES)
}

/// The outputs of one session, in its order.
#[derive(Default)]
pub(super) struct Outputs {
    /// The lines that each command printed last, by the hash of the command.
    last: HashMap<u64, HashSet<u64>>,
    /// The commands, the oldest first.
    commands: VecDeque<u64>,
}

impl Outputs {
    /// What is shown of an output, and how many bytes less that is; `None`: all of it. `known` is asked for the notes'
    /// facts if something has to be left out.
    pub(super) fn condensed(
        &mut self,
        command: &str,
        output: &str,
        known: &dyn Deref<Target = Facts>,
    ) -> Option<(String, usize)> {
        let mut lines: Vec<ToolLine> = output.split('\n').map(ToolLine::of).collect();
        let before = self.remember(hash(command), lines.iter().map(|line| line.hash).collect());
        if output.len() <= BUDGET {
            lines.iter_mut().for_each(|line| line.is_kept = true);
            drop_runs(&mut lines);
        } else {
            choose(&mut lines, before.as_ref(), known);
            keep_short_gaps(&mut lines);
        }
        rendered(&lines)
    }

    /// The lines of the last output of the same command.
    fn remember(&mut self, command: u64, lines: HashSet<u64>) -> Option<HashSet<u64>> {
        let before = self.last.insert(command, lines);
        if before.is_none() {
            self.commands.push_back(command);
        }
        if self.commands.len() > COMMANDS
            && let Some(oldest) = self.commands.pop_front()
        {
            self.last.remove(&oldest);
        }
        before
    }
}

struct ToolLine<'a> {
    text: &'a str,
    hash: u64,
    /// The same for lines that differ in numbers and white space only.
    shape: u64,
    is_routine: bool,
    is_kept: bool,
}

impl ToolLine<'_> {
    fn of(text: &str) -> ToolLine<'_> {
        let hash = hash(text);
        let is_routine = is_routine(text.trim());
        ToolLine { text, hash, shape: shape(text), is_routine, is_kept: false }
    }

    fn bytes(&self) -> usize {
        self.text.len().min(LINE) + 1
    }

    fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn shape(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut last = ' ';
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if !(c == last && (c == '0' || c.is_whitespace())) {
            c.hash(&mut hasher);
        }
        last = c;
    }
    hasher.finish()
}

/// A test that passed, a step that was taken, a bar of progress.
fn is_routine(line: &str) -> bool {
    const BEGIN: &[&str] = &[
        "ok ", "ok\t", "PASS ", "PASS:", "--- PASS", "=== RUN", "=== PAUSE", "=== CONT", "✓ ", "✔ ", "√ ",
        "[ OK ]", "[       OK ]", "[ RUN      ]", "Compiling ", "Checking ", "Downloading ", "Downloaded ",
        "Fetching ", "Receiving objects:", "Resolving deltas:", "remote: Counting", "remote: Compressing",
        "Unpacking ", "Preparing to unpack ", "Selecting previously ", "Setting up ", "Requirement already ",
        "Collecting ", "Using cached ", "Get:", "Hit:",
    ];
    const END: &[&str] = &[" ok", " PASSED", " passed", " OK", "... done", "100%"];
    let ends = || END.iter().any(|end| line.ends_with(end)) && line.contains(['.', ':', '/', '_', '(']);
    let is_bar = || {
        line.contains('%') && (line.contains("===") || !line.contains(char::is_alphabetic))
            || line.contains('█')
    };
    let is_step = || BEGIN.iter().any(|begin| line.starts_with(begin)) || line.contains(" PASSED ");
    (ends() || is_step() || is_bar()) && !is_error(line) && !line.contains("test result:")
}

/// Does it tell of something that went wrong?
fn is_error(line: &str) -> bool {
    const SIGNS: &[&str] = &[
        "error:", "error[", "Error:", "ERROR", "ERR!", "Exception", "Traceback (", "FAILED", "FAIL ",
        "FAIL:", "--- FAIL", "panicked at", "panic:", "fatal:", "FATAL", "Fatal", "assertion ",
        "AssertionError", "not ok ", "✗", "✘", "✖", "×", "ommand not found", "o such file or directory",
        "ermission denied", "cannot find", "annot ", "undefined reference", "unresolved",
        "egmentation fault", "exit code ", "exit status ", "refused", "timed out", "conflict",
    ];
    // One pass over the line: a search for each sign would take longer than all else.
    let bytes = line.as_bytes();
    let begins = |at: usize, byte: u8| {
        SIGNS
            .iter()
            .any(|sign| sign.as_bytes().first() == Some(&byte) && bytes[at..].starts_with(sign.as_bytes()))
    };
    bytes.iter().enumerate().any(|(at, byte)| begins(at, *byte))
        || line.starts_with("E   ")
        || line.ends_with(" failed")
}

/// Of every run of lines that say the same, or of routine ones, nothing is kept but a count.
fn drop_runs(lines: &mut [ToolLine]) {
    let goes_on =
        |a: &ToolLine, b: &ToolLine| !a.is_blank() && (a.is_routine && b.is_routine || a.hash == b.hash);
    for run in lines.chunk_by_mut(goes_on).filter(|run| run.len() >= RUN) {
        run.iter_mut().for_each(|line| line.is_kept = false);
    }
}

/// Which lines are kept while there is room.
fn choose(lines: &mut [ToolLine], before: Option<&HashSet<u64>>, known: &Facts) {
    let mut room = LineSelection { lines, used: 0 };
    room.keep(room.ends(), BUDGET);
    room.keep(room.changed(before), BUDGET);
    room.keep(room.with_facts(known), BUDGET);
    room.keep(room.errors(), WITH_ERRORS);
    // What is left goes to the beginning.
    room.keep(room.telling(), BUDGET);
}

struct LineSelection<'a, 'b> {
    lines: &'a mut [ToolLine<'b>],
    used: usize,
}

impl LineSelection<'_, '_> {
    fn keep(&mut self, which: Vec<usize>, budget: usize) {
        for index in which {
            let Some(line) = self.lines.get_mut(index).filter(|line| !line.is_kept) else { continue };
            if self.used + line.bytes() > budget {
                return;
            }
            self.used += line.bytes();
            line.is_kept = true;
        }
    }

    /// The first and the last lines that are no routine.
    fn ends(&self) -> Vec<usize> {
        let within = |indices: &mut dyn Iterator<Item = &usize>| -> Vec<usize> {
            let mut used = 0;
            let has_room = |index: &usize| {
                let is_first = used == 0;
                used += self.lines[*index].bytes();
                is_first || used <= ENDS
            };
            indices.copied().take_while(has_room).collect()
        };
        let telling = self.telling();
        [within(&mut telling.iter()), within(&mut telling.iter().rev())].concat()
    }

    /// Is it no routine, and not the third of several that differ in numbers only?
    fn says_something(&self, index: usize) -> bool {
        let line = &self.lines[index];
        let is_like = |other: &ToolLine| other.shape == line.shape && !line.is_blank();
        let is_repeated = index >= 2 && self.lines[index - 2..index].iter().all(is_like);
        !line.is_routine && !is_repeated
    }

    /// The lines that the same command did not print the last time, if most are as they were.
    fn changed(&self, before: Option<&HashSet<u64>>) -> Vec<usize> {
        let Some(before) = before else { return Vec::new() };
        let is_new = |line: &ToolLine| !line.is_blank() && !before.contains(&line.hash);
        let new: Vec<usize> = (0..self.lines.len()).filter(|index| is_new(&self.lines[*index])).collect();
        if new.len() * 2 > self.lines.len() { Vec::new() } else { new }
    }

    /// The lines that hold a fact of an existing note which few lines hold.
    fn with_facts(&self, known: &Facts) -> Vec<usize> {
        if known.is_empty() {
            return Vec::new();
        }
        let mut holding: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, line) in self.lines.iter().enumerate() {
            for name in names(line.text) {
                if let Some(fact) = known.get(&*name.to_ascii_lowercase()) {
                    holding.entry(fact).or_default().push(index);
                }
            }
        }
        let telling = holding.into_values().filter(|lines| lines.len() <= FACT_LINES).flatten();
        Vec::from_iter(telling.collect::<BTreeSet<usize>>())
    }

    /// Errors and what surrounds them: the first of each kind.
    fn errors(&self) -> Vec<usize> {
        let mut seen: HashMap<u64, usize> = HashMap::new();
        let mut found = Vec::new();
        for (index, line) in self.lines.iter().enumerate().filter(|(_, line)| is_error(line.text)) {
            let times = seen.entry(line.shape).or_default();
            *times += 1;
            if *times > ERRORS {
                continue;
            }
            found.push(index);
            let around = index.saturating_sub(AROUND)..(index + AROUND + 1).min(self.lines.len());
            found.extend(around.filter(|near| !self.lines[*near].is_routine));
        }
        found
    }

    fn telling(&self) -> Vec<usize> {
        (0..self.lines.len()).filter(|index| self.says_something(*index)).collect()
    }
}

/// A gap that is no longer than its mark is none.
fn keep_short_gaps(lines: &mut [ToolLine]) {
    for run in lines.chunk_by_mut(|a, b| a.is_kept == b.is_kept) {
        let bytes: usize = run.iter().map(ToolLine::bytes).sum();
        if !run[0].is_kept && bytes <= 32 && !run[0].is_routine {
            run.iter_mut().for_each(|line| line.is_kept = true);
        }
    }
}

/// The kept lines, with marks for what is left out, and how many bytes that is; `None`: everything is kept.
fn rendered(lines: &[ToolLine]) -> Option<(String, usize)> {
    let mut parts: Vec<String> = Vec::new();
    let mut left_out = 0;
    for run in lines.chunk_by(|a, b| a.is_kept == b.is_kept) {
        if run[0].is_kept {
            for line in run {
                let (text, less) = match line.text.len() > LINE {
                    true => excerpt(line.text, LINE_ENDS.0, LINE_ENDS.1),
                    false => (line.text.into(), 0),
                };
                left_out += less;
                parts.push(text.into_owned());
            }
        } else {
            left_out += run.iter().map(|line| line.text.len() + 1).sum::<usize>();
            parts.push(gap_mark(run));
        }
    }
    (left_out > 0).then(|| (parts.join("\n"), left_out))
}

/// `[… 212 lines like "test a::b ... ok"]`, or how many lines and bytes there were.
fn gap_mark(gap: &[ToolLine]) -> String {
    let bytes = gap.iter().map(|line| line.text.len() + 1).sum();
    let alike = gap.iter().filter(|line| line.is_routine).count();
    let first = gap.iter().find(|line| line.is_routine).unwrap_or(&gap[0]);
    let is_one_shape = gap.len() >= RUN && gap.iter().all(|line| line.shape == first.shape);
    let example = cut(first.text.trim(), 80);
    match (alike == gap.len() || is_one_shape, alike * 2 > gap.len()) {
        (true, _) if gap.len() > 1 => format!("[… {} lines like \"{example}\"]", gap.len()),
        (_, true) if gap.len() > 1 => {
            format!("[… {} lines, {bytes} bytes, most like \"{example}\"]", gap.len())
        }
        _ => cut_mark(gap.len(), bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condensed(output: &str, known: &[&str]) -> String {
        let mut all = Facts::new();
        known.iter().for_each(|text| add_facts(text, &mut all));
        let shown = Outputs::default().condensed("[Bash] command: x", output, &Box::new(all));
        shown.map_or_else(|| output.to_owned(), |(text, _)| text)
    }

    /// A file of about so many bytes, each line another.
    fn file(bytes: usize) -> Vec<String> {
        const NAMES: [&str; 7] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"];
        let line = |n: usize| format!("{}_{} = {}", NAMES[n % 7], NAMES[n / 7 % 7], n * 37);
        let mut size = 0;
        (0..)
            .map(line)
            .take_while(|line| {
                size += line.len() + 1;
                size <= bytes
            })
            .collect()
    }

    #[test]
    fn short_output_is_shown_as_it_is() {
        let output = "\n=>\n[package]\nname = \"axe\"\n\n\n\n\nversion = \"1.2\"";
        assert!(
            Outputs::default().condensed("x", output, &std::cell::LazyCell::new(|| unreachable!())).is_none()
        );
    }

    #[test]
    fn passing_tests_become_a_count_and_the_failure_stays_with_what_surrounds_it() {
        let ok: String = (0..200).map(|n| format!("tests/test_{n}.py::test_it PASSED [ {n}%]\n")).collect();
        let failure = "tests/test_x.py::test_port FAILED [ 99%]\nE   assert 5432 == 5544\nshown";
        let text =
            condensed(&format!("\n=>\ncollected 401\n{ok}{failure}\n{ok}== 1 failed, 400 passed =="), &[]);
        assert!(text.contains(failure) && text.contains("collected 401"), "{text}");
        assert!(text.contains("[… 200 lines like \"tests/test_0.py::test_it PASSED [ 0%]\"]"), "{text}");
        assert!(text.ends_with("== 1 failed, 400 passed =="), "{text}");
        assert_eq!(text.matches("PASSED").count(), 2, "{text}");
        let few = condensed(
            "\n=> \ntest a::b ... ok\ntest a::c ... ok\ntest a::d ... ok\ntest a::e ... ok\ntest result: ok",
            &[],
        );
        assert_eq!(few, "\n=> \n[… 4 lines like \"test a::b ... ok\"]\ntest result: ok");
    }

    #[test]
    fn a_fact_of_a_note_is_found_in_the_middle_of_a_file() {
        let mut lines = file(7000);
        lines.insert(lines.len() / 2, "QUEUE_TTL=1200".to_owned());
        let text = lines.join("\n");
        assert!(!condensed(&text, &[]).contains("QUEUE_TTL"));
        for note in ["`queue_ttl` is 900.", "QUEUE_TTL=900 holds.", "The ttl is 1200."] {
            let shown = condensed(&text, &[note]);
            assert!(shown.contains("QUEUE_TTL=1200") && shown.len() < 2700, "{note}: {shown}");
            assert!(
                shown.lines().all(|line| line.starts_with("[… ")
                    || text.contains(&format!("{line}\n"))
                    || text.ends_with(line)),
                "{shown}"
            );
        }
    }

    #[test]
    fn what_changed_since_the_same_command_ran_is_shown() {
        let (mut outputs, none) = (Outputs::default(), Box::new(Facts::new()));
        let mut lines = file(7000);
        let middle = lines.len() / 2;
        lines[middle] = "retries is three".to_owned();
        let first = outputs.condensed("cat x", &lines.join("\n"), &none).unwrap();
        assert!(!first.0.contains("retries"));
        lines[middle] = "retries is eight".to_owned();
        let (second, cut) = outputs.condensed("cat x", &lines.join("\n"), &none).unwrap();
        assert!(second.contains("retries is eight"), "{second}");
        let marks: usize =
            second.lines().filter(|line| line.starts_with("[… ")).map(|line| line.len() + 1).sum();
        assert_eq!(second.len() + cut - marks, lines.join("\n").len());
        assert!(!outputs.condensed("cat y", &lines.join("\n"), &none).unwrap().0.contains("retries"));
    }

    #[test]
    fn errors_have_more_room_and_a_long_line_is_cut_at_a_word() {
        let errors: String =
            file(60_000).iter().map(|line| format!("error: {line} is wrong\n  at\n")).collect();
        let text = condensed(&errors, &[]);
        assert!((5000..9000).contains(&text.len()), "{}", text.len());
        let text = condensed(&format!("first\n{}\nlast", "some words ".repeat(20_000)), &[]);
        assert!(text.starts_with("first\nsome words ") && text.ends_with(" words \nlast"), "{text}");
        assert!(text.len() < 1100 && text.contains(" [… 219"), "{text}");
    }

    #[test]
    fn progress_and_repeated_lines_become_a_count() {
        let bars: String = (0..100).map(|n| format!(" {n}% |#####    | {n}/100\n")).collect();
        let polls: String = (0..300).map(|n| format!("waiting for the server, {n} s\n")).collect();
        let text = condensed(&format!("\n=>\n{bars}{polls}up on 5544"), &[]);
        assert!(text.len() < 400 && text.ends_with("up on 5544"), "{text}");
        assert!(text.contains("[… 298 lines like \"waiting for the server, 2 s\"]"), "{text}");
    }
}
