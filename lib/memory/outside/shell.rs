//! A shell's command line as simple commands: quotes are taken out, variables that the line sets are put in, and commands
//! that stand in `$( )`, in backticks or in `<( )` are listed like the others.

mod word;

use std::collections::HashMap;

/// Stands in a word for what only a shell knows.
pub(super) const UNKNOWN: char = '\u{fffd}';

/// How deep commands in commands are followed.
const DEPTH: usize = 8;

/// Variables with directories below the home directory.
const HOMES: &[(&str, &str)] = &[
    ("CARGO_HOME", "/.cargo"),
    ("GOPATH", "/go"),
    ("HOME", ""),
    ("XDG_CACHE_HOME", "/.cache"),
    ("XDG_CONFIG_HOME", "/.config"),
    ("XDG_DATA_HOME", "/.local/share"),
];

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ShellWord {
    pub(super) text: String,
    /// The commands whose output stands in it.
    pub(super) inner: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirect {
    Read,
    Write,
    Append,
    /// `<<<`: the word itself is what is read. No command has it among its redirections.
    Text,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SimpleCommand {
    pub(super) words: Vec<ShellWord>,
    pub(super) redirects: Vec<(Redirect, String)>,
    /// The text of a here-document.
    pub(super) input: String,
    /// Commands of one pipeline have the same, and so have the commands whose output stands in their words.
    pub(super) pipeline: usize,
    /// Commands in parentheses have one of their own: a `cd` in it ends with it.
    pub(super) scope: usize,
}

#[derive(Debug, Default)]
pub(super) struct ShellLine {
    pub(super) commands: Vec<SimpleCommand>,
    /// The scope around each scope; 0 is the outermost.
    pub(super) around: Vec<usize>,
    /// Commands are nested too deep to be read.
    pub(super) is_lost: bool,
    variables: HashMap<String, String>,
}

/// Reads a command line.
pub(super) fn parse(text: &str, home: Option<&str>) -> ShellLine {
    let mut line = ShellLine { around: vec![0], ..ShellLine::default() };
    let set = [("PWD", "."), ("TMPDIR", "/tmp")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    line.variables.extend(set);
    for (name, below) in HOMES.iter().filter(|_| home.is_some()) {
        line.variables.insert((*name).to_owned(), format!("{}{below}", home.unwrap_or_default()));
    }
    Parser::new(text, &mut line, SimpleCommand::default(), 0).read();
    line
}

impl ShellLine {
    fn open_scope(&mut self, around: usize) -> usize {
        self.around.push(around);
        self.around.len() - 1
    }

    /// Notes down what a command sets.
    fn assign(&mut self, command: &SimpleCommand) {
        let is_set = |word: &str| ["export", "local", "declare", "readonly", "typeset"].contains(&word);
        let sets = command.words.iter().skip_while(|word| is_set(&word.text));
        let pairs: Option<Vec<_>> = sets.map(|word| assignment(&word.text)).collect();
        for (name, value) in pairs.into_iter().flatten() {
            match value.contains(UNKNOWN) {
                true => self.variables.remove(name),
                false => self.variables.insert(name.to_owned(), value.to_owned()),
            };
        }
    }
}

/// What is read of a list of commands.
struct Parser<'t, 'l> {
    rest: &'t str,
    line: &'l mut ShellLine,
    command: SimpleCommand,
    word: Option<ShellWord>,
    redirect: Option<Redirect>,
    /// What follows the here-documents of the present line.
    behind_documents: Option<&'t str>,
    /// The scope of the list.
    scope: usize,
    depth: usize,
    /// It ends with a parenthesis that was opened before it.
    is_enclosed: bool,
}

impl<'t, 'l> Parser<'t, 'l> {
    fn new(rest: &'t str, line: &'l mut ShellLine, command: SimpleCommand, depth: usize) -> Self {
        let (word, redirect, behind_documents, scope) = (None, None, None, command.scope);
        Parser { rest, line, command, word, redirect, behind_documents, scope, depth, is_enclosed: false }
    }

    /// For a text that stands in the present command.
    fn nested<'n>(&mut self, text: &'n str, scope: usize, depth: usize) -> Parser<'n, '_> {
        let command = SimpleCommand { pipeline: self.command.pipeline, scope, ..SimpleCommand::default() };
        Parser::new(text, self.line, command, depth)
    }

    /// Returns what follows the list.
    fn read(mut self) -> &'t str {
        if self.depth > DEPTH {
            self.line.is_lost = true;
            return "";
        }
        while let Some(c) = self.next() {
            if c == ')' && self.is_enclosed && self.command.scope == self.scope {
                break;
            }
            self.step(c);
        }
        self.end_command(false);
        self.rest
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Does this come next? It is passed over.
    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// What stands before a mark of one byte, or all that is left. The mark is passed over.
    fn before(&mut self, mark: Option<usize>) -> &'t str {
        let end = mark.unwrap_or(self.rest.len());
        let text = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        text
    }

    /// The present word.
    fn text(&mut self) -> &mut String {
        &mut self.word.get_or_insert_default().text
    }

    fn step(&mut self, c: char) {
        match c {
            ' ' | '\t' | '\r' => self.end_word(),
            '\n' => {
                self.end_command(false);
                self.rest = self.behind_documents.take().unwrap_or(self.rest);
            }
            '#' if self.word.is_none() => {
                self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
            }
            '\\' if self.takes("\n") || self.takes("\r\n") => {}
            '&' if self.takes(">") => {
                self.end_word();
                self.redirect = Some(if self.takes(">") { Redirect::Append } else { Redirect::Write });
            }
            ';' | '&' => {
                self.end_command(false);
                self.takes(c.encode_utf8(&mut [0; 4]));
            }
            '|' => {
                let is_or = self.takes("|");
                let _ = is_or || self.takes("&");
                self.end_command(!is_or);
            }
            '(' => {
                self.end_command(false);
                self.command.scope = self.line.open_scope(self.command.scope);
            }
            ')' => {
                self.end_command(false);
                if self.command.scope != self.scope {
                    self.command.scope = self.line.around[self.command.scope];
                }
            }
            '<' | '>' if self.takes("(") => {
                self.enclosed();
                self.text().push(UNKNOWN);
            }
            '<' | '>' => self.redirection(c),
            _ => self.part(c),
        }
    }

    fn redirection(&mut self, c: char) {
        // `2>`: the number is none of the words.
        self.word = self.word.take().filter(|word| !word.text.bytes().all(|b| b.is_ascii_digit()));
        self.end_word();
        self.redirect = match c {
            '<' if self.takes("<<") => Some(Redirect::Text),
            '<' if self.takes("<") => {
                self.document();
                None
            }
            _ if self.takes("&") => {
                let number = self.rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
                let is_copy = number.len() < self.rest.len();
                self.rest = number;
                (!is_copy).then_some(Redirect::Write)
            }
            '<' => {
                self.takes(">");
                Some(Redirect::Read)
            }
            _ if self.takes(">") => Some(Redirect::Append),
            _ => {
                self.takes("|");
                Some(Redirect::Write)
            }
        };
    }

    /// A here-document: its text begins in the next line.
    fn document(&mut self) {
        let (last, runs, rest) = document(self.rest);
        self.rest = rest;
        if last.is_empty() {
            return;
        }
        let next_line = || rest.split_once('\n').map_or("", |(_, next)| next);
        let (text, behind) = until_line(self.behind_documents.unwrap_or_else(next_line), &last);
        self.behind_documents = Some(behind);
        self.command.input.push_str(text);
        if runs && text.contains(['$', '`']) {
            // As between double quotes, in which a quote means nothing.
            self.nested(&text.replace('"', "\\\""), self.command.scope, self.depth).quoted();
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.redirect.take() {
            Some(Redirect::Text) => self.command.input.push_str(&word.text),
            Some(redirect) => self.command.redirects.push((redirect, word.text)),
            None => self.command.words.push(word),
        }
    }

    fn end_command(&mut self, is_piped: bool) {
        self.end_word();
        self.redirect = None;
        let SimpleCommand { pipeline, scope, .. } = self.command;
        let next = SimpleCommand { pipeline, scope, ..SimpleCommand::default() };
        let command = std::mem::replace(&mut self.command, next);
        if !command.words.is_empty() || !command.redirects.is_empty() {
            self.line.assign(&command);
            self.line.commands.push(command);
        }
        // A list in a command belongs to its pipeline.
        if !is_piped && self.depth == 0 {
            self.command.pipeline = self.line.commands.len();
        }
    }
}

/// The words as text.
pub(super) fn texts(words: &[ShellWord]) -> Vec<&str> {
    words.iter().map(|word| word.text.as_str()).collect()
}

/// `NAME=value`
pub(super) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// What follows `<<`: the last line of the here-document, whether `$( )` in it is run, and the rest.
fn document(text: &str) -> (String, bool, &str) {
    let text = text.strip_prefix('-').unwrap_or(text).trim_start_matches([' ', '\t']);
    let end = text.find(|c: char| c.is_whitespace() || ";|&<>()".contains(c)).unwrap_or(text.len());
    let (last, rest) = text.split_at(end);
    let quotes = ['\'', '"', '\\'];
    (last.replace(quotes, ""), !last.contains(quotes), rest)
}

/// The lines before this one, and what follows it.
fn until_line<'t>(text: &'t str, last: &str) -> (&'t str, &'t str) {
    let mut lines = text.split_inclusive('\n');
    let before: usize = lines.by_ref().take_while(|line| line.trim() != last).map(str::len).sum();
    (&text[..before], &text[text.len() - lines.map(str::len).sum::<usize>()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<String>> {
        let commands = parse(line, Some("/home/u")).commands;
        commands
            .into_iter()
            .map(|command| command.words.into_iter().map(|word| word.text).collect())
            .collect()
    }

    #[test]
    fn quotes_and_separators_are_read_as_a_shell_reads_them() {
        assert_eq!(
            words("a 'b c';d \"e $HOME\"&&f\\ g|h&i\nj # k"),
            [vec!["a", "b c"], vec!["d", "e /home/u"], vec!["f g"], vec!["h"], vec!["i"], vec!["j"]]
        );
        assert_eq!(words("\"cur\"l c\\u$'r\\x6c'"), [["curl", "curl"]]);
        assert_eq!(words("a \\\n b"), [["a", "b"]]);
        assert_eq!(words("X='curl -s'; $X$IFS'y'"), [vec!["X=curl -s"], vec!["curl", "-s", "y"]]);
        assert_eq!(words("${Y:-curl} $((1+2))"), [["curl", "0"]]);
        assert_eq!(words("a 'open"), [["a", "open"]]);
    }

    #[test]
    fn commands_within_commands_are_listed_before_them() {
        assert_eq!(
            words("a \"$(b 'c)' d)\" `e`"),
            [vec!["b", "c)", "d"], vec!["e"], vec!["a", "\u{fffd}", "\u{fffd}"]]
        );
        assert_eq!(words("a <(b c)"), [vec!["b", "c"], vec!["a", "\u{fffd}"]]);
        let line = parse("a | b $(c; d) | e; f", None);
        let pipelines: Vec<usize> = line.commands.iter().map(|command| command.pipeline).collect();
        assert_eq!(pipelines[..5], [pipelines[0]; 5]);
        assert_ne!(pipelines[5], pipelines[0]);
        let deep = format!("{}a{}", "$(".repeat(40), ")".repeat(40));
        assert!(parse(&deep, None).is_lost);
    }

    #[test]
    fn redirections_and_here_documents_are_no_words() {
        let line = parse("a 2>&1 >b <c &>d >>e <<'EOF' f | g\ncurl $(x)\nEOF\nh", None);
        assert_eq!(
            line.commands[0].redirects,
            [
                (Redirect::Write, "b".to_owned()),
                (Redirect::Read, "c".to_owned()),
                (Redirect::Write, "d".to_owned()),
                (Redirect::Append, "e".to_owned())
            ]
        );
        assert_eq!(line.commands[0].input, "curl $(x)\n");
        assert_eq!(line.commands.len(), 3, "{line:?}");
        assert_eq!(words("a <<EOF\nit's $(b)\nEOF\nc"), [["b"], ["a"], ["c"]]);
        assert_eq!(
            words("a \"$(b <<'E'\nit's (c\nE\n)\" && d"),
            [vec!["b"], vec!["a", "\u{fffd}"], vec!["d"]]
        );
        assert_eq!(parse("a <<< 'b c'", None).commands[0].input, "b c");
    }
}
