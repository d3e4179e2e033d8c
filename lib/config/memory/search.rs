//! Which configuration file is used: the one that is named, or the one in the current directory, or the user's own.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::reach;
use crate::config::memory::trust;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub struct ConfigFiles {
    /// The file in use.
    pub main: Option<PathBuf>,
    /// `main` is in the current directory, and trusted.
    pub is_here: bool,
    /// A file in the current directory that is not trusted and only adds to `main`.
    pub untrusted: Option<PathBuf>,
    /// The user's own file is a link that leads nowhere, as a Nix module leaves it behind when it is switched off.
    pub dangling: Option<PathBuf>,
}

pub fn files(explicit: Option<&Path>, env: &Env) -> Result<ConfigFiles> {
    if let Some((path, by)) = named(explicit, env)? {
        if !exists(&path) {
            return Err(Error::config(format!("config file not found: \"{}\"", path.display()))
                .hint(format!("{by} names it; \"memory-config init\" with the same {by} creates it")));
        }
        return Ok(ConfigFiles { main: Some(path), ..ConfigFiles::default() });
    }
    // It is waited for: without it, another store would be used, and secrets of the user's own patterns would stay.
    let (dangling, own) = match users_own(env).ok().filter(|path| is_found(path.symlink_metadata())) {
        Some(path) if leads_nowhere(&path) => (Some(path), None),
        own => (None, own),
    };
    // If the current directory was removed, there is no file in it.
    let here = env.current_dir().ok().map(|dir| dir.join("memory.config.json")).filter(|path| exists(path));
    Ok(match here {
        Some(here) if trust::is_trusted(&here, own.as_deref(), env) => {
            ConfigFiles { main: Some(here), is_here: true, untrusted: None, dangling }
        }
        here => ConfigFiles { main: own, is_here: false, untrusted: here, dangling },
    })
}

/// The file that `--config` or the environment names, whether it exists or not, and which of the two names it.
pub fn named(explicit: Option<&Path>, env: &Env) -> Result<Option<(PathBuf, &'static str)>> {
    let (path, by) = match (explicit, env.os("AGENT_MEMORY_CONFIG")) {
        (Some(path), _) => (path, "--config"),
        (None, Some(path)) => (Path::new(path), "$AGENT_MEMORY_CONFIG"),
        (None, None) => return Ok(None),
    };
    if path.as_os_str().is_empty() {
        return Err(Error::usage(format!("{by} names no file")));
    }
    let path = path.to_str().map_or_else(|| path.to_path_buf(), |text| env.expand(text));
    Ok(Some((absolute(path, env)?, by)))
}

/// The path of the user's own file, whether it exists or not.
pub fn users_own(env: &Env) -> Result<PathBuf> {
    absolute(env.memory_config_dir()?.join("config.json"), env)
}

pub fn absolute(path: PathBuf, env: &Env) -> Result<PathBuf> {
    if path.is_absolute() { Ok(path) } else { Ok(env.current_dir()?.join(path)) }
}

fn leads_nowhere(path: &Path) -> bool {
    let found = reach::within(path, |path| (path.is_symlink(), path.metadata()));
    found.is_ok_and(|(is_link, found)| is_link && found.is_err_and(|e| e.kind() == ErrorKind::NotFound))
}

/// An unreadable file or a broken symlink counts as existing: reading it gives a useful error.
fn exists(path: &Path) -> bool {
    reach::within(path, Path::symlink_metadata).is_ok_and(is_found)
}

fn is_found(file: std::io::Result<Metadata>) -> bool {
    !file.is_err_and(|e| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;
    use std::sync::mpsc::channel;

    #[test]
    fn the_user_s_own_file_is_used_however_slow_its_disk_is() {
        let dir = tempfile::tempdir().unwrap();
        let env = pretend(&[("XDG_CONFIG_HOME", dir.path().to_str().unwrap())]);
        let own = users_own(&env).unwrap();
        fs_err::create_dir_all(own.parent().unwrap()).unwrap();
        crate::base::file::install(&own, b"{}", 0o600).unwrap();
        let (stuck, waits) = channel::<()>();
        reach::within(&own, move |_| waits.recv().is_ok()).unwrap_err();
        assert_eq!(files(None, &env).unwrap().main, Some(own));
        drop(stuck);
    }
}
