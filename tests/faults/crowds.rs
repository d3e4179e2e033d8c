//! Hooks of four programs at once, one of which is killed or refused by the disk at each of its calls, reads included: the
//! others do not notice, and each session waits in the queue once.

use crate::notes::one;
use crate::scenario::FAULTS;
use crate::support::Said;
use crate::support::world::{World, words};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The program, and the event at which its session is queued.
const HOOKS: [(&str, &str); 4] =
    [("claude-code", "Stop"), ("codex", "Stop"), ("gemini", "AfterAgent"), ("qwen-code", "Stop")];
const PROGRAMS: [&str; 2] = ["memory-capture", "memory-recall"];
/// One in so many faults in a usual run.
const SAMPLE: usize = 25;

/// What a harness gives to its hook.
fn payload(world: &World, program: &str, (harness, end): (&str, &str)) -> String {
    let event = if program == "memory-capture" { end } else { "SessionStart" };
    json!({"session_id": format!("of-{harness}"), "transcript_path": transcript(world, harness),
        "cwd": world.sandbox.work(), "hook_event_name": event, "source": "startup"})
    .to_string()
}

fn transcript(world: &World, harness: &str) -> std::path::PathBuf {
    world.sandbox.work().join(format!("{harness}.jsonl"))
}

fn crowd(program: &'static str, hook: (&'static str, &str)) -> World {
    let mut world = one(program, &["--harness", hook.0]);
    for (harness, _) in HOOKS {
        fs::write(transcript(&world, harness), "{}\n").unwrap();
    }
    world.stdin = payload(&world, program, hook);
    // What a busy machine does in time is not the question.
    world.variables = vec![("AGENT_MEMORY_RECALL_MS".to_owned(), "60000".into())];
    world
}

fn run(world: &World, program: &str, hook: (&str, &str)) -> Output {
    let mut command = world.command(program, &words(&["--harness", hook.0]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload(world, program, hook).as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// How many entries of the queue are about the session of this program. Each of them is whole, and knows its directory.
fn queued(world: &World, harness: &str) -> Result<usize, String> {
    let mut count = 0;
    for file in fs::read_dir(world.root().join("inbox")).unwrap().map(|file| file.unwrap().path()) {
        if file.file_name().unwrap().to_string_lossy().starts_with('.') {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let entry: Value = serde_json::from_str(&text).map_err(|why| format!("torn: {text:?}: {why}"))?;
        if entry["context"]["cwd"] != json!(world.sandbox.work()) {
            return Err(format!("its directory is lost: {text}"));
        }
        count += usize::from(entry["retrieval"]["sessionId"] == json!(format!("of-{harness}")));
    }
    Ok(count)
}

/// On a busy machine a hook goes on without a directory that does not answer in time, and says so.
fn minds(output: &Output) -> bool {
    output.code() != Some(0) || !output.err().lines().all(|line| line.contains("does not answer"))
}

/// One hook is disturbed while those of the others run.
fn trial(world: &World, hook: (&str, &str), fault: &str) -> Result<bool, String> {
    world.begin();
    let others: Vec<_> = HOOKS.into_iter().filter(|(harness, _)| *harness != hook.0).collect();
    let (disturbed, beside) = std::thread::scope(|scope| {
        let runs: Vec<_> = (others.iter())
            .flat_map(|other| PROGRAMS.map(|program| scope.spawn(move || run(world, program, *other))))
            .collect();
        (world.disturbed(true, fault), runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>())
    });
    let disturbed = disturbed?;
    let said = format!("{:?}\n{}", disturbed.output, disturbed.trace);
    if let Some(minds) = beside.iter().find(|output| minds(output)) {
        return Err(format!("another one minds: {minds:?}\nbeside {said}"));
    }
    let code = disturbed.output.code();
    if disturbed.output.err().contains("error while loading shared libraries") {
        return Ok(false);
    }
    if disturbed.output.err().contains("panicked") || !(disturbed.is_killed() || matches!(code, Some(0..=1)))
    {
        return Err(format!("it ends badly: {said}"));
    }
    let is_capture = world.program == PROGRAMS[0];
    if is_capture && code == Some(0) && queued(world, hook.0)? != 1 {
        return Err(format!("{} entries after it was acknowledged: {said}", queued(world, hook.0)?));
    }
    let next = run(world, world.program, hook);
    if minds(&next) {
        return Err(format!("the next one: {next:?}\nafter {said}"));
    }
    for harness in others.iter().map(|(harness, _)| *harness).chain(is_capture.then_some(hook.0)) {
        match queued(world, harness)? {
            1 => {}
            count => return Err(format!("{harness} waits {count} times\nafter {said}")),
        }
    }
    Ok(disturbed.took_place())
}

#[test]
fn hooks_of_four_programs_at_once_queue_each_session_once_whatever_fails_in_one() {
    crate::strace::assert_able();
    let only = std::env::var("FAULTS").unwrap_or_default();
    let sample = std::env::var("FAULTS_SAMPLE").map_or(SAMPLE, |text| text.parse().unwrap());
    let jobs: Vec<_> = (PROGRAMS.into_iter())
        .flat_map(|program| HOOKS.map(|hook| (program, hook)))
        .flat_map(|(program, hook)| (0..FAULTS.len()).map(move |kind| (program, hook, kind)))
        .filter(|(program, (harness, _), _)| {
            format!("{program}: a crowd of hooks, {harness}").contains(&only)
        })
        .collect();
    let (next, planned, took_place) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong = Mutex::new(Vec::new());
    let work = || {
        while let Some((program, hook, kind)) = jobs.get(next.fetch_add(1, Ordering::SeqCst)) {
            let world = crowd(program, *hook);
            world.keep_as_template();
            world.begin();
            for (call, k) in world.points(true, "read(0", true).iter().skip(kind % sample).step_by(sample) {
                let fault = format!("{call}:{}:when={k}", FAULTS[*kind]);
                planned.fetch_add(1, Ordering::SeqCst);
                match trial(&world, *hook, &fault) {
                    Ok(did) => drop(took_place.fetch_add(usize::from(did), Ordering::SeqCst)),
                    Err(why) => wrong.lock().unwrap().push(format!("{program} {} {fault}: {why}", hook.0)),
                }
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(2, usize::from) + 1;
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let (planned, took_place) = (planned.into_inner(), took_place.into_inner());
    let wrong = wrong.into_inner().unwrap();
    crate::say(&format!(
        "a crowd of hooks: {took_place} injected of {planned}, sampled 1 in {sample}, {} NOT SURVIVED",
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(took_place * 10 >= planned * 8, "only {took_place} of {planned} took place");
}
