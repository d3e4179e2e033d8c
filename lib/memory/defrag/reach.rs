//! Whom a note reaches: everybody, or who works in certain repositories.
//!
//! Only notes of one reach are merged. Nor are others shown together: what is said in one repository is no business of
//! another's, and what is hot is decided for each target by itself.

use crate::store::entry::{Meta, Scope};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Its name: `global`, or `repo` and the repositories.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reach(String);

impl Reach {
    pub(super) fn of(meta: &Meta) -> Reach {
        if meta.scope == Scope::Global {
            return Reach("global".to_owned());
        }
        let repos: BTreeSet<&str> = meta.sources.iter().filter_map(|source| source.repo.as_deref()).collect();
        Reach(repos.into_iter().fold("repo".to_owned(), |name, repo| name + " " + repo))
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }
}
