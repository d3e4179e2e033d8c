//! Many agents at once: side by side and one below the other, with the limits and totals of the whole tree.

use crate::sub_agents::{family, told};
use crate::support::api::{Anthropic, KINDS, Ollama, OpenAi, to};
use crate::support::processes::LONG;
use crate::support::server::{Server, http, json};
use crate::support::{NOW, Said, Sandbox};
use serde_json::{Value, json};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Counts who is there, and lets all go when enough have come.
#[derive(Default)]
struct Gate {
    state: Mutex<(usize, usize)>,
    came: Condvar,
}

impl Gate {
    /// Comes in and waits, until `enough` are in at once.
    fn enter(&self, enough: usize) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        state.1 = state.1.max(state.0);
        self.came.notify_all();
        let waited = self.came.wait_timeout_while(state, LONG, |state| state.1 < enough);
        drop(waited.unwrap());
    }

    fn leave(&self) {
        self.state.lock().unwrap().0 -= 1;
    }

    /// The most that were in at once.
    fn most(&self) -> usize {
        self.state.lock().unwrap().1
    }
}

fn envelope(sandbox: &Sandbox, url: &str) -> Value {
    let output = sandbox.asking("parent", url).arg("--json").output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    serde_json::from_str(&output.out()).unwrap()
}

fn tasks(n: usize) -> Vec<Value> {
    (0..n).map(|n| to("b", &format!("t{n}"))).collect()
}

#[test]
fn calls_of_one_turn_run_at_once_and_answer_in_their_order() {
    for kind in KINDS {
        let sandbox = Sandbox::new();
        sandbox.model("parent", kind, "sub_agents = ['b']");
        sandbox.model("b", kind, "");
        let gate = Arc::new(Gate::default());
        let ours = Arc::clone(&gate);
        let server = family(kind, tasks(6), move |request| {
            // Nobody gets an answer before all six have asked.
            ours.enter(6);
            kind.says(&format!("re: {}", request.user()))
        });
        let envelope = envelope(&sandbox, &server.url());
        assert_eq!(gate.most(), 6);
        assert_eq!(told(&server), [0, 1, 2, 3, 4, 5].map(|n| format!("re: Task: t{n}")));
        assert_eq!(envelope["tool_calls"], 6);
        assert_eq!(envelope["sub_agents"].as_array().unwrap().len(), 6);
    }
}

#[test]
fn at_most_eight_calls_run_at_a_time_at_every_depth() {
    // 12 at one level; then 3 that call 6 each.
    for (calls, middle) in [(tasks(12), false), ((0..3).map(|n| to("m", &format!("m{n}"))).collect(), true)] {
        let sandbox = Sandbox::new();
        sandbox.model("parent", Anthropic, "sub_agents = ['b', 'm']");
        sandbox.model("m", Anthropic, "sub_agents = ['b']");
        sandbox.model("b", Anthropic, "");
        let gate = Arc::new(Gate::default());
        let ours = Arc::clone(&gate);
        let server = family(Anthropic, calls, move |request| {
            if request.user().starts_with("Task: m") {
                return match request.results().len() {
                    0 => Anthropic.calls(&tasks(6)),
                    n => Anthropic.says(&format!("{n} results")),
                };
            }
            ours.enter(8);
            // Time for a ninth, which must not come.
            std::thread::sleep(Duration::from_millis(60));
            ours.leave();
            Anthropic.says("b's")
        });
        let output = sandbox.asking("parent", &server.url()).output().unwrap();
        assert_eq!((output.code(), gate.most()), (Some(0), 8), "{}", output.err());
        let expected = if middle { vec!["6 results"; 3] } else { vec!["b's"; 12] };
        assert_eq!(told(&server), expected);
    }
}

