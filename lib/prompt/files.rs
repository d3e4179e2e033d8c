//! Context files: patterns become the text of regular files inside the working directory, and of no others.

use crate::base::cli::Reporter;
use crate::base::error::{Error, Result};
use crate::base::text::{lossy, one_line};
use fs_err as fs;
use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// The largest file that goes into a prompt, in bytes.
const FILE_CAP: u64 = 1 << 20;
/// All of them together, in bytes.
const TOTAL_CAP: u64 = 8 << 20;
/// A NUL in this many first bytes means that a file is not text.
const SNIFF: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Relative to the working directory, with forward slashes.
    pub path: String,
    pub text: String,
}

/// The files that `patterns` name, each once, sorted. A file that is left out is a warning, unless it is binary and
/// was matched only by a wildcard.
pub fn collect(patterns: &[String], workdir: &Path, reporter: &Reporter) -> Result<Vec<ContextFile>> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let root = fs::canonicalize(workdir).map_err(|e| Error::config(format!("workdir: {e}")))?;
    let mut found = BTreeMap::new();
    for text in patterns {
        let pattern = FilePattern::parse(text)?;
        let before = found.len();
        pattern.find(&root, &mut found, reporter);
        if found.len() == before && pattern.rest.is_some() && !found.keys().any(|path| pattern.matches(path))
        {
            reporter.warn(&format!("files: no file matches \"{text}\""));
        }
    }
    // Two ways to write one path are one file.
    let mut places = BTreeMap::new();
    for (path, literal) in found {
        match place(&root, &path) {
            Ok((name, real)) => {
                places.entry(name).or_insert((real, literal));
            }
            Err(why) => reporter.warn(&left_out(&shown(&path), why.message())),
        }
    }
    let mut room = TOTAL_CAP;
    let mut files = Vec::new();
    for (path, (real, literal)) in places {
        match load(&path, &real, room) {
            Ok(Some((text, damaged))) => {
                if damaged {
                    let what = "is not valid UTF-8; the invalid bytes became U+FFFD";
                    reporter.warn(&format!("files: \"{path}\" {what}"));
                }
                room = room.saturating_sub(text.len() as u64);
                files.push(ContextFile { path, text });
            }
            Ok(None) if !literal => {}
            Ok(None) => reporter.warn(&left_out(&path, "it is a binary file")),
            Err(why) => reporter.warn(&left_out(&path, why.message())),
        }
    }
    Ok(files)
}

/// An error unless this is a pattern.
pub fn check(pattern: &str) -> Result<()> {
    FilePattern::parse(pattern).map(|_| ())
}

const OUTSIDE: &str = "it is outside the working directory";

fn left_out(path: &str, why: &str) -> String {
    format!("files: \"{path}\" is left out: {}", one_line(why, 300))
}

/// A pattern, split where its wildcards begin.
struct FilePattern {
    /// A path without wildcards; the whole pattern if it has none.
    base: PathBuf,
    /// What paths below `base` must match; `None` for a literal path.
    rest: Option<GlobMatcher>,
    /// How many folders deep the rest can lead; `None` where `**` spans any number.
    depth: Option<usize>,
}

