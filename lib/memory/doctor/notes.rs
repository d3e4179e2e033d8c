//! The notes, each read once: what is wrong with a single note, and the facts that the checks across notes need.

use crate::base::file;
use crate::base::text::one_line;
use crate::memory::doctor::cache::{Cache, Known, Record};
use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::doctor::prose;
use crate::memory::record::{Danger, dangers};
use crate::memory::section::{Candidate, Inspection};
use crate::store::entry::{EntryId, Meta, Status, Tier, is_tag, tag};
use crate::store::journal::entry::TAG_FORM;
use crate::store::persistence::{Broken, Note, Place, Scan};
use crate::store::topics::{NoteFile, Topics, read};
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most lines of a note that is not oversized.
const LINES: usize = 40;
/// A note that was neither read nor changed for so many days is stale.
const STALE_DAYS: i64 = 180;
/// The largest unreadable file that is searched for secrets, in bytes.
const CAP: u64 = 8 << 20;
/// How many wrong tags of a note are listed.
const LISTED: usize = 3;

/// What is kept of a note: not its text.
pub(super) struct NoteFacts {
    pub(super) id: EntryId,
    pub(super) place: Place,
    pub(super) path: PathBuf,
    /// The path for messages: not the file's own if its name contains a secret.
    pub(super) shown: PathBuf,
    /// The targets of its links, each once.
    pub(super) links: Vec<EntryId>,
    pub(super) aliases: Vec<EntryId>,
    pub(super) superseded_by: Option<EntryId>,
    /// The name that follows from the front matter, if the file has another.
    pub(super) right_name: Option<String>,
    pub(super) is_out_of_step: bool,
    findings: Vec<Finding>,
}

/// The result of reading and checking all notes.
#[derive(Default)]
pub(super) struct CheckedNotes {
    pub(super) notes: Vec<NoteFacts>,
    /// The ids in the names of files that cannot be used.
    pub(super) unreadable_ids: Vec<EntryId>,
    /// What the targets would show.
    pub(super) shares: Vec<Candidate>,
    /// About files that cannot be used, and about the directories.
    findings: Vec<Finding>,
    /// What was known of the notes, and what is known now.
    cache: Option<Cache>,
    records: Vec<Record>,
}

impl CheckedNotes {
    pub(super) fn in_use(&self) -> usize {
        self.notes.iter().filter(|note| note.place == Place::Topics).count()
    }

    pub(super) fn take_cache(&mut self) -> Option<(Cache, Vec<Record>)> {
        Some((self.cache.take()?, std::mem::take(&mut self.records)))
    }

    pub(super) fn findings(self) -> impl Iterator<Item = Finding> {
        self.findings.into_iter().chain(self.notes.into_iter().flat_map(|note| note.findings))
    }
}

/// What the text of a note says to the checks.
#[derive(Default)]
struct TextFacts {
    /// Those of [`Redactor::kinds`].
    secrets: BTreeMap<&'static str, (usize, usize)>,
    dangers: Vec<Danger>,
    lines: usize,
    links: Vec<EntryId>,
}

impl TextFacts {
    fn of(note: &Note, cx: &CheckContext) -> TextFacts {
        let Meta { title, summary, .. } = note.entry.meta();
        let body = note.entry.body();
        let newlines = memchr::memchr_iter(b'\n', body).count();
        let mut facts = TextFacts {
            secrets: cx.redactor.kinds(&text_of(note.entry.bytes())),
            lines: newlines + usize::from(!body.is_empty() && !body.ends_with(b"\n")),
            ..TextFacts::default()
        };
        if note.place == Place::Topics {
            facts.dangers = dangers(&format!("{title}\n{summary}\n{}", text_of(body)));
            facts.links = prose::links(&text_of(body));
        }
        facts
    }

    /// Nothing in it has to be quoted from the text.
    fn is_clean(&self) -> bool {
        self.secrets.is_empty() && self.dangers.is_empty()
    }
}

/// What is made of a file: what the targets would show of it, and what the next cache holds.
type Checked = (NoteFacts, Option<Candidate>, Option<Record>);