#[test]
fn without_parallel_they_run_one_after_another() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']\n[sub_agents_config]\nparallel = false");
    sandbox.model("b", Anthropic, "");
    let gate = Arc::new(Gate::default());
    let ours = Arc::clone(&gate);
    let server = family(Anthropic, tasks(4), move |request| {
        ours.enter(1);
        // Time for another, which must not come.
        std::thread::sleep(Duration::from_millis(30));
        ours.leave();
        Anthropic.says(request.user())
    });
    assert_eq!(sandbox.asking("parent", &server.url()).output().unwrap().code(), Some(0));
    let users: Vec<_> = server.requests()[1..5].iter().map(|request| request.user().to_owned()).collect();
    assert_eq!((gate.most(), users), (1, [0, 1, 2, 3].map(|n| format!("Task: t{n}")).to_vec()));
}

#[test]
fn the_envelope_counts_the_whole_tree() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['m', 'none']");
    sandbox.model("m", Anthropic, "sub_agents = ['b']");
    sandbox.model("b", Anthropic, "");
    let server = family(Anthropic, vec![to("m", "m"), to("none", "t")], |request| {
        match (request.user(), request.results().len()) {
            ("Task: m", 0) => Anthropic.calls(&[to("b", "x"), to("b", "y")]),
            ("Task: y", _) => http("401 No", ""),
            ("Task: x", _) => {
                let mut answer = Anthropic.stops("x", "end_turn");
                answer["usage"]["cache_read_input_tokens"] = json!(1000);
                answer["usage"]["cache_creation_input_tokens"] = json!(500);
                json(200, answer)
            }
            _ => Anthropic.says("m's"),
        }
    });
    let envelope = envelope(&sandbox, &server.url());
    // The parent asked twice, m twice, and one b got an answer: 10 in and 2 out each, and 1500 in the cache.
    for (name, value) in [
        ("input_tokens", json!(1550)),
        ("output_tokens", json!(10)),
        ("cache_read_tokens", json!(1000)),
        ("cache_write_tokens", json!(500)),
        ("tool_calls", json!(2)),
        ("content", json!("done")),
        ("stop_reason", json!("end_turn")),
    ] {
        assert_eq!(envelope[name], value, "{name}");
    }
    let [m, none] = envelope["sub_agents"].as_array().unwrap().as_slice() else { panic!("{envelope}") };
    assert_eq!((&m["name"], &m["error"]), (&json!("m"), &Value::Null));
    assert_eq!((&m["input_tokens"], &m["output_tokens"]), (&json!(1530), &json!(6)));
    assert!(m["duration_ms"].is_u64());
    let below: Vec<_> = m["sub_agents"].as_array().unwrap().iter().map(|b| &b["error"]).collect();
    assert_eq!(below, [&Value::Null, &json!("auth: No")]);
    assert_eq!(none["error"], "failed to load agent \"none\": agent config not found: none");
    assert_eq!((&none["name"], &none["input_tokens"]), (&json!("none"), &json!(0)));
}

#[test]
fn agents_call_agents_as_deep_as_the_first_one_allows() {
    for (config, deepest) in
        [("max_depth = 1", 1), ("max_depth = 2", 2), ("max_depth = 0", 3), ("", 3), ("max_depth = 5", 5)]
    {
        let sandbox = Sandbox::new();
        sandbox.model("parent", Anthropic, &format!("sub_agents = ['b']\n[sub_agents_config]\n{config}"));
        sandbox.model("b", Anthropic, "sub_agents = ['b']\n[sub_agents_config]\nmax_depth = 5");
        // Every agent calls the next, whether it has the tool or not.
        let server = Server::answering(|request| match request.results().pop() {
            None => Anthropic.calls(&[to("b", "on")]),
            Some(result) => Anthropic.says(&result),
        });
        let output = sandbox.asking("parent", &server.url()).output().unwrap();
        let told = format!("call_agent error: maximum sub-agent depth ({deepest}) reached");
        assert_eq!((output.code(), output.out()), (Some(0), told), "{}", output.err());
        let requests = server.requests();
        let offered = requests.iter().filter(|request| request.body.get("tools").is_some()).count();
        assert_eq!((requests.len(), offered), (2 * (deepest + 1), 2 * deepest), "{config}");
    }
}

