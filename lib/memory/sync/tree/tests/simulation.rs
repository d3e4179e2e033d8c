//! Machines that read, edit, rename, merge, split, archive and delete notes, confirm them and follow what they rest on, take a
//! defrag back, and meet at random: in one remote or in two, between which one machine goes to and fro, and which at times
//! cannot be reached.

use super::*;
use crate::store::entry::{Anchor, Branch};
use jiff::civil::{Date, date};

/// Small and good enough: numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides.max(1)
    }
}

/// What the machines have done, to be compared with what they have in the end.
#[derive(Default)]
struct Log {
    reads: BTreeMap<EntryId, u64>,
    tags: BTreeMap<EntryId, BTreeSet<String>>,
    /// The last day of each note that was confirmed.
    confirmed: BTreeMap<EntryId, Date>,
    /// Known to be in the default branch.
    merged: BTreeSet<EntryId>,
    /// Words that each stand in one line of one note, and must be found somewhere.
    words: BTreeSet<String>,
    /// Deleted for good, or unmade with the defrag that made them.
    purged: BTreeSet<EntryId>,
    /// Words may be gone with a note.
    has_lost_words: bool,
    ids: BTreeSet<EntryId>,
    clock: i64,
    word: u64,
}

/// What the machines and the remotes have as their last commits.
type CommitId = usize;

struct Commit {
    parents: Vec<CommitId>,
    files: Files,
}

#[derive(Default)]
struct Machine {
    files: Files,
    head: Option<CommitId>,
    skew: i64,
    /// The notes of the last defrag, before and after it.
    defrag: Vec<Change>,
}

/// A note's path and bytes before and after a defrag.
struct Change {
    id: EntryId,
    before: Option<(String, Vec<u8>)>,
    after: Option<(String, Vec<u8>)>,
}

impl Machine {
    fn notes(&self) -> Vec<(String, Entry)> {
        let note = |(path, bytes): (&String, &Vec<u8>)| {
            path.starts_with("topics/").then(|| (path.clone(), Entry::parse(bytes.clone()).unwrap()))
        };
        self.files.iter().filter_map(note).collect()
    }

    fn at(&self, id: &EntryId) -> Option<(String, Vec<u8>)> {
        let is_it = |(path, bytes): &(&String, &Vec<u8>)| {
            place_of(path).is_some() && Entry::parse(bytes.to_vec()).unwrap().meta().id == *id
        };
        self.files.iter().find(is_it).map(|(path, bytes)| (path.clone(), bytes.clone()))
    }

    fn put(&mut self, old: &str, place: &str, entry: &Entry) {
        self.files.remove(old);
        let path = format!("{place}/{}", entry.meta().file_name());
        self.files.insert(path, entry.bytes().to_vec());
    }
}

impl Log {
    fn word(&mut self) -> String {
        self.word += 1;
        let word = format!("word{}x", self.word);
        self.words.insert(word.clone());
        word
    }

