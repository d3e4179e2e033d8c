//! What goes into prompts from files: patterns of file names, skills, and text that must not get out of its fence.

use crate::base::cli::Reporter;
use crate::config::skill;
use crate::fuzz::scratch::{Scratch, quiet};
use crate::fuzz::{is_told_as, parts, text};
use crate::harness::turn::Role;
use crate::memory::consolidate::ask::{self, Material, RelatedNote, ShownSession};
use crate::memory::consolidate::passage::Passage;
use crate::memory::consolidate::work::{OWN_WORDS, Slice};
use crate::prompt::files::{ContextFile, collect};
use crate::prompt::system;
use crate::store::entry::{EntryId, Scope};

pub fn holds(bytes: &[u8]) {
    let [patterns, inside] = parts::<2>(bytes);
    files(&text(patterns), inside);
    stays_in_its_fence(&text(inside));
    stays_between_its_marks(&text(patterns), &text(inside));
}

/// Whatever a pattern says, only files of the working directory are read.
fn files(patterns: &str, inside: &[u8]) {
    let scratch = Scratch::empty();
    scratch.put("outside.md", b"OUTSIDE");
    for name in ["a.md", "b/c.rs", "b/d e.rs", "[x]", ".hidden/h.md"] {
        scratch.put(&format!("work/{name}"), inside);
    }
    let work = scratch.path("work");
    std::os::unix::fs::symlink("../outside.md", work.join("out.md")).unwrap();
    std::os::unix::fs::symlink("..", work.join("up")).unwrap();
    let patterns: Vec<String> = patterns.lines().take(3).map(str::to_owned).collect();
    match collect(&patterns, &work, &quiet()) {
        Ok(files) => {
            let names: Vec<&String> = files.iter().map(|file| &file.path).collect();
            assert!(names.is_sorted() && names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
            for file in &files {
                assert!(file.path.split('/').all(|part| part != ".." && !part.is_empty()), "{}", file.path);
                let real = work.join(&file.path).canonicalize().unwrap();
                assert!(real.starts_with(&work), "{real:?}");
                assert_eq!(file.text, text(inside));
            }
        }
        Err(error) => is_told_as(&error, 2),
    }
    scratch.put(".config/axe/s.md", inside);
    let skill = skill::load("s.md", None, &scratch.env(), &Reporter::new(false)).unwrap();
    assert!(text(inside).ends_with(&skill));
}

fn stays_in_its_fence(inside: &str) {
    let files = [ContextFile { path: "x.md".to_owned(), text: inside.to_owned() }];
    let prompt = system("", "", &files, "");
    let rest = prompt.strip_prefix("## Context Files\n\n### x.md\n").unwrap();
    let fence = &rest[..rest.bytes().take_while(|byte| *byte == b'`').count()];
    assert!(fence.len() >= 3 && !inside.contains(fence));
    assert_eq!(rest, format!("{fence}md\n{inside}\n{fence}"));
}

fn stays_between_its_marks(short: &str, long: &str) {
    let now = "2026-02-28T15:04:05Z".parse().unwrap();
    let passage = |role| Passage {
        number: 1,
        role,
        at: None,
        text: long.to_owned(),
        output: None,
        ..Passage::default()
    };
    let session = ShownSession {
        slice: Slice { queue_id: "q1".to_owned(), from: 0, to: 1, number: 1, of: 1 },
        entry: ask::session_of(None),
        cut: 0,
        earlier: vec![passage(Role::User)],
        left_out: 1,
        passages: [Role::User, Role::Tool].map(passage).into(),
    };
    let related = RelatedNote {
        id: EntryId::parse("id__a1B2c3").unwrap(),
        title: "t".to_owned(),
        summary: "s".to_owned(),
        tags: Vec::new(),
        scope: Scope::Global,
        repo: None,
        until: None,
        body: Some(short.to_owned()),
        drift: Some(long.to_owned()),
        failures: Some(long.to_owned()),
        fingerprint: String::new(),
    };
    let material = Material {
        now,
        sessions: vec![session],
        related: vec![related],
        waiting: Vec::new(),
        tags: Vec::new(),
    };
    let prompt = ask::prompt("batch__AAAAAAAAAAAA", &material);
    let mark = prompt.split("bear the mark ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(!long.contains(mark) && !short.contains(mark));
    let ends = prompt.lines().filter(|line| line.starts_with(">>>") && line.contains(mark)).count();
    let begins = prompt.lines().filter(|line| line.starts_with("<<<") && line.contains(mark)).count();
    assert_eq!((begins, ends), (2, 2), "{prompt}");
    let turns = prompt.lines().filter(|line| line.starts_with("[t") && line.contains(mark)).count();
    assert_eq!(turns, 3, "{prompt}");
    // A tool's lines are prefixed, at most three bytes for one.
    assert!(prompt.len() <= OWN_WORDS + 6 * long.len() + short.len() + 1200);
}