pub(super) fn check(cx: &CheckContext) -> CheckedNotes {
    let topics = Topics::at(cx.root);
    let cache = Cache::open(cx.root, &cx.config.redact);
    let inspection = Inspection::of(cx.config, &cx.aims, cx.root, &cx.waiting, cx.today);
    let each = |file: NoteFile| -> Result<(EntryId, Checked), Option<Broken>> {
        let (place, path) = (file.place, &*file.path());
        let share = |meta: &Meta, body| match place {
            Place::Topics => inspection.candidate(meta, body, path),
            Place::Archive => None,
        };
        if let Some((Known { meta, body, lines, links }, known)) = cache.known(place, path) {
            let text = TextFacts { lines, links, ..TextFacts::default() };
            let share = share(&meta, body);
            return Ok((meta.id.clone(), (facts(&meta, place, path, text, cx), share, Some(known))));
        }
        // Before the file is read: if it changes meanwhile, its next stamp is another one.
        let stamp = file::stamp(path);
        let note = read(place, path)?;
        let text = TextFacts::of(&note, cx);
        let (meta, body) = (note.entry.meta(), note.entry.body_facts());
        let record = stamp.filter(|_| text.is_clean()).and_then(|stamp| {
            let TextFacts { lines, ref links, .. } = text;
            let known = Known { meta: meta.clone(), body, lines, links: links.clone() };
            cache.fresh(place, path, stamp, &known)
        });
        let share = share(meta, body);
        Ok((meta.id.clone(), (facts(meta, place, path, text, cx), share, record)))
    };
    let both = [Place::Topics, Place::Archive];
    let mut checked = CheckedNotes::default();
    let scan = topics.scan_with(&both, each).unwrap_or_else(|_| {
        // One of the two directories cannot be read: check the other.
        let mut scan = Scan { found: Vec::new(), broken: Vec::new() };
        for place in both {
            match topics.scan_with(&[place], each) {
                Ok(part) => {
                    scan.found.extend(part.found);
                    scan.broken.extend(part.broken);
                }
                Err(error) => {
                    let (dir, mend) = (topics.dir(place), "make it a directory that you can read");
                    checked.findings.push(Finding::error(Check::Store, &dir, error.message(), mend));
                }
            }
        }
        scan
    });
    for (facts, share, record) in scan.found {
        checked.notes.push(facts);
        checked.shares.extend(share);
        checked.records.extend(record);
    }
    checked.cache = Some(cache);
    for file in &scan.broken {
        let name = file.path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let id = name.len().checked_sub(10).and_then(|at| EntryId::whole(name.get(at..)?));
        checked.unreadable_ids.extend(id);
        check_broken(file, cx, &mut checked);
    }
    checked
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
            let id = &note.entry.meta().id;
            checked.unreadable_ids.push(id.clone());
            let twin = checked.notes.iter().find(|note| note.id == *id).map(|note| &note.shown);
            let twin =
                twin.map(|path| path.strip_prefix(cx.root.path()).unwrap_or(path).display().to_string());
            let mut facts = facts(note.entry.meta(), place, &file.path, TextFacts::of(&note, cx), cx);
            // `--fix` does nothing here until there is one note with this id.
            facts.findings.retain(|finding| !finding.is_fixable());
            checked.findings.append(&mut facts.findings);
            let what = format!("has the same id, {id}, as \"{}\"", twin.unwrap_or_default());
            let mend = "merge the two by hand, then remove one";
            checked.findings.push(Finding::error(Check::DuplicateId, &facts.shown, what, mend));
        }
        Err(Some(Broken { why, .. })) => {
            let mend = "correct it in an editor; until then it is ignored";
            checked.findings.push(Finding::error(Check::Schema, &file.path, why, mend));
            if let Ok(bytes) = file::read(&file.path, CAP) {
                let kinds = cx.redactor.kinds(&String::from_utf8_lossy(&bytes));
                checked.findings.extend(of_secrets(&kinds, &file.path));
            }
        }
    }
}

fn facts(meta: &Meta, place: Place, path: &Path, text: TextFacts, cx: &CheckContext) -> NoteFacts {
    let is_in_use = place == Place::Topics;
    let TextFacts { secrets, dangers, lines, links } = text;
    // The name is made from the title. If there is a secret in it, show a pattern that the shell completes.
    let shown = match secrets.is_empty() || cx.redactor.kinds(&meta.title).is_empty() {
        true => path.to_path_buf(),
        false => path.with_file_name(format!("*{}.md", meta.id)),
    };
    let right_name = Some(meta.file_name()).filter(|name| path.file_name() != Some(name.as_ref()));
    let is_out_of_step = is_in_use && is_out_of_step(meta);
    let mut findings = Vec::new();
    findings.extend(of_secrets(&secrets, &shown));
    check_schema(meta, &shown, &mut findings);
    if let Some(name) = &right_name {
        let what = match shown == path {
            true => format!("its front matter asks for the name \"{name}\""),
            false => "its name does not match its title and tags".to_owned(),
        };
        findings.push(Finding::warning(Check::Name, &shown, what, "memory-doctor --fix renames it"));
    }
    if is_out_of_step {
        let what = format!("is {} and {}; hot notes are promoted, others are not", meta.status, meta.tier);
        let mend = "memory-doctor --fix adapts the status to the tier";
        findings.push(Finding::warning(Check::Promoted, &shown, what, mend));
    }
    if is_in_use {
        findings.extend(oversized(lines, &shown));
        findings.extend(stale(meta, path, &shown, cx));
        findings.extend(expired(meta, &shown, cx));
        findings.extend(dangers.into_iter().map(|danger| of_danger(&danger, &meta.id, &shown)));
    }
    NoteFacts {
        id: meta.id.clone(),
        place,
        path: path.to_path_buf(),
        shown,
        links,
        aliases: meta.aliases.clone(),
        superseded_by: meta.superseded_by.clone(),
        right_name,
        is_out_of_step,
        findings,
    }
}

