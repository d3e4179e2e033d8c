//! The memory programs on a timer: files and commands for the system's own scheduler.
//!
//! An installation is plain data ([`install::InstallPlan`]) that `--print` shows and `install` carries out.

mod calendar;
pub mod check;
pub mod crontab;
pub mod install;
pub mod installed;
pub mod launchd;
pub mod scheduler;
pub mod systemd;
pub mod timer;
pub mod uninstall;
pub mod unit_file;
