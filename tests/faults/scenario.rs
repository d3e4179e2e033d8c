//! A program at work, and how to disturb it: at each of its calls, by each kind of fault.

use crate::invariants::Trial;
use crate::reference::Reference;
use crate::strace::Point;
use crate::support::world::World;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const KILLED: &str = "signal=KILL";

/// Of the calls at which a run is killed, at one in so many the recovery is killed too.
const RECOVERIES: usize = 3;

/// What is done at a call.
pub(crate) const FAULTS: [&str; 5] = [KILLED, "error=EIO", "error=ENOSPC", "error=EDQUOT", "error=EACCES"];

/// For those who say that they end well when they are told to.
pub(crate) const TERMINATED: &str = "signal=TERM";

pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> World,
    /// Runs after the next one, for what that leaves to them: a reply brought by hand is not all that is to be done.
    pub(crate) then: &'static [&'static [&'static str]],
    /// Do threads of it write to files? They are at fault too then.
    pub(crate) threads: bool,
    /// Are calls that only read to fail too, from the first call on that holds this text?
    pub(crate) reading_from: Option<&'static str>,
    /// Is it to be ended by SIGTERM too?
    pub(crate) terminated: bool,
    /// Does the next run end what a killed one began? Then it is killed too, twice in a row.
    pub(crate) recovers: bool,
    /// One in so many of what other scenarios try.
    pub(crate) sample: usize,
    /// Does its output come before its work is done?
    pub(crate) prints_first: bool,
    /// May a new file be there with nothing in it? A log is made before it can be locked, and one without an entry is
    /// as good as none.
    pub(crate) may_be_empty: bool,
    /// May directories stay that have nothing in them?
    pub(crate) bare_dirs_may_stay: bool,
    /// Is the same run, after one that was disturbed, allowed to find nothing that it can do?
    pub(crate) next_may_fail: bool,
    /// How many calls of the LLM command all the runs together make, and how many more a fault may cost.
    pub(crate) calls: Option<(usize, usize)>,
    /// Paths that hold such a text are not the same twice, or of no matter: only that files are whole is looked at.
    pub(crate) differs: &'static [&'static str],
    /// What else must hold in the end.
    pub(crate) and: fn(&Trial) -> Result<(), String>,
}

impl Scenario {
    pub(crate) const PLAIN: Scenario = Scenario {
        name: "",
        make: || unreachable!("a scenario makes a world"),
        then: &[],
        threads: false,
        reading_from: None,
        terminated: false,
        recovers: false,
        sample: 1,
        prints_first: false,
        may_be_empty: false,
        bare_dirs_may_stay: false,
        next_may_fail: false,
        calls: None,
        differs: &[],
        and: |_| Ok(()),
    };

    pub(crate) fn faults(&self) -> impl Iterator<Item = &'static str> {
        static KINDS: OnceLock<Vec<String>> = OnceLock::new();
        let kinds = KINDS.get_or_init(|| match std::env::var("FAULTS_KINDS") {
            Ok(kinds) => kinds.split(',').map(str::to_owned).collect(),
            Err(_) => FAULTS.map(str::to_owned).to_vec(),
        });
        kinds.iter().map(String::as_str).chain(self.terminated.then_some(TERMINATED))
    }
}

/// What came of a scenario.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) calls: usize,
    pub(crate) planned: usize,
    pub(crate) injected: usize,
    pub(crate) time: Duration,
    pub(crate) wrong: Vec<String>,
}

/// Disturbs the run by one in `step` of these kinds of faults at each of its calls, and looks at each.
pub(crate) fn inject(scenario: &Scenario, kinds: &[&str], step: usize) -> Tally {
    let began = Instant::now();
    let world = (scenario.make)();
    world.keep_as_template();
    world.begin();
    let from = scenario.reading_from;
    let points = world.points(scenario.threads, from.unwrap_or_default(), from.is_some());
    let reference = Reference::of(scenario, &world);
    let mut tally = Tally { calls: points.len(), ..Tally::default() };
    for ((name, k), fault) in sample(&points, kinds, step) {
        let fault = format!("{name}:{fault}:when={k}");
        tally.planned += 1;
        world.begin();
        let disturbed = match world.disturbed(scenario.threads, &fault) {
            Ok(disturbed) => disturbed,
            Err(why) => {
                tally.wrong.push(format!("{} {fault}: {why}", scenario.name));
                continue;
            }
        };
        tally.injected += usize::from(disturbed.took_place());
        if let Err(why) = Trial::of(scenario, &world, &reference, disturbed).survived() {
            tally.wrong.push(format!("{} {fault}: {why}", scenario.name));
        }
    }
    if scenario.recovers && kinds.contains(&KILLED) {
        let starts = (0..points.len()).step_by(step * RECOVERIES);
        tally.wrong.extend(starts.filter_map(|first| {
            let why = killed_while_recovering(scenario, &world, &reference, &points, first).err()?;
            Some(format!("{} killed at {:?} and while it recovers: {why}", scenario.name, points[first]))
        }));
    }
    tally.time = began.elapsed();
    tally
}

/// Every system call by name is in a sample, and every kind of fault has its turn.
fn sample<'a>(points: &'a [Point], kinds: &[&'a str], step: usize) -> Vec<(&'a Point, &'a str)> {
    // With a multiple, each call would meet one kind alone.
    let step = if step > 1 && step.is_multiple_of(kinds.len()) { step + 1 } else { step };
    let names: BTreeSet<&str> = points.iter().map(|(name, _)| name.as_str()).collect();
    let of = |name: &str| {
        let points = points.iter().filter(|(of, _)| of == name).collect::<Vec<_>>();
        points.into_iter().flat_map(|point| kinds.iter().map(move |kind| (point, *kind))).collect::<Vec<_>>()
    };
    let some = |(n, name): (usize, &str)| of(name).into_iter().skip(n % step.min(kinds.len())).step_by(step);
    names.into_iter().enumerate().flat_map(some).collect()
}

/// The run is killed at this call, then the run that recovers, and the one after it.
fn killed_while_recovering(
    scenario: &Scenario,
    world: &World,
    reference: &Reference,
    points: &[Point],
    first: usize,
) -> Result<(), String> {
    world.begin();
    let second = std::env::var("FAULTS_THEN").unwrap_or_else(|_| KILLED.to_owned());
    let mut last = None;
    // A recovery makes other calls than the whole run: of some there are fewer, and then it runs to its end.
    for at in [first, (first * 7 + 3) % points.len(), (first * 13 + 5) % points.len()] {
        let (name, k) = &points[at];
        let what = if last.is_none() { KILLED } else { &second };
        let killed = world.disturbed(scenario.threads, &format!("{name}:{what}:when={k}"))?;
        if killed.is_killed() || last.is_none() {
            last = Some(killed);
        }
    }
    last.map_or(Ok(()), |last| Trial::of(scenario, world, reference, last).survived())
}
