//! What programs do, as far as it takes more than the lists of `programs.txt`.

use crate::memory::lists::List;

pub const SHELLS: List = List("shells");
pub const PREFIXES: List = List("prefixes");
pub const MANAGERS: List = List("managers");
pub const PACKAGE_RUNNERS: List = List("package runners");
pub const INSTALLS: List = List("installs");
/// The lists of all programs that ask the network have these in common with those that fetch what is then run.
pub const FETCHES: List = List("fetches");

pub fn is_network(name: &str) -> bool {
    FETCHES.has(name) || List("asks network").has(name)
}

/// The options of an interpreter for code: `python3.12` is Python.
pub fn interpreter(name: &str) -> Option<&'static [&'static str]> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    [name, plain].into_iter().find_map(|name| List("interpreters").after(name))
}

/// Does this command ask the network? `words` are those of `all` that are no options, nor values of options.
pub fn fetches(name: &str, words: &[&str], all: &[&str]) -> bool {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    // The command, behind a word that may stand before it.
    let behind = |is_group: bool| if is_group { word(1) } else { word(0) };
    match name {
        "uvx" => true,
        "pipx" => ["run", "install", "upgrade"].contains(&word(0)),
        _ if PACKAGE_RUNNERS.has(name) => is_elsewhere(word(0), all),
        // Without a word it installs.
        "yarn" if words.is_empty() => true,
        "npm" if word(0) == "exec" => true,
        "bun" | "npm" if word(0) == "x" => true,
        // The repository's own.
        "go" if words.len() > 1 && words[1..].iter().all(|word| word.starts_with('.')) => false,
        "openssl" => word(0) == "s_client",
        "hg" | "svn" | "fossil" | "bzr" => {
            ["clone", "pull", "checkout", "co", "update", "up", "cat", "export", "branch"].contains(&word(0))
        }
        _ if List("containers").has(name) => {
            ["pull", "run", "search"].contains(&behind(["container", "image"].contains(&word(0))))
        }
        _ if MANAGERS.has(name) => {
            let command = behind(List("manager groups").has(word(0)));
            INSTALLS.has(command) || List("asks").has(command)
        }
        _ => false,
    }
}

/// Is it no package of the project that `npx` runs?
fn is_elsewhere(package: &str, all: &[&str]) -> bool {
    let is_named = |word: &&str| {
        ["-y", "--yes", "-p", "--package", "-c"].contains(word) || word.starts_with("--package=")
    };
    all.iter().any(is_named)
        || package.get(1..).is_some_and(|rest| rest.contains('@'))
        || package.rsplit('/').next().is_some_and(|name| name.starts_with("create-"))
}
