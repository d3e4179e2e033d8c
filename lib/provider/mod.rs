//! One request, one reply: whichever model, however it is reached.

mod command;
pub(crate) mod failure;
pub(crate) mod message;

use crate::config::global::Endpoint;
use crate::ground::deadline::Deadline;
use crate::ground::error::Error;
use crate::provider::command::ShellCommand;
use crate::provider::failure::Failure;
use crate::provider::message::{Reply, Request};
use std::path::Path;

pub(crate) enum Provider {
    Command(ShellCommand),
}

impl Provider {
    pub(crate) fn connect(
        endpoint: &Endpoint,
        dir: &Path,
        env: &crate::ground::env::Env,
        _deadline: Deadline,
    ) -> crate::ground::error::Result<Provider> {
        match endpoint {
            Endpoint::Command { line, model } => Ok(Provider::Command(ShellCommand {
                line: line.clone(),
                model: model.clone(),
                dir: dir.to_owned(),
                level: command::level(env),
            })),
            Endpoint::Http { .. } => Err(Error::api("not yet")),
        }
    }

    /// Sends `request` and waits for the whole reply, until `deadline` at the latest.
    pub(crate) fn ask(&self, request: &Request, deadline: Deadline, _retries: u32) -> Result<Reply, Failure> {
        match self {
            Provider::Command(command) => command.ask(request, deadline),
        }
    }
}
