//! `memory-remove`: move notes to the archive, or delete them.

use crate::base::cli::{self, About, Args, Completes, Context, ExitCode, FlagRule, Words, flag, path};
use crate::base::error::{Error, Result};
use crate::base::text::counted;
use crate::memory::checkouts::{is_below, is_from};
use crate::memory::defrag::applied::forget;
use crate::program::edited;
use crate::program::notes::{CONFIG, NO_ID, Store, ids, print_note};
use crate::program::person::{self, author_of, only_a_person};
use crate::store::entry::{EntryId, Kept, Source};
use crate::store::index::NoteView;
use crate::store::persistence::{Persistence, Place, warn_of};
use crate::store::topics::Topics;
use std::path::{Path, PathBuf};

pub(super) const ABOUT: About = About {
    name: "memory-remove",
    caption: "move notes to the archive, or delete them",
    usage: &["memory-remove [--purge] [--json] ID…|-", "memory-remove --from DIR [--dry-run] [--json]"],
    flags: &[
        flag("purge", "delete permanently, also from the archive"),
        path("from", "DIR", "take back what sessions at or below DIR left"),
        flag("dry-run", "with --from: print what would change"),
        flag("json", "one JSON object per line: front matter and path"),
        CONFIG,
    ],
    words: Words::AtMost(usize::MAX),
    completes: Completes::Values("notes"),
    rules: &[
        FlagRule::Apart("--from", &["WORDS"], "it finds the notes by itself"),
        FlagRule::Apart("--from", &["--purge"], "notes go to the archive first"),
        FlagRule::Needs(
            &["--dry-run"],
            &["--from"],
            "needs --from",
            "notes named by their ids are seen with memory-read",
        ),
    ],
    text: include_str!("memory_remove.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    if let Some(dir) = args.path("from") {
        return take_back(dir, args, cx);
    }
    if args.words().is_empty() {
        return Err(Error::usage(NO_ID.0).hint(NO_ID.1));
    }
    let store = Store::open(args, cx)?;
    let ids = ids(args, &store, cx)?;
    let is_purged = args.has("purge");
    let author = author_of(is_purged.then_some(person::DELETE), &ids, &store, cx)?;
    if is_purged {
        // Before the notes are deleted, while their ids are still known. Only those that can be deleted.
        let topics = Topics::at(&store.root);
        let there: Vec<_> = ids.iter().filter(|id| topics.find_own(id).is_ok()).cloned().collect();
        for batch in forget(&store.root, &there)? {
            cx.reporter.warn(&format!(
                "\"{}\" may hold text of the deleted notes until its run has finished",
                batch.display()
            ));
        }
        let older = older_texts(&topics, &ids)?;
        if !older.is_empty() {
            cx.reporter.warn(&format!(
                "what the notes said before is in the archive; to delete that, too: memory-remove --purge {}",
                older.iter().map(EntryId::as_str).collect::<Vec<_>>().join(" ")
            ));
        }
    }
    match is_purged {
        true => {
            edited::forget(&store.root, &ids)?;
            store.change(&ids, "delete", true, cx, |id| store.service.purge(id, &author))
        }
        false => store.change(&ids, "archive", true, cx, |id| store.service.remove(id, &author)),
    }
}

/// Takes the notes of a place back: those that come from there alone go to the archive, others lose these sources.
fn take_back(dir: &Path, args: &Args, cx: &mut Context) -> Result<()> {
    let is_dry = args.has("dry-run");
    if !is_dry {
        only_a_person(person::TAKE_BACK, cx)?;
    }
    let store = Store::open(args, cx)?;
    let dir = cx.env.current_dir()?.join(dir);
    let dirs: Vec<PathBuf> = dir.canonicalize().into_iter().chain([dir]).collect();
    let is_from_there = |source: &Source| is_from(source, &dirs);
    let there = store.service.list(Place::Topics, |meta| meta.sources.iter().any(is_from_there))?;
    warn_of(&there.broken, &cx.reporter);
    if there.found.is_empty() {
        cx.say(&format!("no note comes from \"{}\"", dirs[0].display()));
    }
    let (mut back, mut mixed) = (Vec::new(), 0);
    for NoteView { meta, path, body, .. } in there.found.iter().map(|found| &found.view) {
        let remark = match meta.kept(|| body.is_edited).map(Kept::reason) {
            Some(why) => format!("stays as it is: {why}"),
            None => {
                back.push(meta.id.clone());
                if is_dry {
                    print_note(meta, path, cx)?;
                }
                if meta.sources.iter().all(is_from_there) {
                    continue;
                }
                mixed += 1;
                "has other sources, too: it loses those from there, and its text stays".to_owned()
            }
        };
        cx.reporter.warn(&format!("\"{}\" {remark}", path.display()));
    }
    let done = match is_dry {
        true => Ok(()),
        false => store.change(&back, "take back", false, cx, |id| store.service.take_back(id, &dirs)),
    };
    let (would, archived) =
        (if is_dry { "would be " } else { "" }, counted(back.len() - mixed, "note", "notes"));
    let (waiting, _) = store.service.notes().proposals()?;
    let waiting = waiting.iter().filter(|change| change.session.as_ref().is_some_and(is_from_there)).count();
    let mut more = if waiting > 0 { format!("; {waiting} from there to review") } else { String::new() };
    let (queued, _) = store.service.queued()?;
    let places = queued.values().filter_map(|entry| entry.context.cwd.as_deref());
    let queued = places.filter(|cwd| is_below(cwd, &dirs)).count();
    if queued > 0 {
        more += &format!("; {queued} from there in the queue, which the next consolidation reads");
    }
    cx.say(&format!("{archived} {would}archived, {mixed} {would}left with other sources{more}"));
    done
}

/// The archived notes that these have replaced, and that are not themselves to be deleted.
fn older_texts(topics: &Topics, ids: &[EntryId]) -> Result<Vec<EntryId>> {
    let scan = topics.scan(&[Place::Archive], |note| {
        let meta = note.entry.into_meta();
        let is_older = meta.superseded_by.is_some_and(|by| ids.contains(&by)) && !ids.contains(&meta.id);
        is_older.then_some(meta.id)
    })?;
    Ok(scan.found.into_iter().flatten().collect())
}
