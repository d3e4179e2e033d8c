//! `axe-map --resume`: a run that ended early goes on.

use crate::support::api::OpenAi;
use crate::support::server::{Answer, Request, Server, json};
use crate::support::{Said, Sandbox, mode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

fn agent() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "");
    sandbox
}

fn map(sandbox: &Sandbox, url: &str, input: &str, args: &[&str]) -> Command {
    sandbox.file("in", input);
    let mut command = sandbox.std_asking("axe-map", "a", url);
    command.args(["--resume", "out"]).args(args).stdin(File::open(sandbox.work().join("in")).unwrap());
    command
}

fn out(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.work().join("out")).unwrap()
}

fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn echo(request: &Request) -> Answer {
    OpenAi.says(&format!("re {}", request.user()))
}

const LINES: usize = 300;
const JOBS: usize = 4;

#[test]
fn a_killed_run_goes_on_and_asks_twice_at_most_what_was_on_its_way() {
    let sandbox = agent();
    let input: String = (1..=LINES).map(|n| format!("{n}\n")).collect();
    // The process that the server kills when so many more requests have come.
    let victim = Arc::new((Mutex::new(None::<(i32, usize)>), Condvar::new()));
    let of = Arc::clone(&victim);
    let server = Server::answering(move |request| {
        let mut victim = of.1.wait_while(of.0.lock().unwrap(), |victim| victim.is_none()).unwrap();
        if let Some((pid, left)) = victim.as_mut() {
            *left = left.saturating_sub(1);
            if *left == 0 {
                let pid = rustix::process::Pid::from_raw(*pid).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        echo(request)
    });
    let after = [1, 2, 40, 41, 97, usize::MAX];
    let kills = after.len() - 1;
    for left in after {
        let mut command = map(&sandbox, &server.url(), &input, &["-j4"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        *victim.0.lock().unwrap() = Some((child.id().cast_signed(), left));
        victim.1.notify_all();
        let output = child.wait_with_output().unwrap();
        *victim.0.lock().unwrap() = None;
        let was_killed = left < usize::MAX;
        assert_eq!((output.code(), output.out().as_str()), (if was_killed { None } else { Some(0) }, ""));
    }
    let mut ids: Vec<_> =
        records(&out(&sandbox)).iter().map(|record| record["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=LINES as u64).collect::<Vec<_>>(), "every id exactly once");
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for request in server.requests() {
        *asked.entry(request.user().to_owned()).or_default() += 1;
    }
    let again: usize = asked.values().map(|times| times - 1).sum();
    assert!(again <= kills * JOBS, "{again} lines were asked again");
}

#[test]
fn errors_are_asked_again_unless_they_are_kept() {
    let sandbox = agent();
    let works = Arc::new(Mutex::new(false));
    let does = Arc::clone(&works);
    let server = Server::answering(move |request| match request.user() {
        "2" if !*does.lock().unwrap() => json(400, json!({ "error": { "message": "no" } })),
        _ => echo(request),
    });
    let run = |args: &[&str]| {
        let output = map(&sandbox, &server.url(), "1\n2\n3\n", args).output().unwrap();
        (output.code(), server.requests().len())
    };
    assert_eq!(run(&["-j1"]), (Some(1), 3));
    let first = out(&sandbox);
    assert!(first.contains("\"error\":{\"kind\":\"refused\""), "{first}");
    assert_eq!(run(&["-j1", "--keep-errors"]), (Some(0), 3));
    assert_eq!(out(&sandbox), first);
    *works.lock().unwrap() = true;
    assert_eq!(run(&["-j1"]), (Some(0), 4));
    let ids: Vec<Value> = records(&out(&sandbox)).iter().map(|record| record["id"].clone()).collect();
    assert_eq!((ids, out(&sandbox).contains("error")), (vec![json!(1), json!(3), json!(2)], false));
    assert_eq!(run(&[]), (Some(0), 4));
    assert_eq!(mode(&sandbox.work().join("out")) & 0o600, 0o600);
}

#[test]
fn an_id_with_another_input_is_an_error_and_a_double_is_asked_once() {
    let sandbox = agent();
    let server = Server::answering(echo);
    let run = |input: &str| map(&sandbox, &server.url(), input, &["-j1"]).output().unwrap();
    let double = "{\"id\":\"x\",\"input\":\"a\"}\n";
    assert_eq!((run(&double.repeat(3)).code(), server.requests().len()), (Some(0), 1));
    let output = run("{\"id\":\"x\",\"input\":\"b\"}\nmore\n");
    let error = "axe-map: line 1 has the id \"x\", which belongs to another input, in the file of --resume or in a line \
                 before it; give the lines ids of their own, or use another file\n";
    assert_eq!((output.code(), output.err().as_str(), server.requests().len()), (Some(1), error, 1));
}

#[test]
fn the_file_of_another_is_not_touched() {
    let sandbox = agent();
    for text in ["dear diary\n", "{\"id\": 1, \"name\": \"x\"}\n", "# notes"] {
        sandbox.file("out", text);
        let output = map(&sandbox, "http://127.0.0.1:9", "1\n", &[]).output().unwrap();
        assert_eq!((output.code(), out(&sandbox).as_str()), (Some(1), text));
        assert!(
            output.err().contains("has a line that axe-map has not written: line 1: "),
            "{}",
            output.err()
        );
    }
    fs::remove_file(sandbox.work().join("out")).unwrap();
    for (path, why) in [("in/x", "Not a directory"), (".", "is not a regular file"), ("no/x", "No such file")]
    {
        let mut command = sandbox.std_asking("axe-map", "a", "http://127.0.0.1:9");
        let output = command.args(["--resume", path]).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.code(), Some(1), "{path}");
        assert!(output.err().contains(why), "{path}: {}", output.err());
    }
}

#[test]
fn one_program_at_a_time_has_the_file() {
    let sandbox = Arc::new(agent());
    let (inner, address) = (Arc::clone(&sandbox), Arc::new(Mutex::new(String::new())));
    let (second, url) = (Arc::new(Mutex::new(None)), Arc::clone(&address));
    let kept = Arc::clone(&second);
    // While the first one is asked, a second one starts.
    let server = Server::answering(move |request| {
        if request.user() == "1" {
            let output = map(&inner, &url.lock().unwrap(), "2\n", &[]).output().unwrap();
            *kept.lock().unwrap() = Some((output.code(), output.err()));
        }
        echo(request)
    });
    *address.lock().unwrap() = server.url();
    assert_eq!(map(&sandbox, &server.url(), "1\n", &[]).output().unwrap().code(), Some(0));
    let error = "axe-map: another program writes to \"./out\"; wait for its end, or use another file\n";
    assert_eq!(*second.lock().unwrap(), Some((Some(1), error.to_owned())));
    assert_eq!(server.requests().len(), 1);
}
