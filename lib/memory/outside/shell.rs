//! A shell's command line as simple commands: quotes are taken out, variables that the line sets are put in, and commands
//! that stand in `$( )`, in backticks or in `<( )` are listed like the others.

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
pub(super) struct Word {
    pub(super) text: String,
    /// The commands whose output stands in it.
    pub(super) inner: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirect {
    Read,
    Write,
    Append,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SimpleCommand {
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<(Redirect, String)>,
    /// The text of a here-document.
    pub(super) input: String,
    /// Commands of one pipeline have the same, and so have the commands whose output stands in their words.
    pub(super) pipeline: usize,
    /// It reads from a pipe.
    pub(super) is_fed: bool,
    /// Commands in parentheses have one of their own: a `cd` in it ends with it.
    pub(super) scope: usize,
}

#[derive(Debug, Default)]
pub(super) struct CommandLine {
    pub(super) commands: Vec<SimpleCommand>,
    /// The scope around each scope; 0 is the outermost.
    pub(super) around: Vec<usize>,
    /// Commands are nested too deep to be read.
    pub(super) is_lost: bool,
}

/// Reads a command line.
pub(super) fn parse(text: &str, home: Option<&str>) -> CommandLine {
    let below_home = home.into_iter().flat_map(|home| {
        HOMES.iter().map(move |(name, below)| ((*name).to_owned(), format!("{home}{below}")))
    });
    let mut variables: HashMap<String, String> = below_home.collect();
    variables
        .extend([("PWD", "."), ("TMPDIR", "/tmp")].map(|(name, value)| (name.to_owned(), value.to_owned())));
    let mut parser =
        Parser { line: CommandLine { around: vec![0], ..Default::default() }, variables, pipelines: 0 };
    parser.list(text, 0, 0, None);
    parser.line
}

struct Parser {
    line: CommandLine,
    variables: HashMap<String, String>,
    pipelines: usize,
}

/// What is read of the present list of commands.
struct Reading<'a> {
    rest: &'a str,
    command: SimpleCommand,
    word: Option<Word>,
    redirect: Option<Redirect>,
    /// Here-documents of the present command whose text follows: the last line, and whether `$( )` in it is run.
    documents: Vec<(String, bool)>,
    /// The same, of commands that are complete.
    open: Vec<(usize, String, bool)>,
    scopes: Vec<usize>,
    depth: usize,
    /// The pipeline in which all of the list stands.
    within: Option<usize>,
}

impl Parser {
    fn list(&mut self, text: &str, depth: usize, scope: usize, within: Option<usize>) {
        if depth > DEPTH {
            self.line.is_lost = true;
            return;
        }
        let pipeline = within.unwrap_or_else(|| self.next_pipeline());
        let command = SimpleCommand { pipeline, scope, ..Default::default() };
        let mut reading = Reading {
            rest: text,
            command,
            word: None,
            redirect: None,
            documents: Vec::new(),
            open: Vec::new(),
            scopes: vec![scope],
            depth,
            within,
        };
        while let Some(c) = reading.rest.chars().next() {
            self.step(c, &mut reading);
        }
        self.end_command(&mut reading, false);
    }

    fn next_pipeline(&mut self) -> usize {
        self.pipelines += 1;
        self.pipelines
    }

