//! Our hooks in the text of a settings file: put in, and taken out. No files here.
//!
//! The hooks of an event are a list below `hooks`. What is added goes to the end: Codex trusts a hook by its position.

use crate::base::error::{Error, Result};
use crate::memory::hooks::jsonc::{Container, Dialect, Json, LENIENT, Style, member, parse, place};
use crate::memory::hooks::ours::{HookProgram, Runs, runs};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The form of a program's settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// An event's list has groups, and each group a list `hooks` of commands.
    pub(super) groups: bool,
    /// The key of the command line.
    pub(super) command: &'static str,
    /// What the program wants beside `hooks`.
    pub(super) version: Option<u64>,
    pub(super) dialect: Dialect,
}

/// A hook as it is to be.
#[derive(Debug, Clone)]
pub(super) struct Hook {
    pub(super) event: &'static str,
    pub(super) program: HookProgram,
    /// As it stands in the event's list.
    pub(super) entry: Json,
}

/// What we made in a file besides our hooks, so that it can be taken away again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Made {
    /// The file itself.
    #[serde(default)]
    file: bool,
    /// Its text, if it had no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blank: Option<String>,
    /// By path, like `hooks/Stop`: none if we made it, else what stood between the brackets of an empty one.
    #[serde(default)]
    containers: BTreeMap<String, Option<String>>,
}

/// The text with our hooks in it. `text` is `None` if there is no file.
pub(super) fn with_hooks(text: Option<&str>, form: &Form, hooks: &[Hook], made: &mut Made) -> Result<String> {
    let is_new = text.is_none();
    let mut text = text.unwrap_or_default().to_owned();
    if parsed(&text)?.is_none() {
        match is_new {
            true => made.file = true,
            false => made.blank = Some(text.clone()),
        }
        // Nothing but white space and comments stood there.
        let comments = text.trim_end();
        let gap = if comments.is_empty() { "" } else { "\n" };
        text = format!("{comments}{gap}{{}}\n");
    }
    if let Some(version) = form.version {
        text = with_version(&text, version, made)?;
    }
    for hook in hooks {
        text = with_hook(text, form, hook, made)?;
    }
    Ok(text)
}

fn with_version(text: &str, version: u64, made: &mut Made) -> Result<String> {
    let (root, style) = root(text)?;
    if member(&root, VERSION).is_some() {
        return Ok(text.to_owned());
    }
    let container = object(text, &root, "the file")?;
    made.note("", &container, text);
    made.containers.insert(VERSION.to_owned(), None);
    Ok(container.append(text, Some(VERSION), &Json::Number(version), &style))
}

const VERSION: &str = "version";
const HOOKS: &str = "hooks";

fn with_hook(mut text: String, form: &Form, hook: &Hook, made: &mut Made) -> Result<String> {
    // Older ones of ours are written anew, and all but the first are taken out.
    let mut has_one = false;
    let mut at = 0;
    loop {
        let found = entries(&text, form, Some(hook.event))?;
        if found.iter().any(|entry| entry.runs == Runs::Among(hook.program)) {
            return Ok(text);
        }
        let mut ours = found.into_iter().filter(|entry| entry.runs == Runs::Ours(hook.program));
        let Some(entry) = ours.nth(at) else { break };
        let (root, style) = root(&text)?;
        if !has_one && entry.is_alone {
            has_one = true;
            at += 1;
            let whole = entry.value(&root).is_some_and(|value| hook.entry.is_same(value));
            if !whole {
                text = entry.list.replace(&text, entry.index, &hook.entry, &style);
            }
        } else {
            text = entry.remove(&text);
        }
    }
    if has_one { Ok(text) } else { append(&text, hook, made) }
}

fn append(text: &str, hook: &Hook, made: &mut Made) -> Result<String> {
    let (root, style) = root(text)?;
    let top = object(text, &root, "the file")?;
    let path = format!("{HOOKS}/{}", hook.event);
    let list = || Json::List(vec![hook.entry.clone()]);
    let Some(hooks) = member(&root, HOOKS) else {
        made.note("", &top, text);
        made.containers.extend([(HOOKS.to_owned(), None), (path, None)]);
        return Ok(top.append(text, Some(HOOKS), &Json::Object(vec![(hook.event, list())]), &style));
    };
    let events = object(text, &hooks.value, "\"hooks\"")?;
    let Some(event) = member(&hooks.value, hook.event) else {
        made.note(HOOKS, &events, text);
        made.containers.insert(path, None);
        return Ok(events.append(text, Some(hook.event), &list(), &style));
    };
    let entries = array(text, &event.value, hook.event)?;
    made.note(&path, &entries, text);
    Ok(entries.append(text, None, &hook.entry, &style))
}

