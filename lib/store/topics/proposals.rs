//! Proposals as files.

use crate::base::error::Result;
use crate::base::file;
use crate::store::persistence::Broken;
use crate::store::proposal::{CAP, Proposal};
use std::io;
use std::path::Path;

/// The proposals in a directory, oldest first, and the files there that are none. Nothing where there is no directory.
pub(super) fn read_dir(dir: &Path) -> Result<(Vec<Proposal>, Vec<Broken>)> {
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    let Some(entries) = file::if_exists(fs_err::read_dir(dir))? else { return Ok((found, broken)) };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if !name.ends_with(b".json") || name.starts_with(b".") {
            continue;
        }
        match read(&path) {
            Ok(Some(proposal)) => found.push(proposal),
            // Decided since the directory was read.
            Ok(None) => {}
            Err(why) => broken.push(Broken { path, why }),
        }
    }
    found.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    broken.sort();
    Ok((found, broken))
}

/// `None` if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<Proposal>, String> {
    let bytes = match file::read(path, CAP) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound && !path.is_symlink() => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    let proposal = Proposal::parse(&bytes).map_err(|why| format!("not a proposal: {why}"))?;
    if path.file_stem().is_none_or(|stem| stem != proposal.id.as_str()) {
        return Err(format!("its id is \"{}\", and its name says another", proposal.id));
    }
    Ok(Some(proposal))
}
