//! The notes, each read once: what is wrong with it alone, and the small facts that the checks of all of them need.

use crate::base::file;
use crate::base::text::one_line;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::doctor::patient::Patient;
use crate::memory::doctor::prose;
use crate::memory::section::{Candidate, Inspection};
use crate::store::entry::{EntryId, Meta, Status, Tier, is_tag, tag};
use crate::store::journal::entry::TAG_FORM;
use crate::store::persistence::{Broken, Note, Persistence, Place, Scan};
use crate::store::topics::{Topics, read};
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A note with more lines than this wants splitting.
const LINES: usize = 40;
/// A note that nobody has read or changed for so many days may have outlived its use.
const STALE_DAYS: i64 = 180;
/// The largest file that is no note and is searched for secrets, in bytes.
const CAP: u64 = 8 << 20;
/// So many wrong tags of a note are named.
const NAMED: usize = 3;

/// What is kept of a note once its text is forgotten.
pub(crate) struct Fact {
    pub(crate) id: EntryId,
    pub(crate) place: Place,
    pub(crate) path: PathBuf,
    /// How the file is told: its path, unless a secret stands in its name.
    pub(crate) shown: PathBuf,
    /// Where its links lead, each once.
    pub(crate) links: Vec<EntryId>,
    pub(crate) aliases: Vec<EntryId>,
    pub(crate) superseded_by: Option<EntryId>,
    /// The name that its front matter asks for, where the file has another.
    pub(crate) right_name: Option<String>,
    pub(crate) is_out_of_step: bool,
    findings: Vec<Finding>,
}

/// All notes, looked at.
#[derive(Default)]
pub(crate) struct Round {
    pub(crate) facts: Vec<Fact>,
    /// Ids that files bear in their names which cannot be used.
    pub(crate) ids_of_broken: Vec<EntryId>,
    /// What the targets would show.
    pub(crate) shares: Vec<Candidate>,
    /// What is wrong with files, and with the directories.
    findings: Vec<Finding>,
}

impl Round {
    pub(crate) fn in_use(&self) -> usize {
        self.facts.iter().filter(|fact| fact.place == Place::Topics).count()
    }

    pub(crate) fn findings(self) -> impl Iterator<Item = Finding> {
        self.findings.into_iter().chain(self.facts.into_iter().flat_map(|fact| fact.findings))
    }
}

pub(crate) fn round(patient: &Patient) -> Round {
    let topics = Topics::at(patient.root);
    let glance = Inspection::of(patient.config);
    let each = |note: Note| {
        let share = (note.place == Place::Topics).then(|| glance.candidate(&note)).flatten();
        (fact(&note, patient), share)
    };
    let both = [Place::Topics, Place::Archive];
    let mut round = Round::default();
    let scan = match topics.scan(&both, each) {
        Ok(scan) => scan,
        // One of the two cannot be read: what can be said of the other is said.
        Err(_) => {
            let mut scan = Scan::<(Fact, Option<Candidate>)> { found: Vec::new(), broken: Vec::new() };
            for place in both {
                match topics.scan(&[place], each) {
                    Ok(part) => {
                        scan.found.extend(part.found);
                        scan.broken.extend(part.broken);
                    }
                    Err(error) => round.findings.push(Finding::error(
                        Check::Store,
                        &topics.dir(place),
                        error.message(),
                        "make it a directory that you can read",
                    )),
                }
            }
            scan
        }
    };
    for (fact, share) in scan.found {
        round.facts.push(fact);
        round.shares.extend(share);
    }
    for file in &scan.broken {
        let name = file.path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let id = name.len().checked_sub(10).and_then(|at| EntryId::whole(name.get(at..)?));
        round.ids_of_broken.extend(id);
        broken(file, patient, &mut round);
    }
    round
}

/// A file that is left out: one that is no note, or a second one with the same id.
fn broken(file: &Broken, patient: &Patient, round: &mut Round) {
    let place = match file.path.starts_with(patient.root.archive()) {
        true => Place::Archive,
        false => Place::Topics,
    };
    match read(place, &file.path) {
        Err(None) => {}
        Ok(note) => {
            let id = &note.entry.meta().id;
            round.ids_of_broken.push(id.clone());
            let twin = round.facts.iter().find(|fact| fact.id == *id).map(|fact| &fact.shown);
            let twin = twin.map(|path| told(path, patient)).unwrap_or_default();
            let mut fact = fact(&note, patient);
            // What can be mended by a name or a word can wait until there is one note.
            fact.findings.retain(|finding| !finding.is_fixable());
            round.findings.append(&mut fact.findings);
            round.findings.push(Finding::error(
                Check::DuplicateId,
                &fact.shown,
                format!("has the id {id}, as \"{twin}\" has"),
                "merge the two by hand, then remove one",
            ));
        }
        Err(Some(Broken { why, .. })) => {
            let mend = "mend it in an editor; until then it is left alone";
            round.findings.push(Finding::error(Check::Schema, &file.path, why, mend));
            if let Ok(bytes) = file::read(&file.path, CAP) {
                let kinds = patient.redactor.kinds(&String::from_utf8_lossy(&bytes));
                secrets(&kinds, &file.path, &mut round.findings);
            }
        }
    }
}

/// A file's path below the store.
fn told(path: &Path, patient: &Patient) -> String {
    path.strip_prefix(patient.root.path()).unwrap_or(path).display().to_string()
}

