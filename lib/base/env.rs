//! The process's environment, read once at the start and passed down: variables, directories, the clock.

use crate::base::error::{Error, Result};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Env {
    vars: BTreeMap<OsString, OsString>,
    pinned: Option<Timestamp>,
}

impl Env {
    /// Reads the real environment. `AXE_NOW` (RFC 3339) pins the clock; a malformed one is an error.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn read() -> Result<Env> {
        Env::from_vars(std::env::vars_os())
    }

    fn from_vars(vars: impl Iterator<Item = (OsString, OsString)>) -> Result<Env> {
        // Windows does not tell `Path` from `PATH`.
        let named = |name: OsString| if cfg!(windows) { name.to_ascii_uppercase() } else { name };
        let vars = vars.map(|(name, value)| (named(name), value)).collect();
        let mut env = Env { vars, pinned: None };
        if let Some(text) = env.text("AXE_NOW") {
            let time = text.parse().map_err(|_| {
                Error::config(format!("AXE_NOW is not an RFC 3339 time: \"{text}\""))
                    .hint("write it like 2026-02-28T15:04:05Z, or unset it")
            })?;
            env.pinned = Some(time);
        }
        Ok(env)
    }

    /// The same environment with another value for `name`.
    pub fn with(&self, name: &str, value: &OsStr) -> Env {
        let mut env = self.clone();
        env.vars.insert(name.into(), value.into());
        env
    }

    /// A variable's value; empty counts as unset.
    pub fn os(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Whether a variable is there, empty or not.
    pub fn is_set(&self, name: &str) -> bool {
        self.vars.contains_key(OsStr::new(name))
    }

    /// Like [`Env::os`], for values that must be text; other bytes count as unset.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.os(name).and_then(OsStr::to_str)
    }

    /// The names of all variables that start with `prefix`.
    pub fn names(&self, prefix: &str) -> Vec<OsString> {
        let starts = |name: &&OsString| name.as_encoded_bytes().starts_with(prefix.as_bytes());
        self.vars.keys().filter(starts).cloned().collect()
    }

    #[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub fn now(&self) -> Timestamp {
        self.pinned.unwrap_or_else(Timestamp::now)
    }

    /// The day here and now: in the time zone of `TZ`, else of the system, else in UTC.
    pub fn today(&self) -> Date {
        self.day(self.now())
    }

    /// The day of a moment here.
    pub fn day(&self, moment: Timestamp) -> Date {
        moment.to_zoned(self.time_zone()).date()
    }

    /// Before jiff looks up one zone, it lists all of them, which takes a hook longer than reading its input. So the file
    /// of the zone is read here. Where `TZ` is something else than the name of one, jiff says what it means.
    pub fn time_zone(&self) -> TimeZone {
        let zones = self.os("TZDIR").map_or(Path::new("/usr/share/zoneinfo"), Path::new);
        let own = self.vars.get(OsStr::new("TZ"));
        let file = own.map_or(PathBuf::from("/etc/localtime"), |name| zones.join(name));
        let zone = fs_err::read(file).ok().and_then(|bytes| TimeZone::tzif("", &bytes).ok());
        zone.unwrap_or_else(TimeZone::system)
    }

    #[allow(clippy::disallowed_methods, reason = "the one place that reads the working directory")]
    pub fn current_dir(&self) -> Result<PathBuf> {
        std::env::current_dir().map_err(|e| {
            Error::config(format!("the current directory cannot be determined: {e}"))
                .hint("cd to one that exists")
        })
    }

    pub fn home(&self) -> Option<&Path> {
        self.os(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).map(Path::new)
    }

    /// `~/x` with the home directory; any other path without change.
    pub fn expand(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }

    /// `$XDG_CONFIG_HOME/axe`, else the platform's directory for configuration.
    pub fn config_dir(&self) -> Result<PathBuf> {
        let base = match self.os("XDG_CONFIG_HOME") {
            None if cfg!(windows) => self.os("APPDATA").ok_or_else(|| nowhere("config"))?.into(),
            None if cfg!(target_os = "macos") => self.below_home("Library/Application Support", "config")?,
            _ => self.xdg_config()?,
        };
        Ok(base.join("axe"))
    }

    /// `$XDG_DATA_HOME/axe`, else `~/.local/share/axe` on every platform (M6 3.1). Creates nothing.
    pub fn data_dir(&self) -> Result<PathBuf> {
        Ok(self.xdg_data()?.join("axe"))
    }

    /// `$XDG_CONFIG_HOME/agent-memory`, else `~/.config/agent-memory` on every platform.
    pub fn memory_config_dir(&self) -> Result<PathBuf> {
        Ok(self.xdg_config()?.join("agent-memory"))
    }

    /// `$XDG_DATA_HOME/agent-memory`, else `~/.local/share/agent-memory`. Creates nothing.
    pub fn memory_data_dir(&self) -> Result<PathBuf> {
        Ok(self.xdg_data()?.join("agent-memory"))
    }

    /// `$XDG_STATE_HOME/agent-memory`, else `~/.local/state/agent-memory`. Creates nothing.
    pub fn memory_state_dir(&self) -> Result<PathBuf> {
        Ok(self.xdg("XDG_STATE_HOME", ".local/state", "state")?.join("agent-memory"))
    }

    /// `$XDG_CONFIG_HOME`, else `~/.config` on every platform.
    fn xdg_config(&self) -> Result<PathBuf> {
        self.xdg("XDG_CONFIG_HOME", ".config", "config")
    }

    /// `$XDG_DATA_HOME`, else `~/.local/share` on every platform.
    pub fn xdg_data(&self) -> Result<PathBuf> {
        self.xdg("XDG_DATA_HOME", ".local/share", "data")
    }

    fn xdg(&self, variable: &str, usual: &str, what: &str) -> Result<PathBuf> {
        self.os(variable).map_or_else(|| self.below_home(usual, what), |dir| Ok(dir.into()))
    }

    fn below_home(&self, path: &str, what: &str) -> Result<PathBuf> {
        Ok(self.home().ok_or_else(|| nowhere(what))?.join(path))
    }
}

