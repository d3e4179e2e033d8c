//! The flake, the package and the modules, as far as they can be looked at without nixpkgs: with stand-ins for it
//! (tests/nix/) and Nix's own evaluator. Where there is no Nix, each test says that it shows nothing.

use crate::support::nix::Nix;
use crate::support::{Said, Sandbox, binary, programs, set_mode};
use crate::support::{root, say};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set, the tests write down what they see, instead of comparing: for a change that is meant.
const WRITE: &str = "AXE_WRITE_GOLDEN";

/// Compares with the file `tests/nix/golden/NAME`, or writes it.
fn golden(name: &str, text: &str) {
    compared(&root().join("tests/nix/golden").join(name), text);
}

fn compared(path: &Path, text: &str) {
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(expected == text, "{} differs (set {WRITE}=1 to write it):\n{text}", path.display());
}

fn nix_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            nix_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "nix") {
            found.push(path);
        }
    }
}

fn all_nix_files() -> Vec<PathBuf> {
    let mut files = vec![root().join("flake.nix")];
    nix_files(&root().join("nix"), &mut files);
    nix_files(&root().join("packaging"), &mut files);
    nix_files(&root().join("tests/nix"), &mut files);
    assert!(files.len() > 10, "{files:?}");
    files
}

#[test]
fn every_nix_file_parses() {
    let Some(nix) = Nix::here() else { return };
    let output = nix.command("nix-instantiate").arg("--parse").args(all_nix_files()).output().unwrap();
    assert!(output.status.success(), "{}", output.err());
}

#[test]
fn every_nix_file_is_formatted_and_has_no_dead_code() {
    for (program, args) in [("nixfmt", &["--check"][..]), ("deadnix", &["--fail"])] {
        match Command::new(program).args(args).args(all_nix_files()).output() {
            Ok(output) => assert!(output.status.success(), "{program}: {}{}", output.out(), output.err()),
            Err(_) => say(&format!("SKIPPED, no {program}: the Nix files' style was not looked at")),
        }
    }
}

#[test]
fn the_lock_holds_one_input_and_fits_the_flake() {
    let Some(nix) = Nix::here() else { return };
    let lock: Value = serde_json::from_slice(&fs::read(root().join("flake.lock")).unwrap()).unwrap();
    assert_eq!((&lock["version"], &lock["root"]), (&json!(7), &json!("root")));
    let nodes = lock["nodes"].as_object().unwrap();
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["nixpkgs", "root"]);
    assert_eq!(nodes["root"], json!({ "inputs": { "nixpkgs": "nixpkgs" } }));
    let locked = nodes["nixpkgs"]["locked"].as_object().unwrap();
    let text = |key: &str| locked[key].as_str().unwrap();
    assert_eq!((text("owner"), text("repo"), text("type")), ("NixOS", "nixpkgs", "github"));
    assert!(text("rev").len() == 40 && text("rev").bytes().all(|b| b.is_ascii_hexdigit()));
    assert!(text("narHash").starts_with("sha256-") && text("narHash").len() == 51);
    assert!(locked["lastModified"].is_u64() && locked.len() == 6);

    // A lock that does not fit makes Nix ask the network for another, and there is none.
    let flake = fs::read_to_string(root().join("flake.nix")).unwrap();
    let metadata = |flake: &str| {
        let dir = nix.sandbox.work().join("flake");
        nix.sandbox.write(&dir.join("flake.nix"), flake);
        fs::copy(root().join("flake.lock"), dir.join("flake.lock")).unwrap();
        let place = format!("path:{}", dir.display());
        let mut command = nix.command("nix");
        command.args(["flake", "metadata", "--json", "--offline", "--no-update-lock-file", &place]);
        command.output().unwrap()
    };
    let other = flake.replace("nixos-26.05", "nixos-25.11");
    assert_ne!(flake, other);
    assert_ne!(metadata(&other).code(), Some(0), "an old lock would be seen");
    let output = metadata(&flake);
    assert!(output.status.success(), "{}", output.err());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["locks"], lock);
    assert!(!said["description"].as_str().unwrap().is_empty());
}

