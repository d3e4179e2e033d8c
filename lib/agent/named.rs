//! A conversation that a run goes on with (`--conversation`): taken before the run, extended before its answer is printed.

use crate::agent::tree::Scope;
use crate::base::error::{Error, Result};
use crate::base::file::RunLock;
use crate::config::agent::AgentName;
use crate::config::model::Model;
use crate::provider::message::{ChatTurn, Reply, StopReason};
use crate::store::conversation::{self, ConversationName, Exchange};
use std::path::PathBuf;

pub struct NamedConversation {
    name: ConversationName,
    path: PathBuf,
    pub exchanges: Vec<Exchange<'static>>,
    /// Held until the run is over. `None` in a dry run.
    _lock: Option<RunLock>,
}

impl NamedConversation {
    /// Waits for other runs of the conversation, then reads it. In a dry run it is only read.
    pub fn open(agent: &AgentName, name: ConversationName, is_dry_run: bool, scope: Scope) -> Result<Self> {
        let Scope { env, deadline, reporter, .. } = scope;
        let path = conversation::path(agent, &name, env)?;
        let what = format!("conversation \"{name}\"");
        let next = "wait for that run, use a longer --timeout or another name";
        let hold = || conversation::hold(&path, &env.data_dir()?, &what, next, deadline);
        let lock = (!is_dry_run).then(hold).transpose()?;
        let earlier = conversation::read(&path)?;
        for warning in &earlier.warnings {
            reporter.warn(warning);
        }
        let count = earlier.exchanges.len();
        reporter.verbose(&format!("Conversation: {count} earlier run(s) from {}", path.display()));
        Ok(NamedConversation { name, path, exchanges: earlier.exchanges, _lock: lock })
    }

    /// The turns that come before the message.
    pub fn turns(&self) -> Vec<ChatTurn> {
        let turns = |exchange: &Exchange| {
            let user = with_names(&exchange.user, &exchange.attachments);
            [ChatTurn::User(user), ChatTurn::Said(exchange.assistant.clone().into_owned())]
        };
        self.exchanges.iter().flat_map(turns).collect()
    }

    /// Adds this run, unless a model could not go on from its answer. Returns when it is on disk.
    pub fn append(
        &self,
        message: &str,
        attachments: Vec<String>,
        reply: &Reply,
        model: &Model,
        scope: Scope,
    ) -> Result<()> {
        if reply.stop == StopReason::Refused || reply.text.trim().is_empty() {
            scope.reporter.warn(&format!("this run is not added to the conversation \"{}\"", self.name));
            return Ok(());
        }
        let exchange = Exchange {
            time: scope.env.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            model: model.to_string(),
            user: message.into(),
            attachments,
            assistant: reply.text.as_str().into(),
        };
        conversation::append(&self.path, &exchange).map_err(|e| {
            Error::io(format!("the run could not be added to the conversation \"{}\": {e}", self.name))
                .because(e)
        })
    }
}

/// A message with the names of its files, where the files themselves are not kept.
pub fn with_names(message: &str, names: &[String]) -> String {
    if names.is_empty() { message.to_owned() } else { format!("{message} [attached: {}]", names.join(", ")) }
}
