//! The notes, each read once: what is wrong with a single note, and the facts that the checks across notes need.

use crate::base::file;
use crate::base::text::{folded, one_line};
use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis};
use crate::memory::doctor::text::{TextFacts, open_cache};
use crate::memory::section::{self, Candidate, Pool};
use crate::store::entry::{EntryId, Meta, Status, Tier, is_tag, tag};
use crate::store::index::{LEAST, NoteCache, NoteView, record};
use crate::store::journal::entry::TAG_FORM;
use crate::store::persistence::{Broken, Place, Scan};
use crate::store::topics::{NoteFile, Topics, read};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most lines of a note that is not oversized.
pub(super) const LINES: usize = 40;
/// A note that was neither read nor changed for so many days is stale.
const STALE_DAYS: i64 = 180;
/// The largest unreadable file that is searched for secrets, in bytes.
const CAP: u64 = 8 << 20;
/// How many wrong tags of a note are listed.
const LISTED: usize = 3;

/// What is kept of a note: not its text.
pub(super) struct NoteFacts {
    pub(super) meta: Meta,
    pub(super) place: Place,
    pub(super) path: PathBuf,
    /// The path for messages: not the file's own if its name contains a secret.
    pub(super) shown: PathBuf,
    /// The targets of its links, each once.
    pub(super) links: Vec<EntryId>,
    findings: Diagnosis,
}

impl NoteFacts {
    /// It says something else than before, or another one does in its place.
    pub(super) fn is_corrected(&self) -> bool {
        match self.place {
            Place::Topics => self.meta.updated_at > self.meta.created_at,
            Place::Archive => self.meta.superseded_by.is_some(),
        }
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.place == Place::Topics
    }

    /// The name that follows from the front matter, if the file has another.
    pub(super) fn right_name(&self) -> Option<String> {
        Some(self.meta.file_name()).filter(|name| self.path.file_name() != Some(name.as_ref()))
    }

    pub(super) fn is_out_of_step(&self) -> bool {
        self.is_in_use() && is_out_of_step(&self.meta)
    }
}

/// A note is promoted exactly while it is hot.
pub(super) fn is_out_of_step(meta: &Meta) -> bool {
    (meta.status == Status::Promoted) != (meta.tier == Tier::Hot)
}

/// The result of reading and checking all notes.
pub(super) struct CheckedNotes {
    pub(super) notes: Vec<NoteFacts>,
    /// The ids in the names of files that cannot be used.
    pub(super) unreadable_ids: Vec<EntryId>,
    /// What the targets would show.
    pub(super) pool: Pool,
    pub(super) findings: Diagnosis,
    pub(super) cache: DoctorCache,
}

/// What was known of the notes, and what is known now.
pub(super) struct DoctorCache {
    cache: NoteCache,
    records: Vec<Vec<u8>>,
}

impl DoctorCache {
    /// Writes the cache anew if so much differs that the next run gains by it.
    pub(super) fn keep_up(&self) {
        if self.cache.is_outdated(LEAST) {
            let _ = self.cache.write(self.records.len(), &self.records.concat(), &[]);
        }
    }
}

/// What is made of a file: what the targets would show of it, and what the next cache holds.
type CheckedNote = (NoteFacts, Option<Candidate>, Option<Vec<u8>>);

pub(super) fn check(cx: &CheckContext) -> CheckedNotes {
    let cache = open_cache(cx.root, &cx.config.redact);
    let mut pool = section::pool_of(&cx.aims, cx.root, &cx.waiting, cx.today);
    let made = |view: NoteView, text: TextFacts, record: Option<Vec<u8>>| -> (EntryId, CheckedNote) {
        let facts = facts(&view, text, cx);
        let candidate = Some(view).filter(|view| view.place == Place::Topics);
        let candidate = candidate.and_then(|view| pool.candidate(view));
        // Without targets, only what hot notes and those before them take matters.
        let candidate = candidate.filter(|note| !cx.aims.is_empty() || note.is_before_others());
        (facts.meta.id.clone(), (facts, candidate, record))
    };
    let each = |file: NoteFile| -> Result<(EntryId, CheckedNote), Option<Broken>> {
        cache.look(
            file,
            |known| {
                let text = TextFacts::unpack(known.more())?;
                Some(made(known.view()?, text, Some(known.bytes().to_vec())))
            },
            |note, stamp| {
                let text = TextFacts::of(&note, cx);
                let view = NoteView::without_text(note);
                let packed = text.pack().zip(stamp);
                let record =
                    packed.and_then(|(text, stamp)| record(file, stamp, &view.meta, view.body, &text));
                if record.is_some() {
                    cache.missed(stamp);
                }
                made(view, text, record)
            },
        )
    };
    let mut findings = Diagnosis::default();
    let scan = scan(&Topics::at(cx.root), each, &mut findings);
    let (mut notes, mut candidates, mut records) = (Vec::new(), Vec::new(), Vec::new());
    for (facts, candidate, record) in scan.found {
        notes.push(facts);
        candidates.extend(candidate);
        records.extend(record);
    }
    pool.fill(candidates.into_iter());
    section::look_at_code(&mut pool, &cx.aims, cx.root);
    notes.iter_mut().for_each(|note: &mut NoteFacts| findings.append(std::mem::take(&mut note.findings)));
    names(&notes, &mut findings);
    let cache = DoctorCache { cache, records };
    let mut checked = CheckedNotes { notes, unreadable_ids: Vec::new(), pool, findings, cache };
    for file in &scan.broken {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        checked.unreadable_ids.extend(EntryId::at_end_of(&name));
        check_broken(file, cx, &mut checked);
    }
    checked
}

