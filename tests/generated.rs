//! The output of `axe --generate` and `axe completions`, checked by the programs that read it.

use crate::support::{Said, Sandbox, binary, programs, said, tools};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

/// The output of a family's dispatcher, for one of its programs or for all.
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

/// The pages of section 7, without the section.
fn manuals() -> Vec<String> {
    let files = std::fs::read_dir(crate::support::root().join("man")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut all: Vec<String> = names.map(|name| name.strip_suffix(".7.md").unwrap().to_owned()).collect();
    all.sort();
    all
}

/// What `.ci/run` installs must not be missing there.
fn is_promised(program: &str) -> bool {
    std::env::var_os("AXE_CI").is_some() && program == "mandoc"
}

/// Feeds `text` to a checker and returns its complaints; `None`, with a message, if the program is missing.
fn complaints(program: &str, args: &[&str], text: &str) -> Option<String> {
    let started = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        assert!(!is_promised(program), "{program} is not there, and .ci/run installs it");
        let _ =
            std::io::Write::write_all(&mut std::io::stderr(), format!("SKIPPED, no {program}\n").as_bytes());
        return None;
    };
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    // Pages have no date, so that a second build gives the same bytes.
    let is_one = |line: &&str| !line.contains("WARNING: missing date");
    let said = output.err() + &output.out();
    let complaint = said.lines().filter(is_one).collect::<Vec<_>>().join("\n");
    let is_silent = said.is_empty() && !output.status.success();
    Some(if is_silent { output.status.to_string() } else { complaint })
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
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"] {
            assert!(sections.contains(&section), "{program}: {sections:?}");
        }
        assert!(page.contains(&format!("\n.BR {family} (7)")), "{page}");
        let short = program.strip_prefix(&format!("{family}-")).unwrap_or(&program);
        assert_eq!(page, generate(family, "man", Some(short)));
        is_fine(&program, &page);
    }
}

/// Both programs that format pages accept this one.
fn is_fine(name: &str, page: &str) {
    for (checker, args) in
        [("groff", &["-man", "-ww", "-z", "-Tutf8"][..]), ("mandoc", &["-T", "lint", "-W", "warning"])]
    {
        let said = complaints(checker, args, page);
        assert!(said.as_deref().unwrap_or("").is_empty(), "{name}: {checker}: {said:?}");
    }
}

#[test]
fn every_manual_is_a_page_that_leads_to_all_others() {
    let manuals = manuals();
    for name in FAMILIES {
        let own: Vec<&String> = manuals.iter().filter(|manual| family_of(manual) == name).collect();
        for manual in &own {
            let page = generate(name, "man", Some(&format!("{manual}.7")));
            let title = manual.to_uppercase().replace('-', "\\-");
            assert!(page.starts_with(&format!(".TH \"{title}\" \"7\" ")), "{page}");
            let also: BTreeSet<&str> = page
                .split(".SH SEE ALSO\n")
                .nth(1)
                .unwrap()
                .lines()
                .map(|line| line.strip_prefix(".BR ").unwrap().trim_end_matches(','))
                .collect();
            let programs = family(name).into_iter().map(|program| format!("{program} (1)"));
            let others = manuals.iter().filter(|other| other != manual).map(|other| format!("{other} (7)"));
            let names: Vec<String> = programs.chain(others).map(|name| name.replace('-', "\\-")).collect();
            assert_eq!(also, names.iter().map(String::as_str).collect());
            is_fine(manual, &page);
            let caption = page.lines().nth(2).unwrap().split_once(" \\- ").unwrap().1;
            let text =
                std::fs::read_to_string(crate::support::root().join(format!("man/{manual}.7.md"))).unwrap();
            assert_eq!(text.lines().next(), Some(&*format!("# {manual}(7): {}", caption.replace('\\', ""))));
        }

        let all = generate(name, "man", None);
        assert_eq!(all.matches("\n.SH NAME\n").count(), family(name).len() + own.len());
        let sandbox = Sandbox::new();
        let (code, out, err) = said(sandbox.command(name).args(["--generate", "bash", &format!("{name}.7")]));
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(err.contains(&format!("no program named \"{name}.7\"; use one of {name}, ")), "{err}");
    }
}

#[test]
fn help_prints_a_manual_by_its_topic_or_its_name_in_both_families() {
    let help = |family: &str, topic: &str| {
        let sandbox = Sandbox::new();
        let (code, out, err) = said(sandbox.command(family).args(["help", topic]));
        assert_eq!((code, err.as_str()), (Some(0), ""), "{family} {topic}");
        out
    };
    for manual in manuals() {
        let text =
            std::fs::read_to_string(crate::support::root().join(format!("man/{manual}.7.md"))).unwrap();
        for family in FAMILIES {
            assert_eq!(help(family, &format!("{manual}.7")), text);
        }
        let topic = manual.split_once('-').map_or("formats", |(_, topic)| topic);
        assert_eq!(help(family_of(&manual), topic), text);
        // What the dispatcher's own help lists.
        let own = help(family_of(&manual), "help").replace('\n', " ");
        let listed = own.split("The manuals are ").nth(1).unwrap();
        assert!(listed.contains(topic), "{topic}: {listed}");
    }
    assert_eq!(help("memory", "security"), help("axe", "security"));
    assert_eq!(help("axe", "hooks"), help("memory", "hooks"));
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
        ("axe", "ru", "run runs"),
        ("axe", "--gen", "--generate"),
        ("axe-run", "--dry", "--dry-run"),
        ("axe-agents", "sh", "show"),
        ("axe-config", "in", "init"),
    ] {
        let function = format!("_{}", program.replace('-', "_"));
        let ask = format!(
            "{script}\nCOMP_LINE='{program} {typed}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=($COMP_LINE); COMP_CWORD=1; {function} {program} {typed}; echo \"${{COMPREPLY[*]}}\""
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{program} {typed}");
    }
}

#[test]
fn bash_completes_a_command_below_its_dispatcher() {
    let output = Command::new(binary("memory")).args(["completions", "bash"]).output().unwrap();
    let script = format!(
        "{}\nCOMP_LINE='memory agents-md --pro'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=($COMP_LINE); COMP_CWORD=2; _memory memory --pro; echo \"${{COMPREPLY[*]}}\"",
        output.out()
    );
    let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    assert_eq!(output.out(), "--project\n", "{}", output.err());
}

#[test]
fn completing_an_agents_name_runs_nothing() {
    let sandbox = Sandbox::new();
    for name in ["$(touch OWNED)", "`touch OWNED`", "plain"] {
        sandbox.agent_file(name, &format!("name = '{name}'\nmodel = 'a/b'"));
    }
    let script = "eval \"$(axe completions bash)\"; COMP_LINE='axe-run '; COMP_POINT=8; COMP_WORDS=(axe-run ''); COMP_CWORD=1; _axe_run axe-run ''; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", script]).current_dir(sandbox.work()).env("HOME", sandbox.home());
    bash.env_remove("XDG_CONFIG_HOME");
    let path = format!("{}:{}", binary("axe").parent().unwrap().display(), tools());
    let output = bash.env("PATH", path).output().unwrap();
    assert!(output.out().lines().any(|line| line == "plain"), "{}{}", output.out(), output.err());
    assert!(!sandbox.work().join("OWNED").exists() && !output.out().contains("touch"), "{}", output.out());
}
