//! What is known of checkouts: those whose AGENTS.md a person asked for, and those that a person was told of.
//! `.agent-memory/projects.json`

use crate::base::error::Result;
use crate::store::ledger;
use crate::store::place::Root;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
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

/// By repository, the places of its checkouts that a person was told of.
pub type ToldPlaces = BTreeMap<String, BTreeSet<PathBuf>>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Projects {
    #[serde(default)]
    pub projects: Vec<Project>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub told: ToldPlaces,
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