/// The notes of both directories, or of the one that can be read.
fn scan(
    topics: &Topics,
    each: impl Fn(NoteFile) -> Result<(EntryId, CheckedNote), Option<Broken>> + Sync,
    to: &mut Diagnosis,
) -> Scan<CheckedNote> {
    let both = [Place::Topics, Place::Archive];
    topics.scan_with(&both, &each).unwrap_or_else(|_| {
        let mut scan = Scan { found: Vec::new(), broken: Vec::new() };
        for place in both {
            match topics.scan_with(&[place], &each) {
                Ok(part) => {
                    scan.found.extend(part.found);
                    scan.broken.extend(part.broken);
                }
                Err(error) => {
                    let mend = "make it a directory that you can read";
                    to.error(Check::Store, &topics.dir(place), error.message(), mend);
                }
            }
        }
        scan
    })
}

/// A file that the scan left out: it is not a note, or another note has its id.
fn check_broken(file: &Broken, cx: &CheckContext, checked: &mut CheckedNotes) {
    let place = match file.path.starts_with(cx.root.archive()) {
        true => Place::Archive,
        false => Place::Topics,
    };
    match read(place, &file.path) {
        Err(None) => {}
        Ok(note) => {
            let id = note.entry.meta().id.clone();
            checked.unreadable_ids.push(id.clone());
            let twin = checked.notes.iter().find(|note| note.meta.id == id).map(|note| &note.shown);
            let twin =
                twin.map(|path| path.strip_prefix(cx.root.path()).unwrap_or(path).display().to_string());
            let text = TextFacts::of(&note, cx);
            let mut facts = facts(&NoteView::without_text(note), text, cx);
            // `--fix` does nothing here until there is one note with this id.
            facts.findings.findings.retain(|finding| !finding.is_fixable());
            checked.findings.append(facts.findings);
            let what = match twin {
                Some(twin) => format!("has the same id, {id}, as \"{twin}\""),
                None => file.why.rsplit_once("; ").map_or(&*file.why, |(what, _)| what).to_owned(),
            };
            let mend = "merge the two by hand, then remove one";
            checked.findings.error(Check::DuplicateId, &facts.shown, what, mend);
        }
        Err(Some(Broken { why, .. })) => {
            let mend = "correct it in an editor; until then it is ignored";
            checked.findings.error(Check::Schema, &file.path, why, mend);
            if let Ok(bytes) = file::read(&file.path, CAP) {
                let kinds = cx.redactor.kinds(&String::from_utf8_lossy(&bytes));
                of_secrets(&kinds, &file.path, &mut checked.findings);
            }
        }
    }
}

fn facts(view: &NoteView, text: TextFacts, cx: &CheckContext) -> NoteFacts {
    let (meta, place, path) = (view.meta.clone(), view.place, view.path.clone());
    // The name is made from the title. If there is a secret in it, show a pattern that the shell completes.
    let shown = match text.secrets.is_empty() || cx.redactor.kinds(&meta.title).is_empty() {
        true => path.clone(),
        false => path.with_file_name(format!("*{}.md", meta.id)),
    };
    let mut findings = Diagnosis::default();
    of_secrets(&text.secrets, &shown, &mut findings);
    check_schema(&meta, &shown, &mut findings);
    let facts = NoteFacts { meta, place, path, shown, links: Vec::new(), findings: Diagnosis::default() };
    if let Some(name) = facts.right_name() {
        let what = match facts.shown == facts.path {
            true => format!("its front matter asks for the name \"{name}\""),
            false => "its name does not match its title and tags".to_owned(),
        };
        findings.warning(Check::Name, &facts.shown, what, "memory-doctor --fix renames it");
    }
    if facts.is_in_use() {
        check_use(&facts, &text, cx, &mut findings);
    }
    NoteFacts { links: text.links, findings, ..facts }
}

