//! What must hold after a fault, whichever program it hit and wherever: the promises that all programs make.

use crate::reference::{
    Reference, comparable, difference, id, is_note, is_temporary, paths, reader, text, told, tree,
    without_chance,
};
use crate::scenario::Scenario;
use crate::strace::Disturbed;
use crate::support::Said;
use crate::support::world::{Node, Tree, World, words};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Output;
use std::time::{Duration, SystemTime};

/// A disturbed run, and what was left then.
pub(crate) struct Trial<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) world: &'a World,
    pub(crate) reference: &'a Reference,
    pub(crate) disturbed: Disturbed,
    left: Tree,
}

impl Trial<'_> {
    pub(crate) fn of<'a>(
        scenario: &'a Scenario,
        world: &'a World,
        reference: &'a Reference,
        disturbed: Disturbed,
    ) -> Trial<'a> {
        Trial { scenario, world, reference, disturbed, left: world.tree() }
    }

    pub(crate) fn survived(&self) -> Result<(), String> {
        let mut calls = self.disturbed.trace.lines().filter(|line| line.contains('('));
        let injected = calls.clone().find(|line| line.contains("(INJECTED)"));
        let call = injected.or(calls.next_back()).unwrap_or_default();
        let said =
            format!("{:?} {}{}\nthe call: {call}", self.disturbed.output.code(), self.out(), self.err());
        self.has_ended_well().map_err(|why| format!("{why}\nthe disturbed run: {said}"))?;
        self.stands(&self.left, "after the fault")
            .map_err(|why| format!("{why}\nthe disturbed run: {said}"))?;
        self.goes_on().map_err(|why| format!("{why}\nthe disturbed run: {said}"))
    }

    fn out(&self) -> String {
        self.disturbed.output.out()
    }

    fn err(&self) -> String {
        self.disturbed.output.err()
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.disturbed.is_killed()
    }

    /// Was the fault in what it says, or in how it removes what it leaves?
    fn was_at(&self, call: &str) -> bool {
        let lines: Vec<&str> = self.disturbed.trace.lines().collect();
        let thread = |line: &str| line.split(' ').next().map(str::to_owned);
        // Among threads, a call's start and its end may be two lines.
        let start = |n: usize| lines[..n].iter().rev().find(|line| thread(line) == thread(lines[n]));
        (0..lines.len()).any(|n| {
            let has_call = || {
                lines[n].contains(call)
                    || lines[n].contains(" resumed>") && start(n).is_some_and(|line| line.contains(call))
            };
            lines[n].contains("(INJECTED)") && has_call()
        })
    }

    /// What was done by the time it ended, as it can be compared.
    fn left(&self) -> Tree {
        comparable(self.scenario, self.left.clone())
    }

    /// Does it say that all was done?
    fn is_acknowledged(&self) -> bool {
        let (ended, first) = (&self.disturbed.output, &self.reference.first);
        let is_told = !ended.stdout.is_empty()
            && ended.stdout.ends_with(b"\n")
            && ended.out().lines().count() == first.out().lines().count();
        let is_as_ever = ended.code() == first.code()
            && told(&ended.err()) == told(&first.err())
            && without_chance(&ended.out()) == without_chance(&first.out());
        is_as_ever || self.is_killed() && is_told && !self.scenario.prints_first
    }

    /// An exit code of the table, an error that says what and why, no temporary file; and what it says is true.
    fn has_ended_well(&self) -> Result<(), String> {
        let (code, err) = (self.disturbed.output.code(), self.err());
        if err.contains("panicked") {
            return Err("a panic".to_owned());
        }
        match code {
            _ if self.is_killed() => {}
            // The work may be over before the thread that takes signals has its turn.
            Some(0) if self.disturbed.trace.contains("--- SIGTERM") && self.left() == self.reference.done => {
            }
            Some(143) if self.disturbed.trace.contains("--- SIGTERM") => {}
            Some(0..=3) => self.is_told(code.unwrap_or_default())?,
            _ => return Err("an exit code that is not in the table".to_owned()),
        }
        // One that could not be removed is not one that could be.
        let could_remove = !self.is_killed() && !self.was_at("unlink");
        if let Some(path) = self.left.keys().find(|path| could_remove && self.is_new_temporary(path)) {
            return Err(format!("left: {path}"));
        }
        if self.is_acknowledged() {
            let mut left = self.left();
            left.retain(|path, _| !self.is_new_temporary(path) || !self.was_at("unlink"));
            let different = difference(&self.reference.done, &left);
            if !different.is_empty() {
                return Err(format!("it says that all is done:\n{different}"));
            }
        }
        // A path that was printed whole is one that is there.
        match paths(&self.out()).find(|path| self.reference.prints_paths && !path.exists()) {
            Some(path) => Err(format!("printed, and not there: {}", path.display())),
            None => Ok(()),
        }
    }

    fn is_new_temporary(&self, path: &str) -> bool {
        is_temporary(path) && !self.reference.before.contains_key(path)
    }

    fn is_told(&self, code: i32) -> Result<(), String> {
        let (err, first) = (told(&self.err()), told(&self.reference.first.err()));
        // What could not be said because saying it failed.
        if err == first && Some(code) == self.reference.first.code() || self.was_at("write(2") {
            return Ok(());
        }
        let new: Vec<&String> = err.iter().filter(|line| !first.contains(line)).collect();
        let begin = format!("{}: ", self.world.program);
        let is_error = |line: &&&String| line.starts_with(&begin) || line.starts_with("{\"error\"");
        let is_warning = |line: &&&String| line.contains("Warning: ");
        // One that ends as ever, as the doctor does who has found something, may warn of the rest.
        let may_warn = code == 3 || Some(code) == self.reference.first.code();
        let why = match code {
            // A hook never fails, but says that it gave nothing.
            0 => new
                .iter()
                .find(|line| is_warning(line) || is_error(line))
                .ok_or("it went another way without a word")?,
            _ => new
                .iter()
                .find(|line| is_error(line) || may_warn && is_warning(line))
                .ok_or("an error without a word")?,
        };
        // What, and why.
        let parts =
            why.split_once("\"message\":").map_or(why.as_str(), |(_, message)| message).matches(": ").count();
        let wanted = if why.contains("\"message\":") { 1 } else { 2 };
        if code != 3 && parts < wanted || !why.contains(['"', '/']) && !why.contains("stdout") {
            return Err(format!("it does not say what or why: {why}"));
        }
        Ok(())
    }

    /// Every file is as it was or as it is to be, none is lost, each note is in one place.
    fn stands(&self, left: &Tree, when: &str) -> Result<(), String> {
        let reference = self.reference;
        let ends = [&reference.before, &reference.done, &reference.once, &reference.twice];
        let mut notes = BTreeSet::new();
        // These files are made before they can be locked, and an empty one is as good as none.
        let is_made = |path: &str, node: &Node| {
            (path.ends_with("/health.json") || path.contains("/.agent-memory/recall/"))
                && node.text().is_empty()
        };
        let left: Tree = left.clone().into_iter().filter(|(path, node)| !is_made(path, node)).collect();
        let state = left.iter().filter(|(path, _)| path.contains(".agent-memory/"));
        for (path, node) in state.filter(|(path, _)| path.ends_with(".json")) {
            let value =
                serde_json::from_str(&node.text()).map_err(|e| format!("{when}: torn: {path}: {e}"))?;
            planned(&value, &mut notes);
        }
        // Notes and entries of the queue move; every other file has a content of its own.
        let moves = |path: &str| is_note(path) || path.contains("/inbox/");
        let is_known = |path: &str, node: &Node| {
            ends.iter().any(|tree| tree.get(path).is_some_and(|known| known.bytes == node.bytes))
                || moves(path) && node.bytes.as_ref().is_some_and(|bytes| reference.contents.contains(bytes))
        };
        let mut places: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut all = BTreeSet::new();
        for (path, node) in &left {
            let plain = without_chance(path);
            all.extend(node.bytes.as_ref());
            if let Some(id) = id(&node.text()).filter(|_| is_note(path)) {
                places.entry(id.to_owned()).or_default().push(path);
            }
            let before = reference.before.get(path);
            if before.is_some_and(|old| {
                ends.iter().all(|tree| tree.get(path).is_none_or(|n| n.mode == old.mode))
                    && old.mode != node.mode
            }) {
                return Err(format!("{when}: another mode: {path}: {:o}", node.mode));
            }
            let is_state = path.contains(".agent-memory/") || self.scenario.differs(path);
            let is_whole = is_temporary(path)
                || node.bytes.is_none()
                || self.scenario.may_be_empty
                    && node.bytes.as_ref().is_some_and(Vec::is_empty)
                    && before.is_none()
                || is_note(path) && node.bytes.as_ref().is_some_and(|bytes| notes.contains(bytes))
                || is_state && is_whole_state(path, &node.text())
                || is_known(&plain, node);
            if !is_whole {
                return Err(format!("{when}: neither old nor new: {path}: {:?}", node.text()));
            }
        }
        for (path, node) in &reference.before {
            let stays = reference.once.contains_key(path) && reference.twice.contains_key(path);
            if stays && !left.contains_key(path) && !is_note(path) && without_chance(path) == *path {
                return Err(format!("{when}: lost: {path}"));
            }
            // What moves is somewhere. This stays, and is not compared whole.
            if path.ends_with("/tries.json") {
                continue;
            }
            let is_kept =
                |bytes: &Vec<u8>| reference.once.values().any(|node| node.bytes.as_ref() == Some(bytes));
            let bytes = node.bytes.as_ref().filter(|bytes| !is_note(path) && is_kept(bytes));
            if bytes.is_some_and(|bytes| !all.contains(bytes)) {
                return Err(format!("{when}: its bytes are lost: {path}"));
            }
        }
        let ids = |tree: &Tree| -> BTreeSet<String> {
            tree.iter()
                .filter(|(path, _)| is_note(path))
                .filter_map(|(_, node)| Some(id(&node.text())?.to_owned()))
                .collect()
        };
        let kept = ids(&reference.once);
        if let Some(lost) =
            ids(&reference.before).iter().find(|id| kept.contains(*id) && !places.contains_key(*id))
        {
            return Err(format!("{when}: {lost} is nowhere"));
        }
        match places.iter().find(|(_, paths)| paths.len() > 1) {
            Some((id, paths)) => Err(format!("{when}: {id} is in {paths:?}")),
            None => Ok(()),
        }
    }

    /// Readers do not mind what was left, the next run ends what was begun, and sweeps.
    fn goes_on(&self) -> Result<(), String> {
        let (world, reference, scenario) = (self.world, self.reference, self.scenario);
        let minds = |read: &Output| read.code() != Some(0) || !reference.readers.contains(&read.err());
        if let Some(read) = self.is_killed().then(|| reader(world)).flatten().filter(minds) {
            return Err(format!("a reader minds: {read:?}"));
        }
        self.let_time_pass();
        let mut told = String::new();
        let next = world.run(&world.arguments);
        told.push_str(&format!("the next: {:?} {}", next.code(), next.err()));
        // What has ended several runs in a row is set aside or split: other notes come of it.
        let taken_apart = ["did not get to the end of it", "has ended every run that took it up"];
        if taken_apart.iter().any(|told_so| next.err().contains(told_so)) {
            return Ok(());
        }
        self.stands(&world.tree(), "after the next run").map_err(|why| format!("{why}\n{told}"))?;
        let codes = [reference.first.code(), reference.again.code(), Some(0)];
        let is_fresh = self.left() == reference.before;
        let may = if is_fresh { &codes[..1] } else { &codes[..] };
        if !may.contains(&next.code()) && !scenario.next_may_fail {
            return Err(format!("{told} instead of {may:?}"));
        }
        for arguments in scenario.then {
            let then = world.run(&words(arguments));
            told.push_str(&format!("then: {:?} {}", then.code(), then.err()));
            if then.code() != Some(0) {
                return Err(told);
            }
        }
        self.is_settled(is_fresh).map_err(|why| format!("{why}\n{told}"))?;
        (scenario.and)(self).map_err(|why| format!("{why}\n{told}"))
    }

    fn is_settled(&self, is_fresh: bool) -> Result<(), String> {
        let (world, reference, scenario) = (self.world, self.reference, self.scenario);
        let last = world.tree();
        self.stands(&last, "in the end")?;
        if let Some(path) = last.keys().find(|path| self.is_new_temporary(path)) {
            // What nobody writes any more is the doctor's.
            let doctor = world.ended(world.command("memory-doctor", &words(&["--fix"])))?;
            if world.tree().contains_key(path) {
                return Err(format!("not swept: {path}: {}", doctor.out()));
            }
        }
        let last = tree(scenario, world);
        let (once, twice) = (&reference.once, &reference.twice);
        // Whoever was told that it is done has asked for another one.
        let is_twice = self.is_acknowledged()
            || self.disturbed.output.code() == Some(0) && self.left() == reference.done;
        let different = match (is_twice, is_fresh) {
            (true, _) => difference(twice, &last),
            (_, true) => difference(once, &last),
            _ => {
                let paths: BTreeSet<&String> = once.keys().chain(twice.keys()).chain(last.keys()).collect();
                let is_either = |path: &&&String| {
                    let found = last.get(**path);
                    found == once.get(**path) || found == twice.get(**path)
                };
                let wrong = paths.iter().filter(|path| !is_either(path));
                wrong
                    .map(|path| {
                        format!(
                            "{path}: {:?} instead of {:?}\n",
                            text(last.get(*path)),
                            text(once.get(*path))
                        )
                    })
                    .collect()
            }
        };
        if !different.is_empty() {
            return Err(format!("in the end:\n{different}"));
        }
        if let Some((calls, more)) = scenario.calls {
            let may = calls + more;
            if world.calls() > may || world.counted() < world.calls() {
                return Err(format!(
                    "{} calls instead of {calls}, {} in the ledger",
                    world.calls(),
                    world.counted()
                ));
            }
        }
        match world.uncommitted() {
            // What git could not do then, it does with the next notes that are written.
            _ if self.err().contains("but not committed") => Ok(()),
            rest if rest.is_empty() => Ok(()),
            rest => Err(format!("not committed: {rest}")),
        }
    }

    /// Where everybody writes, leftovers are removed when they are a minute old, in a queue when they are an hour.
    fn let_time_pass(&self) {
        for path in self.left.keys().filter(|path| self.is_new_temporary(path)) {
            let then = SystemTime::now() - Duration::from_secs(3 * 3600);
            let file = fs::File::options().write(true).open(self.world.beside(path)).unwrap();
            file.set_modified(then).unwrap();
        }
    }
}

/// All texts of notes that a plan holds.
fn planned(value: &Value, found: &mut BTreeSet<Vec<u8>>) {
    match value {
        Value::String(text) if text.starts_with("---\n") => drop(found.insert(text.clone().into_bytes())),
        Value::Array(all) => all.iter().for_each(|one| planned(one, found)),
        Value::Object(all) => all.values().for_each(|one| planned(one, found)),
        _ => {}
    }
}

/// A file of our own between two runs: JSON is whole, and so is each line of it; the rest is not read half-done.
fn is_whole_state(path: &str, text: &str) -> bool {
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("json") => is_json(text),
        Some("jsonl") => text.lines().all(is_json),
        _ => true,
    }
}
