//! Our hooks in the text of a settings file: put in, and taken out. No files here.
//!
//! The hooks of an event are a list below `hooks`. What is added goes to the end: Codex trusts a hook by its position.
//! Comments and everything else keep their bytes.

use crate::base::error::{Error, Result};
use crate::harness::spec::HookSettings;
use crate::memory::hash::hash;
use crate::memory::hooks::ours::{HookProgram, runs};
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) const BOM: char = '\u{feff}';

const HOOKS: &str = "hooks";
const VERSION: &str = "version";

/// A hook as it is to be.
#[derive(Debug, Clone)]
pub(super) struct SettingsHook {
    pub(super) event: &'static str,
    pub(super) program: HookProgram,
    /// As it stands in the event's list.
    pub(super) entry: CstInputValue,
}

/// A file before our hooks were in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Before {
    /// None: there was no file.
    text: Option<String>,
    /// A hash of the text with our hooks. While it is the file's, nobody else has changed it.
    after: String,
    /// The setting that we have changed besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    set: Option<SetValue>,
}

/// A setting of ours: its key, the outermost name first, and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetValue {
    pub(super) key: Vec<String>,
    pub(super) value: bool,
}

impl Before {
    /// Of the file that is `text` now, and will be `new`, maybe with a setting that is ours from now on. What is known of an
    /// earlier text is `old`.
    pub(super) fn of(
        text: Option<&str>,
        new: &str,
        form: &HookSettings,
        old: Option<&Before>,
        set: Option<&SetValue>,
    ) -> Result<Before> {
        let text = text.map_or(Ok(None), |text| without_hooks(text, form, old))?;
        let set = set.or(old.and_then(|old| old.set.as_ref())).cloned();
        Ok(Before { text, after: hash(new), set })
    }
}

/// The text with a setting in it.
pub(super) fn with_value(text: Option<&str>, set: &SetValue) -> Result<String> {
    let root = parsed(text.filter(|text| !text.trim().is_empty()).unwrap_or("{}\n"))?;
    let mut object =
        root.object_value_or_create().ok_or_else(|| wrong(root.value(), "the file", "an object"))?;
    let Some((last, outer)) = set.key.split_last() else { return Ok(root.to_string()) };
    for name in outer {
        let inner = member(&object, name);
        let inner = inner.unwrap_or_else(|| object.append(name, CstInputValue::Object(Vec::new())));
        object =
            inner.object_value().ok_or_else(|| wrong(inner.value(), &format!("\"{name}\""), "an object"))?;
    }
    match member(&object, last) {
        Some(known) => known.set_value(CstInputValue::Bool(set.value)),
        None => drop(object.append(last, CstInputValue::Bool(set.value))),
    }
    Ok(root.to_string())
}

/// Gives a setting of ours the value that it had before, unless somebody has changed it since.
fn take_back(top: &CstObject, old: Option<&CstObject>, set: &SetValue) {
    let Some(setting) = setting(top, &set.key).filter(|setting| flag(setting) == Some(set.value)) else {
        return;
    };
    match old.and_then(|old| flag(&self::setting(old, &set.key)?)) {
        Some(before) => setting.set_value(CstInputValue::Bool(before)),
        None => setting.remove(),
    }
    for end in (1..set.key.len()).rev() {
        let outer = &set.key[..end];
        if old.and_then(|old| self::setting(old, outer)).is_none() {
            remove_if_empty(self::setting(top, outer));
        }
    }
}

fn setting(object: &CstObject, key: &[String]) -> Option<CstObjectProp> {
    let (first, rest) = key.split_first()?;
    let found = member(object, first)?;
    if rest.is_empty() { Some(found) } else { setting(&found.object_value()?, rest) }
}

fn flag(setting: &CstObjectProp) -> Option<bool> {
    setting.value()?.to_serde_value()?.as_bool()
}

/// The text with our hooks in it. `text` is `None` if there is no file.
pub(super) fn with_hooks(text: Option<&str>, form: &HookSettings, hooks: &[SettingsHook]) -> Result<String> {
    let root = parsed(text.filter(|text| !text.trim().is_empty()).unwrap_or("{}\n"))?;
    let top = root.object_value_or_create().ok_or_else(|| wrong(root.value(), "the file", "an object"))?;
    // Before anything has moved, so that an error names the place in the file.
    let object = |hooks: CstObjectProp| {
        hooks.object_value().ok_or_else(|| wrong(hooks.value(), "\"hooks\"", "an object"))
    };
    let events = member(&top, HOOKS).map(object).transpose()?;
    let mut own = hooks.iter().filter_map(|hook| member(events.as_ref()?, hook.event));
    if let Some(event) = own.find(|event| event.array_value().is_none()) {
        let name = event.decoded_name().unwrap_or_default();
        return Err(wrong(event.value(), &format!("\"hooks.{name}\""), "a list"));
    }
    if let Some(version) = form.version.filter(|_| member(&top, VERSION).is_none()) {
        top.append(VERSION, version.into());
    }
    for hook in hooks {
        put(&top, form, hook);
    }
    Ok(root.to_string())
}

