//! The parts of a word: text in quotes, variables, and commands whose output stands in it.

use crate::memory::outside::shell::{Parser, UNKNOWN};

impl<'t> Parser<'t, '_> {
    /// A part of a word.
    pub(super) fn part(&mut self, c: char) {
        self.text();
        match c {
            '\\' => {
                let next = self.next();
                self.text().extend(next);
            }
            '\'' => {
                let text = self.before(self.rest.find('\''));
                self.text().push_str(text);
            }
            '"' => self.quoted(),
            '$' if self.takes("'") => self.ansi(),
            '$' if self.takes("\"") => self.quoted(),
            '$' | '`' => self.expansion(c, false),
            c => self.text().push(c),
        }
    }

    /// Up to the closing quote.
    pub(super) fn quoted(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' if self.takes("\n") => {}
                '\\' if self.rest.starts_with(['$', '`', '"', '\\']) => {
                    let next = self.next();
                    self.text().extend(next);
                }
                '$' | '`' => self.expansion(c, true),
                c => self.text().push(c),
            }
        }
    }

    /// What begins with `$` or a backtick.
    fn expansion(&mut self, c: char, is_quoted: bool) {
        if c == '`' {
            let inner = self.before(unescaped(self.rest, '`')).replace("\\`", "`");
            let scope = self.line.open_scope(self.command.scope);
            self.nested(&inner, scope, self.depth + 1).read();
            return self.substituted(inner);
        }
        if self.takes("((") {
            self.rest = self.rest.split_once("))").map_or("", |(_, rest)| rest);
            return self.text().push('0');
        }
        if self.takes("(") {
            let inner = self.enclosed().to_owned();
            return self.substituted(inner);
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let expression = if self.takes("{") {
            self.before(self.rest.find('}'))
        } else {
            let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
            // `$1`, `$?`, `$@`
            let one = self.rest.chars().next().map_or(0, char::len_utf8);
            let (name, rest) = self.rest.split_at(if end == 0 { one } else { end });
            self.rest = rest;
            name
        };
        let (name, operation) =
            expression.split_at(expression.find(|c| !is_name(c)).unwrap_or(expression.len()));
        if expression.is_empty() {
            return self.text().push('$');
        }
        if name == "IFS" && !is_quoted {
            return self.end_word();
        }
        let default = operation.strip_prefix(":-").or_else(|| operation.strip_prefix('-'));
        let known = self.line.variables.get(name).filter(|_| operation.is_empty() || default.is_some());
        match known.cloned().or_else(|| default.map(str::to_owned)) {
            None => self.text().push(UNKNOWN),
            Some(value) if is_quoted => self.text().push_str(&value),
            Some(value) => {
                for (n, part) in value.split([' ', '\t', '\n']).filter(|part| !part.is_empty()).enumerate() {
                    if n > 0 {
                        self.end_word();
                    }
                    self.text().push_str(part);
                }
            }
        }
    }

    /// The commands up to the closing parenthesis, which is passed over.
    pub(super) fn enclosed(&mut self) -> &'t str {
        let text = self.rest;
        let scope = self.line.open_scope(self.command.scope);
        let inner = self.nested(text, scope, self.depth + 1);
        self.rest = Parser { is_enclosed: true, ..inner }.read();
        let inner = &text[..text.len() - self.rest.len()];
        inner.strip_suffix(')').unwrap_or(inner)
    }

    /// Takes note of commands whose output stands here.
    fn substituted(&mut self, inner: String) {
        let word = self.word.get_or_insert_default();
        word.inner.push(inner);
        word.text.push(UNKNOWN);
    }

    /// `$'…'`
    fn ansi(&mut self) {
        while let Some(c) = self.next().filter(|c| *c != '\'') {
            let c = if c == '\\' { self.escape() } else { Some(c) };
            self.text().extend(c);
        }
    }

    /// What follows a backslash in it.
    fn escape(&mut self) -> Option<char> {
        let start = self.rest;
        let kind = self.next()?;
        let (digits, base, most) = match kind {
            'x' => (self.rest, 16, 2),
            'u' => (self.rest, 16, 4),
            'U' => (self.rest, 16, 8),
            '0'..='7' => (start, 8, 3),
            'n' => return Some('\n'),
            't' => return Some('\t'),
            _ => return Some(kind),
        };
        let length = digits.chars().take(most).take_while(|c| c.is_digit(base)).count();
        let code = u32::from_str_radix(&digits[..length], base).ok().and_then(char::from_u32);
        if code.is_some() {
            self.rest = &digits[length..];
        }
        code.or(Some(kind))
    }
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
