//! What shells offer: commands, flags, and values that the programs know. In real shells; what notes say is data to them.

use crate::memory_review::propose;
use crate::support::store::{Store, name, note};
use crate::support::terminal::Terminal;
use crate::support::{Said, binary, eventually, present, say, tools};
use serde_json::json;
use std::io::Write;
use std::process::Command;

/// Notes, changes, agents and a repository, with what a shell would run in every text that others write.
fn store() -> Store {
    let store = Store::new();
    let evil = "$(touch OWNED) `touch OWNED`; touch OWNED & a:b 'c' \\\"d\\\" * \\n%F{red}\\e]0;x\\a";
    let source = "scope: repo\ntags: [topic__dev, '$(touch OWNED)', '`touch OWNED`']\nsources:\n  \
         - {harness: amp, threadId: T-1, repo: 'github.com/o/$(touch OWNED)'}\n  - {harness: amp, threadId: T-1, repo: 'local:/src/x'}\n";
    store.put(&format!("topics/{}", name("a1B2c3", "Evil")), note("a1B2c3", &format!("\"{evil}\""), source));
    store.note("a1B2d4", "Ports");
    store.note("Zz9yX1", "Alone");
    store.put("archive/old -- id__a1B2e5.md", note("a1B2e5", "Old", ""));
    propose(&store, "p__a1B2c3", json!({}));
    for name in ["$(touch OWNED)", "`touch OWNED`", "plain"] {
        store.sandbox.agent_file(
            name,
            &format!("name = '{name}'\nmodel = 'ollama/x:8b'\ndescription = '$(touch OWNED)'"),
        );
    }
    store.sandbox.file("a file", "");
    store
}

/// A shell in the sandbox, which finds the programs; `None` where it is not installed.
fn shell(store: &Store, shell: &str, args: &[&str]) -> Option<Command> {
    let plain = store.sandbox.std_command("memory");
    let found = tools().split(':').any(|dir| std::path::Path::new(dir).join(shell).exists());
    if !found {
        assert!(std::env::var_os("AXE_CI").is_none(), "there is no {shell}");
        say(&format!("skipped: there is no {shell}"));
        return None;
    }
    let mut command = Command::new(shell);
    command.args(args).env_clear().envs(present(plain.get_envs()));
    let path = format!("{}:{}", binary("memory").parent().unwrap().display(), tools());
    command.current_dir(plain.get_current_dir().unwrap()).env("PATH", path).env("TERM", "dumb");
    Some(command)
}

fn out(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.err(), "");
    output.out()
}

/// What bash offers at the end of each line, with this type of completion.
fn in_bash(store: &Store, kind: u8, lines: &[&str]) -> Vec<Vec<String>> {
    let mut script = "eval \"$(axe completions bash)\"; eval \"$(memory completions bash)\"\n\
         ask() {\n    COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($2) COMPREPLY=()\n    \
         case \"$1\" in *' ') COMP_WORDS+=('') ;; esac\n    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n    \
         local now=\"${COMP_WORDS[COMP_CWORD]}\"\n    \"_${COMP_WORDS[0]//-/_}\" \"${COMP_WORDS[0]}\" \"$now\" ''\n    \
         printf '%s\\n' \"${COMPREPLY[@]}\" --end\n}\n"
        .to_owned();
    script += &format!("COMP_TYPE={kind}\n");
    for line in lines {
        // Readline begins a word at these.
        let words = line.replace('=', " = ").replace(':', " : ");
        script += &format!("ask '{line}' '{words}'\n");
    }
    let bash = out(&mut shell(store, "bash", &["--norc", "-c", &script]).unwrap());
    let answers: Vec<Vec<String>> = bash
        .trim_end()
        .trim_end_matches("--end")
        .split("--end\n")
        .map(|answer| answer.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect())
        .collect();
    assert_eq!(answers.len(), lines.len(), "{bash}");
    answers
}

