//! The remote: where it is, what it has, and giving it what we have.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::exec::{self, Finished};
use crate::base::file::{self, RunLock};
use crate::base::repository::git_dir;
use crate::base::text::one_line;
use crate::config::memory::MemoryConfig;
use crate::store::git::{Git, unusable};
use crate::store::health::Health;
use crate::store::history::lock_history;
use crate::store::place::Root;
use std::ffi::OsString;
use std::time::Duration;

/// The commit that the remote has, as we saw it last.
const SEEN: &str = "refs/agent-memory/remote";
const NAME: &str = "origin";
/// The key of git's settings for who can write to the remote.
const TRUST: &str = "agentMemoryTrust";
/// The word for a remote that nobody else can write to.
pub const OWN: &str = "own";
/// How often a fetch is tried while another git writes the same.
const TRIES: usize = 5;
/// The most branches of a new remote that are searched for notes.
const MOST_BRANCHES: usize = 20;
/// How long a transfer may take.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The most bytes of a transfer that are kept, in blocks of 512.
const DOWNLOAD_BLOCKS: &str = "2097152";
const OUTPUT_CAP: usize = 8 << 20;

/// For every command that talks to a remote: nothing is taken unchecked, nothing is asked, nothing waits for ever.
/// Objects of more than a megabyte are never unpacked in memory.
const SETTINGS: [&str; 9] = [
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    "core.bigFileThreshold=1m",
    "http.lowSpeedLimit=100",
    "http.lowSpeedTime=30",
    "core.askPass=",
    "credential.interactive=false",
    "fetch.recurseSubmodules=false",
    "transfer.advertiseSID=false",
];

/// A folder's repository is opened by this machine's git: neither its hooks nor what its settings name is run.
const QUIET: &str = "git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=true \
                     -c receive.denyCurrentBranch=refuse -c receive.autogc=false";

/// Why a sync goes no further.
pub(super) enum Unsynced {
    /// The remote cannot be reached. With git's own words.
    Unreachable(String),
    /// Somebody else was quicker: it is tried again. Why, and what to do if that never succeeds.
    Overtaken {
        why: String,
        hint: &'static str,
    },
    Failed(Error),
}

impl Unsynced {
    pub(super) fn overtaken(why: impl Into<String>) -> Unsynced {
        Unsynced::Overtaken { why: why.into(), hint: "run memory-sync again" }
    }
}

impl From<Error> for Unsynced {
    fn from(error: Error) -> Unsynced {
        Unsynced::Failed(error)
    }
}

pub(super) struct Remote<'a> {
    root: &'a Root,
    env: &'a Env,
    pub(super) address: &'a str,
    /// Without user and password.
    pub(super) shown: String,
    is_folder: bool,
}

/// The notes are shared, by the configuration or since `memory-sync --remote`.
pub fn is_set(config: &MemoryConfig, root: &Root, env: &Env) -> bool {
    config.sync.remote.is_some() || current(root, env).is_some()
}

/// The remote that the store has now, where that can be read.
pub fn current(root: &Root, env: &Env) -> Option<String> {
    git_dir(root.path())?;
    Git::new(root, env).and_then(|git| configured(&git)).ok().flatten()
}

/// The remote that the store's repository has.
pub fn configured(git: &Git) -> Result<Option<String>> {
    let url = git.maybe_line(&["config", "--local", "--get", &format!("remote.{NAME}.url")])?;
    Ok(url.filter(|url| !url.is_empty()))
}

/// Nobody else can write to that remote; `None`: nobody has said.
pub(super) fn is_own(git: &Git) -> Result<Option<bool>> {
    let said = git.maybe_line(&["config", "--local", "--get", &format!("remote.{NAME}.{TRUST}")])?;
    Ok(said.map(|said| said == OWN))
}

/// Keeps it for all further runs.
pub(super) fn set_own(git: &Git, is_own: bool) -> Result<()> {
    let key = format!("remote.{NAME}.{TRUST}");
    let word = if is_own { OWN } else { "shared" };
    git.run(&["config", "--local", "--replace-all", &key, word]).map(drop)
}

/// An address without what may be a secret in it.
pub fn shown(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[host..])
}

