//! Many runs at once on one agent: the log stays whole.

use crate::support::{NOW, Said, Sandbox};
use std::collections::BTreeSet;

#[test]
fn a_hundred_runs_at_once_leave_as_many_whole_entries() {
    const THREADS: usize = 16;
    const RUNS: usize = 8;
    let sandbox = Sandbox::new();
    // The log is part of the prompt, before the message; the answer is the message alone.
    sandbox.agent("a", "tail -n 9", "[memory]\nenabled = true\nlast_n = 2");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for run in 0..RUNS {
                    let message = message(thread * RUNS + run);
                    let output = sandbox.run("a").write_stdin(message.clone()).output().unwrap();
                    assert_eq!((output.out(), output.err().as_str()), (message, ""));
                    assert_eq!(output.code(), Some(0));
                }
            });
        }
    });
    let log = sandbox.log("a");
    let header = format!("## {NOW}\n");
    let found: Vec<&str> = log.split(header.as_str()).skip(1).collect();
    let expected: BTreeSet<String> = (0..THREADS * RUNS)
        .map(|n| {
            let message = message(n);
            format!("**Task:** {}\n**Result:** {message}\n\n", message.replace('\n', " "))
        })
        .collect();
    assert!(log.starts_with(&header), "{:.200}", log);
    assert_eq!(found.len(), expected.len());
    assert_eq!(found.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
    let left: Vec<_> =
        std::fs::read_dir(sandbox.log_path("a").parent().unwrap()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "beside the log: {left:?}");
}

/// Nine lines, 900 characters, each line its own.
fn message(n: usize) -> String {
    let lines: Vec<String> =
        (0..9).map(|line| format!("{:ä<99}", format!("run {n}, line {line} "))).collect();
    lines.join("\n")
}