    fn step(&mut self, c: char, reading: &mut Reading) {
        let rest = &reading.rest[c.len_utf8()..];
        let skip = |reading: &mut Reading, bytes: usize| reading.rest = &reading.rest[bytes..];
        match c {
            ' ' | '\t' | '\r' => {
                self.end_word(reading);
                reading.rest = rest;
            }
            '\n' => {
                self.end_command(reading, false);
                reading.rest = rest;
                self.documents(reading);
            }
            '#' if reading.word.is_none() => {
                let end = reading.rest.find('\n').unwrap_or(reading.rest.len());
                skip(reading, end);
            }
            '\\' if rest.starts_with('\n') => reading.rest = &rest[1..],
            '\\' if rest.starts_with("\r\n") => reading.rest = &rest[2..],
            '&' if rest.starts_with('>') => {
                self.end_word(reading);
                let is_append = rest.starts_with(">>");
                reading.redirect = Some(if is_append { Redirect::Append } else { Redirect::Write });
                skip(reading, 2 + usize::from(is_append));
            }
            ';' | '&' => {
                self.end_command(reading, false);
                skip(reading, 1 + usize::from(rest.starts_with(c)));
            }
            '|' => {
                let is_or = rest.starts_with('|');
                self.end_command(reading, !is_or);
                skip(reading, 1 + usize::from(is_or || rest.starts_with('&')));
            }
            '(' => {
                self.end_command(reading, false);
                let scope = self.open_scope(reading.command.scope);
                reading.scopes.push(scope);
                reading.command.scope = scope;
                reading.rest = rest;
            }
            ')' => {
                self.end_command(reading, false);
                if reading.scopes.len() > 1 {
                    reading.scopes.pop();
                }
                reading.command.scope = reading.scopes.last().copied().unwrap_or_default();
                reading.rest = rest;
            }
            '<' | '>' if rest.starts_with('(') => {
                let end = closing(&rest[1..]);
                let inner = &rest[1..1 + end];
                self.inner(inner, reading);
                reading.word.get_or_insert_default().text.push(UNKNOWN);
                skip(reading, (2 + end + 1).min(reading.rest.len()));
            }
            '<' | '>' => self.redirect(c, rest, reading),
            _ => self.part(c, rest, reading),
        }
    }

    fn open_scope(&mut self, around: usize) -> usize {
        self.line.around.push(around);
        self.line.around.len() - 1
    }

    fn redirect(&mut self, c: char, rest: &str, reading: &mut Reading) {
        // `2>`: the number is none of the words.
        if reading.word.as_ref().is_some_and(|word| word.text.bytes().all(|b| b.is_ascii_digit())) {
            reading.word = None;
        }
        self.end_word(reading);
        let length = reading.rest.len();
        let set = |reading: &mut Reading, rest: &str, redirect| {
            reading.rest = &reading.rest[length - rest.len()..];
            reading.redirect = redirect;
        };
        if let Some(text) = rest.strip_prefix("<<").filter(|_| c == '<') {
            // A here-string: its word is what the command reads.
            reading.documents.push((String::new(), false));
            set(reading, text, None);
        } else if let Some(text) = rest.strip_prefix('<').filter(|_| c == '<') {
            let (last, runs, text) = document(text);
            if !last.is_empty() {
                reading.documents.push((last, runs));
            }
            set(reading, text, None);
        } else if let Some(text) = rest.strip_prefix('&') {
            let number = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
            let is_copy = number.len() < text.len();
            set(reading, number, (!is_copy).then_some(Redirect::Write));
        } else if c == '<' {
            set(reading, rest.strip_prefix('>').unwrap_or(rest), Some(Redirect::Read));
        } else if let Some(text) = rest.strip_prefix('>') {
            set(reading, text, Some(Redirect::Append));
        } else {
            set(reading, rest.strip_prefix('|').unwrap_or(rest), Some(Redirect::Write));
        }
    }

    /// A part of a word.
    fn part(&mut self, c: char, rest: &str, reading: &mut Reading) {
        let length = reading.rest.len();
        let word = reading.word.get_or_insert_default();
        let left = match c {
            '\\' => match rest.chars().next() {
                Some(next) => {
                    word.text.push(next);
                    &rest[next.len_utf8()..]
                }
                None => rest,
            },
            '\'' => {
                let end = rest.find('\'').unwrap_or(rest.len());
                word.text.push_str(&rest[..end]);
                &rest[(end + 1).min(rest.len())..]
            }
            '"' => self.quoted(rest, reading),
            '$' if rest.starts_with('\'') => ansi(&rest[1..], &mut word.text),
            '$' if rest.starts_with('"') => self.quoted(&rest[1..], reading),
            '$' | '`' => self.expansion(c, rest, reading, false),
            c => {
                word.text.push(c);
                rest
            }
        };
        let left = left.len();
        reading.rest = &reading.rest[length - left..];
    }

