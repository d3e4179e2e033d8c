//! The three LLM APIs: answers in the format of each, and agents that call them.

use crate::support::server::{Answer, Server, json};
use crate::support::{Said, Sandbox};
use assert_cmd::Command;
use serde_json::{Value, json};
use std::process::Output;

/// The API key of every agent in these tests. No output may show it.
pub(crate) const KEY: &str = "sk-secret-0123456789";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Anthropic,
    OpenAi,
    Ollama,
}

pub(crate) use Kind::{Anthropic, Ollama, OpenAi};

pub(crate) const KINDS: [Kind; 3] = [Anthropic, OpenAi, Ollama];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Anthropic => "anthropic",
            OpenAi => "openai",
            Ollama => "ollama",
        }
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Anthropic => "/v1/messages",
            OpenAi => "/v1/chat/completions",
            Ollama => "/api/chat",
        }
    }

    /// A complete answer, with 10 input and 2 output tokens.
    pub(crate) fn says(self, text: &str) -> Answer {
        json(200, self.stops(text, if self == Anthropic { "end_turn" } else { "stop" }))
    }

    /// An answer with this stop reason, as JSON.
    pub(crate) fn stops(self, text: &str, reason: &str) -> Value {
        match self {
            Anthropic => json!({
                "model": "m-1-exact", "content": [{ "type": "text", "text": text }], "stop_reason": reason,
                "usage": { "input_tokens": 10, "output_tokens": 2 },
            }),
            OpenAi => json!({
                "model": "m-1-exact", "usage": { "prompt_tokens": 10, "completion_tokens": 2 },
                "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": reason }],
            }),
            Ollama => json!({
                "model": "m-1-exact", "message": { "role": "assistant", "content": text },
                "done": true, "done_reason": reason, "prompt_eval_count": 10, "eval_count": 2,
            }),
        }
    }

    /// A turn that calls `call_agent` once for each of `arguments`, with the ids c0, c1 and so on.
    pub(crate) fn calls(self, arguments: &[Value]) -> Answer {
        let calls: Vec<_> = arguments.iter().map(|arguments| ("call_agent", arguments.clone())).collect();
        self.calls_tools(&calls)
    }

    pub(crate) fn calls_tools(self, calls: &[(&str, Value)]) -> Answer {
        let mut answer = self.stops("", if self == Anthropic { "tool_use" } else { "tool_calls" });
        let all: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(n, (name, arguments))| match self {
                Anthropic => {
                    json!({ "type": "tool_use", "id": format!("c{n}"), "name": name, "input": arguments })
                }
                OpenAi => {
                    let function = json!({ "name": name, "arguments": arguments.to_string() });
                    json!({ "type": "function", "id": format!("c{n}"), "function": function })
                }
                Ollama => json!({ "function": { "name": name, "arguments": arguments } }),
            })
            .collect();
        match self {
            Anthropic => answer["content"] = all.into(),
            OpenAi => answer["choices"][0]["message"]["tool_calls"] = all.into(),
            Ollama => answer["message"]["tool_calls"] = all.into(),
        }
        json(200, answer)
    }
}

/// The arguments of a call to a sub-agent.
pub(crate) fn to(agent: &str, task: &str) -> Value {
    json!({ "agent": agent, "task": task })
}

impl Sandbox {
    /// An agent with a model of this kind.
    pub(crate) fn model(&self, agent: &str, kind: Kind, more: &str) {
        self.agent_file(agent, &format!("name = \"{agent}\"\nmodel = \"{}/m-1\"\n{more}", kind.name()));
    }

    /// `axe-run AGENT` with a key for each service and `url` as the address of all, without retries.
    pub(crate) fn asking(&self, agent: &str, url: &str) -> Command {
        let mut command = Command::from_std(self.std_asking("axe-run", agent, url));
        command.write_stdin("");
        command
    }

    /// The same for any program, for tests that need the child itself.
    pub(crate) fn std_asking(&self, program: &str, agent: &str, url: &str) -> std::process::Command {
        let mut command = self.std_command(program);
        command.arg(agent);
        for kind in KINDS {
            let name = kind.name().to_uppercase();
            command.env(format!("{name}_API_KEY"), KEY).env(format!("AXE_{name}_BASE_URL"), url);
        }
        command.env("AXE_RETRY_MAX", "0");
        command
    }
}

/// Runs an agent against a server that sends `answers`.
pub(crate) fn ask(kind: Kind, agent: &str, args: &[&str], answers: Vec<Answer>) -> (Output, Server) {
    let sandbox = Sandbox::new();
    sandbox.model("a", kind, agent);
    let server = Server::playing(answers);
    let output = sandbox.asking("a", &server.url()).args(args).output().unwrap();
    (output, server)
}

/// Expects that a reply with status 200 is refused: exit 3, one line on stderr, nothing on stdout.
pub(crate) fn expect_unusable(kind: Kind, body: &Value, what: &str) {
    let (output, _server) = ask(kind, "", &[], vec![json(200, body.clone())]);
    let line = format!("axe-run: server: {what}\n");
    assert_eq!((output.code(), output.out().as_str(), output.err()), (Some(3), "", line), "{body}");
}
