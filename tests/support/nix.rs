//! Nix's own evaluator, for the stand-ins in tests/nix/.

use crate::support::{Said, Sandbox, root, say};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Nix with a private, empty store and without network.
pub(crate) struct Nix {
    pub(crate) sandbox: Sandbox,
}

impl Nix {
    /// `None` if Nix is not installed; the test is reported as skipped.
    pub(crate) fn here() -> Option<Nix> {
        if Command::new("nix-instantiate").arg("--version").output().is_err() {
            say("SKIPPED, no nix-instantiate: nothing of Nix was looked at");
            return None;
        }
        Some(Nix { sandbox: Sandbox::new() })
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let at = |dir: &str| self.sandbox.home().join("nix").join(dir);
        let mut command = Command::new(program);
        command
            .env("HOME", self.sandbox.home())
            .env("NIX_STORE_DIR", at("store"))
            .env("NIX_STATE_DIR", at("state"))
            .env("NIX_LOG_DIR", at("log"))
            .env("NIX_CONF_DIR", at("conf"))
            .env("NIX_CONFIG", "experimental-features = nix-command flakes\ndownload-attempts = 1")
            .env_remove("NIX_PATH")
            .env_remove("NIX_REMOTE")
            .env("https_proxy", "http://127.0.0.1:9")
            .env("http_proxy", "http://127.0.0.1:9")
            .current_dir(root());
        command
    }

    /// The value at `path` of a file.
    pub(crate) fn evaluate(&self, file: &str, path: &str) -> Result<Value, String> {
        let mut nix = self.command("nix-instantiate");
        nix.args(["--eval", "--strict", "--json", "--read-write-mode", file, "-A", path]);
        let output = nix.output().unwrap();
        if !output.status.success() {
            return Err(output.err());
        }
        assert_eq!(output.err(), "", "{file} {path}");
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    }

    pub(crate) fn expression(&self, expression: &str) -> Value {
        let mut nix = self.command("nix-instantiate");
        nix.args(["--eval", "--strict", "--json", "--read-write-mode", "--expr", expression]);
        let output = nix.output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn value(&self, file: &str, path: &str) -> Value {
        self.evaluate(file, path).unwrap()
    }

    /// The files that a case produces on a host, by path.
    pub(crate) fn files(&self, case: &str, host: &str) -> BTreeMap<String, String> {
        let files = self.value("tests/nix", &format!("right.{case}.{host}.files"));
        serde_json::from_value(files).unwrap()
    }
}