fn fact(note: &Note, patient: &Patient) -> Fact {
    let meta = note.entry.meta();
    let mut findings = Vec::new();
    let text = text_of(note.entry.bytes());
    let kinds = patient.redactor.kinds(&text);
    // A name is made of the title. Of one that tells a secret, only its end is told: a shell finds the file by it.
    let shown = match kinds.is_empty() || patient.redactor.kinds(&meta.title).is_empty() {
        true => note.path.clone(),
        false => note.path.with_file_name(format!("*{}.md", meta.id)),
    };
    secrets(&kinds, &shown, &mut findings);
    let name = meta.file_name();
    let has_right_name = note.path.file_name().is_some_and(|found| *found == *name);
    let right_name = (!has_right_name).then_some(name);
    let is_out_of_step =
        note.place == Place::Topics && (meta.status == Status::Promoted) != (meta.tier == Tier::Hot);
    schema(meta, &shown, &mut findings);
    if let Some(name) = &right_name {
        let name = if shown == note.path { name } else { "its title and tags" };
        findings.push(Finding::warning(
            Check::Name,
            &shown,
            format!("its front matter asks for the name \"{name}\""),
            "memory-doctor --fix renames it",
        ));
    }
    if is_out_of_step {
        findings.push(Finding::warning(
            Check::Promoted,
            &shown,
            format!("is {} and {}; a note is promoted exactly while it is hot", meta.status, meta.tier),
            "memory-doctor --fix lets the status follow the tier",
        ));
    }
    if note.place == Place::Topics {
        let body = note.entry.body();
        let ends = memchr::memchr_iter(b'\n', body).count();
        let lines = ends + usize::from(!body.is_empty() && !body.ends_with(b"\n"));
        if lines > LINES {
            let what = format!("has {lines} lines; a note of more than {LINES} wants splitting");
            let mend = "split it by hand, or let memory-defrag";
            findings.push(Finding::warning(Check::Oversized, &shown, what, mend));
        }
        stale(note, &shown, patient, &mut findings);
    }
    Fact {
        id: meta.id.clone(),
        place: note.place,
        path: note.path.clone(),
        links: match note.place {
            Place::Topics => prose::links(&text_of(note.entry.body())),
            Place::Archive => Vec::new(),
        },
        shown,
        aliases: meta.aliases.clone(),
        superseded_by: meta.superseded_by.clone(),
        right_name,
        is_out_of_step,
        findings,
    }
}

/// Most files are UTF-8, and to see that is fast; the lossy way goes byte by byte.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// What parses, and is not as a note should be.
fn schema(meta: &Meta, shown: &Path, findings: &mut Vec<Finding>) {
    if meta.title.trim().is_empty() {
        let mend = format!("memory-update {} --title \"…\"", meta.id);
        findings.push(Finding::error(Check::Schema, shown, "its title is empty", &mend));
    }
    let wrong: Vec<&str> = meta.tags.iter().map(String::as_str).filter(|tag| !is_tag(tag)).collect();
    if let [first, ..] = wrong[..] {
        let mut named: Vec<String> =
            wrong.iter().take(NAMED).map(|tag| format!("\"{}\"", one_line(tag, 60))).collect();
        if wrong.len() > NAMED {
            named.push(format!("{} more", wrong.len() - NAMED));
        }
        let are = if wrong.len() == 1 { "is no tag" } else { "are no tags" };
        let mend = match tag(first) {
            Some(right) if wrong.len() == 1 => format!("write {right} in its front matter"),
            _ => format!("in its front matter, {TAG_FORM}"),
        };
        findings.push(Finding::error(Check::Schema, shown, format!("{} {are}", named.join(", ")), &mend));
    }
}

/// Kinds and lines of what `Redactor::kinds` has found.
fn secrets(kinds: &BTreeMap<&str, (usize, usize)>, shown: &Path, findings: &mut Vec<Finding>) {
    if kinds.is_empty() {
        return;
    }
    let told: Vec<String> = kinds
        .iter()
        .map(|(kind, (line, count))| match count {
            1 => format!("{kind} in line {line}"),
            _ => format!("{kind} in line {line} and {} more", count - 1),
        })
        .collect();
    findings.push(Finding::error(
        Check::Secret,
        shown,
        format!("holds what looks like a secret: {}", told.join(", ")),
        "take it out of the note, and out of its history; revoke it if it was real",
    ));
}

/// Nobody has read it, changed it or touched its file for long, and nobody has pinned it.
fn stale(note: &Note, shown: &Path, patient: &Patient, findings: &mut Vec<Finding>) {
    let meta = note.entry.meta();
    let now = patient.env.now();
    let limit = now.as_millisecond() - STALE_DAYS * DAY_MS;
    let used = meta.last_used.map_or(i64::MIN, Timestamp::as_millisecond);
    let known = meta.updated_at.max(meta.created_at).max(used);
    if meta.pinned || known > limit {
        return;
    }
    // An editor does not tell the front matter. Only the few notes that seem old are asked for their files' times.
    let modified = note.path.metadata().and_then(|metadata| metadata.modified());
    let Some(touched) = modified.ok().and_then(|time| Timestamp::try_from(time).ok()) else { return };
    let last = known.max(touched.as_millisecond());
    if last <= limit {
        let days = (now.as_millisecond() - last) / DAY_MS;
        let mend = format!(
            "memory-remove {} moves it to the archive; memory-update {} --pin keeps it",
            meta.id, meta.id
        );
        findings.push(Finding::warning(
            Check::Stale,
            shown,
            format!("was neither read nor changed for {days} days"),
            &mend,
        ));
    }
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
