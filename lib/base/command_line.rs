//! Command lines for the shell, as far as we can read them without one.

/// The program that a command line runs: its first word that is not an assignment.
pub fn program(line: &str) -> Option<String> {
    shlex::split(line)?.into_iter().find(|word| !is_assignment(word))
}

/// The same for messages, also for lines that a shell would reject. Never an assignment: its value may be a key.
pub fn first_word(line: &str) -> String {
    let first = || line.split_whitespace().find(|word| !is_assignment(word)).map(str::to_owned);
    program(line).or_else(first).unwrap_or_default()
}

/// Whether a shell takes this word for a variable's value, as in `A=1 command`.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// A text as one word for the shell.
pub fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |word| word.into_owned())
}

/// The words of a line without any shell syntax; `None` if it may have some.
pub(super) fn plain_words(line: &str) -> Option<Vec<&str>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./:@%+,".contains(c);
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let first = words.first()?;
    (line.chars().all(is_plain) && !BUILTINS.contains(first)).then_some(words)
}

/// Shell builtins that differ from the programs of the same names.
const BUILTINS: &[&str] = &["echo", "kill", "printf", "pwd", "test", "time"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_a_shell_would_not_touch_go_without_one() {
        assert_eq!(plain_words(" llm  -m gpt-4 "), Some(vec!["llm", "-m", "gpt-4"]));
        for line in [
            "", " ", "a | b", "A=1 b", "a > b", "a 'b c'", "a $b", "a*", "~/a", "a\nb", "a; b", "a\tb", "ä",
            "a#b",
        ] {
            assert_eq!(plain_words(line), None, "{line:?}");
        }
    }

    #[test]
    fn the_first_word_is_the_program() {
        assert_eq!(first_word("claude -p"), "claude");
        assert_eq!(first_word("A=1 B='x y' 'my tool' -x"), "my tool");
        assert_eq!(first_word("don't close"), "don't");
        assert_eq!(first_word("KEY=secret"), "");
        assert_eq!(first_word("KEY=secret don't"), "don't");
        assert_eq!(first_word(""), "");
    }

    #[test]
    fn assignments_are_no_program() {
        assert_eq!(program("A=1 B='x y' ./run --a=b").as_deref(), Some("./run"));
        assert_eq!(program("A=1"), None);
        assert_eq!(program("'open"), None);
    }
}
