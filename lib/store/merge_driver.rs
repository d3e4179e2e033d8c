//! What git is told about notes, in the store's own repository: how to merge them, and to leave their bytes alone.

use crate::base::error::Result;
use crate::base::file;
use crate::base::repository::git_dir;
use crate::store::git::Git;
use crate::store::place::Root;
use std::path::{Path, PathBuf};

const NAME: &str = "agent-memory";
/// The flag of memory-sync that makes it a merge driver.
const FLAG: &str = "--merge-driver";
const PROGRAM: &str = "memory-sync";

/// These outrank every `.gitattributes`, so nothing that came from elsewhere can have files filtered or converted.
const ATTRIBUTES: &str = "# Written by memory-sync.\n\
                          * -text -eol -ident -filter -working-tree-encoding -export-subst\n\
                          /topics/** merge=agent-memory\n\
                          /archive/** merge=agent-memory\n\
                          /proposals/** merge=agent-memory\n";

/// Where git looks for attributes of this repository alone.
fn attributes(root: &Root) -> Option<PathBuf> {
    Some(git_dir(root.path())?.join("info/attributes"))
}

/// The command for git, by the path of the installed program.
fn command() -> String {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
    let program = match beside.filter(|path| path.is_file()).as_deref().and_then(|path| path.to_str()) {
        Some(path) => shlex::try_quote(path).map_or_else(|_| PROGRAM.to_owned(), Into::into),
        None => PROGRAM.to_owned(),
    };
    format!("{program} {FLAG} %O %A %B")
}

/// The repository has everything as [`install`] writes it.
pub fn is_installed(root: &Root, git: &Git) -> bool {
    let has_attributes = attributes(root)
        .and_then(|path| file::read(&path, 1 << 20).ok())
        .is_some_and(|bytes| String::from_utf8_lossy(&bytes).contains(ATTRIBUTES));
    has_attributes
        && git
            .maybe_line(&["config", "--local", "--get", &key("driver")])
            .is_ok_and(|now| now.as_deref() == Some(&command()))
}

fn key(key: &str) -> String {
    format!("merge.{NAME}.{key}")
}

/// Installs the driver; what a person has in `info/attributes` stays.
pub fn install(root: &Root, git: &Git) -> Result<()> {
    if is_installed(root, git) {
        return Ok(());
    }
    configure(git, &["--local"])?;
    attributes(root).map_or(Ok(()), |path| write_attributes(&path))
}

/// The same for a directory that `git init` is about to make a repository.
pub fn prepare(root: &Root, git: &Git) -> Result<()> {
    // Without git nothing is made.
    git.run(&["--version"])?;
    let dir = root.path().join(".git");
    file::make_private_dir(&dir)?;
    configure(git, &["--file", ".git/config"])?;
    write_attributes(&dir.join("info/attributes"))
}

fn configure(git: &Git, file: &[&str]) -> Result<()> {
    for (name, value) in [("name", "notes by note, not by line"), ("driver", &command())] {
        git.run(&[&["config"], file, &[&key(name), value]].concat())?;
    }
    Ok(())
}

fn write_attributes(path: &Path) -> Result<()> {
    let there = file::if_exists(file::read(path, 1 << 20))?.unwrap_or_default();
    let there = String::from_utf8_lossy(&there).into_owned();
    if there.contains(ATTRIBUTES) {
        return Ok(());
    }
    path.parent().map_or(Ok(()), file::make_dir)?;
    // Of two lines about one file the later holds.
    let gap = if there.is_empty() || there.ends_with('\n') { "" } else { "\n" };
    Ok(file::install(path, format!("{there}{gap}{ATTRIBUTES}").as_bytes(), 0o644)?)
}
