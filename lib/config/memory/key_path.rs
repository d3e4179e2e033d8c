//! A value in the configuration file and its key path, which errors name.

use crate::base::error::Error;
use crate::base::text::one_line;
use crate::config::json_file::{Member, Node};
use std::collections::BTreeSet;
use std::path::Path;

/// How many characters of a key or a number are quoted in a message.
const QUOTED: usize = 60;

#[derive(Debug, Clone)]
pub(super) struct KeyPath<'a> {
    /// `agentsMd.targets[2]`; empty for the whole file.
    pub(super) key: String,
    pub(super) node: Node<'a>,
}

/// What is wrong with a setting.
pub(super) struct SettingFault<'a> {
    pub(super) at: KeyPath<'a>,
    what: String,
    /// Only computed for the fault that is reported, because a file can have very many.
    hint: Option<Box<dyn FnOnce() -> String>>,
}

impl<'a> KeyPath<'a> {
    /// The key path of a member. It is for messages: unusual names are quoted or shortened.
    pub(super) fn member(&self, name: &str, node: Node<'a>) -> KeyPath<'a> {
        let is_plain = !name.is_empty() && name.trim() == name;
        let name = if is_plain { one_line(name, QUOTED) } else { one_line(&format!("{name:?}"), QUOTED) };
        let key = if self.key.is_empty() { name } else { format!("{}.{name}", self.key) };
        KeyPath { key, node }
    }

    pub(super) fn fault(&self, what: impl Into<String>) -> SettingFault<'a> {
        SettingFault { at: self.clone(), what: what.into(), hint: None }
    }

    /// A value of another kind was expected. A string is not quoted, because it may contain an API key.
    pub(super) fn expected(&self, what: &str) -> SettingFault<'a> {
        let found = match self.node.kind() {
            "a number" => one_line(self.node.raw(), QUOTED),
            kind => kind.to_owned(),
        };
        self.fault(format!("expected {what}, found {found}"))
    }

    pub(super) fn items(&self, what: &str) -> Result<Vec<KeyPath<'a>>, SettingFault<'a>> {
        let items = self.node.items().ok_or_else(|| self.expected(what))?;
        let at = |(n, node)| KeyPath { key: format!("{}[{n}]", self.key), node };
        Ok(items.into_iter().enumerate().map(at).collect())
    }

    /// The members of an object, each name once.
    pub(super) fn members(&self, what: &str) -> Result<Vec<(String, KeyPath<'a>)>, SettingFault<'a>> {
        let mut seen = BTreeSet::new();
        let members = self.node.members().ok_or_else(|| self.expected(what))?;
        let at = |member: Member<'a>| {
            let at = self.member(&member.name, member.value);
            match seen.insert(member.name.clone()) {
                true => Ok((member.name, at)),
                false => Err(at.fault("is there twice")),
            }
        };
        members.into_iter().map(at).collect()
    }

    /// A string that is not blank.
    pub(super) fn text(&self, what: &str) -> Result<String, SettingFault<'a>> {
        if self.node.kind() != "a string" {
            return Err(self.expected(what));
        }
        let text =
            self.node.string().ok_or_else(|| self.fault("not valid text: it contains half a character"))?;
        if text.trim().is_empty() {
            return Err(self.fault("must not be empty"));
        }
        if text.contains('\0') {
            return Err(self.fault("must not contain a NUL character"));
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
