//! One request, one reply: whichever model, however it is reached.

pub mod anthropic;
mod client;
pub mod command;
pub mod error;
pub mod message;
pub mod ollama;
pub mod openai;
pub mod retry;
mod stream;
pub mod wire;

use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::config::global::Endpoint;
use crate::config::preset::LlmHome;
use crate::provider::client::ApiClient;
use crate::provider::command::ShellCommand;
use crate::provider::error::CallResult;
use crate::provider::message::{OnText, Request};
use std::path::Path;
use std::time::Duration;

pub enum Provider {
    Http(ApiClient),
    Command(ShellCommand),
}

impl Provider {
    /// Everything that a call needs: the address checked, the key fetched. A shell command runs in `dir`; `is_heard`
    /// passes its stderr on.
    pub fn connect(
        endpoint: &Endpoint,
        dir: &Path,
        is_heard: bool,
        env: &Env,
        deadline: Deadline,
    ) -> Result<Provider> {
        Ok(match endpoint {
            Endpoint::Http(endpoint) => Provider::Http(ApiClient::connect(endpoint, env, deadline)?),
            Endpoint::Command { line, model } => Provider::Command(ShellCommand {
                line: line.clone(),
                model: model.clone(),
                dir: dir.to_owned(),
                level: command::level(env),
                vars: command::vars(env),
                is_heard,
                home: LlmHome::of(line, env)?,
                is_missing: command::is_missing(line, env),
            }),
        })
    }

    /// Waits until the model may be asked, however long others are before it, but no longer than `for_pause` if the service
    /// has asked somebody to wait.
    pub fn await_turn(&self, request: &Request, for_pause: Duration) -> CallResult<()> {
        let Provider::Http(client) = self else { return Ok(()) };
        client.await_turn(request, None, for_pause)
    }

    /// Sends `request` and waits for the complete reply, until `deadline` at the latest. After a transient error a
    /// service is asked again, up to `retries` times; a command is asked once. If the reply comes in pieces, `on_text`
    /// gets its text as it comes.
    pub fn ask(&self, request: &Request, deadline: Deadline, retries: u32, on_text: OnText) -> CallResult {
        match self {
            Provider::Http(client) => client.ask(request, deadline, retries, on_text),
            Provider::Command(command) => command.ask(request, deadline),
        }
    }
}
