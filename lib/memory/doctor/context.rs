//! What every check gets: the configuration, the store, the environment.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::text::one_line;
use crate::config::memory::MemoryConfig;
use crate::config::memory::search::ConfigFiles;
use crate::memory::redact::Redactor;
use crate::memory::section::{Aim, all_aims};
use crate::store::persistence::{Broken, Persistence};
use crate::store::place::Root;
use crate::store::proposal::Proposal;
use crate::store::topics::Topics;
use jiff::civil::Date;
use std::path::PathBuf;

/// The longest text that is told, in characters.
const TEXT_CHARS: usize = 400;

pub struct CheckContext<'a> {
    pub config: &'a MemoryConfig,
    pub root: &'a Root,
    pub env: &'a Env,
    /// What a finding about a setting names: the configuration file, or the store if there is none.
    pub config_file: PathBuf,
    /// A configuration file in the current directory that is not trusted.
    pub(super) untrusted: Option<PathBuf>,
    pub(super) redactor: Redactor,
    /// The day here.
    pub(super) today: Date,
    /// The AGENTS.md files.
    pub aims: Vec<Aim>,
    /// The changes that wait for a person.
    pub waiting: Vec<Proposal>,
    /// The files beside them that are none.
    pub(super) broken_proposals: Vec<Broken>,
}

impl<'a> CheckContext<'a> {
    /// A text of any origin, without secrets, on one line.
    pub fn cleaned(&self, text: &str) -> String {
        self.redactor.cleaned(&one_line(text, TEXT_CHARS))
    }

    pub fn new(
        config: &'a MemoryConfig,
        files: ConfigFiles,
        root: &'a Root,
        env: &'a Env,
    ) -> Result<CheckContext<'a>> {
        // If one of the user's patterns is invalid, which `setup` reports, only the built-in ones are used.
        let redactor = Redactor::of(&config.redact).or_else(|_| Redactor::new(config.redact.enabled, &[]))?;
        let ConfigFiles { main, untrusted, .. } = files;
        let config_file = main.unwrap_or_else(|| root.path().to_path_buf());
        // A directory that cannot be read is reported with the others.
        let (waiting, broken_proposals) = Topics::at(root).proposals().unwrap_or_default();
        let today = env.today();
        Ok(CheckContext {
            config,
            root,
            env,
            config_file,
            untrusted,
            redactor,
            today,
            aims: all_aims(config, root, today),
            waiting,
            broken_proposals,
        })
    }
}
