//! `memory-read`: print notes and count each read. Defrag moves notes that are read often into AGENTS.md.

use crate::base::cli::{self, About, Args, Completes, Context, ExitCode, Meaning, Paint, flag};
use crate::base::error::{ErrorKind, Result};
use crate::base::text::disarmed;
use crate::base::text::fences::{Fence, fence};
use crate::memory::section::note::{self, Marks};
use crate::program::notes::{CONFIG, Listed, Store, ids, up_to_ids};
use crate::program::screen::present;
use crate::store::entry::EntryId;
use crate::store::persistence::Note;
use std::borrow::Cow;

pub(super) const ABOUT: About = About {
    name: "memory-read",
    caption: "print notes and count each read",
    usage: &["memory-read [--json] [--no-count] ID…|-"],
    flags: &[
        flag("json", "one JSON object per line: front matter, path and body"),
        flag("no-count", "do not count this read"),
        CONFIG,
    ],
    words: up_to_ids(usize::MAX),
    completes: Completes::Values("notes"),
    text: include_str!("memory_read.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let store = Store::open(args, cx)?;
    let ids = ids(args, &store, cx)?;
    let is_counted = !args.has("no-count");
    let mut is_first = true;
    let mut shown = String::new();
    let read = cx.each(&ids, |id, cx| {
        let note = if is_counted {
            read(&store, id, cx)?
        } else {
            store.or_shared(store.service.look(id), cx, |shared| shared.look(id))?
        };
        if cx.json {
            let body = String::from_utf8_lossy(note.entry.body()).into_owned();
            return cx.stdout.json(&Listed { body: Some(body), ..Listed::of(note.entry.meta(), &note.path) });
        }
        let gap = if std::mem::replace(&mut is_first, false) { "" } else { "\n" };
        if cx.stdout.is_terminal() {
            // On a terminal a note shows what it holds, and does nothing.
            let text = disarmed(&String::from_utf8_lossy(&text_of(&note))).into_owned();
            shown += gap;
            shown += &rendered(&text, cx.stdout.paint());
            return Ok(());
        }
        cx.stdout.text(gap)?;
        cx.stdout.bytes(&text_of(&note))
    });
    present(&shown, cx).and(read)
}

/// The file; of one that the repository has among its files, what a session would be shown.
fn text_of(note: &Note) -> Cow<'_, [u8]> {
    match note.entry.meta().is_shared() {
        true => note::block(note, Marks::default()).into_bytes().into(),
        false => note.entry.bytes().into(),
    }
}

/// The text of a note with its headings set off, and its front matter in the background. The text keeps each of its bytes.
fn rendered(text: &str, paint: Paint) -> String {
    let (mut open, mut in_front, mut all): (Option<Fence>, bool, String) = (None, false, String::new());
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let (plain, end) = line.strip_suffix('\n').map_or((line, ""), |plain| (plain, "\n"));
        let is_rule = plain.trim_end() == "---";
        let begins = number == 0 && is_rule;
        let mark = fence(plain.as_bytes()).filter(|_| !in_front);
        let is_code = open.is_some();
        open = match (open, mark) {
            (Some(opening), Some(mark)) if mark.closes(&opening) => None,
            (open, mark) => open.or(mark),
        };
        let level = plain.bytes().take_while(|byte| *byte == b'#').count();
        let is_heading = !is_code && (1..=6).contains(&level) && plain[level..].starts_with(' ');
        let meaning = match (in_front || begins, is_heading) {
            (true, _) => Some(Meaning::Faint),
            (false, true) => Some(Meaning::Heading),
            (false, false) => None,
        };
        in_front = begins || in_front && !is_rule;
        all += &meaning.map_or(plain.into(), |meaning| paint.paint(meaning, plain));
        all += end;
    }
    all
}

/// Counts the read where the store can be written.
pub(super) fn read(store: &Store, id: &EntryId, cx: &Context) -> Result<Note> {
    match store.service.read(id) {
        Err(why) if matches!(why.kind(), ErrorKind::Io | ErrorKind::Config) => {
            let note = store.service.look(id)?;
            cx.reporter.warn(&format!("this read of {id} is not counted: {}", why.message()));
            Ok(note)
        }
        read => store.or_shared(read, cx, |shared| shared.look(id)),
    }
}