#[test]
fn the_flake_has_an_app_for_every_program_and_a_module_for_every_host() {
    let Some(nix) = Nix::here() else { return };
    let outputs = nix.value("tests/nix/outputs.nix", "names");
    let expected = [
        "apps", "checks", "darwinModules", "devShells", "formatter", "homeManagerModules", "homeModules",
        "nixosModules", "overlays", "packages",
    ];
    assert_eq!(outputs, json!(expected));
    let systems = nix.value("tests/nix/outputs.nix", "systems");
    for (output, systems) in systems.as_object().unwrap() {
        assert_eq!(systems, &json!(["aarch64-darwin", "aarch64-linux", "x86_64-linux"]), "{output}");
    }
    let apps: BTreeMap<String, String> =
        serde_json::from_value(nix.value("tests/nix/outputs.nix", "apps")).unwrap();
    let mut names = programs();
    names.push("default".to_owned());
    names.sort();
    assert_eq!(apps.keys().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    for (name, program) in &apps {
        let name = if name == "default" { "axe" } else { name };
        assert!(program.ends_with(&format!("-axe/bin/{name}")), "{program}");
    }
    let overlay = nix.value("tests/nix/outputs.nix", "overlay");
    assert_eq!(overlay.as_str().map(Path::new), Some(root().join("nix/package.nix").as_path()));
    for (host, packages) in nix.value("tests/nix/outputs.nix", "packages").as_object().unwrap() {
        assert_eq!(packages, &json!(["axe", "axe"]), "{host}");
    }
}

/// All files of a case on a host, one below the other.
fn listing(result: &Value) -> String {
    let mut text = format!("packages: {}\n", result["packages"]);
    for warning in result["warnings"].as_array().unwrap() {
        text += &format!("warning: {}\n", warning.as_str().unwrap().trim_end());
    }
    for (path, content) in result["files"].as_object().unwrap() {
        text += &format!("\n==== {path}\n{}", content.as_str().unwrap());
        text.truncate(text.trim_end_matches('\n').len());
        text.push('\n');
    }
    text
}

#[test]
fn right_configurations_give_the_units_plists_and_files_of_the_golden_ones() {
    let Some(nix) = Nix::here() else { return };
    let right = nix.value("tests/nix", "right");
    let mut seen = Vec::new();
    for (case, hosts) in right.as_object().unwrap() {
        for (host, result) in hosts.as_object().unwrap() {
            golden(&format!("{case}/{host}.txt"), &listing(result));
            seen.push(format!("{case}/{host}.txt"));
            if case == "disabled" {
                // Of a module that is switched off, what removes its links stays.
                let left: Vec<&String> = result["files"].as_object().unwrap().keys().collect();
                let clean_up: &[&str] = match &**host {
                    "nixos" => &["activation/axe", "bin/axe-links"],
                    "nix-darwin" => &["activation/postActivation", "bin/axe-links"],
                    _ => &[],
                };
                assert_eq!(left, clean_up, "{host}");
                assert_eq!((&result["packages"], &result["warnings"]), (&json!([]), &json!([])), "{host}");
            }
        }
    }
    assert!(seen.len() >= 14, "{seen:?}");
}

#[test]
fn wrong_values_are_refused_by_all_hosts_with_a_message_that_helps() {
    let Some(nix) = Nix::here() else { return };
    let wrong = nix.value("tests/nix", "wrong");
    let mut text = String::new();
    for (case, hosts) in wrong.as_object().unwrap() {
        let hosts = hosts.as_object().unwrap();
        assert_eq!(hosts.len(), 4);
        text += &format!("{case}\n");
        for (host, messages) in hosts {
            // systemd takes any calendar expression; launchd takes few.
            let is_fine = match &**case {
                "calendar-of-systemd" => ["home-manager-linux", "nixos"].contains(&&**host),
                // A user's own home has one user.
                "remote-of-all-users" => host != "nixos",
                _ => false,
            };
            assert_eq!(messages.as_array().unwrap().is_empty(), is_fine, "{case} {host}");
            if host == "nix-darwin" {
                for message in messages.as_array().unwrap() {
                    text +=
                        &format!("    {}\n", message.as_str().unwrap().trim_end().replace('\n', "\n    "));
                }
            }
            assert!(!messages.to_string().contains("sk-123"), "a key stands in the message");
        }
    }
    golden("wrong.txt", &text);
}

#[test]
fn values_of_the_wrong_type_end_the_evaluation() {
    let Some(nix) = Nix::here() else { return };
    let cases = [
        ("a-path-is-no-string", "services.agent-memory.environmentFile' is not of type `null or string'"),
        ("an-unknown-option", "services.agent-memory.consolidte' does not exist"),
        ("an-unknown-option-of-an-agent", "programs.axe.agents.reviewer.shedule' does not exist"),
        ("an-unknown-unit-of-time", "programs.axe.agents.reviewer.schedule.minutes' does not exist"),
        (
            "hours-as-text",
            "services.agent-memory.consolidate.intervalHours' is not of type `integer between 1",
        ),
        ("hours-negative", "services.agent-memory.defrag.intervalHours' is not of type `integer between 1"),
        ("hours-of-a-year", "services.agent-memory.defrag.intervalHours' is not of type `integer between 1"),
        ("hours-zero", "services.agent-memory.consolidate.intervalHours' is not of type `integer between 1"),
        ("null-in-toml", "programs.axe.settings.retry' is not of type `TOML value'"),
        ("seconds-zero", "programs.axe.agents.reviewer.schedule.interval' is not of type `positive integer"),
        ("settings-as-text", "services.agent-memory.settings' is not of type"),
        ("target-that-is-a-number", "services.agent-memory.targets.*' is not of type"),
    ];
    for (case, message) in cases {
        for host in ["home-manager-linux", "nixos", "nix-darwin"] {
            let error = nix.evaluate("tests/nix", &format!("impossible.{case}.{host}")).unwrap_err();
            assert!(error.contains(message), "{case} {host}: {error}");
        }
    }
    let names: Vec<&str> = cases.iter().map(|(case, _)| *case).collect();
    assert_eq!(nix.value("tests/nix", "impossibleNames"), json!(names));
    let error = nix.evaluate("tests/nix", "misplaced").unwrap_err();
    assert!(error.contains("class nixos is used in a configuration of class homeManager"), "{error}");
}

#[test]
fn the_table_of_options_is_made_from_the_modules() {
    let Some(nix) = Nix::here() else { return };
    let table = nix.value("tests/nix", "options");
    let text = format!(
        "# The options of the modules\n\n\
         They are the same for home-manager, NixOS and nix-darwin. NixOS has one more, `services.agent-memory.users`: the users \
         whose timers run. This page is generated from nix/modules/options.nix.\n\n{}",
        table.as_str().unwrap()
    );
    assert!(text.lines().all(|line| !line.ends_with("|  |")), "an option has no description");
    compared(&root().join("nix/OPTIONS.md"), &text);
}

#[test]
fn the_package_reads_what_is_there_and_installs_a_page_and_completions_for_every_program() {
    let Some(nix) = Nix::here() else { return };
    let package = nix.value("tests/nix/package.nix", "package");
    let mut sources: Vec<&str> =
        package["src"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    sources.sort_unstable();
    for source in &sources {
        assert!(Path::new(source).exists(), "{source}");
    }
    for needed in
        ["Cargo.toml", "Cargo.lock", "bins", "fuzz", "lib", "man", "tests", "launchd", "systemd", "README.md"]
    {
        assert!(sources.contains(&root().join(needed).to_str().unwrap()), "{needed}");
    }
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(package["meta"]["description"], env!("CARGO_PKG_DESCRIPTION"));

    // What is written down there for nixpkgs must follow what Cargo.toml says.
    let by_name = nix.value("tests/nix/package.nix", "by-name");
    assert_eq!(
        (&by_name["version"], &by_name["meta"]["description"]),
        (&package["version"], &package["meta"]["description"])
    );
    assert_eq!(
        (&by_name["src"]["tag"], &by_name["pname"]),
        (&json!(format!("v{}", env!("CARGO_PKG_VERSION"))), &json!(env!("CARGO_PKG_NAME")))
    );

    // nixpkgs' two helpers, as far as our call of them goes.
    let helpers = r#"
        set -eu
        installManPage() { mkdir -p "$out/man" && test -s "$1" && cp "$1" "$out/man/"; }
        installShellCompletion() {
            test "$#" = 8 && test "$1" = --cmd
            name=$2; shift 2
            while [ "$#" -gt 0 ]; do mkdir -p "$out/${1#--}" && test -s "$2" && cp "$2" "$out/${1#--}/$name"; shift 2; done
        }
    "#;
    let sandbox = Sandbox::new();
    let out = sandbox.home().join("out");
    fs::create_dir_all(&out).unwrap();
    crate::support::symlink(binary("axe").parent().unwrap(), out.join("bin"));
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(format!("{helpers}{}", package["postInstall"].as_str().unwrap()));
    let output = bash.env("out", &out).current_dir(sandbox.work()).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    for file in fs::read_dir(root().join("man")).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        let name = file.strip_suffix(".7.md").unwrap();
        let page = fs::read_to_string(out.join(format!("man/{name}.7"))).unwrap();
        let title = name.to_uppercase().replace('-', "\\-");
        assert!(page.starts_with(&format!(".TH \"{title}\" \"7\"")), "{page}");
    }
    for program in programs() {
        let page = fs::read_to_string(out.join(format!("man/{program}.1"))).unwrap();
        assert!(
            page.starts_with(&format!(".TH \"{}\"", program.to_uppercase().replace('-', "\\-"))),
            "{page}"
        );
        for shell in ["bash", "zsh", "fish"] {
            let script = fs::read_to_string(out.join(shell).join(&program)).unwrap();
            assert!(script.contains(&program), "{shell} {program}");
        }
    }
}

/// The blocks of a language in a page, each with the last file name in backticks before it.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<(&'a str, &'a str)> {
    let fence = format!("```{language}\n");
    let mut found = Vec::new();
    for (at, _) in page.match_indices(&fence) {
        let text = page[at + fence.len()..].split("```").next().unwrap();
        let named = page[..at].rsplit('`').skip(1).step_by(2);
        found.push((named.into_iter().find(|name| name.ends_with(".nix")).unwrap_or(""), text));
    }
    found
}