impl Made {
    /// Remembers what stands in an empty container, before something is added.
    fn note(&mut self, path: &str, container: &Container, text: &str) {
        if container.is_empty() {
            let inner = || Some(container.inner(text).to_owned());
            self.containers.entry(path.to_owned()).or_insert_with(inner);
        }
    }
}

/// The text without our hooks, and without what we made for them; `None` if we made the whole file.
///
/// If nothing is known about what we made, what our hooks leave empty goes, except for the file.
pub(super) fn without_hooks(text: &str, form: &Form, made: Option<&Made>) -> Result<Option<String>> {
    let mut text = text.to_owned();
    let mut emptied = Vec::new();
    while let Some(entry) = entries(&text, form, None)?.into_iter().find(|entry| entry.is_ours()) {
        text = entry.remove(&text);
        if entry.is_alone && entry.list.count() == 1 {
            emptied.push(format!("{HOOKS}/{}", entry.event));
        }
    }
    let known: Vec<String> = made.map(|made| made.containers.keys().cloned().collect()).unwrap_or_default();
    // The innermost first: a container may be left empty by one in it.
    let mut paths: Vec<_> = emptied.iter().chain(&known).cloned().collect();
    if made.is_none() && !emptied.is_empty() {
        paths.push(HOOKS.to_owned());
    }
    paths.sort_by_key(|path| (depth(path), path.clone()));
    paths.dedup();
    for path in &paths {
        let was = made.map_or(Some(&None), |made| made.containers.get(path));
        let Some(was) = was else { continue };
        if path == VERSION && is_needed(&text, made)? {
            continue;
        }
        text = tidied(&text, path, was.as_deref())?;
    }
    let is_bare = parsed(&text)?.is_some_and(|root| {
        Container::of(&root).is_some_and(|root| root.is_empty() && root.inner(&text).trim().is_empty())
    });
    let Some(made) = made.filter(|_| is_bare) else { return Ok(Some(text)) };
    if made.file {
        return Ok(None);
    }
    Ok(Some(made.blank.clone().unwrap_or(text)))
}

/// Do others need the version that we wrote: have they put hooks of theirs where there were none?
fn is_needed(text: &str, made: Option<&Made>) -> Result<bool> {
    let was_none = made.is_some_and(|made| made.containers.get(HOOKS) == Some(&None));
    Ok(was_none && member(&root(text)?.0, HOOKS).is_some())
}

fn depth(path: &str) -> u8 {
    match path {
        "" => 3,
        VERSION => 2,
        HOOKS => 1,
        _ => 0,
    }
}

/// The text with an emptied container as it was before, or without it if it was not there.
fn tidied(text: &str, path: &str, was: Option<&str>) -> Result<String> {
    let (root, _) = root(text)?;
    let unchanged = || Ok(text.to_owned());
    let (parent, name) = match path.split_once('/') {
        Some((parent, name)) => (member(&root, parent).map(|member| &member.value), name),
        None => (Some(&root), path),
    };
    let Some(parent) = parent else { return unchanged() };
    if path.is_empty() {
        return restored(text, &root, was);
    }
    let Some(found) = member(parent, name) else { return unchanged() };
    if path == VERSION {
        return without(text, parent, name);
    }
    match (Container::of(&found.value), was) {
        (Some(container), None) if container.is_empty() && container.inner(text).trim().is_empty() => {
            without(text, parent, name)
        }
        _ => restored(text, &found.value, was),
    }
}

/// The text with the white space that the empty container had.
fn restored(text: &str, value: &Value, was: Option<&str>) -> Result<String> {
    let (Some(container), Some(was)) = (Container::of(value), was) else { return Ok(text.to_owned()) };
    let is_as_before = container.is_empty() && container.inner(text).trim() == was.trim();
    Ok(if is_as_before { container.with_inner(text, was) } else { text.to_owned() })
}

fn without(text: &str, parent: &Value, name: &str) -> Result<String> {
    let index = parent
        .as_object()
        .and_then(|parent| parent.properties.iter().rposition(|member| member.name.as_str() == name));
    Ok(match (Container::of(parent), index) {
        (Some(container), Some(index)) => container.remove(text, index),
        _ => text.to_owned(),
    })
}

/// A command in the settings that runs one of our programs.
struct FoundHook {
    event: String,
    runs: Runs,
    /// The list to edit, and which of its items: the event's, or that of a group with other people's hooks.
    list: Container,
    index: usize,
    /// The item has nothing but this command.
    is_alone: bool,
    command: String,
}