/// Whether a note in use can do harm, is too long, or of use no more.
fn check_use(facts: &NoteFacts, text: &TextFacts, cx: &CheckContext, to: &mut Diagnosis) {
    let NoteFacts { meta, path, shown, .. } = facts;
    let id = &meta.id;
    if facts.is_out_of_step() {
        let what = format!("is {} and {}; hot notes are promoted, others are not", meta.status, meta.tier);
        to.warning(Check::Promoted, shown, what, "memory-doctor --fix adapts the status to the tier");
    }
    if let Some((c, line, count)) = text.hidden {
        let first = format!("U+{:04X} in line {line}", u32::from(c));
        let what = match count {
            1 => format!("has a character that nobody sees: {first}"),
            _ => format!("has {count} characters that nobody sees, the first is {first}"),
        };
        let mend = format!("memory-read {id} on a terminal shows where; remove them in an editor");
        to.warning(Check::Hidden, shown, what, mend);
    }
    // It would have every agent do what nobody should, whoever wrote it.
    for danger in &text.dangers {
        let mend = format!("if you do not want that: memory-update {id} --body FILE, or memory-remove {id}");
        to.warning(Check::Danger, shown, danger.does(), mend);
    }
    if text.lines > LINES {
        let what = format!("has {} lines; notes should have at most {LINES}", text.lines);
        to.warning(Check::Oversized, shown, what, "split it by hand, or run memory-defrag");
    }
    if let Some(days) = days_unused(meta, path, cx) {
        let what = format!("was neither read nor changed for {days} days");
        let mend = format!("memory-remove {id} archives it; memory-update {id} --pin keeps it");
        to.warning(Check::Stale, shown, what, mend);
    }
    // AGENTS.md leaves it out; here it would stay for ever.
    if let Some(until) = meta.until.filter(|_| meta.is_expired(cx.today)) {
        let what = format!("held until {until}, which is over; AGENTS.md does not show it");
        let mend = format!("memory-remove {id} archives it; memory-update {id} --until DATE|none keeps it");
        to.warning(Check::Expired, shown, what, mend);
    }
}

/// Values that can be read and are not valid in a note.
fn check_schema(meta: &Meta, shown: &Path, to: &mut Diagnosis) {
    if meta.title.trim().is_empty() {
        let mend = format!("memory-update {} --title \"…\"", meta.id);
        to.error(Check::Schema, shown, "its title is empty", mend);
    }
    let wrong: Vec<&str> = meta.tags.iter().map(String::as_str).filter(|tag| !is_tag(tag)).collect();
    if let [first, ..] = wrong[..] {
        let mut listed: Vec<String> =
            wrong.iter().take(LISTED).map(|tag| format!("\"{}\"", one_line(tag, 60))).collect();
        if wrong.len() > LISTED {
            listed.push(format!("{} more", wrong.len() - LISTED));
        }
        let are = if wrong.len() == 1 { "is not a valid tag" } else { "are not valid tags" };
        let mend = match tag(first) {
            Some(right) if wrong.len() == 1 => format!("write {right} in its front matter"),
            _ => format!("in its front matter, {TAG_FORM}"),
        };
        to.error(Check::Schema, shown, format!("{} {are}", listed.join(", ")), mend);
    }
}

/// `kinds` is the result of `Redactor::kinds`.
fn of_secrets(kinds: &BTreeMap<&str, (usize, usize)>, shown: &Path, to: &mut Diagnosis) {
    let kind = |(kind, (line, count)): (&&str, &(usize, usize))| match count {
        1 => format!("{kind} in line {line}"),
        _ => format!("{kind} in line {line} and {} more", count - 1),
    };
    if !kinds.is_empty() {
        let listed = kinds.iter().map(kind).collect::<Vec<_>>().join(", ");
        let what = format!("contains what looks like a secret: {listed}");
        let mend = "remove it from the note and from the history; revoke it if it was real";
        to.error(Check::Secret, shown, what, mend);
    }
}

/// For how many days a note was neither read nor changed, in its front matter or its file, if it is stale.
fn days_unused(meta: &Meta, path: &Path, cx: &CheckContext) -> Option<i64> {
    let now = cx.env.now().as_millisecond();
    let limit = now - STALE_DAYS * DAY_MS;
    let used = meta.last_used.map_or(i64::MIN, Timestamp::as_millisecond);
    let known = meta.updated_at.max(meta.created_at).max(used);
    if meta.pinned || known > limit {
        return None;
    }
    // An editor does not update the front matter. Only the few notes that seem old need a look at the file's time.
    let modified = path.metadata().and_then(|metadata| metadata.modified()).ok()?;
    let last = known.max(Timestamp::try_from(modified).ok()?.as_millisecond());
    (last <= limit).then_some((now - last) / DAY_MS)
}

/// Names that are two here, and one on another machine.
fn names(notes: &[NoteFacts], to: &mut Diagnosis) {
    let mut first = BTreeMap::new();
    for note in notes {
        let name = note.path.file_name().unwrap_or_default().to_string_lossy();
        let Some(other) = first.insert((note.place, folded(&name)), note) else { continue };
        let other = other.shown.file_name().unwrap_or_default().to_string_lossy();
        let what =
            format!("its name differs from \"{other}\" in case or accents alone: on macOS they are one file");
        let mend =
            "change the title of one; otherwise memory-sync renames one when they reach another machine";
        to.warning(Check::Sync, &note.shown, what, mend);
    }
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
