//! A place in the file that faults can be told of: a value and the path of keys that leads to it.

use crate::base::error::Error;
use crate::base::text::one_line;
use crate::config::json_file::Node;
use std::path::Path;

/// So many characters of a key or a number go into a message.
const SHOWN: usize = 60;

#[derive(Debug, Clone)]
pub(super) struct KeyPath<'a> {
    /// `agentsMd.targets[2]`; empty for the whole file.
    pub(super) key: String,
    pub(super) node: Node<'a>,
}

/// What is wrong there.
pub(super) struct SettingFault<'a> {
    pub(super) at: KeyPath<'a>,
    what: String,
    /// Made when it is told: a file can hold very many faults, of which one is.
    hint: Option<Box<dyn FnOnce() -> String>>,
}

impl<'a> KeyPath<'a> {
    /// The at of a member. Its key is for people: of an odd name it may not be all.
    pub(super) fn member(&self, name: &str, node: Node<'a>) -> KeyPath<'a> {
        let is_plain = !name.is_empty() && name.trim() == name;
        let name = if is_plain { one_line(name, SHOWN) } else { one_line(&format!("{name:?}"), SHOWN) };
        let key = if self.key.is_empty() { name } else { format!("{}.{name}", self.key) };
        KeyPath { key, node }
    }

    pub(super) fn fault(&self, what: impl Into<String>) -> SettingFault<'a> {
        SettingFault { at: self.clone(), what: what.into(), hint: None }
    }

    /// Another kind of value stands here. A text is not quoted: a key may stand in it.
    pub(super) fn expected(&self, what: &str) -> SettingFault<'a> {
        let found = match self.node.kind() {
            "a number" => one_line(self.node.raw(), SHOWN),
            kind => kind.to_owned(),
        };
        self.fault(format!("expected {what}, found {found}"))
    }

    pub(super) fn items(&self, what: &str) -> Result<Vec<KeyPath<'a>>, SettingFault<'a>> {
        let items = self.node.items().ok_or_else(|| self.expected(what))?;
        let at = |(n, node)| KeyPath { key: format!("{}[{n}]", self.key), node };
        Ok(items.into_iter().enumerate().map(at).collect())
    }

    /// A string that says something.
    pub(super) fn text(&self, what: &str) -> Result<String, SettingFault<'a>> {
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

impl SettingFault<'_> {
    pub(super) fn hint(mut self, next: impl FnOnce() -> String + 'static) -> Self {
        self.hint = Some(Box::new(next));
        self
    }

    /// `"FILE" line 4, storage.rooot: unknown key`
    pub(super) fn error(self, file: &Path) -> Error {
        let KeyPath { key, node } = self.at;
        let key = if key.is_empty() { key } else { format!(", {key}") };
        let error = Error::config(format!("\"{}\" line {}{key}: {}", file.display(), node.line(), self.what));
        match self.hint {
            Some(hint) => error.hint(hint()),
            None => error,
        }
    }
}