    fn step(&mut self, machine: &mut Machine, dice: &mut Dice) {
        self.clock += 1 + dice.roll(1000) as i64;
        let now = self.clock + machine.skew;
        let notes = machine.notes();
        let what = if notes.is_empty() { 0 } else { dice.roll(16) };
        if what <= 1 {
            let title = format!("Note {}", dice.roll(30));
            let taken: BTreeSet<EntryId> = notes.iter().map(|(_, note)| note.meta().id.clone()).collect();
            let id = EntryId::make(&title, now, |id| taken.contains(id) || self.ids.contains(id));
            self.ids.insert(id.clone());
            let branch = (dice.roll(2) == 0)
                .then(|| Branch { name: "feat/x".to_owned(), commit: Some("0a1b".to_owned()) });
            let anchors = anchors(dice);
            let meta = Meta { title, created_at: now, updated_at: now, branch, anchors, ..Meta::new(id) };
            let body = format!("{}\n{}\n{}\n", self.word(), self.word(), self.word());
            let mut entry = Entry::new(meta, body.as_bytes());
            entry.seal().unwrap();
            machine.put("", "topics", &entry);
            return;
        }
        let (path, mut entry) = notes[dice.roll(notes.len())].clone();
        let id = entry.meta().id.clone();
        // Where a defrag has taken the mark off, there is nothing to record: if another machine takes the defrag back, the note
        // waits again for somebody who looks.
        let was_marked = entry.meta().branch.is_some();
        let mut place = "topics";
        match what {
            2..=4 => {
                *self.reads.entry(id).or_default() += 1;
                entry
                    .update(|meta| {
                        meta.used += 1;
                        meta.last_used = jiff::Timestamp::from_millisecond(1_770_000_000_000 + now).ok();
                    })
                    .unwrap();
            }
            5 | 6 => {
                // A line somewhere, and sometimes what an editor does not update stays.
                let mut lines: Vec<String> =
                    String::from_utf8(entry.body().to_vec()).unwrap().lines().map(str::to_owned).collect();
                let at = dice.roll(lines.len() + 1);
                lines.insert(at, self.word());
                entry.set_body((lines.join("\n") + "\n").as_bytes());
                if dice.roll(2) == 0 {
                    entry.update(|meta| meta.updated_at = now).unwrap();
                }
            }
            7 => entry
                .update(|meta| {
                    meta.title = format!("Renamed {}", dice.roll(30));
                    meta.updated_at = now;
                })
                .unwrap(),
            8 => {
                let tag = format!("topic__t{}", dice.roll(50));
                self.tags.entry(id).or_default().insert(tag.clone());
                entry.update(|meta| crate::store::entry::add_missing(&mut meta.tags, [tag])).unwrap();
            }
            9 => place = "archive",
            10 => {
                // The id of the other one, which may be the same: then there is nothing to do.
                let into = notes[dice.roll(notes.len())].1.meta().id.clone();
                return self.defrag(machine, now, &id, Some(&into));
            }
            11 if dice.roll(4) == 0 => {
                // Deleted for good: what it says may go, what others add to it meanwhile stays.
                self.purged.insert(id);
                self.has_lost_words = true;
                machine.files.remove(&path);
                return;
            }
            11 => return self.defrag(machine, now, &id, None),
            12 => {
                let day = date(2026, 1, 1 + dice.roll(28) as i8);
                let last = self.confirmed.entry(id.clone()).or_insert(day);
                *last = day.max(*last);
                // With new anchors by the model or a person, or by a command that worked.
                let is_seen = dice.roll(2) == 0;
                let anchors = anchors(dice);
                entry
                    .update(|meta| {
                        meta.confirmed = meta.confirmed.max(Some(day));
                        if is_seen {
                            (meta.anchors, meta.branch) = (anchors, None);
                        }
                    })
                    .unwrap();
                if is_seen && was_marked {
                    self.merged.insert(id);
                }
            }
            13 | 14 => {
                let is_merged = dice.roll(2) == 0;
                entry
                    .update(|meta| {
                        meta.anchors
                            .iter_mut()
                            .for_each(|anchor| anchor.path = format!("moved/{}", anchor.path));
                        meta.branch = meta.branch.take().filter(|_| !is_merged);
                    })
                    .unwrap();
                if is_merged && was_marked {
                    self.merged.insert(id);
                }
            }
            _ => return self.undo(machine),
        }
        machine.put(&path, place, &entry);
    }
}

impl Log {
    /// Merges a note into another one, or splits its last line off.
    fn defrag(&mut self, machine: &mut Machine, now: i64, id: &EntryId, into: Option<&EntryId>) {
        let read = |machine: &Machine, id: &EntryId| {
            let (path, bytes) = machine.at(id).unwrap();
            (path, Entry::parse(bytes).unwrap())
        };
        let (path, mut entry) = read(machine, id);
        let part = EntryId::make("Part", now, |id| self.ids.contains(id));
        let other = into.unwrap_or(&part);
        let before = [(id.clone(), machine.at(id)), (other.clone(), machine.at(other))];
        if let Some(into) = into {
            if into == id {
                return;
            }
            let (into_path, mut whole) = read(machine, into);
            whole.set_body(&[whole.body(), entry.body()].concat());
            let update = whole.update(|meta| {
                crate::store::entry::add_missing(&mut meta.aliases, [id.clone()]);
                crate::store::entry::add_missing(&mut meta.anchors, entry.meta().anchors.iter().cloned());
                meta.branch = meta.branch.take().filter(|_| entry.meta().branch.is_some());
                meta.used += entry.meta().used;
                meta.updated_at = now;
            });
            update.unwrap();
            whole.seal().unwrap();
            *self.reads.entry(into.clone()).or_default() += entry.meta().used;
            machine.put(&into_path, "topics", &whole);
            entry.update(|meta| meta.superseded_by = Some(into.clone())).unwrap();
            machine.put(&path, "archive", &entry);
        } else {
            let text = String::from_utf8(entry.body().to_vec()).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            let Some((last, first)) = lines.split_last().filter(|(_, first)| !first.is_empty()) else {
                return;
            };
            self.ids.insert(part.clone());
            let meta = Meta {
                title: "Part".to_owned(),
                created_at: now,
                updated_at: now,
                ..Meta::new(part.clone())
            };
            let mut split_off = Entry::new(meta, format!("{last}\n").as_bytes());
            split_off.seal().unwrap();
            machine.put("", "topics", &split_off);
            entry.set_body((first.join("\n") + "\n").as_bytes());
            entry.update(|meta| meta.updated_at = now).unwrap();
            machine.put(&path, "topics", &entry);
        }
        let change = |(id, before): (EntryId, _)| Change { after: machine.at(&id), id, before };
        machine.defrag = before.map(change).into();
    }