impl FoundHook {
    fn is_ours(&self) -> bool {
        matches!(self.runs, Runs::Ours(_))
    }

    fn remove(&self, text: &str) -> String {
        self.list.remove(text, self.index)
    }

    /// The item in the event's list.
    fn value<'v, 'a>(&self, root: &'v Value<'a>) -> Option<&'v Value<'a>> {
        let hooks = member(root, HOOKS)?;
        member(&hooks.value, &self.event)?.value.as_array()?.elements.get(self.index)
    }
}

/// All commands of `event`, or of all events, that run one of our programs.
fn entries(text: &str, form: &Form, event: Option<&str>) -> Result<Vec<FoundHook>> {
    let mut found = Vec::new();
    let Some(root) = parsed(text)? else { return Ok(found) };
    let hooks = member(&root, HOOKS).and_then(|hooks| hooks.value.as_object());
    for member in hooks.iter().flat_map(|hooks| &hooks.properties) {
        let name = member.name.as_str();
        if event.is_some_and(|event| event != name) {
            continue;
        }
        let Some(array) = member.value.as_array() else { continue };
        let Some(list) = Container::of(&member.value) else { continue };
        for (index, item) in array.elements.iter().enumerate() {
            let mut note = |list: &Container, index, is_alone, value: &Value| {
                let command = text_of(value, form.command).unwrap_or_default();
                if let Some(runs) = runs(command) {
                    let (event, list, command) = (name.to_owned(), list.clone(), command.to_owned());
                    found.push(FoundHook { event, runs, list, index, is_alone, command });
                }
            };
            match group(item).filter(|_| form.groups) {
                Some((inner, commands)) => {
                    let is_alone = commands.len() == 1;
                    for (place, command) in commands.iter().enumerate() {
                        let (list, index) = if is_alone { (&list, index) } else { (&inner, place) };
                        note(list, index, is_alone, command);
                    }
                }
                None => note(&list, index, true, item),
            }
        }
    }
    Ok(found)
}

/// The commands of a group.
fn group<'v, 'a>(item: &'v Value<'a>) -> Option<(Container, &'v [Value<'a>])> {
    let commands = &member(item, HOOKS)?.value;
    Some((Container::of(commands)?, &commands.as_array()?.elements))
}

fn text_of<'v>(value: &'v Value<'_>, name: &str) -> Option<&'v str> {
    Some(&member(value, name)?.value.as_string_lit()?.value)
}

/// The commands that run our programs: the event, the program, the command line.
pub(super) fn commands(text: &str, form: &Form) -> Result<Vec<(String, HookProgram, String)>> {
    let program = |runs| match runs {
        Runs::Ours(program) | Runs::Among(program) => program,
    };
    let found = entries(text, form, None)?.into_iter();
    Ok(found.map(|entry| (entry.event, program(entry.runs), entry.command)).collect())
}

/// Why the program itself cannot read the file, if that is so.
pub(super) fn not_for(text: &str, dialect: Dialect) -> Option<String> {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    let error = parse(text, dialect).err()?;
    Some(format!("line {}, column {}: {}", error.line_display(), error.column_display(), in_words(&error)))
}

pub(super) const BOM: char = '\u{feff}';

fn in_words(error: &jsonc_parser::errors::ParseError) -> String {
    let text = error.kind().to_string();
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

fn parsed(text: &str) -> Result<Option<Value<'_>>> {
    parse(text, LENIENT).map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        Error::refused(format!("line {line}, column {column}: {}", in_words(&error)))
    })
}

fn root(text: &str) -> Result<(Value<'_>, Style)> {
    let root = parsed(text)?.ok_or_else(|| Error::refused("the file is empty"))?;
    let style = Style::of(text, &root);
    Ok((root, style))
}

fn object(text: &str, value: &Value, what: &str) -> Result<Container> {
    Container::of(value)
        .filter(|_| value.as_object().is_some())
        .ok_or_else(|| wrong(text, value, what, "an object"))
}

fn array(text: &str, value: &Value, event: &str) -> Result<Container> {
    let what = format!("\"hooks.{event}\"");
    Container::of(value)
        .filter(|_| value.as_array().is_some())
        .ok_or_else(|| wrong(text, value, &what, "a list"))
}

fn wrong(text: &str, value: &Value, what: &str, expected: &str) -> Error {
    let (line, column) = place(text, value.range().start);
    Error::refused(format!("line {line}, column {column}: {what} is not {expected}"))
}