#[test]
fn every_kind_that_a_script_asks_for_is_one_that_the_program_prints() {
    let store = store();
    for family in ["axe", "memory"] {
        let script = store.out(family, &["completions", "bash"]);
        let called = format!("_{family}_values ");
        let mut kinds: Vec<&str> =
            script.split(&called).skip(1).filter_map(|rest| rest.split([' ', ';']).next()).collect();
        kinds.sort();
        kinds.dedup();
        let page = store.out(family, &["--generate", "man", family]);
        for kind in &kinds {
            store.out(family, &["completions", kind]);
            assert!(page.contains(&kind.replace('-', "\\-")), "{family}(1) says nothing of {kind}");
        }
        assert_eq!(kinds.len(), if family == "axe" { 2 } else { 6 }, "{kinds:?}");
    }
}

#[test]
fn values_are_those_that_no_shell_reads_in_another_way() {
    let store = store();
    let title = "$(touch OWNED) `touch OWNED`; touch OWNED & a:b 'c' \"d\" * ";
    let notes = store.out("memory", &["completions", "notes"]);
    assert!(
        notes.contains(&format!("id__a1B2c3\t{title}")) && notes.contains("id__a1B2d4\tPorts\n"),
        "{notes}"
    );
    assert!(
        notes.lines().count() == 3 && !notes.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t'))
    );
    for (args, expected) in [
        (&["notes", "id__Z"][..], "id__Zz9yX1\tAlone\n"),
        (&["notes", "--", "-"], ""),
        (&["tags"], "topic__dev\n"),
        (&["tag-changes", "--", "-"], "-topic__dev\n"),
        (&["repositories"], "local:/src/x\n"),
        (&["changes"], "p__a1B2c3\tcreate: Dev server\n"),
        (
            &["harnesses", "c"],
            "claude-code\tClaude Code\ncodex\tCodex\ncopilot\tCopilot CLI\ncursor\tCursor\n",
        ),
    ] {
        let args = [&["completions"], args].concat();
        assert_eq!(store.out("memory", &args), expected, "{args:?}");
    }
    assert_eq!(store.out("axe", &["completions", "agents", "p"]), "plain\n");
    assert_eq!(store.out("axe", &["completions", "models"]), "ollama/x:8b\tof the agent plain\n");
}

#[test]
fn bash_offers_what_is_meant() {
    let store = store();
    let lines = [
        ("memory read id__a1", "id__a1B2c3 id__a1B2d4"),
        ("memory show id__Z", "id__Zz9yX1"),
        ("memory-update id__Z", "id__Zz9yX1"),
        ("memory-list --tag to", "topic__dev"),
        ("memory-list --tag=to", "topic__dev"),
        ("memory update --tag +", "+topic__dev"),
        ("memory ls --tier ", "hot warm cold"),
        ("memory ls --tier=", "hot warm cold"),
        // Only the part behind the colon is replaced.
        ("memory-list --repo local:/s", "/src/x"),
        ("memory-list --repo local:", "/src/x"),
        ("memory-list --query ", ""),
        ("memory-list --lim", "--limit"),
        ("memory-capture --title ", ""),
        ("memory review --accept p__", "p__a1B2c3"),
        ("memory sea", "search"),
        ("memory zebra ", ""),
        ("memory help sea", "search"),
        ("memory help search ", ""),
        ("memory edit id__a1", "id__a1B2c3 id__a1B2d4"),
        ("axe agents sh", "show"),
        ("axe agents show p", "plain"),
        ("axe-run --model ollama/x:", "8b"),
        ("axe-run pl", "plain"),
        ("axe-gc --dry", "--dry-run"),
    ];
    for kind in [9, 37, 42] {
        let offered = in_bash(&store, kind, &lines.map(|(line, _)| line));
        for ((line, expected), offered) in lines.iter().zip(offered) {
            assert_eq!(offered.join(" "), *expected, "{line} ({kind})");
        }
    }
    // In a list that is only shown, each has its title; one alone would be inserted.
    for kind in [33, 63] {
        let listed = in_bash(&store, kind, &["memory read id__a1", "memory read id__Z"]);
        assert!(listed[0][0].starts_with("id__a1B2c3  $(touch OWNED) `"), "{listed:?}");
        assert_eq!(
            (listed[0][1].as_str(), &listed[1]),
            ("id__a1B2d4  Ports", &vec!["id__Zz9yX1".to_owned()])
        );
    }
    assert!(!store.sandbox.work().join("OWNED").exists());
}