/// The number of this user, as the system's own commands want it.
pub fn user_id() -> String {
    #[cfg(unix)]
    return rustix::process::getuid().as_raw().to_string();
    #[cfg(not(unix))]
    return String::new();
}

fn nowhere(what: &str) -> Error {
    let variable = match (cfg!(windows), what) {
        (true, "config") => "%APPDATA%",
        (true, _) => "%USERPROFILE%",
        (false, _) => "$HOME",
    };
    Error::config(format!("unable to determine {what} directory: {variable} is not defined"))
        .hint(format!("set it, or XDG_{}_HOME", what.to_uppercase()))
}

#[cfg(any(test, fuzzing))]
#[allow(clippy::unwrap_used, reason = "for tests alone")]
pub fn pretend(vars: &[(&str, &str)]) -> Env {
    Env::from_vars(vars.iter().map(|(k, v)| (OsString::from(k), OsString::from(v)))).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_dir_follows_xdg_data_home() {
        let env = pretend(&[("XDG_DATA_HOME", "/x"), ("HOME", "/h")]);
        assert_eq!(env.data_dir().unwrap(), Path::new("/x/axe"));
    }

    #[test]
    fn an_empty_or_missing_xdg_data_home_falls_back_to_home() {
        for vars in [&[("XDG_DATA_HOME", ""), ("HOME", "/h")][..], &[("HOME", "/h")]] {
            assert_eq!(pretend(vars).data_dir().unwrap(), Path::new("/h/.local/share/axe"));
        }
    }

    #[test]
    fn the_memory_family_has_places_of_its_own() {
        let env = pretend(&[("HOME", "/h")]);
        assert_eq!(env.memory_config_dir().unwrap(), Path::new("/h/.config/agent-memory"));
        assert_eq!(env.memory_data_dir().unwrap(), Path::new("/h/.local/share/agent-memory"));
        let env = pretend(&[("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "/d")]);
        assert_eq!(env.memory_config_dir().unwrap(), Path::new("/c/agent-memory"));
        assert_eq!(env.memory_data_dir().unwrap(), Path::new("/d/agent-memory"));
    }

    #[test]
    fn without_a_home_the_error_names_the_directory() {
        let error = pretend(&[("HOME", "")]).data_dir().unwrap_err();
        assert_eq!(error.message(), "unable to determine data directory: $HOME is not defined");
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn places_are_named_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let env = pretend(&[("XDG_DATA_HOME", dir.path().to_str().unwrap())]);
        assert!(!env.data_dir().unwrap().exists());
    }

    #[test]
    fn axe_now_pins_the_clock() {
        let env = pretend(&[("AXE_NOW", "2026-02-28T15:04:05Z")]);
        assert_eq!(env.now().to_string(), "2026-02-28T15:04:05Z");
    }

    #[test]
    fn the_day_is_that_of_the_zone() {
        let moment: Timestamp = "2026-02-28T23:30:00Z".parse().unwrap();
        let day = |vars: &[(&str, &str)]| pretend(vars).day(moment).to_string();
        assert_eq!(day(&[("TZ", "UTC")]), "2026-02-28");
        assert_eq!(day(&[("TZ", "Asia/Tokyo")]), "2026-03-01");
        assert_eq!(day(&[("TZ", "/usr/share/zoneinfo/Asia/Tokyo")]), "2026-03-01");
        // What names no file is left to jiff, which asks the environment of the process.
        let others =
            [day(&[("TZ", "Nowhere/At_All")]), moment.to_zoned(TimeZone::system()).date().to_string()];
        assert_eq!(others[0], others[1]);
        assert_eq!(day(&[("TZ", "Tokyo"), ("TZDIR", "/usr/share/zoneinfo/Asia")]), "2026-03-01");
    }

    #[test]
    fn only_a_leading_tilde_slash_is_the_home() {
        let env = pretend(&[("HOME", "/h")]);
        assert_eq!(env.expand("~/a"), Path::new("/h/a"));
        assert_eq!(env.expand("a/~/b"), Path::new("a/~/b"));
    }
}
