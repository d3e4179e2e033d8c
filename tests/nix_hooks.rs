//! The hooks of the Nix modules: the same files as memory-install-hooks writes, for every coding agent that has hooks.

use crate::support::nix::Nix;
use crate::support::{Said, Sandbox, binary};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files below a home by their paths in it, without what is not of a hook. Links are followed.
fn files(home: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![home.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(home).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                dirs.extend((![".local", "Library"].contains(&&*name)).then_some(path));
            } else {
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// Every agent that memory-install-hooks knows, from its own words.
fn agents(sandbox: &Sandbox) -> Vec<String> {
    let said = sandbox.command("memory-install-hooks").args(["--harness", "?"]).output().unwrap().err();
    let (_, names) = said.split_once(" takes ").unwrap();
    let (names, _) = names.split_once(", got ").unwrap();
    names.replace(" or ", ", ").split(", ").map(str::to_owned).collect()
}

/// Where the hooks of a host find the programs, and its files below a home.
fn managed(host: &str, config: &Path, nix: &Nix) -> (&'static str, BTreeMap<String, String>) {
    let expression = format!("((import ./tests/nix {{ }}).tried {}).{host}.files", config.display());
    let given: BTreeMap<String, String> = serde_json::from_value(nix.expression(&expression)).unwrap();
    let sandbox = Sandbox::new();
    let etc = sandbox.work().join("etc");
    for (path, text) in &given {
        if let Some(path) = path.strip_prefix("~/") {
            sandbox.write(&sandbox.home().join(path), text);
        } else if let Some(path) = path.strip_prefix("/etc/") {
            sandbox.write(&etc.join(path), text);
        }
    }
    let Some(links) = given.get("bin/axe-links") else {
        return ("/home/ada/.nix-profile/bin", files(&sandbox.home()));
    };
    let links = links
        .replace("/nix/store/00000000000000000000000000000000-coreutils/bin", "/usr/bin:/bin")
        .replace("/etc/", &format!("{}/", etc.display()))
        .replace("/Users/ada/", &format!("{}/", sandbox.home().display()));
    let output =
        Command::new("bash").args(["-c", &links]).env_clear().env("HOME", sandbox.home()).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""), "{host}");
    ("/run/current-system/sw/bin", files(&sandbox.home()))
}

#[test]
fn the_modules_write_the_same_hooks_as_the_installer_for_every_agent() {
    let Some(nix) = Nix::here() else { return };
    let sandbox = Sandbox::new();
    let agents = agents(&sandbox);
    assert!(agents.len() >= 8, "{agents:?}");
    let mut install = sandbox.command("memory-install-hooks");
    for agent in &agents {
        install.args(["--harness", agent]);
    }
    assert_eq!(install.output().unwrap().code(), Some(0));
    let installed = files(&sandbox.home());
    let here = binary("memory-capture").parent().unwrap().display().to_string();

    let on: String = agents.iter().map(|agent| format!("{agent}.enable = true; ")).collect();
    let config: PathBuf = nix.sandbox.work().join("hooks.nix");
    fs::write(&config, format!("{{ services.agent-memory = {{ enable = true; hooks = {{ {on}}}; }}; }}"))
        .unwrap();
    for host in ["home-manager-linux", "home-manager-macos", "nixos", "nix-darwin"] {
        let (bin, managed) = managed(host, &config, &nix);
        assert_eq!(managed.keys().collect::<Vec<_>>(), installed.keys().collect::<Vec<_>>(), "{host}");
        for (path, text) in &installed {
            let expected = text.replace(&here, bin);
            if path.ends_with(".json") {
                let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                assert_eq!(value(&managed[path]), value(&expected), "{host} {path}");
            } else {
                assert_eq!(managed[path], expected, "{host} {path}");
            }
        }
    }
}
