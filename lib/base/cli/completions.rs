//! Shell completions, from the same tables as `--help`: commands and flags of every program.

use crate::base::cli::about::About;
use std::fmt::Write;

/// Makes a script that completes programs.
pub type Completer = fn(&[&About]) -> String;

/// The completer for a shell.
pub fn completer(shell: &str) -> Option<Completer> {
    match shell {
        "bash" => Some(bash),
        "zsh" => Some(zsh),
        "fish" => Some(fish),
        _ => None,
    }
}

fn bash(programs: &[&About]) -> String {
    let mut out = String::new();
    for about in programs {
        let function = function_name(about);
        let words: Vec<String> = about
            .commands
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .chain(about.all_flags().map(|flag| format!("--{}", flag.long)))
            .chain(about.all_flags().filter_map(|flag| flag.short).map(|short| format!("-{short}")))
            .collect();
        // A dispatcher's commands are completed like the programs that they run.
        let below = match about.name.contains('-') {
            true => String::new(),
            false => format!(
                "    local below=\"{function}_${{COMP_WORDS[1]//-/_}}\"\n    \
                 if [ \"$COMP_CWORD\" -gt 1 ] && declare -F \"$below\" >/dev/null; then\n        \
                 \"$below\"\n        return\n    fi\n"
            ),
        };
        // compgen expands words as the shell would, so only names without special characters are passed.
        let agents = match about.usage.iter().any(|usage| usage.contains("AGENT")) {
            true => {
                "    words=\"$words $(axe-agents list 2>/dev/null | sed -n 's/ - .*//; /^[A-Za-z0-9_.-]*$/p')\"\n"
            }
            false => "",
        };
        // macOS has bash 3.2, which cannot fill arrays in newer ways.
        let _ = write!(
            out,
            "{function}() {{\n{below}    local words={}\n{agents}    \
             COMPREPLY=($(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n}}\n\
             complete -o default -F {function} {}\n",
            quote(&words.join(" ")),
            about.name
        );
    }
    out
}

fn zsh(programs: &[&About]) -> String {
    let names: Vec<_> = programs.iter().map(|about| about.name).collect();
    let mut out = format!("#compdef {}\n", names.join(" "));
    for about in programs {
        let _ = writeln!(out, "{}() {{\n    _arguments -s \\", function_name(about));
        for flag in about.all_flags() {
            let help = flag.help.replace('[', "(").replace(']', ")").replace(':', "\\:");
            let tail = if flag.value.is_empty() { String::new() } else { format!(":{}:_files", flag.value) };
            for spelling in
                flag.short.map(|s| format!("-{s}")).into_iter().chain([format!("--{}", flag.long)])
            {
                let _ = writeln!(out, "        {} \\", quote(&format!("{spelling}[{help}]{tail}")));
            }
        }
        let commands: Vec<_> = about.commands.iter().map(|(name, _)| *name).collect();
        if !commands.is_empty() {
            let _ = writeln!(out, "        {} \\", quote(&format!("1:command:({})", commands.join(" "))));
        }
        out.push_str("        '*:file:_files'\n}\n");
    }
    // Read by eval, this registers a function for each program. As a file on fpath, it is called as the function of
    // the first program, once.
    for about in programs {
        let _ = writeln!(out, "compdef {} {}", function_name(about), about.name);
    }
    out.push_str("if [ -n \"$service\" ]; then\n    case \"$service\" in\n");
    for about in programs {
        let _ = writeln!(out, "        {}) {} \"$@\" ;;", about.name, function_name(about));
    }
    out.push_str("    esac\nfi\n");
    out
}

fn fish(programs: &[&About]) -> String {
    let mut out = String::new();
    for about in programs {
        for (command, help) in about.commands {
            let _ = writeln!(
                out,
                "complete -c {} -n __fish_use_subcommand -a {command} -d {}",
                about.name,
                quote_fish(help)
            );
        }
        for flag in about.all_flags() {
            let _ = write!(out, "complete -c {} -l {}", about.name, flag.long);
            if let Some(short) = flag.short {
                let _ = write!(out, " -s {short}");
            }
            if !flag.value.is_empty() {
                out.push_str(" -r");
            }
            let _ = writeln!(out, " -d {}", quote_fish(flag.help));
        }
    }
    out
}

fn function_name(about: &About) -> String {
    format!("_{}", about.name.replace('-', "_"))
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// In fish a backslash escapes inside single quotes too.
fn quote_fish(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
