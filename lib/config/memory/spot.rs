//! A place in the file that faults can be told of: a value and the path of keys that leads to it.

use crate::base::error::Error;
use crate::base::text::one_line;
use crate::config::json_file::Node;
use std::path::Path;

/// So many characters of a key or a number go into a message.
const SHOWN: usize = 60;

#[derive(Debug, Clone)]
pub(crate) struct Spot<'a> {
    /// `agentsMd.targets[2]`; empty for the whole file.
    pub(crate) key: String,
    pub(crate) node: Node<'a>,
}

/// What is wrong there.
pub(crate) struct Fault<'a> {
    pub(crate) spot: Spot<'a>,
    what: String,
    /// Made when it is told: a file can hold very many faults, of which one is.
    hint: Option<Box<dyn FnOnce() -> String>>,
}

impl<'a> Spot<'a> {
    /// The spot of a member. Its key is for people: of an odd name it may not be all.
    pub(crate) fn member(&self, name: &str, node: Node<'a>) -> Spot<'a> {
        let is_plain = !name.is_empty() && name.trim() == name;
        let name = if is_plain { one_line(name, SHOWN) } else { one_line(&format!("{name:?}"), SHOWN) };
        let key = if self.key.is_empty() { name } else { format!("{}.{name}", self.key) };
        Spot { key, node }
    }

    pub(crate) fn fault(&self, what: impl Into<String>) -> Fault<'a> {
        Fault { spot: self.clone(), what: what.into(), hint: None }
    }

    /// Another kind of value stands here. A text is not quoted: a key may stand in it.
    pub(crate) fn expected(&self, what: &str) -> Fault<'a> {
        let found = match self.node.kind() {
            "a number" => one_line(self.node.raw(), SHOWN),
            kind => kind.to_owned(),
        };
        self.fault(format!("expected {what}, found {found}"))
    }

    pub(crate) fn items(&self, what: &str) -> Result<Vec<Spot<'a>>, Fault<'a>> {
        let items = self.node.items().ok_or_else(|| self.expected(what))?;
        let spot = |(n, node)| Spot { key: format!("{}[{n}]", self.key), node };
        Ok(items.into_iter().enumerate().map(spot).collect())
    }

    /// A string that says something.
    pub(crate) fn text(&self, what: &str) -> Result<String, Fault<'a>> {
        if self.node.kind() != "a string" {
            return Err(self.expected(what));
        }
        let text = self.node.string().ok_or_else(|| self.fault("not valid text: half a character"))?;
        if text.trim().is_empty() {
            return Err(self.fault("must not be empty"));
        }
        if text.contains('\0') {
            return Err(self.fault("must not hold a NUL character"));
        }
        Ok(text)
    }
}

impl Fault<'_> {
    pub(crate) fn hint(mut self, next: impl FnOnce() -> String + 'static) -> Self {
        self.hint = Some(Box::new(next));
        self
    }

    /// `"FILE" line 4, storage.rooot: unknown key`
    pub(crate) fn error(self, file: &Path) -> Error {
        let Spot { key, node } = self.spot;
        let key = if key.is_empty() { key } else { format!(", {key}") };
        let error = Error::config(format!("\"{}\" line {}{key}: {}", file.display(), node.line(), self.what));
        match self.hint {
            Some(hint) => error.hint(hint()),
            None => error,
        }
    }
}
