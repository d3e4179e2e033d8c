//! Patterns for the files of a repository: `src/db/**`, `*.sql`, `tools/`.
//!
//! One with a slash counts from the top of the repository, one without names files in any directory, and one that ends with a
//! slash all below a directory.

use globset::GlobBuilder;

/// The most that one note has, and the longest, in bytes.
pub const MOST: usize = 8;
const LONGEST: usize = 200;

/// What is wrong with a pattern; `None` if nothing.
pub fn fault(glob: &str) -> Option<&'static str> {
    let is_said = |c: char| c.is_alphanumeric();
    if glob.len() > LONGEST {
        Some("is longer than 200 bytes")
    } else if glob.chars().any(char::is_control) {
        Some("has a control character")
    } else if glob.starts_with(['/', '~', '!']) || glob.split('/').any(|part| part == "..") {
        Some("does not count from the top of the repository")
    } else if !glob.contains(is_said) {
        Some("names no file")
    } else if compiled(glob).is_none() {
        Some("is no pattern, such as src/db/**")
    } else {
        None
    }
}

/// Does this pattern match a file, by its path from the top of the repository? One that has a fault matches nothing.
pub fn matches(glob: &str, path: &str) -> bool {
    // To read a pattern takes longer than to see that its first or its last letters are others.
    let is_wild = |c: char| "*?[]{}\\".contains(c);
    let start = glob.find(is_wild).map_or(glob, |at| &glob[..at]).trim_start_matches("./");
    let end = glob.rfind(is_wild).map_or("", |at| &glob[at + 1..]);
    let may_match = path.ends_with(end.trim_end_matches('/')) || glob.ends_with('/');
    let may_match = may_match && (path.starts_with(start) || !glob.trim_end_matches('/').contains('/'));
    let bytes = || path.bytes().map(char::from).collect::<String>();
    may_match && fault(glob).is_none() && compiled(glob).is_some_and(|glob| glob.is_match(&bytes()))
}

/// The pattern as an expression for bytes, each of which is a character here: globset's own engine is a megabyte of code.
fn compiled(glob: &str) -> Option<regex_lite::Regex> {
    let glob = glob.trim_start_matches("./");
    let below = if glob.ends_with('/') { format!("{glob}**") } else { glob.to_owned() };
    let anywhere = if below.trim_end_matches("/**").contains('/') { below } else { format!("**/{below}") };
    let glob = GlobBuilder::new(&anywhere).literal_separator(true).build().ok()?;
    regex_lite::Regex::new(glob.regex().trim_start_matches("(?-u)")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_files_as_people_mean_it() {
        for (glob, path, is_match) in [
            ("src/db/**", "src/db/pool/mod.rs", true),
            ("src/db/**", "web/src/db/pool.rs", false),
            ("src/db/*.rs", "src/db/pool.rs", true),
            ("src/db/*.rs", "src/db/pool/mod.rs", false),
            ("./src/main.rs", "src/main.rs", true),
            ("*.sql", "db/migrations/1.sql", true),
            ("Makefile", "web/Makefile", true),
            ("Makefile", "web/Makefile.am", false),
            ("tools/", "tools/rt", true),
            ("src/db/", "src/db/a/b.rs", true),
            ("src/db/", "src/dbx", false),
            ("**/*.{ts,tsx}", "web/app.tsx", true),
            ("src/[ab].rs", "src/b.rs", true),
            ("src/[!ab].rs", "src/b.rs", false),
            ("docs/ü*.md", "docs/überblick.md", true),
            ("docs/ü*.md", "docs/ölung.md", false),
            ("**/*.ö", "a/é\nb.ö", true),
            ("src/main.rs", "src/main.rs", true),
        ] {
            assert_eq!(matches(glob, path), is_match, "{glob} {path}");
            assert_eq!(fault(glob), None, "{glob}");
        }
    }

    #[test]
    fn what_names_nothing_or_everything_is_refused() {
        let long = "a".repeat(201);
        for glob in ["", "*", "**", "**/*", "/etc/passwd", "~/x", "../x", "a/../../b", "a\nb", "{a", &long] {
            assert!(fault(glob).is_some(), "{glob}");
            assert!(!matches(glob, "a/b"), "{glob}");
        }
    }
}