    /// Takes the last defrag of this machine back, if none of its notes has been changed since. Reads are none.
    fn undo(&mut self, machine: &mut Machine) {
        let changes = std::mem::take(&mut machine.defrag);
        let entry = |bytes: &[u8]| Entry::parse(bytes.to_vec()).unwrap();
        let is_as_left = |change: &Change| match (machine.at(&change.id), &change.after) {
            (Some((path, bytes)), Some((left, after))) => {
                path == *left && entry(&bytes).fingerprint() == entry(after).fingerprint()
            }
            _ => false,
        };
        if !changes.iter().all(is_as_left) {
            return;
        }
        for Change { id, before, after } in changes {
            let (path, bytes) = machine.at(&id).unwrap();
            let Some((old_path, old)) = before else {
                self.purged.insert(id);
                machine.files.remove(&path);
                continue;
            };
            // As it was, it was learned on its branch.
            self.merged.remove(&id);
            let used_after = entry(&after.unwrap().1).meta().used;
            let (now, mut old) = (entry(&bytes), entry(&old));
            *self.reads.entry(id).or_default() -= used_after - old.meta().used;
            let update = old.update(|meta| {
                meta.used += now.meta().used - used_after;
                meta.last_used = meta.last_used.max(now.meta().last_used);
                meta.confirmed = meta.confirmed.max(now.meta().confirmed);
            });
            update.unwrap();
            machine.files.remove(&path);
            machine.files.insert(old_path, old.bytes().to_vec());
        }
    }
}

/// The commits, the remotes' branches, and for how many steps each remote cannot be reached.
#[derive(Default)]
struct Network {
    commits: Vec<Commit>,
    remotes: Vec<Option<CommitId>>,
    away: Vec<usize>,
}

impl Network {
    fn commit(&mut self, parents: Vec<CommitId>, files: &Files) -> CommitId {
        self.commits.push(Commit { parents, files: files.clone() });
        self.commits.len() - 1
    }

    /// A commit and all that it was made from.
    fn past(&self, commit: CommitId) -> BTreeSet<CommitId> {
        let mut past = BTreeSet::new();
        let mut waiting = vec![commit];
        while let Some(commit) = waiting.pop() {
            if past.insert(commit) {
                waiting.extend(&self.commits[commit].parents);
            }
        }
        past
    }

    /// As `git merge-base --all`, the latest first.
    fn bases(&self, one: CommitId, two: CommitId) -> Vec<CommitId> {
        let common: BTreeSet<CommitId> = self.past(one).intersection(&self.past(two)).copied().collect();
        let is_best =
            |base: &CommitId| !common.iter().any(|other| other != base && self.past(*other).contains(base));
        common.iter().rev().copied().filter(is_best).collect()
    }

    /// What both were made from; of several bases what the first two have come to.
    fn base(&self, bases: &[CommitId]) -> Files {
        match bases {
            [] => Files::new(),
            [base] => self.commits[*base].files.clone(),
            [one, two, ..] => {
                let before = self.bases(*one, *two);
                let before = before.first().map(|base| self.commits[*base].files.clone()).unwrap_or_default();
                both_ways(&before, &self.commits[*one].files, &self.commits[*two].files).files
            }
        }
    }

    /// A whole memory-sync.
    fn sync(&mut self, machine: &mut Machine, remote: usize) {
        if self.away[remote] > 0 {
            return;
        }
        if machine.head.is_none_or(|head| self.commits[head].files != machine.files) {
            machine.head = Some(self.commit(machine.head.into_iter().collect(), &machine.files));
        }
        let ours = machine.head.unwrap();
        if let Some(theirs) = self.remotes[remote] {
            let bases = self.bases(ours, theirs);
            machine.head = match &bases[..] {
                [base] if *base == theirs => Some(ours),
                [base] if *base == ours => Some(theirs),
                _ => {
                    let [one, two] = [ours, theirs].map(|commit| &self.commits[commit].files);
                    let merged = both_ways(&self.base(&bases), one, two).files;
                    Some(self.commit(vec![ours, theirs], &merged))
                }
            };
            machine.files.clone_from(&self.commits[machine.head.unwrap()].files);
        }
        self.remotes[remote] = machine.head;
    }
}

fn anchors(dice: &mut Dice) -> Vec<Anchor> {
    let anchor =
        |n| Anchor { path: format!("src/{n}.rs"), hash: Some(format!("{n:02x}")), ..Anchor::default() };
    (0..dice.roll(4)).map(|_| anchor(dice.roll(50))).collect()
}