#[test]
fn its_readme_leads_from_a_flake_to_the_first_note_in_agents_md() {
    let Some(nix) = Nix::here() else { return };
    let readme = fs::read_to_string(root().join("nix/README.md")).unwrap();
    let dir = nix.sandbox.work();
    let files = blocks(&readme, "nix");
    let (mut names, mut of_nixos) = (Vec::new(), None);
    for (name, text) in files {
        // The second block about secrets is another way, for NixOS.
        if names.contains(&name) {
            assert_eq!(of_nixos.replace(text), None, "{name} is there twice");
            fs::write(dir.join("nixos.nix"), text).unwrap();
            continue;
        }
        names.push(name);
        fs::write(dir.join(name), text).unwrap();
    }
    let expected = [
        "flake.nix", "memory.nix", "command.nix", "nightly.nix", "targets.nix", "hooks.nix", "secret.nix",
        "digest.nix",
    ];
    assert_eq!((&names[..], of_nixos.is_some()), (&expected[..], true));
    fs::write(dir.join("home.nix"), "{ }").unwrap();

    let homes =
        nix.expression(&format!("(import ./tests/nix/outputs.nix).homes {}/flake.nix", dir.display()));
    let unit = "systemd/user/agent-memory-consolidate.timer";
    assert!(homes["ada"].as_array().unwrap().contains(&json!(unit)), "{homes}");
    let outputs = nix.value("tests/nix/outputs.nix", "names").to_string();
    for module in ["homeModules", "darwinModules", "nixosModules"] {
        assert!(readme.contains(&format!("axe.{module}.axe")) && outputs.contains(module));
    }
    let tried =
        |file: &str| nix.expression(&format!("(import ./tests/nix {{ }}).tried {}/{file}", dir.display()));
    let hosts = tried("memory.nix");
    assert_eq!(hosts.as_object().unwrap().len(), 4);
    for (host, result) in hosts.as_object().unwrap() {
        assert_eq!((&result["broken"], &result["warnings"]), (&json!([]), &json!([])), "{host}");
        let files = result["files"].to_string();
        assert!(files.contains("run-digest.timer") || files.contains("run.digest.plist"), "{host}: {files}");
        assert!(files.contains("memory-recall --harness codex"), "{host}");
    }
    let on_nixos =
        nix.expression(&format!("((import ./tests/nix {{ }}).tried {}/nixos.nix).nixos", dir.display()));
    assert_eq!(on_nixos["broken"], json!([]));

    first_note(&readme, &hosts["home-manager-linux"]["files"]);
}