/// What an interactive shell shows after these keys. `ready` sets it up.
fn typed(store: &Store, shell_name: &str, args: &[&str], ready: &str, keys: &[(&str, &str)]) {
    let Some(plain) = shell(store, shell_name, args) else { return };
    let mut terminal = Terminal::open();
    terminal.resize(50, 200);
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).arg(plain.get_program()).args(args).env_clear();
    command.envs(present(plain.get_envs())).env("PS1", "$ ");
    command.current_dir(plain.get_current_dir().unwrap());
    command.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
    let Ok(mut child) = command.spawn() else {
        assert!(std::env::var_os("AXE_CI").is_none(), "there is no setsid");
        return say("skipped: there is no setsid");
    };
    drop(command);
    terminal.keyboard.write_all(format!("{ready}; echo re''ady\n").as_bytes()).unwrap();
    eventually("the shell", || terminal.shown().contains("ready"));
    for (keys, expected) in keys {
        let before = terminal.shown().len();
        terminal.keyboard.write_all(keys.as_bytes()).unwrap();
        eventually(&format!("{shell_name}: {expected} in {:?}", terminal.shown()), || {
            terminal.shown()[before..].contains(expected)
        });
    }
    // Kill the line; run nothing that was offered.
    terminal.keyboard.write_all(b"\x15exit\n").unwrap();
    child.wait().unwrap();
    drop(terminal);
    assert!(!store.sandbox.work().join("OWNED").exists(), "{shell_name}");
}

#[test]
fn an_interactive_shell_completes_and_runs_nothing_of_a_note() {
    let store = store();
    let keys = [
        ("memory read id__Z\t", "id__Zz9yX1"),
        ("\x15memory-list --repo local:/s\t", "local:/src/x"),
        // The first changes the line, so only the third lists in bash.
        ("\x15memory show id__a1\t\t\t", "a1B2d4  Ports"),
        ("\x15memory-list --config a\t", "a\\ file"),
        ("\x15axe agents show \t", "plain"),
        ("\x15memory help sea\t", "search"),
    ];
    let bash =
        "eval \"$(axe completions bash)\"; eval \"$(memory completions bash)\"; bind 'set bell-style none'";
    typed(&store, "bash", &["--norc", "--noprofile", "-i"], bash, &keys);
    let zsh = "unsetopt beep; autoload -U compinit; compinit -u -D; eval \"$(axe completions zsh)\"; eval \"$(memory completions zsh)\"";
    typed(&store, "zsh", &["-f", "-i"], zsh, &keys);
}

#[test]
fn fish_offers_what_is_meant() {
    let store = store();
    let lines = [
        ("memory read id__Z", "id__Zz9yX1\tAlone"),
        ("memory show id__a1B2d", "id__a1B2d4\tPorts"),
        ("memory-list --tag=", "--tag=topic__dev"),
        ("memory ls --tier w", "warm"),
        ("memory-list --config a", "a file"),
        ("memory-list --query a", ""),
        ("memory-list a", ""),
        ("memory sea", "search\tlist notes, or search them"),
        ("memory help sea", "search"),
        ("memory update --tag +", "+topic__dev"),
        ("memory-list --repo l", "local:/src/x"),
        ("axe agents sh", "show\tshow what an agent's file sets"),
        ("axe agents show ", "plain"),
        ("axe-run pl", "plain"),
        ("memory read -", "--"),
    ];
    let mut script = "axe completions fish | source; memory completions fish | source\n".to_owned();
    for (line, _) in lines {
        script += &format!("complete -C '{line}'; echo --end\n");
    }
    let Some(mut fish) = shell(&store, "fish", &["--no-config", "-c", &script]) else { return };
    let all = out(&mut fish);
    let offered: Vec<&str> = all.split("--end\n").collect();
    for ((line, expected), offered) in lines.iter().zip(&offered) {
        match *expected {
            // Options alone: every line of a file would begin with its name.
            "--" => assert!(
                offered.contains("--json\t") && offered.lines().all(|line| line.starts_with('-')),
                "{line}: {offered}"
            ),
            expected if expected.contains('\t') => assert_eq!(offered.trim_end(), expected, "{line}"),
            // fish shows what the option is for.
            expected => assert_eq!(offered.split('\t').next().unwrap().trim_end(), expected, "{line}"),
        }
    }
    assert!(!store.sandbox.work().join("OWNED").exists());
}