fn history(seed: u64, writers: Option<usize>) {
    let mut dice = Dice(seed);
    let mut log = Log::default();
    let skews = [0, 7_200_000, -3_600_000, 50, -90_000];
    let count = writers.unwrap_or(2 + dice.roll(4));
    let mut machines: Vec<Machine> =
        (0..count).map(|n| Machine { skew: skews[n], ..Machine::default() }).collect();
    // With two remotes the first machine is in both networks, and each of the others in one.
    let remotes = 1 + dice.roll(3) / 2;
    let mut network = Network { remotes: vec![None; remotes], away: vec![0; remotes], ..Network::default() };
    let place =
        |machine: usize, dice: &mut Dice| if machine == 0 { dice.roll(remotes) } else { machine % remotes };
    for _ in 0..50 {
        network.away.iter_mut().for_each(|steps| *steps = steps.saturating_sub(1));
        let machine = dice.roll(count);
        let remote = place(machine, &mut dice);
        match dice.roll(40) {
            0..8 => network.sync(&mut machines[machine], remote),
            8 => network.away[remote] = 5 + dice.roll(15),
            _ => log.step(&mut machines[machine], &mut dice),
        }
    }
    network.away.fill(0);
    // There, to the other network, and back.
    for _ in 0..3 {
        for (number, machine) in machines.iter_mut().enumerate() {
            (0..remotes)
                .filter(|remote| number == 0 || number % remotes == *remote)
                .for_each(|remote| network.sync(machine, remote));
        }
    }
    let last = &network.commits[network.remotes[0].unwrap()].files;
    for machine in &machines {
        assert_eq!(shown(&machine.files), shown(last), "seed {seed}");
    }
    log.check(last, seed);
}

impl Log {
    fn check(&self, files: &Files, seed: u64) {
        let text = shown(files);
        assert!(!text.contains("<<<<<<<"), "seed {seed}");
        let mut notes: BTreeMap<EntryId, Meta> = BTreeMap::new();
        let mut aliases = BTreeSet::new();
        for (path, bytes) in files.iter().filter(|(path, _)| place_of(path).is_some()) {
            let meta = Entry::parse(bytes.clone()).unwrap().into_meta();
            aliases.extend(meta.aliases.iter().cloned());
            assert!(notes.insert(meta.id.clone(), meta).is_none(), "seed {seed}: two of {path}");
        }
        for id in &self.ids {
            let is_known = notes.contains_key(id) || aliases.contains(id);
            assert!(is_known || self.purged.contains(id), "seed {seed}: {id} is lost");
        }
        for (id, meta) in &notes {
            // A note that was deleted somewhere and came back has lost what only the deleter had.
            if !self.purged.contains(id) {
                let reads = self.reads.get(id).copied().unwrap_or_default();
                assert_eq!(meta.used, reads, "seed {seed}: reads of {id}");
                assert_eq!(meta.confirmed, self.confirmed.get(id).copied(), "seed {seed}: {id} confirmed");
                let is_marked = meta.branch.is_some() && self.merged.contains(id);
                assert!(!is_marked, "seed {seed}: {id} is marked again");
                for tag in self.tags.get(id).into_iter().flatten() {
                    assert!(meta.tags.contains(tag), "seed {seed}: {tag} of {id}");
                }
            }
        }
        if !self.has_lost_words {
            for word in &self.words {
                assert!(text.contains(word.as_str()), "seed {seed}: {word} is lost");
            }
        }
    }
}

#[test]
fn machines_that_have_met_have_the_same_bytes_and_nothing_is_lost() {
    (0..40).for_each(|seed| history(seed, None));
    (0..10).for_each(|seed| history(seed, Some(5)));
}

/// `SYNC_HISTORIES=10000 cargo test --lib many_histories -- --ignored`; `SYNC_SEED=N` is where they begin, and
/// `SYNC_WRITERS=5` how many machines there are, up to five, and at random without it.
#[test]
#[ignore = "takes minutes"]
#[allow(clippy::disallowed_methods, reason = "how many is said where the test is run by hand")]
fn many_histories_lose_nothing() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (seed, count) = (number("SYNC_SEED").unwrap_or(1_000), number("SYNC_HISTORIES").unwrap_or(10_000));
    let writers = number("SYNC_WRITERS").map(|writers| writers as usize);
    let is_wrong = |seed: &u64| std::panic::catch_unwind(|| history(*seed, writers)).is_err();
    let wrong: Vec<u64> = (seed..seed + count).filter(is_wrong).collect();
    assert!(wrong.is_empty(), "of {count} histories from SYNC_SEED={seed}, these lose something: {wrong:?}");
}
