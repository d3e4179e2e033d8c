//! What every check gets: the configuration, the store, the environment.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::config::memory::MemoryConfig;
use crate::memory::redact::Redactor;
use crate::store::place::Root;
use std::path::PathBuf;

pub(crate) struct CheckContext<'a> {
    pub(crate) config: &'a MemoryConfig,
    pub(crate) root: &'a Root,
    pub(crate) env: &'a Env,
    /// What a finding about a setting names: the configuration file, or the store if there is none.
    pub(super) config_file: PathBuf,
    pub(super) redactor: Redactor,
}

impl<'a> CheckContext<'a> {
    pub(crate) fn new(
        config: &'a MemoryConfig,
        config_file: Option<PathBuf>,
        root: &'a Root,
        env: &'a Env,
    ) -> Result<CheckContext<'a>> {
        // If one of the user's patterns is invalid, which `setup` reports, only the built-in ones are used.
        let redactor = Redactor::of(&config.redact).or_else(|_| Redactor::new(config.redact.enabled, &[]))?;
        let config_file = config_file.unwrap_or_else(|| root.path().to_path_buf());
        Ok(CheckContext { config, root, env, config_file, redactor })
    }
}
