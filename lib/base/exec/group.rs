//! Process groups: a command and everything it starts, ended together.

use crate::base::sync::lock;
use crate::base::sync::spawn;
use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The time between SIGTERM and SIGKILL, in looks at whether the group has ended. Looks and not a deadline: on a busy
/// machine each takes longer, for us as for one of our own programs that ends its commands meanwhile.
const LOOKS: u32 = 75;
const LOOK: Duration = Duration::from_millis(2);
pub(super) const GRACE: Duration = Duration::from_millis(150);

/// The groups that run now. No new one starts while the lock is held.
static GROUPS: Mutex<BTreeMap<u32, ProcessGroup>> = Mutex::new(BTreeMap::new());

/// Whether every group was ended, and none can be registered or removed any more.
static ALL_ENDED: AtomicBool = AtomicBool::new(false);

fn groups() -> MutexGuard<'static, BTreeMap<u32, ProcessGroup>> {
    lock(&GROUPS)
}

/// Makes the process that `command` starts the leader of its own group.
pub(super) fn lead(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Ends every group, and lets no other start: the program is about to exit. Waits, within the grace period, for
/// output that is still being passed on.
pub(super) fn end_all(is_printing: impl Fn() -> bool) {
    let groups = groups();
    for group in groups.values() {
        group.signal(rustix::process::Signal::TERM);
    }
    let mut looks = groups.values().map(|group| group.looks).max().unwrap_or_default();
    while (groups.values().any(ProcessGroup::is_alive) || is_printing()) && looks > 0 {
        std::thread::sleep(LOOK);
        looks -= 1;
    }
    for group in groups.values() {
        group.signal(rustix::process::Signal::KILL);
    }
    ALL_ENDED.store(true, SeqCst);
    // Never unlocked again: a command that died of our signal must not be reported as a failure.
    std::mem::forget(groups);
}

/// Whether [`end_all`] has ended everything.
pub(super) fn have_all_ended() -> bool {
    ALL_ENDED.load(SeqCst)
}

/// A process group, named by the id of its first process.
#[derive(Debug, Clone, Copy)]
pub struct ProcessGroup {
    id: u32,
    looks: u32,
}

impl ProcessGroup {
    /// Runs `start`, whose child leads its own group (see [`lead`]), and registers the group. `level` is the number
    /// of our commands above this process: an inner one must end its group before the outer one ends it, so each
    /// level has two thirds of the looks of the one above.
    ///
    /// The reader ends when the child has exited. It is not reaped then, so that the id stays ours until the whole
    /// group is gone.
    pub(super) fn start(
        level: u32,
        start: impl FnOnce() -> io::Result<Child>,
    ) -> io::Result<(Child, ProcessGroup, PipeReader)> {
        // Locked during the start, so that `end_all` cannot miss a group, and that no other child of ours inherits the
        // pipe where it cannot be made and marked as ours in one step.
        let mut groups = groups();
        let (exit, running) = io::pipe()?;
        let mut child = start()?;
        let looks = (0..level).fold(LOOKS, |looks, _| looks * 2 / 3);
        let group = ProcessGroup { id: child.id(), looks };
        groups.insert(group.id, group);
        drop(groups);
        if let Err(e) = group.watch_exit(running) {
            group.end(&mut child);
            return Err(e);
        }
        Ok((child, group, exit))
    }

    /// Closes `running` when the first process has exited.
    fn watch_exit(self, running: PipeWriter) -> io::Result<()> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        spawn(move || {
            let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Some(Err(rustix::io::Errno::INTR)) =
                self.pid().map(|pid| waitid(WaitId::Pid(pid), exited))
            {}
            drop(running);
        })
    }

    /// Ends everything in the group: SIGTERM, a short grace period, SIGKILL. `None`: even that did not end the child.
    pub(super) fn end(self, child: &mut Child) -> Option<ExitStatus> {
        self.signal(rustix::process::Signal::TERM);
        let mut looks = self.looks;
        let mut status = child.try_wait().ok().flatten();
        while status.is_none() || self.is_alive() {
            if looks == 0 {
                self.signal(rustix::process::Signal::KILL);
                break;
            }
            std::thread::sleep(LOOK);
            looks -= 1;
            status = status.or_else(|| child.try_wait().ok().flatten());
        }
        // A process in an uninterruptible system call outlives even SIGKILL; we do not wait for it.
        let mut looks = LOOKS / 3;
        while status.is_none() && looks > 0 {
            std::thread::sleep(LOOK);
            looks -= 1;
            status = child.try_wait().ok().flatten();
        }
        groups().remove(&self.id);
        status
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(pid) = self.pid() {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }

    fn is_alive(&self) -> bool {
        self.pid().is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok())
    }

    fn pid(&self) -> Option<rustix::process::Pid> {
        i32::try_from(self.id).ok().and_then(rustix::process::Pid::from_raw)
    }
}