#[test]
fn after_fifty_turns_the_run_ends() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']\n[memory]\nenabled = true");
    sandbox.agent("b", "cat", "");
    let server = Server::answering(|_| Anthropic.calls(&[json!({})]));
    let output = sandbox.asking("parent", &server.url()).output().unwrap();
    let line = "axe-run: agent exceeded maximum conversation turns (50); continue with: axe run --continue ";
    assert_eq!((output.code(), output.out().as_str()), (Some(1), ""));
    assert!(output.err().starts_with(line) && output.err().lines().count() == 1, "{}", output.err());
    assert_eq!(server.requests().len(), 50);
    assert!(!sandbox.log_path("parent").exists());
}

#[test]
fn a_sub_agent_that_goes_in_circles_fails_alone() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']");
    sandbox.model("b", Anthropic, "sub_agents = ['b']\n[memory]\nenabled = true");
    let server = family(Anthropic, vec![to("b", "t")], |_| Anthropic.calls(&[json!({})]));
    assert_eq!(sandbox.asking("parent", &server.url()).output().unwrap().out(), "done");
    assert!(told(&server)[0].contains("failed - agent exceeded maximum conversation turns (50). You may"));
    assert!(!sandbox.log_path("b").exists());
}

#[test]
fn the_call_budget_is_the_whole_trees_and_its_last_call_is_for_the_answer() {
    for kind in KINDS {
        for (budget, answers) in [(2, 0), (4, 2), (7, 5), (8, 6)] {
            let sandbox = Sandbox::new();
            sandbox.model("parent", kind, "sub_agents = ['b']\n[memory]\nenabled = true");
            sandbox.model("b", kind, "");
            sandbox.write(&sandbox.config().join("config.toml"), format!("[limits]\nmax_calls = {budget}\n"));
            let server = family(kind, tasks(6), move |_| kind.says("b's"));
            let output = sandbox.asking("parent", &server.url()).output().unwrap();
            assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
            let limit = format!("the run has used its limit of {budget} model calls");
            assert_eq!(
                output.err(),
                format!(
                    "Warning: the answer was asked for without further tools: {limit}; raise max_calls under \
                     [limits] in config.toml\n"
                )
            );
            let told = told(&server);
            assert_eq!(told.iter().filter(|told| *told == "b's").count(), answers);
            assert_eq!(told.iter().filter(|told| told.contains(&limit)).count(), 6 - answers);
            let requests = server.requests();
            assert_eq!(requests.len(), 2 + answers);
            // The last one offers no tool, in the way that the API has for it.
            let last = &requests.last().unwrap().body;
            match kind {
                Anthropic => assert_eq!(last["tool_choice"], json!({ "type": "none" })),
                OpenAi => assert_eq!(last["tool_choice"], "none"),
                Ollama => assert!(last.get("tools").is_none()),
            }
            assert!(requests[0].body.get("tool_choice").is_none());
            assert!(sandbox.log("parent").ends_with("**Result:** done\n\n"));
        }
    }
}

#[test]
fn a_model_that_only_calls_on_at_the_last_call_has_no_answer() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']\n[memory]\nenabled = true");
    sandbox.model("b", Anthropic, "");
    sandbox.write(&sandbox.config().join("config.toml"), "[limits]\nmax_calls = 1\n");
    let server = family(Anthropic, tasks(6), |_| Anthropic.says("b's"));
    let output = sandbox.asking("parent", &server.url()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(1), ""));
    assert!(output.err().contains("used its limit of 1 model calls"), "{}", output.err());
    assert_eq!(server.requests().len(), 1);
    assert!(!sandbox.log_path("parent").exists());
}

