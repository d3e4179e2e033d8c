//! Shell completions, from the same tables as `--help`: commands, flags, and values where the table says what is offered.
//!
//! A script holds what does not change. The values come from the program: `memory completions notes` prints those that begin
//! as the word that is typed.

use crate::base::cli::about::About;
use crate::base::cli::flag::{Completes, Flag, FlagValue};
use std::fmt::Write;

/// Makes a script that completes programs. That of a dispatcher completes all programs of its `family` behind its own name.
pub type Completer = fn(programs: &[&About], family: &[&About]) -> String;

/// The completer for a shell.
pub fn completer(shell: &str) -> Option<Completer> {
    match shell {
        "bash" => Some(bash),
        "zsh" => Some(zsh),
        "fish" => Some(fish),
        _ => None,
    }
}

fn family_of(about: &About) -> &'static str {
    about.name.split('-').next().unwrap_or(about.name)
}

fn is_dispatcher(about: &About) -> bool {
    !about.name.contains('-')
}

/// The programs whose functions a script needs.
fn needed<'a>(programs: &'a [&'a About], family: &'a [&'a About]) -> &'a [&'a About] {
    if programs.iter().any(|about| is_dispatcher(about)) { family } else { programs }
}

/// The helpers of a script, with the name of the family.
fn helpers(template: &str, programs: &[&About]) -> String {
    programs.first().map_or_else(String::new, |about| template.replace("FAMILY", family_of(about)))
}

/// What is offered for the value of a flag, in a shell's own words.
fn offered(flag: &Flag, words: impl Fn(&str) -> String, of: impl Fn(Completes) -> String) -> String {
    match (flag.kind, flag.completes) {
        (FlagValue::OneOf(all), _) => words(&all.join(" ")),
        (_, completes) => of(completes),
    }
}

fn bash(programs: &[&About], family: &[&About]) -> String {
    let mut out = helpers(include_str!("completions/bash.sh"), programs);
    for about in needed(programs, family) {
        bash_function(&mut out, about);
    }
    for about in programs {
        // bash 3.2 cannot say in a function that files are meant; there they are what is offered last.
        let (function, name) = (function_name(about.name), about.name);
        let _ = writeln!(
            out,
            "if [ \"${{BASH_VERSINFO[0]}}\" -ge 4 ]; then complete -F {function} {name}; \
             else complete -o default -F {function} {name}; fi"
        );
    }
    out
}

fn bash_function(out: &mut String, about: &About) {
    let (function, family) = (function_name(about.name), family_of(about));
    let words = |words: &str| format!("_{family}_words {}", quote(words));
    let of = |completes| match completes {
        // No branch is empty.
        Completes::Nothing => ":".to_owned(),
        Completes::Files => format!("_{family}_files"),
        Completes::Words(all) => words(all),
        Completes::Values(kind) => format!("_{family}_values {kind}"),
    };
    let _ = writeln!(out, "{function}() {{");
    if is_dispatcher(about) {
        // A command is completed like the program that it runs.
        let _ = writeln!(
            out,
            "    local __{family}_at=$((COMP_CWORD - 1)) below=\"{function}_${{COMP_WORDS[1]//-/_}}\"\n    \
             if [ \"$COMP_CWORD\" -gt 1 ]; then\n        \
             ! declare -F \"$below\" >/dev/null || \"$below\" \"$@\"\n        return\n    fi"
        );
    }
    let _ =
        writeln!(out, "    local word option before\n    _{family}_typed \"$2\"\n    case \"$option\" in");
    for flag in about.all_flags().filter(|flag| !flag.value.is_empty()) {
        let _ = writeln!(out, "        {}) {} ;;", spellings(flag).join(" | "), offered(flag, words, of));
    }
    let flags = words(&about.all_flags().flat_map(spellings).collect::<Vec<_>>().join(" "));
    let rest = match (about.completes, about.commands.is_empty()) {
        // Where nothing else is meant, the flags are shown.
        (Completes::Nothing, true) => flags.clone(),
        (completes, true) => of(completes),
        (completes, false) => {
            let (names, later) = (words(&names(about).join(" ")), of(completes));
            format!("if [ \"${{__{family}_at:-$COMP_CWORD}}\" -le 1 ]; then {names}; else {later}; fi")
        }
    };
    let _ = writeln!(
        out,
        "        *) case \"$word\" in\n            -*) {flags} ;;\n            *) {rest} ;;\n        esac ;;\n    esac\n}}"
    );
    for (alias, command) in about.aliases {
        let (alias, command) = (function_name(alias), function_name(command));
        let _ = writeln!(out, "{function}{alias}() {{ {function}{command} \"$@\"; }}");
    }
}

fn zsh(programs: &[&About], family: &[&About]) -> String {
    let names: Vec<_> = programs.iter().map(|about| about.name).collect();
    let mut out = format!("#compdef {}\n", names.join(" "));
    out += &helpers(include_str!("completions/zsh.sh"), programs);
    for about in needed(programs, family) {
        zsh_function(&mut out, about);
    }
    // Read by eval, this registers a function for each program. As a file on fpath, it is called as the function of
    // the first program, once.
    for about in programs {
        let _ = writeln!(out, "compdef {} {}", function_name(about.name), about.name);
    }
    out.push_str("if [ -n \"$service\" ]; then\n    case \"$service\" in\n");
    for about in programs {
        let _ = writeln!(out, "        {}) {} \"$@\" ;;", about.name, function_name(about.name));
    }
    out.push_str("    esac\nfi\n");
    out
}

fn zsh_function(out: &mut String, about: &About) {
    let (function, family) = (function_name(about.name), family_of(about));
    let _ = writeln!(out, "{function}() {{");
    if is_dispatcher(about) {
        let _ = writeln!(
            out,
            "    local below=\"{function}_${{words[2]//-/_}}\"\n    if (( CURRENT > 2 )); then\n        \
             (( $+functions[$below] )) || return 1\n        \
             shift words; (( CURRENT-- )); $below; return\n    fi"
        );
    }
    out.push_str("    _arguments -s \\\n");
    // A space offers nothing.
    let of = |completes| match completes {
        Completes::Nothing => " ".to_owned(),
        Completes::Files => "_files".to_owned(),
        Completes::Words(all) => format!("({all})"),
        Completes::Values(kind) => format!("_{family}_values {kind}"),
    };
    for flag in about.all_flags() {
        let help = flag.help.replace('[', "(").replace(']', ")").replace(':', "\\:");
        let value = flag.value.replace(':', "\\:");
        let tail = match flag.value {
            "" => String::new(),
            _ => format!(":{value}:{}", offered(flag, |words| format!("({words})"), of)),
        };
        // With a value it may be given again, and the value may follow a sign of equality.
        let star = if flag.value.is_empty() { "" } else { "*" };
        for spelling in spellings(flag) {
            let equals = if flag.value.is_empty() || !spelling.starts_with("--") { "" } else { "=" };
            let _ = writeln!(out, "        {} \\", quote(&format!("{star}{spelling}{equals}[{help}]{tail}")));
        }
    }
    let names = names(about);
    if !names.is_empty() {
        let _ = writeln!(out, "        {} \\", quote(&format!("1:command:({})", names.join(" "))));
    }
    let _ = writeln!(out, "        {}\n}}", quote(&format!("*:word:{}", of(about.completes))));
    for (alias, command) in about.aliases {
        let (alias, command) = (function_name(alias), function_name(command));
        let _ = writeln!(out, "{function}{alias}() {{ {function}{command} }}");
    }
}

fn fish(programs: &[&About], family: &[&About]) -> String {
    let mut out = helpers(include_str!("completions/fish.fish"), programs);
    for about in programs {
        fish_lines(&mut out, about, about.name, "", 2);
        for below in family.iter().filter(|below| is_dispatcher(about) && below.name != about.name) {
            let command = below.name.trim_start_matches(about.name).trim_start_matches('-');
            let names =
                std::iter::once(command).chain(about.aliases_of(command)).collect::<Vec<_>>().join(" ");
            fish_lines(&mut out, below, about.name, &format!("__{}_word 2 {names}", about.name), 3);
        }
    }
    out
}

/// `at`: which word of the command line is the first of the program's own. `behind`: the condition under which it is meant.
fn fish_lines(out: &mut String, about: &About, name: &str, behind: &str, at: usize) {
    let family = family_of(about);
    let when = |also: &str| match (behind, also) {
        ("", "") => String::new(),
        ("", one) | (one, "") => format!(" -n {}", quote_fish(one)),
        (one, two) => format!(" -n {}", quote_fish(&format!("{one}; and {two}"))),
    };
    let values =
        |kind: &str| format!("-a {}", quote_fish(&format!("({family} completions {kind} 2>/dev/null)")));
    // No files, unless a flag or a word is one.
    let of = |completes| match completes {
        Completes::Nothing => "-x".to_owned(),
        Completes::Files => "-r -F".to_owned(),
        Completes::Words(all) => format!("-x -a {}", quote_fish(all)),
        Completes::Values(kind) => format!("-x {}", values(kind)),
    };
    if behind.is_empty() {
        let _ = writeln!(out, "complete -c {name} -f");
    }
    let is_first = format!("__{family}_word {at}");
    for (command, help) in about.commands {
        for command in std::iter::once(*command).chain(about.aliases_of(command)) {
            let _ =
                writeln!(out, "complete -c {name}{} -a {command} -d {}", when(&is_first), quote_fish(help));
        }
    }
    let is_later = if about.commands.is_empty() { String::new() } else { format!("not {is_first}") };
    let words = match about.completes {
        Completes::Nothing => None,
        Completes::Files => Some("-F".to_owned()),
        Completes::Words(all) => Some(format!("-a {}", quote_fish(all))),
        Completes::Values(kind) => Some(values(kind)),
    };
    if let Some(words) = words {
        let _ = writeln!(out, "complete -c {name}{} {words}", when(&is_later));
    }
    // A dispatcher's own flags are before its command.
    let before = if is_dispatcher(about) { is_first.as_str() } else { "" };
    for flag in about.all_flags() {
        let short = flag.short.map(|short| format!(" -s {short}")).unwrap_or_default();
        let value = match flag.value {
            "" => String::new(),
            _ => format!(" {}", offered(flag, |words| format!("-x -a {}", quote_fish(words)), of)),
        };
        let (long, help) = (flag.long, quote_fish(flag.help));
        let _ = writeln!(out, "complete -c {name}{}{short} -l {long}{value} -d {help}", when(before));
    }
}

/// The names of the commands, and their aliases.
fn names(about: &About) -> Vec<&'static str> {
    about.commands.iter().flat_map(|(name, _)| std::iter::once(*name).chain(about.aliases_of(name))).collect()
}

/// `-p`, `--prompt`
fn spellings(flag: &Flag) -> Vec<String> {
    flag.short.map(|short| format!("-{short}")).into_iter().chain([format!("--{}", flag.long)]).collect()
}

fn function_name(name: &str) -> String {
    format!("_{}", name.replace('-', "_"))
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// In fish a backslash escapes inside single quotes too.
fn quote_fish(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