/// The last two blocks for the shell, with a stand-in for an LLM, and for what is of the machine.
fn first_note(readme: &str, files: &Value) {
    let sandbox = Sandbox::new();
    let home = sandbox.home();
    let config = files["~/.config/agent-memory/config.json"].as_str().unwrap();
    sandbox.write(&home.join(".config/agent-memory/config.json"), config);
    let body = "Staging deploys run from the branch release.";
    let script = sandbox.script(&format!("say([note('Staging deploys', body='{body}', scope='global')])"));
    sandbox.write(&home.join("bin/claude"), format!("#!/bin/sh\nexec {script}\n"));
    set_mode(&home.join("bin/claude"), 0o755);
    let service = files["systemd/user/agent-memory-consolidate.service"].as_str().unwrap();
    let start = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let start = start.strip_prefix("/nix/store/00000000000000000000000000000000-axe/bin/").unwrap();
    let shell = blocks(readme, "sh");
    let walk: String = shell.iter().skip(1).map(|(_, text)| *text).collect();
    let program = format!(
        "home-manager() {{ :; }}\nloginctl() {{ :; }}\n\
         systemctl() {{ case \"$*\" in *\" start agent-memory-consolidate\") {start} ;; esac; }}\nset -e\n{walk}"
    );
    let mut bash = Command::new("bash");
    let bin = binary("memory").parent().unwrap().display().to_string();
    bash.args(["-c", &program]).env_clear().current_dir(sandbox.work()).env("HOME", &home);
    bash.env("PATH", format!("{}:{bin}:/usr/bin:/bin", home.join("bin").display()));
    let output = bash.output().unwrap();
    assert_eq!(output.code(), Some(0), "{}{}", output.out(), output.err());
    let told = fs::read_to_string(home.join(".codex/AGENTS.md")).unwrap();
    assert!(told.contains(body), "{told}");
    assert!(output.out().contains("Staging deploys"), "{}", output.out());
}