#[test]
fn commands_count_as_well_as_services_and_two_hundred_calls_are_paid_for_once() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']");
    sandbox.agent("b", "echo ok", "");
    let server = family(Anthropic, tasks(200), |_| http("500 never", ""));
    let output = sandbox.asking("parent", &server.url()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
    assert_eq!(told(&server).iter().filter(|told| *told == "ok").count(), 198);
}

#[test]
fn one_agent_called_many_times_at_once_writes_whole_entries() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']");
    sandbox.model("b", Anthropic, "[memory]\nenabled = true");
    let gate = Arc::new(Gate::default());
    let server = family(Anthropic, tasks(8), move |request| {
        gate.enter(8);
        Anthropic.says(&format!("{}\n{}", request.user(), "x".repeat(500)))
    });
    assert_eq!(sandbox.asking("parent", &server.url()).output().unwrap().code(), Some(0));
    let log = sandbox.log("b");
    let mut entries: Vec<_> = log.split("\n\n").filter(|entry| !entry.is_empty()).collect();
    entries.sort_unstable();
    let whole = [0, 1, 2, 3, 4, 5, 6, 7]
        .map(|n| format!("## {NOW}\n**Task:** Task: t{n}\n**Result:** Task: t{n}\n{}", "x".repeat(500)));
    assert_eq!(entries, whole);
}

#[test]
fn one_that_fails_does_not_hold_up_the_others() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']\n[sub_agents_config]\ntimeout = 1");
    sandbox.model("b", Anthropic, "");
    let start = Instant::now();
    let server = family(Anthropic, tasks(8), |request| match request.user() {
        "Task: t0" => crate::support::server::raw("").stall(),
        "Task: t1" => http("500 x", ""),
        other => Anthropic.says(other),
    });
    let envelope = envelope(&sandbox, &server.url());
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
    let told = told(&server);
    assert!(told[0].contains("timeout: ") && told[1].contains("server: x"), "{told:?}");
    assert_eq!(told[2..], [2, 3, 4, 5, 6, 7].map(|n| format!("Task: t{n}")));
    let failed = envelope["sub_agents"].as_array().unwrap().iter().filter(|b| b["error"].is_string());
    assert_eq!(failed.count(), 2);
}

#[test]
fn a_sub_agent_that_does_not_exist_is_told_before_anything_is_paid_for() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b', 'c']");
    sandbox.agent("b", "cat", "");
    let output = sandbox.asking("parent", "http://127.0.0.1:9").arg("--dry-run").output().unwrap();
    assert_eq!(output.err(), "Warning: agent \"parent\" may call \"c\", which does not exist\n");
}

#[test]
fn calls_of_the_last_turn_are_not_carried_out() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']");
    sandbox.agent("b", "echo x >> calls; cat", "");
    let server = Server::answering(|_| Anthropic.calls(&[to("b", "t")]));
    let output = sandbox.asking("parent", &server.url()).output().unwrap();
    assert_eq!((output.code(), server.requests().len()), (Some(1), 50));
    let calls = std::fs::read_to_string(sandbox.work().join("calls")).unwrap();
    assert_eq!(calls.lines().count(), 49, "nobody would hear the fiftieth");
}

#[test]
fn tries_of_a_failed_sub_agent_count() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']");
    sandbox.model("b", Anthropic, "");
    let server = family(Anthropic, vec![to("b", "t")], |_| http("500 No\r\nRetry-After: 0", "{}"));
    let output =
        sandbox.asking("parent", &server.url()).arg("--json").env("AXE_RETRY_MAX", "2").output().unwrap();
    let envelope: Value = serde_json::from_str(&output.out()).unwrap();
    assert_eq!(envelope["retries"], 2, "{envelope}");
    assert!(
        output.err().contains("Warning: 2 retries were needed after temporary errors"),
        "{}",
        output.err()
    );
}
