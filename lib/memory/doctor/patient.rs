//! What is looked at, and with what.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::config::memory::MemoryConfig;
use crate::memory::redact::Redactor;
use crate::store::place::Root;
use std::path::PathBuf;

pub(crate) struct Patient<'a> {
    pub(crate) config: &'a MemoryConfig,
    pub(crate) root: &'a Root,
    pub(crate) env: &'a Env,
    /// The file that the configuration came from, or where the defaults count the store: what a finding on a
    /// setting names.
    pub(crate) config_file: PathBuf,
    pub(crate) redactor: Redactor,
}

impl<'a> Patient<'a> {
    pub(crate) fn new(
        config: &'a MemoryConfig,
        config_file: Option<PathBuf>,
        root: &'a Root,
        env: &'a Env,
    ) -> Result<Patient<'a>> {
        // Where a pattern of the user's is none, what is known without it is looked for; `setup` tells.
        let redactor = Redactor::of(&config.redact).or_else(|_| Redactor::new(config.redact.enabled, &[]))?;
        let config_file = config_file.unwrap_or_else(|| root.path().to_path_buf());
        Ok(Patient { config, root, env, config_file, redactor })
    }
}
