//! The checkouts whose AGENTS.md a person asked for: `.agent-memory/projects.json`.

use crate::base::error::Result;
use crate::store::ledger;
use crate::store::place::Root;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const NAME: &str = "projects.json";

/// A checkout in which a person ran `memory-agents-md --project`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Its top directory, absolute.
    pub top: PathBuf,
    /// The repository whose notes it gets.
    pub repo: String,
    /// Git's HEAD when its file was last refreshed: another branch may have another AGENTS.md.
    pub head: String,
    /// Its file had a section then. While there are no notes, none is written.
    pub has_section: bool,
    /// The day on which it was first not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<Date>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Projects {
    pub projects: Vec<Project>,
}

impl Projects {
    pub fn path(root: &Root) -> PathBuf {
        root.state().join(NAME)
    }

    pub fn load(root: &Root) -> Result<Projects> {
        ledger::load(&Projects::path(root))
    }

    pub fn save(&self, root: &Root) -> Result<()> {
        ledger::save(self, &Projects::path(root))
    }
}
