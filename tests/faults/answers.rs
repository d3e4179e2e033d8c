//! A git that answers nothing, half, late or too late, at each of its calls: no note is gone, nothing is half, and who
//! asked says that something went wrong.

use crate::support::world::{ELSEWHERE, World};
use crate::support::{Said, set_mode, tools};
use crate::sync::{all_agree, diverged, files, joining, other_root, shared};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What becomes of a git's answer, in shell; `$answer` is the file that has it, `$size` how many bytes that are.
const ANSWERS: [(&str, &str); 4] = [
    ("nothing", ":"),
    ("half", "head -c $((size / 2)) $answer"),
    ("late", "sleep 0.3; cat $answer"),
    // When git is gone, somebody else still holds its stdout.
    ("too late", "(sleep 1; cat $answer) & :"),
];

/// These print what nobody asks for. Where the merge driver is not found it is installed again, which is the same.
const TALK: [&str; 5] =
    ["commit ", "merge ", "--version", "init ", "config --local --get merge.agent-memory.driver"];

fn dir(world: &World) -> PathBuf {
    world.sandbox.work().join(ELSEWHERE).join("answers")
}

/// Runs the program with a git whose `number`th call answers in this way. What that one was asked, and the size of its
/// answer; `None` if there is no such call.
fn with_answer(world: &World, number: usize, how: &str) -> (Output, Option<(String, usize)>) {
    let dir = dir(world);
    fs::create_dir_all(&dir).unwrap();
    let real = tools().split(':').map(|dir| Path::new(dir).join("git")).find(|path| path.exists()).unwrap();
    let (at, git) = (dir.display(), real.display());
    let script = format!(
        "#!/bin/sh\necho x >> {at}/count\n[ $(wc -l < {at}/count) -eq {number} ] || exec {git} \"$@\"\n\
         answer={at}/answer\n{git} \"$@\" > $answer\ncode=$?\nsize=$(($(wc -c < $answer)))\n\
         echo \"$size $*\" > {at}/asked\n{how}\nexit $code\n"
    );
    fs::write(dir.join("git"), script).unwrap();
    set_mode(&dir.join("git"), 0o755);
    let mut command = world.command(world.program, &world.arguments);
    command.env("PATH", format!("{at}:{}", tools()));
    let output = world.ended(command).unwrap();
    let asked = fs::read_to_string(dir.join("asked")).ok();
    let asked = asked.map(|line| {
        let (size, asked) = line.trim_end().split_once(' ').unwrap();
        (asked.to_owned(), size.parse().unwrap())
    });
    (output, asked)
}

/// The ids of the notes in a store.
fn ids(root: &Path) -> Vec<String> {
    let mut ids: Vec<String> = shared(root)
        .keys()
        .filter(|path| path.ends_with(".md"))
        .map(|path| path[path.len() - "id__123456.md".len()..].to_owned())
        .collect();
    ids.sort();
    ids
}

fn survives(world: &World, number: usize, kind: &str, how: &str) -> Result<bool, String> {
    world.begin();
    let before = [ids(&world.root()), ids(&other_root(world))];
    let (output, asked) = with_answer(world, number, how);
    let Some((asked, size)) = asked else { return Ok(false) };
    let said = format!("git {asked} ({size} bytes), {kind}: {output:?}");
    let is_heard = size > 0 && !TALK.iter().any(|talk| asked.starts_with(talk));
    let is_told = output.code() != Some(0) || output.err().contains("Warning: ");
    match kind {
        "late" if output.code() != Some(0) => return Err(format!("it was not waited for: {said}")),
        "nothing" | "half" | "too late" if is_heard && !is_told => {
            return Err(format!("it goes without a word: {said}"));
        }
        "nothing" | "half" if is_heard && output.code() == Some(0) && world.program == "memory-sync" => {
            return Err(format!("it ends as if all was well: {said}"));
        }
        _ => {}
    }
    let after = [ids(&world.root()), ids(&other_root(world))];
    let lacks = |after: &Vec<String>, before: &Vec<String>| before.iter().any(|id| !after.contains(id));
    if lacks(&after[0], &before[0]) || lacks(&after[1], &before[1]) {
        return Err(format!("notes are gone: {before:?}, then {after:?}: {said}"));
    }
    let half: Vec<PathBuf> = files(&world.root().join("topics"))
        .into_iter()
        .filter(|path| !path.to_string_lossy().ends_with(".md"))
        .collect();
    if !half.is_empty() {
        return Err(format!("{half:?} are left: {said}"));
    }
    // The next run finds everything as it should be.
    let next = world.run(&world.arguments);
    if next.code() != Some(0) || next.err().contains("Warning: ") {
        return Err(format!("the next run: {next:?}\nafter {said}"));
    }
    if world.program == "memory-sync" {
        all_agree(world).map_err(|why| format!("{why}\nafter {said}"))?;
    } else if !world.uncommitted().is_empty() {
        return Err(format!("not committed: {}\nafter {said}", world.uncommitted()));
    }
    Ok(true)
}

#[test]
fn whatever_git_answers_no_note_is_gone_and_nothing_is_half() {
    let name = "memory-sync: answers";
    if !name.contains(&std::env::var("FAULTS").unwrap_or_default()) {
        return;
    }
    let makers = [
        ("a merge", (|| diverged(true)) as fn() -> World),
        ("joining", joining),
        ("a commit", crate::sync::first_commit),
    ];
    let jobs: Vec<(usize, usize)> =
        (0..makers.len()).flat_map(|maker| (0..ANSWERS.len()).map(move |answer| (maker, answer))).collect();
    let (next, tried, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((maker, answer)) = jobs.get(next.fetch_add(1, Ordering::SeqCst)) {
            let ((what, make), (kind, how)) = (makers[*maker], ANSWERS[*answer]);
            let world = make();
            world.keep_as_template();
            for number in 1.. {
                match survives(&world, number, kind, how) {
                    Ok(true) => drop(tried.fetch_add(1, Ordering::SeqCst)),
                    Ok(false) => break,
                    Err(why) => wrong.lock().unwrap().push(format!("{what}, git {number}: {why}")),
                }
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(2, usize::from) + 1;
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let (tried, wrong) = (tried.into_inner(), wrong.into_inner().unwrap());
    crate::say(&format!("{name}: {tried} answers, {} NOT SURVIVED", wrong.len()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 100, "{tried}");
}
