//! Shell completions, from the same tables as `--help`: commands, flags, and values where the table says what completes them.
//!
//! A script holds what does not change. The values come from the program: `memory completions notes` prints those that begin
//! as the word that is typed.

use crate::base::cli::about::About;
use crate::base::cli::flag::{Completes, Flag};
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

fn bash(programs: &[&About], family: &[&About]) -> String {
    script(include_str!("completions/bash.sh"), programs, functions(programs, family, bash_function))
}

fn zsh(programs: &[&About], family: &[&About]) -> String {
    script(include_str!("completions/zsh.sh"), programs, functions(programs, family, zsh_function))
}

/// A template with the functions, the names of the programs, and the name of their family.
fn script(template: &str, programs: &[&About], functions: String) -> String {
    let names: Vec<&str> = programs.iter().map(|about| about.name).collect();
    let family = names.first().and_then(|name| name.split('-').next()).unwrap_or_default();
    let script = template.replace("@NAMES@", &names.join(" ")).replace("@FUNCTIONS@\n", &functions);
    script.replace("@FAMILY@", family)
}

/// A function for each program, and for each alias one that calls it.
fn functions(programs: &[&About], family: &[&About], function: fn(&About) -> String) -> String {
    let has_dispatcher = programs.iter().any(|about| is_dispatcher(about));
    let needed = if has_dispatcher { family } else { programs };
    let mut out: String = needed.iter().map(|about| function(about)).collect();
    for (alias, command) in needed.iter().flat_map(|about| about.aliases) {
        let (alias, command) = (function_name(alias), function_name(command));
        let _ = writeln!(out, "_@FAMILY@{alias}() {{ _@FAMILY@{command} \"$@\"; }}");
    }
    out
}

fn is_dispatcher(about: &About) -> bool {
    !about.name.contains('-')
}

/// The call of the helper that offers this.
fn helper(completes: Completes) -> String {
    match completes {
        Completes::Nothing => "__@FAMILY@_nothing".to_owned(),
        Completes::Files => "__@FAMILY@_files".to_owned(),
        Completes::Words(words) => format!("__@FAMILY@_words {}", words.join(" ")),
        Completes::Values(kind) => format!("__@FAMILY@_values {kind}"),
    }
}

fn bash_function(about: &About) -> String {
    let words = |words: &[String]| format!("__@FAMILY@_words {}", words.join(" "));
    let flags = words(&about.all_flags().flat_map(spellings).collect::<Vec<_>>());
    let rest = match (about.completes, &names(about)[..]) {
        // Where nothing else is meant, the flags are shown.
        (Completes::Nothing, []) => flags.clone(),
        (completes, []) => helper(completes),
        (completes, names) => format!(
            "if __@FAMILY@_first; then __@FAMILY@_words {}; else {}; fi",
            names.join(" "),
            helper(completes)
        ),
    };
    let mut out = format!("{}() {{\n", function_name(about.name));
    if is_dispatcher(about) {
        out += "    ! __@FAMILY@_below \"$@\" || return 0\n";
    }
    out += "    local word option before\n    __@FAMILY@_typed \"$2\"\n    case \"$option\" in\n";
    for flag in about.all_flags().filter(|flag| !flag.value.is_empty()) {
        let _ = writeln!(out, "        {}) {} ;;", spellings(flag).join(" | "), helper(flag.completes));
    }
    let _ = writeln!(out, "        *) case \"$word\" in -*) {flags} ;; *) {rest} ;; esac ;;\n    esac\n}}");
    out
}

fn zsh_function(about: &About) -> String {
    let mut out = format!("{}() {{\n", function_name(about.name));
    if is_dispatcher(about) {
        out += "    ! __@FAMILY@_below || return 0\n";
    }
    out += "    _arguments -s";
    for flag in about.all_flags() {
        let escaped = |text: &str| text.replace('[', "(").replace(']', ")").replace(':', "\\:");
        // With a value it may be given again, and the value may follow a sign of equality.
        let (star, equals, value) = match flag.value {
            "" => ("", "", String::new()),
            value => ("*", "=", format!(":{}: {}", escaped(value), helper(flag.completes))),
        };
        for spelling in spellings(flag) {
            let equals = if spelling.starts_with("--") { equals } else { "" };
            out += &argument(&format!("{star}{spelling}{equals}[{}]{value}", escaped(flag.help)));
        }
    }
    let names = names(about);
    if !names.is_empty() {
        out += &argument(&format!("1:command:({})", names.join(" ")));
    }
    out + &argument(&format!("*:word: {}", helper(about.completes))) + "\n}\n"
}