    /// Up to the closing quote; returns the rest.
    fn quoted<'t>(&mut self, text: &'t str, reading: &mut Reading) -> &'t str {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            rest = match c {
                '"' => return after,
                '\\' if after.starts_with('\n') => &after[1..],
                '\\' if after.starts_with(['$', '`', '"', '\\']) => {
                    reading.push(&after[..1]);
                    &after[1..]
                }
                '$' | '`' => self.expansion(c, after, reading, true),
                _ => {
                    reading.push(&rest[..c.len_utf8()]);
                    after
                }
            };
        }
        rest
    }

    /// What begins with `$` or a backtick; `rest` follows it. Returns what is left.
    fn expansion<'t>(&mut self, c: char, rest: &'t str, reading: &mut Reading, is_quoted: bool) -> &'t str {
        if c == '`' {
            let end = unescaped(rest, '`').unwrap_or(rest.len());
            self.substitution(&rest[..end].replace("\\`", "`"), reading);
            return &rest[(end + 1).min(rest.len())..];
        }
        if let Some(inner) = rest.strip_prefix("((") {
            let end = inner.find("))").map_or(inner.len(), |end| end + 2);
            reading.push("0");
            return &inner[end..];
        }
        if let Some(inner) = rest.strip_prefix('(') {
            let end = closing(inner);
            self.substitution(&inner[..end], reading);
            return &inner[(end + 1).min(inner.len())..];
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (expression, left) = match rest.strip_prefix('{') {
            Some(inner) => {
                let end = inner.find('}').unwrap_or(inner.len());
                (&inner[..end], &inner[(end + 1).min(inner.len())..])
            }
            None => {
                let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                // `$1`, `$?`, `$@`
                let end = if end == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { end };
                rest.split_at(end)
            }
        };
        let name_end = expression.find(|c| !is_name(c)).unwrap_or(expression.len());
        let (name, operation) = expression.split_at(name_end);
        if expression.is_empty() {
            reading.push("$");
            return left;
        }
        if name == "IFS" && !is_quoted {
            self.end_word(reading);
            return left;
        }
        let default = || operation.strip_prefix(":-").or_else(|| operation.strip_prefix('-'));
        let value = self.variables.get(name).filter(|_| operation.is_empty() || default().is_some());
        let value = value.cloned().or_else(|| default().map(str::to_owned));
        match value {
            Some(value) if is_quoted => reading.push(&value),
            Some(value) => {
                let mut parts = value.split([' ', '\t', '\n']).filter(|part| !part.is_empty());
                if let Some(first) = parts.next() {
                    reading.push(first);
                }
                for part in parts {
                    self.end_word(reading);
                    reading.push(part);
                }
            }
            None => reading.push("\u{fffd}"),
        }
        left
    }

    fn substitution(&mut self, inner: &str, reading: &mut Reading) {
        self.inner(inner, reading);
        let word = reading.word.get_or_insert_default();
        word.inner.push(inner.to_owned());
        word.text.push(UNKNOWN);
    }

    fn inner(&mut self, inner: &str, reading: &mut Reading) {
        let scope = self.open_scope(reading.command.scope);
        self.list(inner, reading.depth + 1, scope, Some(reading.command.pipeline));
    }

    fn end_word(&mut self, reading: &mut Reading) {
        let Some(word) = reading.word.take() else { return };
        if let Some(redirect) = reading.redirect.take() {
            reading.command.redirects.push((redirect, word.text));
        } else if let Some(string) = reading.documents.iter().position(|(last, _)| last.is_empty()) {
            reading.documents.remove(string);
            reading.command.input.push_str(&word.text);
        } else {
            reading.command.words.push(word);
        }
    }

    fn end_command(&mut self, reading: &mut Reading, is_piped: bool) {
        self.end_word(reading);
        let scope = reading.command.scope;
        let next = match (is_piped, reading.within) {
            (true, _) => reading.command.pipeline,
            (false, Some(within)) => within,
            (false, None) => self.next_pipeline(),
        };
        let next = SimpleCommand { pipeline: next, is_fed: is_piped, scope, ..Default::default() };
        let command = std::mem::replace(&mut reading.command, next);
        reading.redirect = None;
        let index = self.line.commands.len();
        let documents = std::mem::take(&mut reading.documents);
        let documents = documents.into_iter().filter(|(last, _)| !last.is_empty());
        reading.open.extend(documents.map(|(last, runs)| (index, last, runs)));
        if command.words.is_empty() && command.redirects.is_empty() {
            return;
        }
        self.assign(&command);
        self.line.commands.push(command);
    }

    /// Notes down what the command sets.
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

    /// The texts of here-documents, which begin in the next line.
    fn documents(&mut self, reading: &mut Reading) {
        for (index, last, runs) in std::mem::take(&mut reading.open) {
            let mut text = String::new();
            while !reading.rest.is_empty() {
                let end = reading.rest.find('\n').map_or(reading.rest.len(), |end| end + 1);
                let line = &reading.rest[..end];
                reading.rest = &reading.rest[end..];
                if line.trim() == last {
                    break;
                }
                text.push_str(line);
            }
            if runs && text.contains(['$', '`']) {
                let mut unquoted =
                    Reading { word: None, documents: Vec::new(), open: Vec::new(), ..reading.copy() };
                // As between double quotes, in which a quote means nothing.
                self.quoted(&text.replace('"', "\\\""), &mut unquoted);
            }
            if let Some(command) = self.line.commands.get_mut(index) {
                command.input.push_str(&text);
            }
        }
    }
}