/// A note is promoted exactly while it is hot.
pub(super) fn is_out_of_step(meta: &Meta) -> bool {
    (meta.status == Status::Promoted) != (meta.tier == Tier::Hot)
}

/// Checking for UTF-8 first is faster than the lossy conversion alone.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Values that can be read and are not valid in a note.
fn check_schema(meta: &Meta, shown: &Path, findings: &mut Vec<Finding>) {
    if meta.title.trim().is_empty() {
        let mend = format!("memory-update {} --title \"…\"", meta.id);
        findings.push(Finding::error(Check::Schema, shown, "its title is empty", &mend));
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
        findings.push(Finding::error(Check::Schema, shown, format!("{} {are}", listed.join(", ")), &mend));
    }
}

/// `kinds` is the result of `Redactor::kinds`.
fn of_secrets(kinds: &BTreeMap<&str, (usize, usize)>, shown: &Path) -> Option<Finding> {
    let listed: Vec<String> = kinds
        .iter()
        .map(|(kind, (line, count))| match count {
            1 => format!("{kind} in line {line}"),
            _ => format!("{kind} in line {line} and {} more", count - 1),
        })
        .collect();
    let what = format!("contains what looks like a secret: {}", listed.join(", "));
    let mend = "remove it from the note and from the history; revoke it if it was real";
    (!listed.is_empty()).then(|| Finding::error(Check::Secret, shown, what, mend))
}

fn oversized(lines: usize, shown: &Path) -> Option<Finding> {
    let what = format!("has {lines} lines; notes should have at most {LINES}");
    let mend = "split it by hand, or run memory-defrag";
    (lines > LINES).then(|| Finding::warning(Check::Oversized, shown, what, mend))
}

/// A note that was not read or changed for long, in its front matter or its file, and is not pinned.
fn stale(meta: &Meta, path: &Path, shown: &Path, cx: &CheckContext) -> Option<Finding> {
    let now = cx.env.now();
    let limit = now.as_millisecond() - STALE_DAYS * DAY_MS;
    let used = meta.last_used.map_or(i64::MIN, Timestamp::as_millisecond);
    let known = meta.updated_at.max(meta.created_at).max(used);
    if meta.pinned || known > limit {
        return None;
    }
    // An editor does not update the front matter. Only the few notes that seem old need a look at the file's time.
    let modified = path.metadata().and_then(|metadata| metadata.modified()).ok()?;
    let last = known.max(Timestamp::try_from(modified).ok()?.as_millisecond());
    let what = format!("was neither read nor changed for {} days", (now.as_millisecond() - last) / DAY_MS);
    let mend = format!("memory-remove {0} archives it; memory-update {0} --pin keeps it", meta.id);
    (last <= limit).then(|| Finding::warning(Check::Stale, shown, what, &mend))
}

/// A note that would have every agent do what nobody should, whoever wrote it.
fn of_danger(danger: &Danger, id: &EntryId, shown: &Path) -> Finding {
    let mend = format!("if you do not want that: memory-update {id} --body FILE, or memory-remove {id}");
    Finding::warning(Check::Danger, shown, danger.does(), &mend)
}

/// AGENTS.md leaves it out; here it would stay for ever.
fn expired(meta: &Meta, shown: &Path, cx: &CheckContext) -> Option<Finding> {
    let until = meta.until.filter(|_| meta.is_expired(cx.today))?;
    let what = format!("held until {until}, which is over; AGENTS.md does not show it");
    let mend =
        format!("memory-remove {0} archives it; memory-update {0} --until DATE|none keeps it", meta.id);
    Some(Finding::warning(Check::Expired, shown, what, &mend))
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