impl<'a> Remote<'a> {
    pub(super) fn at(address: &'a str, root: &'a Root, env: &'a Env) -> Remote<'a> {
        let is_folder = address.starts_with('/') || address.starts_with("file://");
        Remote { root, env, address, shown: shown(address), is_folder }
    }

    /// As it is named in messages.
    pub(super) fn quoted(&self) -> String {
        format!("\"{}\"", self.shown)
    }

    /// Runs a git that talks to the remote, where `command` answers, about `what`.
    fn talk(&self, arguments: &[&str], command: &str, what: &[&str]) -> Result<Finished> {
        // A command that the other end runs, where that is this machine.
        let quietly = format!("--{command}={QUIET} {command}");
        let quietly = self.is_folder.then_some(quietly.as_str());
        let arguments = SETTINGS
            .iter()
            .flat_map(|setting| ["-c", setting])
            .chain(arguments.iter().copied())
            .chain(quietly)
            .chain(["--", self.address])
            .chain(what.iter().copied());
        let mut vars: Vec<(&'static str, OsString)> = vec![
            ("SSH_ASKPASS_REQUIRE", "never".into()),
            ("GCM_INTERACTIVE", "never".into()),
            ("GIT_ASKPASS", "".into()),
        ];
        let git = Git::new(self.root, self.env)?;
        let ssh = match self.env.text("GIT_SSH_COMMAND") {
            Some(own) => Some(own.to_owned()),
            None => git.maybe_line(&["config", "--get", "core.sshCommand"])?,
        };
        vars.push(match (ssh, self.env.os("GIT_SSH")) {
            // A program of the user's own, of unknown flags.
            (None, Some(program)) => ("GIT_SSH", program.to_owned()),
            (ssh, _) => {
                let ssh = ssh.as_deref().unwrap_or("ssh");
                ("GIT_SSH_COMMAND", format!("{ssh} -oBatchMode=yes -oConnectTimeout=20").into())
            }
        });
        // What comes is limited by the size of the file that git writes it to.
        let script = format!("ulimit -f {DOWNLOAD_BLOCKS} 2>/dev/null; exec git \"$@\"");
        let mut line: Vec<String> = ["/bin/sh", "-c", &script, "git"].map(str::to_owned).into();
        line.extend(arguments.map(str::to_owned));
        git.with(TIMEOUT, vars).call(&line, Vec::new(), OUTPUT_CAP)
    }

    /// The branches that the remote has: first the one of the local name, then its main one. Empty: it has nothing yet.
    pub(super) fn branches(&self, local: &str) -> Result<Vec<String>, Unsynced> {
        // `--exit-code`: 2 if it has nothing yet, so that no answer is not taken for that.
        let finished = self.talk(&["ls-remote", "--exit-code", "--symref"], "upload-pack", &[])?;
        if finished.status.code() == Some(2) && finished.stdout.is_empty() {
            return Ok(Vec::new());
        }
        if !finished.status.success() {
            return Err(self.failed(&finished));
        }
        if !finished.stdout.ends_with(b"\n") {
            return Err(unusable(&["ls-remote"]).into());
        }
        let text = String::from_utf8_lossy(&finished.stdout).into_owned();
        let main = text.lines().find_map(|line| {
            let (name, head) = line.strip_prefix("ref: refs/heads/")?.split_once('\t')?;
            (head == "HEAD").then_some(name)
        });
        let mut branches: Vec<String> =
            text.lines().filter_map(|line| Some(line.split_once("\trefs/heads/")?.1.to_owned())).collect();
        branches.sort_by_key(|branch| (branch != local, Some(&**branch) != main));
        branches.truncate(MOST_BRANCHES);
        Ok(branches)
    }

    /// Gets what the remote has; `None` if it has nothing yet.
    pub(super) fn fetch(&self, git: &Git, branch: &str) -> Result<Option<String>, Unsynced> {
        let refspec = format!("+refs/heads/{branch}:{SEEN}");
        let arguments = [
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
            "--no-auto-maintenance",
        ];
        let fetch = || self.talk(&arguments, "upload-pack", &[&refspec]);
        let mut finished = fetch()?;
        // A git whose memory-sync was killed may be about to end what it was told.
        for _ in 0..TRIES {
            if finished.status.success() || !said(&finished).contains("cannot lock ref") {
                break;
            }
            finished = fetch()?;
        }
        match finished.status.success() {
            true => Ok(Some(git.object(&["rev-parse", "--verify", &format!("{SEEN}^{{commit}}")])?)),
            false if said(&finished).contains("couldn't find remote ref") => Ok(None),
            false => Err(self.failed(&finished)),
        }
    }

    /// Gives the remote a commit.
    pub(super) fn push(&self, commit: &str, branch: &str) -> Result<(), Unsynced> {
        let refspec = format!("{commit}:refs/heads/{branch}");
        let arguments = [
            "push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed",
            "--recurse-submodules=no",
        ];
        let finished = self.talk(&arguments, "receive-pack", &[&refspec])?;
        if finished.status.success() {
            // Its last line, if all went well.
            return match finished.stdout.ends_with(b"\nDone\n") {
                true => Ok(()),
                false => Err(unusable(&["push"]).into()),
            };
        }
        let printed = String::from_utf8_lossy(&finished.stdout).into_owned() + &said(&finished);
        if let Some(lock) = lock_in_the_way(&printed) {
            // Another git holds it there, or one that died has left it.
            let hint = "if no git is running there, remove it, then run memory-sync again";
            return Err(Unsynced::Overtaken { why: format!("git's lock \"{lock}\" is in the way"), hint });
        }
        let quicker = [
            "[rejected]", "cannot lock ref", "failed to update ref", "incorrect old value",
            "reference already exists",
        ];
        if quicker.iter().any(|words| printed.contains(words)) {
            return Err(Unsynced::overtaken("another machine was quicker"));
        }
        let refusal = printed.lines().find(|line| line.starts_with('!')).map(|line| line.replace('\t', " "));
        Err(match refusal {
            Some(line) => {
                // What a hook of the remote says is the reason; git's own line only names the branch.
                let why = [remarks(&said(&finished)), vec![line]].concat().join("; ");
                Unsynced::Failed(Error::refused(format!(
                    "{} does not take the notes: {}",
                    self.quoted(),
                    one_line(&without_logins(&why), 300)
                )))
            }
            None => self.failed(&finished),
        })
    }

    /// A remote that is not there now is one thing, one that says no another.
    fn failed(&self, finished: &Finished) -> Unsynced {
        const AWAY: [&str; 15] = [
            "could not resolve", "couldn't resolve", "name or service not known",
            "temporary failure in name", "connection refused", "connection timed out", "connection reset",
            "network is unreachable", "no route to host", "failed to connect", "couldn't connect",
            "operation timed out", "operation too slow", "host is down", "nodename nor servname",
        ];
        let said_as_it_was = said(finished);
        let said = said_as_it_was.to_lowercase();
        let is_missing = self.is_folder && said.contains("does not appear to be a git repository");
        let why = format!("failed ({}): {}", exec::how_it_ended(finished.status), reason(&said_as_it_was));
        let why = one_line(&without_logins(&why), 300);
        if is_missing || AWAY.iter().any(|words| said.contains(words)) {
            return Unsynced::Unreachable(why);
        }
        let hint = match said.contains("permission denied")
            || said.contains("authentication")
            || said.contains("terminal prompts disabled")
        {
            true => {
                "give git its login first: an ssh key in the agent, or a credential helper; memory-sync never asks"
            }
            false => "try it by hand: git ls-remote, in the store",
        };
        Unsynced::Failed(Error::io(format!("{}: git {why}", self.quoted())).hint(hint))
    }
}

/// `Unable to create '…/main.lock': File exists.`
fn lock_in_the_way(printed: &str) -> Option<String> {
    let (lock, rest) = printed.split_once("Unable to create '")?.1.split_once('\'')?;
    rest.starts_with(": File exists").then(|| one_line(lock, 300))
}

fn said(finished: &Finished) -> String {
    String::from_utf8_lossy(&finished.stderr).into_owned()
}

/// Why git failed: what it says before its advice, which is the same for every reason.
fn reason(said: &str) -> String {
    const ADVICE: [&str; 4] = [
        "fatal: Could not read from remote repository.",
        "Please make sure you have the correct access rights",
        "and the repository exists.",
        "error: failed to push some refs",
    ];
    let is_reason = |line: &&str| {
        let is_advice = ADVICE.iter().any(|advice| line.starts_with(advice));
        !line.is_empty() && !is_advice && !line.starts_with("hint: ") && !line.starts_with("warning: ")
    };
    let own = said.lines().map(str::trim).filter(|line| !line.starts_with("remote: ")).filter(is_reason);
    let own = own.map(|line| line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned());
    [remarks(said), own.take(2).collect()].concat().join("; ")
}

/// What the remote itself says.
fn remarks(said: &str) -> Vec<String> {
    let lines = said.lines().filter_map(|line| line.strip_prefix("remote: ")).map(str::trim);
    lines.filter(|line| !line.is_empty()).take(2).map(str::to_owned).collect()
}

/// git's words without a login in an address.
fn without_logins(text: &str) -> String {
    let clean = |word: &str| match word.contains("://") {
        true => {
            let quote = if word.starts_with('\'') { "'" } else { "" };
            format!("{quote}{}", shown(word.trim_start_matches('\'')))
        }
        false => word.to_owned(),
    };
    text.split(' ').map(clean).collect::<Vec<_>>().join(" ")
}

/// Keeps the remote for all further runs, also of `git pull` by hand.
pub(super) fn set_up(git: &Git, address: &str, local: &str, branch: &str) -> Result<()> {
    let values = [
        (format!("remote.{NAME}.url"), address.to_owned()),
        (format!("remote.{NAME}.fetch"), format!("+refs/heads/*:refs/remotes/{NAME}/*")),
        (format!("branch.{local}.remote"), NAME.to_owned()),
        (format!("branch.{local}.merge"), format!("refs/heads/{branch}")),
    ];
    for (key, value) in values {
        git.run(&["config", "--local", "--replace-all", &key, &value])?;
    }
    Ok(())
}

/// Who syncs, or leaves, holds this.
pub(super) fn hold(root: &Root) -> Result<RunLock> {
    let holder = format!("memory-sync, process {}", std::process::id());
    Ok(file::hold(&root.state().join("sync.lock"), &holder)?)
}

/// Ends that. The notes stay on both sides.
pub fn leave(root: &Root, env: &Env) -> Result<Option<String>> {
    let Some(address) = current(root, env) else { return Ok(None) };
    root.make()?;
    // What is being sent now would still arrive there.
    let _sync = match hold(root)? {
        RunLock::Acquired(file) => file,
        RunLock::HeldBy(who) => {
            return Err(Error::busy(format!("nothing was done: {who} is syncing this store"))
                .hint("run it again when that has ended"));
        }
    };
    let git = Git::new(root, env)?;
    let _lock = lock_history(root)?;
    // Also what it has of the remote's branches.
    git.run(&["remote", "remove", NAME])?;
    git.run(&["update-ref", "-d", SEEN])?;
    Health::change(root, |health| health.synced = None);
    Ok(Some(shown(&address)))
}

/// The remote's branch that belongs to the local one, if that is set up.
pub(super) fn upstream(git: &Git, local: &str) -> Result<Option<String>> {
    let merge = git.maybe_line(&["config", "--local", "--get", &format!("branch.{local}.merge")])?;
    Ok(merge.and_then(|merge| merge.strip_prefix("refs/heads/").map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_what_git_says_before_its_advice() {
        const ADVICE: &str = "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct \
                              access rights\nand the repository exists.\n";
        for (said, expected) in [
            ("git@h: Permission denied (publickey).\n", "git@h: Permission denied (publickey)."),
            ("Host key verification failed.\r\n", "Host key verification failed."),
            (
                "fatal: '/x' does not appear to be a git repository\n",
                "'/x' does not appear to be a git repository",
            ),
            (
                "ssh: connect to host h port 22: Connection refused\n",
                "ssh: connect to host h port 22: Connection refused",
            ),
            ("remote: Repository not found.\nfatal: it is gone\n", "Repository not found.; it is gone"),
        ] {
            assert_eq!(reason(&format!("{said}{ADVICE}")), expected);
        }
    }

    #[test]
    fn logins_are_not_shown() {
        for (address, expected) in [
            ("https://u:p@host.org/x.git", "https://host.org/x.git"),
            ("https://host.org/a@b", "https://host.org/a@b"),
            ("ssh://git@host/x", "ssh://host/x"),
            ("git@host:x.git", "git@host:x.git"),
            ("/srv/x", "/srv/x"),
            ("https://u:p@ss@host", "https://host"),
        ] {
            assert_eq!(shown(address), expected);
        }
        assert_eq!(
            without_logins("unable to access 'https://u:p@host/x/': The requested URL"),
            "unable to access 'https://host/x/': The requested URL"
        );
    }
}
