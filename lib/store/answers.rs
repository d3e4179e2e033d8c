//! What `axe-map` has written: one JSON object a line, each with the `id` and the `input` of a line that was asked, and its
//! `result` or an `error`.
//!
//! A run that goes on with such a file appends to it, and asks nothing that has a result there. It alone has the file while
//! it runs. Ids and inputs are compared by hashes, so that many of them take little memory.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::file::{self, OwnLog};
use crate::base::lines::next_line;
use crate::base::text::one_line;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

/// The longest line that is read back, in bytes: an input and an answer.
const LINE_CAP: usize = 256 << 20;

/// The fields of a JSON object, as they are written; `None` if it is none.
pub fn fields(line: &[u8]) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_slice(line).ok()
}

/// Whether the answer of a line is there.
#[derive(Debug, PartialEq, Eq)]
pub enum AnswerState {
    No,
    Yes,
    /// Its id is there with another input.
    Otherwise,
}

pub struct Answers {
    log: OwnLog,
    found: KnownAnswers,
}

/// What such a file has.
#[derive(Default)]
pub struct KnownAnswers {
    /// What need not be asked: ids, and their inputs.
    known: HashMap<u64, u64>,
    /// Whether a line is to be removed: an error that is asked again, or half a line.
    is_dirty: bool,
}