fn put(top: &CstObject, form: &HookSettings, hook: &SettingsHook) {
    let is_it = |found: &FoundHook| found.event == hook.event && found.program == hook.program;
    let found: Vec<FoundHook> = found(top, form).into_iter().filter(is_it).collect();
    if found.iter().any(|found| !found.is_ours) {
        return;
    }
    // Older ones of ours are written anew, and all but the first are taken out.
    let mut has_one = false;
    for old in found {
        if has_one || !old.is_alone {
            old.remove();
            continue;
        }
        has_one = true;
        if let Some(item) = old.item.as_object()
            && item.to_serde_value() != Some(value(&hook.entry))
        {
            item.replace_with(hook.entry.clone());
        }
    }
    if !has_one {
        let hooks =
            member(top, HOOKS).unwrap_or_else(|| top.append(HOOKS, CstInputValue::Object(Vec::new())));
        let hooks = hooks.object_value_or_set();
        let event = member(&hooks, hook.event)
            .unwrap_or_else(|| hooks.append(hook.event, CstInputValue::Array(Vec::new())));
        event.array_value_or_set().append(hook.entry.clone());
    }
}

/// The text without our hooks; `None` if there was no file before, and nobody has added anything.
///
/// A text that only we have changed becomes what it was. From another one our hooks are taken, and what they leave empty,
/// unless it was there before. If nothing is known of before, the file stays in any case.
pub(super) fn without_hooks(
    text: &str,
    form: &HookSettings,
    before: Option<&Before>,
) -> Result<Option<String>> {
    let root = parsed(text)?;
    let ours = root.object_value().map(|top| (found(&top, form), top));
    let Some((mut ours, top)) = ours else { return Ok(Some(text.to_owned())) };
    ours.retain(|found| found.is_ours);
    let set = before.and_then(|before| before.set.as_ref());
    if ours.is_empty() && set.is_none() {
        return Ok(Some(text.to_owned()));
    }
    if let Some(before) = before.filter(|before| before.after == hash(text)) {
        return Ok(before.text.clone());
    }
    let old = before.and_then(|before| parsed(before.text.as_deref()?).ok()?.object_value());
    set.into_iter().for_each(|set| take_back(&top, old.as_ref(), set));
    let old_hooks = old.as_ref().and_then(|old| member(old, HOOKS));
    let old_events = old_hooks.as_ref().and_then(|hooks| hooks.object_value());
    let had_event = |name: &str| old_events.as_ref().is_some_and(|all| member(all, name).is_some());
    let events: Vec<String> = ours.iter().map(|found| found.event.clone()).collect();
    ours.into_iter().for_each(FoundHook::remove);
    let hooks = member(&top, HOOKS).and_then(|hooks| hooks.object_value());
    for event in events.iter().filter(|name| !had_event(name)) {
        remove_if_empty(hooks.as_ref().and_then(|hooks| member(hooks, event)));
    }
    if old_hooks.is_none() && !events.is_empty() {
        remove_if_empty(member(&top, HOOKS));
    }
    // Others need the version that we wrote, if they have put hooks of theirs where there were none.
    let had_version = old.as_ref().is_some_and(|old| member(old, VERSION).is_some());
    let is_needed = old_hooks.is_none() && member(&top, HOOKS).is_some();
    if before.is_some() && form.version.is_some() && !had_version && !is_needed {
        member(&top, VERSION).into_iter().for_each(CstObjectProp::remove);
    }
    match before.filter(|_| old.is_none() && is_empty(&top.to_string())) {
        Some(before) => Ok(before.text.clone()),
        None => Ok(Some(root.to_string())),
    }
}

fn remove_if_empty(member: Option<CstObjectProp>) {
    let value = member.as_ref().and_then(CstObjectProp::value);
    if let Some(member) = member.filter(|_| value.is_some_and(|value| is_empty(&value.to_string()))) {
        member.remove();
    }
}

/// A list or object with nothing in it, not even a comment.
fn is_empty(text: &str) -> bool {
    let text: String = text.split_whitespace().collect();
    text == "[]" || text == "{}"
}

