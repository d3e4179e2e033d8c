//! The store's directory: does it exist, and can only its owner read it?

use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use std::path::Path;

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let root = cx.root.path();
    let mut findings = Vec::new();
    let wrong = |dir: &Path, why: &str| {
        let mend = "set storage.root to a directory of your own; see: memory-config show";
        Finding::error(Check::Store, dir, why, mend)
    };
    match root.metadata() {
        Ok(metadata) if !metadata.is_dir() => return vec![wrong(root, "the store is not a directory")],
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !root.is_symlink() => return findings,
        Err(e) => return vec![wrong(root, &format!("the store cannot be read: {e}"))],
    }
    for dir in [cx.root.inbox(), cx.root.state()] {
        // Errors of the notes' directories are reported where these are read.
        if let Err(e) = fs_err::read_dir(&dir).map(drop)
            && e.kind() != std::io::ErrorKind::NotFound
        {
            findings.push(wrong(&dir, &e.to_string()));
        }
    }
    if is_open_to_others(root) {
        let what = "everybody on this machine can read the notes";
        let mend = format!("chmod 700 {}", quoted(root));
        findings.push(Finding::warning(Check::Permissions, root, what, &mend));
    }
    findings
}

/// As an argument for a shell.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    shlex::try_quote(&path).map_or_else(|_| path.clone(), std::borrow::Cow::into_owned)
}

/// Can everybody list the directory, and reach it?
#[cfg(unix)]
fn is_open_to_others(dir: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let others = |dir: &Path| dir.metadata().map_or(0, |metadata| metadata.permissions().mode() & 0o7);
    let Ok(dir) = dir.canonicalize() else { return false };
    others(&dir) & 0o5 == 0o5 && dir.ancestors().skip(1).all(|above| others(above) & 0o1 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_dir: &Path) -> bool {
    false
}
