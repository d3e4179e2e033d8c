//! What `axe --generate` and `axe completions` print, read by the programs that it is for.

use crate::support::{Said, Sandbox, binary, programs, said, tools};
use std::process::{Command, Stdio};

/// What the dispatcher of a family prints, for one of its programs or for all.
fn generate(family: &str, form: &str, program: Option<&str>) -> String {
    let sandbox = Sandbox::new();
    let mut dispatcher = sandbox.command(family);
    let (code, out, err) = said(dispatcher.args(["--generate", form]).args(program));
    assert_eq!((code, err.as_str()), (Some(0), ""), "{family} {form} {program:?}");
    out
}

const FAMILIES: [&str; 2] = ["axe", "memory"];

fn family_of(program: &str) -> &str {
    program.split('-').next().unwrap()
}

fn family(name: &str) -> Vec<String> {
    programs().into_iter().filter(|program| family_of(program) == name).collect()
}

/// Feeds `text` to a checker and returns what it complains of; `None`, loudly, where there is no such program.
fn complaints(program: &str, args: &[&str], text: &str) -> Option<String> {
    let started = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        let _ =
            std::io::Write::write_all(&mut std::io::stderr(), format!("SKIPPED, no {program}\n").as_bytes());
        return None;
    };
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(if output.status.success() { complaint } else { format!("{}: {complaint}", output.status) })
}

#[test]
fn every_man_page_has_its_sections_and_no_warnings() {
    for program in programs() {
        let family = family_of(&program);
        let page = generate(family, "man", Some(&program));
        assert!(
            page.starts_with(&format!(".TH \"{}\" \"1\" ", program.to_uppercase().replace('-', "\\-"))),
            "{page}"
        );
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS"] {
            assert!(sections.contains(&section), "{program}: {sections:?}");
        }
        let short = program.strip_prefix(&format!("{family}-")).unwrap_or(&program);
        assert_eq!(page, generate(family, "man", Some(short)));
        let said = complaints("groff", &["-man", "-ww", "-z", "-Tutf8"], &page);
        assert!(said.as_deref().unwrap_or("").is_empty(), "{program}: {said:?}");
    }
    for name in FAMILIES {
        assert_eq!(generate(name, "man", None).matches("\n.SH NAME\n").count(), family(name).len());
    }
}

#[test]
fn completions_are_valid_scripts() {
    let checkers =
        [("bash", "bash", &["-n"][..]), ("zsh", "zsh", &["-n"]), ("fish", "fish", &["--no-execute"])];
    for ((form, checker, args), name) in checkers.iter().flat_map(|c| FAMILIES.map(|name| (*c, name))) {
        let script = generate(name, form, None);
        let sandbox = Sandbox::new();
        assert_eq!(
            said(sandbox.command(name).args(["completions", form])),
            (Some(0), script.clone(), String::new())
        );
        for program in family(name) {
            assert!(script.contains(&program), "{form}: {program}");
            let own = generate(name, form, Some(&program));
            assert!(complaints(checker, args, &own).is_none_or(|said| said.is_empty()), "{form} {program}");
        }
        assert!(complaints(checker, args, &script).is_none_or(|said| said.is_empty()), "{form}");
    }
}

#[test]
fn bash_completes_commands_and_flags() {
    let script = generate("axe", "bash", None);
    for (program, typed, expected) in [
        ("axe", "ru", "run"),
        ("axe", "--gen", "--generate"),
        ("axe-run", "--dry", "--dry-run"),
        ("axe-agents", "sh", "show"),
        ("axe-config", "in", "init"),
    ] {
        let function = format!("_{}", program.replace('-', "_"));
        let ask = format!(
            "{script}\nCOMP_WORDS=({program} {typed}); COMP_CWORD=1; {function}; echo \"${{COMPREPLY[*]}}\""
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{program} {typed}");
    }
}

#[test]
fn completing_an_agents_name_runs_nothing() {
    let sandbox = Sandbox::new();
    for name in ["$(touch OWNED)", "`touch OWNED`", "plain"] {
        sandbox.agent_file(name, &format!("name = '{name}'\nmodel = 'a/b'"));
    }
    let script = "eval \"$(axe completions bash)\"; COMP_WORDS=(axe-run ''); COMP_CWORD=1; _axe_run; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", script]).current_dir(sandbox.work()).env("HOME", sandbox.home());
    bash.env_remove("XDG_CONFIG_HOME");
    let path = format!("{}:{}", binary("axe").parent().unwrap().display(), tools());
    let output = bash.env("PATH", path).output().unwrap();
    assert!(output.out().lines().any(|line| line == "plain"), "{}{}", output.out(), output.err());
    assert!(!sandbox.work().join("OWNED").exists() && !output.out().contains("touch"), "{}", output.out());
}
