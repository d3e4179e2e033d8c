//! Which scheduler this machine has.

use crate::base::error::{Error, Result};
use crate::schedule::plan::Scheduler;
use crate::schedule::tool::{Tools, runtime_dir};

/// launchd on macOS; systemd if this user's manager runs; else cron.
pub(crate) fn scheduler(tools: &Tools) -> Result<Scheduler> {
    if cfg!(target_os = "macos") {
        return Ok(Scheduler::Launchd);
    }
    // The manager's own socket: systemctl talks to it even where there is no D-Bus.
    if runtime_dir(tools.env).join("systemd/private").exists() && tools.has("systemctl") {
        return Ok(Scheduler::Systemd);
    }
    if tools.has("crontab") {
        return Ok(Scheduler::Crontab);
    }
    Err(Error::io(
        "no scheduler was found: systemd runs no manager for this user, and there is no crontab on PATH",
    )
    .hint("install cron, or name one: --scheduler launchd|systemd|crontab"))
}