impl FilePattern {
    fn parse(text: &str) -> Result<FilePattern> {
        let wrong = |why: String| Error::config(format!("invalid glob pattern \"{text}\": {why}"));
        if text.is_empty() {
            return Err(wrong("it is empty".to_owned()));
        }
        let parts: Vec<&str> = text.split('/').filter(|part| *part != ".").collect();
        let literal = parts.iter().take_while(|part| !part.contains(['*', '?', '[', '{', '\\'])).count();
        let base = match parts[..literal].join("/") {
            // An absolute path is empty before its first slash.
            root if root.is_empty() && text.starts_with('/') => PathBuf::from("/"),
            base => PathBuf::from(base),
        };
        let rest = parts[literal..].join("/");
        if rest.is_empty() {
            return Ok(FilePattern { base, rest: None, depth: None });
        }
        let glob = GlobBuilder::new(&rest).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|e| wrong(e.kind().to_string()))?;
        let depth = (!rest.contains("**")).then_some(parts.len() - literal);
        Ok(FilePattern { base, rest: Some(glob.compile_matcher()), depth })
    }

    /// Whether a path matches its wildcards. A literal one has none.
    fn matches(&self, path: &Path) -> bool {
        let below = path.strip_prefix(&self.base);
        self.rest.as_ref().is_some_and(|rest| below.is_ok_and(|below| rest.is_match(below)))
    }

    /// Adds what the pattern names to `found`: path below the root, and whether it was named literally.
    fn find(&self, root: &Path, found: &mut BTreeMap<PathBuf, bool>, reporter: &Reporter) {
        let Some(rest) = &self.rest else {
            found.insert(self.base.clone(), true);
            return;
        };
        let start = root.join(&self.base);
        // A folder outside is not even walked: it may be the whole disk.
        let Ok(real) = fs::canonicalize(&start) else { return };
        if !real.starts_with(root) {
            return reporter.warn(&left_out(&shown(&self.base), OUTSIDE));
        }
        let ignored_too = self.depth.is_some();
        let walk = WalkBuilder::new(&start)
            .hidden(false)
            .ignore(false)
            .git_ignore(!ignored_too)
            .git_exclude(!ignored_too)
            .git_global(!ignored_too)
            .parents(!ignored_too)
            .max_depth(self.depth)
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
            .build();
        for entry in walk {
            let warn =
                |e: &ignore::Error| reporter.warn(&format!("files: {}", one_line(&e.to_string(), 300)));
            let Ok(entry) = entry.inspect_err(warn) else { continue };
            let is_candidate = entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink());
            if let (true, Ok(below)) = (is_candidate, entry.path().strip_prefix(&start))
                && rest.is_match(below)
                // A folder behind a symlink is not walked, and is not a file if it matches.
                && !entry.path().is_dir()
            {
                found.entry(self.base.join(below)).or_insert(false);
            }
        }
    }
}

/// How a path is shown, and the file that it leads to. An error says why the file is left out.
fn place(root: &Path, path: &Path) -> Result<(String, PathBuf)> {
    let real = root.join(path);
    let missing = |e| match real.is_symlink() {
        true => Error::not_found("the target of this symlink does not exist"),
        false => Error::from(e),
    };
    let real = std::fs::canonicalize(&real).map_err(missing)?;
    let inside = real.strip_prefix(root).map_err(|_| Error::refused(OUTSIDE))?;
    // `a/../b` is shown as what it is; a symlink under its own name.
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    // A slash too many would make it another name for one file.
    let path: PathBuf = path.components().collect();
    Ok((shown(if is_plain { &path } else { inside }), real))
}

/// The file's text, and whether bytes of it had to be replaced; `None` if it is not text. An error says why it is left out.
fn load(name: &str, real: &Path, room: u64) -> Result<Option<(String, bool)>> {
    let metadata = std::fs::metadata(real)?;
    if metadata.is_dir() {
        return Err(Error::refused(format!("it is a directory; write \"{name}/**\" for the files in it")));
    }
    if !metadata.is_file() {
        return Err(Error::refused("it is not a regular file"));
    }
    let mut file = std::fs::File::open(real)?;
    let mut bytes = Vec::new();
    file.by_ref().take(SNIFF as u64).read_to_end(&mut bytes)?;
    if bytes.contains(&0) {
        return Ok(None);
    }
    // A file that is too large is not read to find that out.
    let fits = |length: u64| {
        let (what, cap) = match length {
            length if length > FILE_CAP => ("it is", FILE_CAP),
            length if length > room => ("all files together are", TOTAL_CAP),
            _ => return Ok(()),
        };
        Err(Error::refused(format!("{what} larger than {} MiB", cap >> 20)))
    };
    fits(metadata.len())?;
    file.take(FILE_CAP + 1 - bytes.len() as u64).read_to_end(&mut bytes)?;
    fits(bytes.len() as u64)?;
    Ok(Some(lossy(bytes)))
}

/// A path for people and models: forward slashes, and no control characters that could fake a line.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() };
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_begin_at_the_first_special_component() {
        let pattern = FilePattern::parse("./src/deep/**/*.rs").unwrap();
        assert_eq!((pattern.base.as_path(), pattern.depth), (Path::new("src/deep"), None));
        assert!(
            pattern.matches(Path::new("src/deep/a.rs")) && pattern.matches(Path::new("src/deep/x/y/a.rs"))
        );
        let pattern = FilePattern::parse("src/*/a?.rs").unwrap();
        assert_eq!(pattern.depth, Some(2));
        assert!(pattern.matches(Path::new("src/x/ab.rs")) && !pattern.matches(Path::new("src/x/y/ab.rs")));
        assert!(FilePattern::parse("README.md").unwrap().rest.is_none());
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let error = FilePattern::parse("src/[a").err().unwrap();
        assert!(error.message().starts_with("invalid glob pattern \"src/[a\": "), "{}", error.message());
        assert_eq!(error.exit_code(), 2);
    }
}
