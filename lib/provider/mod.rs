//! One request, one reply: whichever model, however it is reached.

pub(crate) mod anthropic;
pub(crate) mod command;
pub(crate) mod failure;
pub(crate) mod message;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod retry;
mod service;
pub(crate) mod trouble;
pub(crate) mod wire;

use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::Error;
use crate::config::global::{Api, Endpoint};
use crate::provider::command::ShellCommand;
use crate::provider::failure::Failure;
use crate::provider::message::{Reply, Request};
use crate::provider::service::Service;
use std::path::Path;

pub(crate) enum Provider {
    Anthropic(Service),
    OpenAi(Service),
    Ollama(Service),
    Command(ShellCommand),
}

impl Provider {
    /// Everything that a call needs: the address checked, the key fetched. A shell command runs in `dir`.
    pub(crate) fn connect(
        endpoint: &Endpoint,
        dir: &Path,
        env: &Env,
        deadline: Deadline,
    ) -> Result<Provider, Error> {
        match endpoint {
            Endpoint::Command { line, model } => Ok(Provider::Command(ShellCommand {
                line: line.clone(),
                model: model.clone(),
                dir: dir.to_owned(),
                level: command::level(env),
            })),
            Endpoint::Http { api, provider, base_url, key, key_variable } => {
                let base_url = base_url.as_deref();
                let service = Service::connect(*api, provider, base_url, key, key_variable, env, deadline)?;
                Ok(match api {
                    Api::Anthropic => Provider::Anthropic(service),
                    Api::OpenAi => Provider::OpenAi(service),
                    Api::Ollama => Provider::Ollama(service),
                })
            }
        }
    }

    /// Sends `request` and waits for the whole reply, until `deadline` at the latest. A service is asked up
    /// to `retries` times more after errors that pass; a command is asked once.
    pub(crate) fn ask(&self, request: &Request, deadline: Deadline, retries: u32) -> Result<Reply, Failure> {
        match self {
            Provider::Anthropic(service) | Provider::OpenAi(service) | Provider::Ollama(service) => {
                service.ask(request, deadline, retries)
            }
            Provider::Command(command) => command.ask(request, deadline),
        }
    }
}
