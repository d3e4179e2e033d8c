//! The programs that a command line runs, for whoever asks what it is about, and not what its output shows.

use crate::memory::outside::call::Call;
use crate::memory::outside::places::normal;
use crate::memory::outside::shell::parse;
use crate::memory::programs::{PREFIXES, SHELLS};
use std::path::{Path, PathBuf};

/// So many programs of a line are looked at, and `sh -c` in `sh -c` is followed so deep.
const MOST: usize = 50;
const DEPTH: usize = 3;

/// A program with its words, the name as it was written first, and the directory in which it runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    pub words: Vec<String>,
    pub dir: PathBuf,
}

/// Without `sudo`, `time`, `VARIABLE=value` and the like before them.
pub fn runs(line: &str, dir: &Path) -> Vec<Run> {
    let mut found = Vec::new();
    add(line, &mut dir.to_path_buf(), 0, &mut found);
    found
}

fn add(line: &str, dir: &mut PathBuf, depth: usize, found: &mut Vec<Run>) {
    let line = parse(line, None);
    for command in line.commands.iter().take(MOST) {
        let mut call = Call::new(command, &[], false, 0);
        while let Some(prefix) = &call
            && let Some(valued) = PREFIXES.after(&prefix.name)
        {
            call = prefix.clone().with(prefix.words.get(prefix.behind_prefix(valued)..).unwrap_or_default());
        }
        let Some(call) = call else { continue };
        let code = call.option(&["-c", "-lc", "--command"]);
        match (call.name.as_str(), call.arguments().next()) {
            ("cd" | "pushd", Some(to)) if !to.starts_with(['~', '-', '$']) => {
                *dir = normal(dir, Path::new(to))
            }
            (name, _) if SHELLS.has(name) && code.is_some() && depth < DEPTH => {
                add(code.unwrap_or_default(), &mut dir.clone(), depth + 1, found);
            }
            _ if found.len() < MOST => {
                let words = call.words.iter().map(|word| word.text.clone()).collect();
                found.push(Run { words, dir: dir.clone() });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_programs_that_it_runs_and_where() {
        for (line, expected) in [
            ("make test", "/w: make test"),
            ("cd web && npm run build 2>&1 | tail -5", "/w/web: npm run build; /w/web: tail -5"),
            ("A=1 sudo -u me timeout 60 make -j4 test; ./x.sh", "/w: make -j4 test; /w: ./x.sh"),
            ("bash -lc 'cd a; make b'; ls", "/w/a: make b; /w: ls"),
            ("if true; then make x; fi", "/w: true; /w: make x"),
            ("", ""),
        ] {
            let said = runs(line, Path::new("/w"));
            let said: Vec<_> =
                said.iter().map(|run| format!("{}: {}", run.dir.display(), run.words.join(" "))).collect();
            assert_eq!(said.join("; "), expected, "{line}");
        }
    }
}
