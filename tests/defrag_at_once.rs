//! `memory-defrag` ended by a signal while the model thinks, and at once with other programs on the same notes.

#![cfg(target_os = "linux")]

use crate::support::corpus::answer;
use crate::support::store::value;
use crate::support::world::{World, words};
use crate::support::{Said, eventually, said};
use std::fs;
use std::process::{Child, Stdio};

/// A model that thinks until a file named `go` is there.
fn thinking() -> World {
    let wait = "echo > \"$DIR/begun\"\nwhile ! [ -e \"$DIR/go\" ]; do sleep 0.01; done\n";
    World::defrag(&["--quiet"], &format!("{wait}{}", answer()))
}

/// A run whose model thinks.
fn begun(world: &World) -> Child {
    let mut command = world.command(world.program, &world.arguments);
    command.stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the model's thinking", || world.sandbox.work().join("begun").exists());
    child
}

fn go(world: &World) {
    world.sandbox.file("go", "");
}

#[test]
fn a_signal_while_the_model_thinks_leaves_all_as_it_was_and_the_next_run_asks_again() {
    for (signal, code) in [(rustix::process::Signal::TERM, 143), (rustix::process::Signal::INT, 130)] {
        let world = thinking();
        let before = world.notes();
        let child = begun(&world);
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.code(), Some(code), "{output:?}");
        assert_eq!(world.notes(), before);
        go(&world);
        let next = world.run(&words(&["--quiet"]));
        assert_eq!((next.code(), next.err().as_str()), (Some(0), ""));
        assert_eq!((world.calls(), world.counted(), world.batches()), (1, 2, 1));
        let undone = world.run(&words(&["--undo", "--quiet"]));
        assert_eq!(undone.code(), Some(0), "{undone:?}");
        assert_eq!(world.notes(), before);
    }
}

#[test]
fn a_second_run_leaves_the_notes_to_the_first() {
    let world = thinking();
    let child = begun(&world);
    for program in ["memory-defrag", "memory-consolidate"] {
        let (code, out, err) = said(&mut world.sandbox.command(program));
        assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
        assert!(err.contains("memory-defrag (process ") && err.contains("nothing done"), "{err}");
    }
    go(&world);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert_eq!(world.counted(), 1);
    assert!(world.note("archive", "mergeB").is_some());
}

#[test]
fn what_is_read_and_edited_meanwhile_is_counted_and_kept() {
    const READS: usize = 10;
    let read = ["mergeA", "mergeB", "mergeC", "spLitA", "archiA"];
    let edited = ["renamA", "rewriA", "coLdAA", "fiLLeB"];
    let world = thinking();
    let child = begun(&world);
    let run = |program: &str, args: &[&str]| {
        let (code, _, err) = said(world.sandbox.command(program).args(args));
        assert_eq!(code, Some(0), "{program} {args:?}: {err}");
    };
    std::thread::scope(|scope| {
        for six in read {
            let (world, run) = (&world, &run);
            scope.spawn(move || {
                for n in 0..READS {
                    run("memory-read", &[six]);
                    // From here on everything happens at once.
                    if n == 2 {
                        go(world);
                    }
                }
            });
        }
        scope.spawn(|| edited.iter().for_each(|six| run("memory-update", &[six, "--tag", "+topic__mine"])));
    });
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.code(), Some(0), "{output:?}");
    let text = |six: &str| {
        let path = world.note("topics", six).or_else(|| world.note("archive", six)).unwrap();
        fs::read_to_string(path).unwrap()
    };
    let used = |six: &str| value(&text(six), "used").unwrap().parse::<usize>().unwrap();
    // Each was read twice before.
    assert!(world.note("archive", "mergeB").is_some(), "{}", output.err());
    assert_eq!(used("mergeA"), 3 * (2 + READS), "{}", output.err());
    assert_eq!(["spLitA", "archiA"].map(used), [2 + READS; 2], "{}", output.err());
    for six in edited {
        assert!(text(six).contains("topic__mine"), "{six}: {}", text(six));
    }
}