/// The last member of that name: of several, programs use that one.
fn member(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    object.properties().into_iter().rev().find(|member| member.decoded_name().is_some_and(|own| own == name))
}

/// A command in the settings that runs one of our programs.
struct FoundHook {
    event: String,
    program: HookProgram,
    /// The command is that program with flags, and nobody else's.
    is_ours: bool,
    /// In the event's list: the command, or its group.
    item: CstNode,
    /// The commands of the group.
    group: Option<CstArray>,
    command: CstNode,
    /// The item has nothing but this command.
    is_alone: bool,
    line: String,
}

impl FoundHook {
    fn remove(self) {
        let Some(group) = self.group.filter(|_| !self.is_alone) else { return self.item.remove() };
        self.command.remove();
        if group.elements().is_empty() {
            self.item.remove();
        }
    }
}

/// All commands that run one of our programs.
fn found(top: &CstObject, form: &HookSettings) -> Vec<FoundHook> {
    let mut found = Vec::new();
    let events = member(top, HOOKS).and_then(|hooks| hooks.object_value());
    for event in events.iter().flat_map(CstObject::properties) {
        let (Some(name), Some(list)) = (event.decoded_name(), event.array_value()) else { continue };
        for item in list.elements() {
            let group = item.as_object().filter(|_| form.has_groups).and_then(|item| member(&item, HOOKS));
            let group = group.and_then(|commands| commands.array_value());
            let commands = group.as_ref().map_or_else(|| vec![item.clone()], CstArray::elements);
            for command in &commands {
                let line = command.as_object().and_then(|object| member(&object, form.command));
                let line = line.and_then(|line| line.value()?.as_string_lit()?.decoded_value().ok());
                let line = line.unwrap_or_default();
                if let Some((program, is_ours)) = runs(&line) {
                    let (event, is_alone) = (name.clone(), commands.len() == 1);
                    let (item, group, command) = (item.clone(), group.clone(), command.clone());
                    found.push(FoundHook { event, program, is_ours, item, group, command, is_alone, line });
                }
            }
        }
    }
    found
}

/// The commands that run our programs: at which event, and which program.
pub(super) fn commands(text: &str, form: &HookSettings) -> Result<Vec<(String, HookProgram, String)>> {
    let found = parsed(text)?.object_value().map(|top| found(&top, form)).unwrap_or_default();
    Ok(found.into_iter().map(|found| (found.event, found.program, found.line)).collect())
}

/// All settings.
pub(super) fn read(text: &str) -> Option<Value> {
    parsed(text).ok()?.value()?.to_serde_value()
}

/// Why the program itself cannot read the file, if that is so.
pub(super) fn not_for(text: &str, form: &HookSettings) -> Option<String> {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    let options = options(form.has_comments, false);
    parse_to_ast(text, &CollectOptions::default(), &options).err().map(|error| in_words(&error))
}

/// What people write, whatever the program accepts.
fn parsed(text: &str) -> Result<CstRootNode> {
    CstRootNode::parse(text, &options(true, true)).map_err(|error| Error::refused(in_words(&error)))
}

fn options(comments: bool, trailing_commas: bool) -> ParseOptions {
    ParseOptions {
        allow_comments: comments,
        allow_trailing_commas: trailing_commas,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn in_words(error: &ParseError) -> String {
    let text = error.kind().to_string();
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    let (line, column) = (error.line_display(), error.column_display());
    format!("line {line}, column {column}: {}{rest}", first.to_lowercase())
}

/// `node` is not what it must be.
fn wrong(node: Option<CstNode>, what: &str, expected: &str) -> Error {
    // All the text before it.
    let mut before = String::new();
    let outwards = std::iter::successors(node, |node| node.parent().map(CstNode::Container));
    for sibling in outwards.flat_map(|node| node.previous_siblings().collect::<Vec<_>>()) {
        before.insert_str(0, &sibling.to_string());
    }
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Error::refused(format!("line {line}, column {column}: {what} is not {expected}"))
}

/// The same as a value, to compare it in whatever order and layout.
fn value(json: &CstInputValue) -> Value {
    match json {
        CstInputValue::Null => Value::Null,
        CstInputValue::Bool(flag) => (*flag).into(),
        CstInputValue::Number(number) => serde_json::from_str(number).unwrap_or_default(),
        CstInputValue::String(text) => text.as_str().into(),
        CstInputValue::Array(items) => items.iter().map(value).collect(),
        CstInputValue::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), value(member))).collect()
        }
    }
}