impl<'a> Reading<'a> {
    fn push(&mut self, text: &str) {
        self.word.get_or_insert_default().text.push_str(text);
    }

    /// The same place, with nothing read.
    fn copy(&self) -> Reading<'a> {
        let SimpleCommand { pipeline, scope, .. } = self.command;
        Reading {
            rest: "",
            command: SimpleCommand { pipeline, scope, ..Default::default() },
            word: None,
            redirect: None,
            documents: Vec::new(),
            open: Vec::new(),
            scopes: self.scopes.clone(),
            depth: self.depth,
            within: self.within,
        }
    }
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

/// Where the parenthesis closes that was opened before `text`.
fn closing(text: &str) -> usize {
    let mut open = 1;
    let mut quote = None;
    let mut last_line = None;
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match (c, quote) {
            ('<', None) if text[at..].starts_with("<<") && !text[at..].starts_with("<<<") => {
                last_line = Some(document(&text[at + 2..]).0).filter(|last| !last.is_empty());
                characters.next();
            }
            // Quotes and parentheses in a here-document mean nothing.
            ('\n', None) if last_line.is_some() => {
                let mut end = at + 1;
                for line in text[at + 1..].split_inclusive('\n') {
                    end += line.len();
                    if Some(line.trim()) == last_line.as_deref() {
                        break;
                    }
                }
                last_line = None;
                while characters.offset() < end && characters.next().is_some() {}
            }
            ('\\', None | Some('"')) => drop(characters.next()),
            (c, Some(closing)) if c == closing => quote = None,
            // In `"$(…)"` quotes nest; parentheses are counted there, too.
            ('(', None | Some('"')) => open += 1,
            (')', None | Some('"')) => {
                open -= 1;
                if open == 0 {
                    return at;
                }
            }
            ('\'' | '"', None) => quote = Some(c),
            _ => {}
        }
    }
    text.len()
}

fn unescaped(text: &str, mark: char) -> Option<usize> {
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            c if c == mark => return Some(at),
            _ => {}
        }
    }
    None
}

/// `$'…'`: adds what it means, and returns what follows the closing quote.
fn ansi<'t>(text: &'t str, into: &mut String) -> &'t str {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' => return rest,
            '\\' => {
                let Some(kind) = rest.chars().next() else { return rest };
                let (digits, base, most) = match kind {
                    'x' => (&rest[1..], 16, 2),
                    'u' => (&rest[1..], 16, 4),
                    'U' => (&rest[1..], 16, 8),
                    '0'..='7' => (rest, 8, 3),
                    _ => (rest, 0, 0),
                };
                let length = digits.chars().take(most).take_while(|c| base > 0 && c.is_digit(base)).count();
                let code = u32::from_str_radix(&digits[..length], base.max(2)).ok().and_then(char::from_u32);
                match code {
                    Some(code) => {
                        into.push(code);
                        rest = &digits[length..];
                    }
                    None => {
                        into.push(match kind {
                            'n' => '\n',
                            't' => '\t',
                            kind => kind,
                        });
                        rest = &rest[kind.len_utf8()..];
                    }
                }
            }
            c => into.push(c),
        }
    }
    rest
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
        assert_eq!(words("a <<EOF\nit's $(b)\nEOF\nc"), [["a"], ["b"], ["c"]]);
        assert_eq!(
            words("a \"$(b <<'E'\nit's (c\nE\n)\" && d"),
            [vec!["b"], vec!["a", "\u{fffd}"], vec!["d"]]
        );
        assert_eq!(parse("a <<< 'b c'", None).commands[0].input, "b c");
    }
}
