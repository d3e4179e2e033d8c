//! The memory programs on a timer: files and commands for the system's own scheduler.
//!
//! An installation is plain data ([`plan::InstallPlan`]) that `--print` shows and `install` carries out.

mod calendar;
pub(crate) mod check;
pub(crate) mod crontab;
pub(crate) mod install;
pub(crate) mod installed;
pub(crate) mod launchd;
pub(crate) mod plan;
pub(crate) mod systemd;
pub(crate) mod timer;
pub(crate) mod tool;
pub(crate) mod uninstall;
pub(crate) mod unit_file;
