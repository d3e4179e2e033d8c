//! Runs that append while `axe-gc` trims, each a process of its own: no entry is lost, none is torn.

use crate::support::{NOW, Said, Sandbox};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

const APPENDERS: usize = 16;
const EACH: usize = 25;
const ALL: usize = APPENDERS * EACH;

/// Many runs of one agent, side by side, while `axe-gc` trims its log again and again. Gives back how many
/// entries the trims say they removed, and `(appender, number)` of each that is left, in the log's order.
fn contest(keep: usize) -> (usize, Vec<(usize, usize)>) {
    let sandbox = Sandbox::new();
    let limits = format!("[memory]\nenabled = true\nlast_n = {keep}");
    sandbox.agent("a", "cat > /dev/null; echo done", &limits);
    let done = AtomicBool::new(false);
    let trim = || {
        let output = sandbox.command("axe-gc").args(["--no-analysis", "a"]).output().unwrap();
        assert_eq!((output.err().as_str(), output.code()), ("", Some(0)));
        let out = output.out();
        let trimmed = out.lines().find_map(|line| line.strip_prefix("Trimmed: ")?.split(' ').next());
        trimmed.map_or(0, |n| n.parse().unwrap())
    };
    let mut removed = 0;
    std::thread::scope(|scope| {
        let trimmer = scope.spawn(|| {
            let (mut removed, mut trims) = (0, 0);
            while !done.load(Ordering::SeqCst) {
                removed += trim();
                trims += 1;
            }
            assert!(trims > 3, "only {trims} trims");
            removed
        });
        let appenders: Vec<_> = (0..APPENDERS)
            .map(|who| {
                let sandbox = &sandbox;
                scope.spawn(move || {
                    for n in 0..EACH {
                        let task = format!("{who} {n}");
                        let output = sandbox.run("a").args(["--no-stdin", "-p", &task]).output().unwrap();
                        // That the log grows large is no surprise here.
                        let err = output.err();
                        let err = if err.starts_with("Warning: the log of agent") { "" } else { &err };
                        let said = (output.out(), err.to_owned(), output.code());
                        assert_eq!(said, ("done".to_owned(), String::new(), Some(0)));
                    }
                })
            })
            .collect();
        let results: Vec<_> = appenders.into_iter().map(|appender| appender.join()).collect();
        done.store(true, Ordering::SeqCst);
        removed = trimmer.join().unwrap();
        results.into_iter().for_each(|result| result.unwrap());
    });
    removed += trim();
    let log = sandbox.log("a");
    let left: Vec<_> = log.split_inclusive("\n\n").map(whole).collect();
    let names = std::fs::read_dir(sandbox.log_path("a").parent().unwrap()).unwrap();
    assert_eq!(names.count(), 1, "something was left beside the log");
    (removed, left)
}

/// Who wrote the entry, and which of theirs it is; a torn entry is a failure.
fn whole(entry: &str) -> (usize, usize) {
    let task = entry.strip_prefix(&format!("## {NOW}\n**Task:** "));
    let task = task.and_then(|rest| rest.strip_suffix("\n**Result:** done\n\n"));
    let (who, n) = task.and_then(|task| task.split_once(' ')).unwrap_or_else(|| panic!("torn: {entry:?}"));
    (who.parse().unwrap(), n.parse().unwrap())
}

/// What each appender has in the log, in the log's order.
fn by_appender(left: &[(usize, usize)]) -> BTreeMap<usize, Vec<usize>> {
    let mut all: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (who, n) in left {
        all.entry(*who).or_default().push(*n);
    }
    all
}

#[test]
fn trims_that_cut_nothing_lose_nothing_to_running_agents() {
    let (removed, left) = contest(ALL + 1);
    assert_eq!((removed, left.len()), (0, ALL));
    assert_eq!(by_appender(&left), (0..APPENDERS).map(|who| (who, (0..EACH).collect())).collect());
}

#[test]
fn trims_that_cut_keep_the_newest_whatever_agents_run() {
    let keep = 2 * APPENDERS;
    let (removed, left) = contest(keep);
    assert_eq!((removed, left.len()), (ALL - keep, keep));
    for (who, numbers) in by_appender(&left) {
        let newest: Vec<_> = (EACH - numbers.len()..EACH).collect();
        assert_eq!(numbers, newest, "appender {who}");
    }
}