fn argument(text: &str) -> String {
    format!(" \\\n        '{}'", text.replace('\'', "'\\''"))
}

fn fish(programs: &[&About], family: &[&About]) -> String {
    let mut lines = String::new();
    for about in programs {
        let _ = writeln!(lines, "complete -c {} -f", about.name);
        lines += &fish_lines(about, about.name, 2, "");
        for below in family.iter().filter(|below| is_dispatcher(about) && below.name != about.name) {
            let command = &below.name[about.name.len() + 1..];
            let names = with_aliases(about, command).collect::<Vec<_>>().join(" ");
            lines += &fish_lines(below, about.name, 3, &format!("__@FAMILY@_word 2 {names}"));
        }
    }
    script(include_str!("completions/fish.fish"), programs, lines)
}

/// `first`: where on the command line the program's own first word is. `behind`: the condition under which the program is meant.
fn fish_lines(about: &About, name: &str, first: usize, behind: &str) -> String {
    let is_first = format!("__@FAMILY@_word {first}");
    let mut out = String::new();
    let mut add = |condition: &str, what: &str| {
        let conditions = [behind, condition].into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>();
        let when = match &conditions[..] {
            [] => String::new(),
            conditions => format!(" -n {}", quote_fish(&conditions.join("; and "))),
        };
        let _ = writeln!(out, "complete -c {name}{when} {what}");
    };
    for (command, help) in about.commands {
        for command in with_aliases(about, command) {
            add(&is_first, &format!("-a {command} -d {}", quote_fish(help)));
        }
    }
    if is_dispatcher(about) {
        let is_helped = format!("__@FAMILY@_word {first} help; and __@FAMILY@_word {}", first + 1);
        add(&is_helped, &format!("-a {}", quote_fish(&names(about).join(" "))));
    }
    if about.completes != Completes::Nothing {
        let is_later = if about.commands.is_empty() { String::new() } else { format!("not {is_first}") };
        add(&is_later, &fish_values(about.completes));
    }
    // A dispatcher's own flags are before its command.
    let before = if is_dispatcher(about) { is_first.as_str() } else { "" };
    for flag in about.all_flags() {
        let short = flag.short.map(|short| format!("-s {short} ")).unwrap_or_default();
        let value = if flag.value.is_empty() { String::new() } else { fish_values(flag.completes) };
        add(before, &format!("{short}-l {} {value} -d {}", flag.long, quote_fish(flag.help)));
    }
    out
}

fn fish_values(completes: Completes) -> String {
    match completes {
        Completes::Nothing => "-x".to_owned(),
        Completes::Files => "-r -F".to_owned(),
        Completes::Words(words) => format!("-x -a {}", quote_fish(&words.join(" "))),
        Completes::Values(kind) => format!("-x -a '(@FAMILY@ completions {kind} 2>/dev/null)'"),
    }
}

/// In fish a backslash escapes inside single quotes too.
fn quote_fish(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn with_aliases<'a>(about: &'a About, command: &'a str) -> impl Iterator<Item = &'a str> {
    std::iter::once(command).chain(about.aliases_of(command))
}

/// The names of the commands, and their aliases.
fn names(about: &About) -> Vec<&str> {
    about.commands.iter().flat_map(|(name, _)| with_aliases(about, name)).collect()
}

/// `-p`, `--prompt`
fn spellings(flag: &Flag) -> Vec<String> {
    flag.short.map(|short| format!("-{short}")).into_iter().chain([format!("--{}", flag.long)]).collect()
}

fn function_name(name: &str) -> String {
    format!("_{}", name.replace('-', "_"))
}