impl KnownAnswers {
    /// Reads a file; a missing one counts as empty.
    pub fn read(path: &Path, keeps_errors: bool) -> Result<KnownAnswers> {
        let mut found = KnownAnswers::default();
        each_line(path, |number, line, has_end| {
            match kept(line, keeps_errors) {
                Some((id, input)) => {
                    found.known.entry(id).or_insert(input);
                    // A killed program may have left it without its end.
                    found.is_dirty |= !has_end;
                }
                None if fields(line).is_some_and(|fields| is_answer(&fields)) => found.is_dirty = true,
                None if !has_end && begins_like_ours(line) => found.is_dirty = true,
                None => {
                    let text = one_line(&String::from_utf8_lossy(line), 80);
                    return Err(Error::corrupt(format!(
                        "\"{}\" has a line that axe-map has not written: line {number}: {text}",
                        path.display()
                    ))
                    .hint("name the output of an earlier axe-map, or a new file"));
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Whether a line need not be asked.
    pub fn knows(&self, id: &RawValue, input: &RawValue) -> AnswerState {
        match self.known.get(&hash(id)) {
            None => AnswerState::No,
            Some(known) if *known == hash(input) => AnswerState::Yes,
            Some(_) => AnswerState::Otherwise,
        }
    }
}

impl Answers {
    /// Takes the file for this run. Half a line of a killed run is cut off, and so are errors unless they are kept.
    pub fn open(path: &Path, keeps_errors: bool) -> Result<Answers> {
        let path: PathBuf =
            if path.parent() == Some(Path::new("")) { Path::new(".").join(path) } else { path.into() };
        let take = || match OwnLog::open(&path)? {
            Some(log) => Ok(log),
            None => {
                Err(Error::new(ErrorKind::Busy, format!("another program writes to \"{}\"", path.display()))
                    .hint("wait for its end, or use another file"))
            }
        };
        let mut log = take()?;
        let found = KnownAnswers::read(&path, keeps_errors)?;
        if found.is_dirty {
            file::replace(&path, |to| {
                each_line(&path, |_, line, _| {
                    if kept(line, keeps_errors).is_some() {
                        to.write_all(line)?;
                        to.write_all(b"\n")?;
                    }
                    Ok(())
                })
                .map_err(|error| io::Error::other(error.message().to_owned()))
            })?;
            // The lock was on the old file.
            log = take()?;
        }
        Ok(Answers { log, found })
    }

    /// Whether a line need not be asked. From here on, another one with its id need not be asked either.
    pub fn knows(&mut self, id: &RawValue, input: &RawValue) -> AnswerState {
        let known = self.found.knows(id, input);
        if known == AnswerState::No {
            self.found.known.insert(hash(id), hash(input));
        }
        known
    }

    pub fn append(&mut self, line: &[u8]) -> Result<()> {
        Ok(self.log.append(line)?)
    }

    /// What was appended survives a power cut.
    pub fn sync(&self) -> Result<()> {
        Ok(self.log.sync()?)
    }
}

fn is_answer(fields: &BTreeMap<String, &RawValue>) -> bool {
    let has = |name: &str| fields.contains_key(name);
    has("id") && has("input") && (has("result") || has("error"))
}

/// Whether it may be half a line. Anything else is somebody else's, and stays.
fn begins_like_ours(line: &[u8]) -> bool {
    line.iter().zip(b"{\"id\":").all(|(byte, expected)| byte == expected)
}

/// Id and input of a line that stays.
fn kept(line: &[u8], keeps_errors: bool) -> Option<(u64, u64)> {
    let fields = fields(line)?;
    let stays = is_answer(&fields) && (keeps_errors || fields.contains_key("result"));
    stays.then(|| (hash(fields["id"]), hash(fields["input"])))
}

fn hash(value: &RawValue) -> u64 {
    let digest = Sha256::digest(value.get().as_bytes());
    digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Shows `each` the lines that are not blank, with their numbers, and whether each has its end.
fn each_line(path: &Path, mut each: impl FnMut(u64, &[u8], bool) -> Result<()>) -> Result<()> {
    let Some((file, _)) = file::if_exists(file::open_regular(path))? else { return Ok(()) };
    let (mut from, mut line, mut number) = (BufReader::new(file), Vec::new(), 0);
    loop {
        let read = next_line(&mut from, &mut line, LINE_CAP)?;
        if read.length == 0 {
            return Ok(());
        }
        number += 1;
        if read.too_long || !line.trim_ascii().is_empty() {
            each(number, &line, read.ended)?;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;
    use std::fs;

    const DONE: &str = r#"{"id":1,"input":"a","result":"x","usage":{}}"#;
    const FAILED: &str = r#"{"id":2,"input":"b","error":{"kind":"api"}}"#;
    const NULL: &str = r#"{"id":"3","input":{"c":1},"result":null}"#;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    /// What becomes of a file, and which lines of an input it knows.
    fn opened(text: &str, keeps_errors: bool) -> (String, Vec<AnswerState>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.jsonl");
        fs::write(&path, text).unwrap();
        let mut answers = Answers::open(&path, keeps_errors).unwrap();
        let lines =
            [("1", "\"a\""), ("2", "\"b\""), ("\"3\"", "{\"c\":1}"), ("3", "{\"c\":1}"), ("1", "\"b\"")];
        let known = lines.map(|(id, input)| answers.knows(&raw(id), &raw(input)));
        (fs::read_to_string(path).unwrap(), known.into())
    }

    #[test]
    fn results_are_known_and_errors_only_if_they_are_kept() {
        use AnswerState::{No, Otherwise, Yes};
        let text = format!("{DONE}\n{FAILED}\n{NULL}\n");
        assert_eq!(opened(&text, false), (format!("{DONE}\n{NULL}\n"), vec![Yes, No, Yes, No, Otherwise]));
        assert_eq!(opened(&text, true), (text, vec![Yes, Yes, Yes, No, Otherwise]));
    }

    #[test]
    fn half_a_line_is_cut_off_wherever_it_was_cut() {
        for length in 1..NULL.len() {
            let (text, known) = opened(&format!("{DONE}\n{}", &NULL[..length]), false);
            assert_eq!((text, &known[2]), (format!("{DONE}\n"), &AnswerState::No), "{length}");
        }
        // One that lacks only its end is whole.
        assert_eq!(opened(&format!("{DONE}\n{NULL}"), false).0, format!("{DONE}\n{NULL}\n"));
    }

    #[test]
    fn a_file_of_somebody_else_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        for text in ["hello\n", "{\"id\": 1}\n", "hello", "[]\n\n"] {
            fs::write(&path, text).unwrap();
            let error = Answers::open(&path, false).err().unwrap();
            assert!(error.message().contains("line 1: "), "{}", error.message());
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn one_program_at_a_time_has_the_file_and_an_id_comes_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.jsonl");
        let mut answers = Answers::open(&path, false).unwrap();
        assert_eq!(Answers::open(&path, false).err().unwrap().kind(), ErrorKind::Busy);
        assert_eq!(answers.knows(&raw("1"), &raw("2")), AnswerState::No);
        assert_eq!(answers.knows(&raw("1"), &raw("2")), AnswerState::Yes);
        answers.append(format!("{DONE}\n").as_bytes()).unwrap();
        drop(answers);
        Answers::open(&path, false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{DONE}\n"));
    }
}
