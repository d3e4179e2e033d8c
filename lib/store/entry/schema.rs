//! Our keys: how each is read from the fields of a front matter, and how it is written.
//!
//! Lenient about how a value is written, strict about what it is: a wrong one is an error with its line, key and
//! value, because the next rewrite would lose it otherwise.

use crate::base::error::{Error, Result};
use crate::base::text::one_line;
use crate::store::entry::front_matter::LINES_BEFORE;
use crate::store::entry::id::EntryId;
use crate::store::entry::meta::{Anchor, Branch, By, LINES, Lines, Meta, RANKS, Scope, Source, Status, Tier};
use crate::store::entry::scalar::{Style, written};
use crate::store::entry::value::{Field, YamlValue};
use crate::store::entry::yaml::in_line;
use jiff::civil::Date;
use std::borrow::Cow;

/// A key's name, how it is read, and what is written. `None`: its default needs no line.
pub(super) type Key = (&'static str, fn(&mut Meta, YamlValue) -> Result<()>, fn(&Meta) -> Option<String>);

/// Our keys, in the order in which we write them.
pub(super) static KEYS: [Key; 24] = [
    ("id", |_, _| Ok(()), |m| shown(&m.id)),
    ("title", |m, v| set(&mut m.title, title(v)), |m| line(&m.title)),
    ("summary", |m, v| set(&mut m.summary, string(v)), |m| line(&m.summary)),
    ("tags", |m, v| set(&mut m.tags, tags(v)), |m| Some(list(&m.tags))),
    ("paths", |m, v| set(&mut m.paths, all(v, string)), |m| filled(&m.paths)),
    ("status", |m, v| set(&mut m.status, word(v, Status::parse, Status::WORDS)), |m| shown(m.status)),
    ("tier", |m, v| set(&mut m.tier, word(v, Tier::parse, Tier::WORDS)), |m| shown(m.tier)),
    ("scope", |m, v| set(&mut m.scope, word(v, Scope::parse, Scope::WORDS)), |m| shown(m.scope)),
    ("pinned", |m, v| set(&mut m.pinned, read(v, truth, "true or false")), |m| shown(m.pinned)),
    ("until", |m, v| put(&mut m.until, read(v, day, DAY)), |m| m.until.and_then(shown)),
    ("rank", |m, v| put(&mut m.rank, read(v, rank, RANK)), |m| m.rank.and_then(shown)),
    ("by", |m, v| put(&mut m.by, word(v, By::parse, By::WORDS)), |m| m.by.and_then(shown)),
    ("outside", |m, v| set(&mut m.outside, all(v, string)), |m| filled(&m.outside)),
    ("branch", |m, v| put(&mut m.branch, branch(v)), |m| m.branch.as_ref().map(branch_map)),
    ("confirmed", |m, v| put(&mut m.confirmed, read(v, day, DAY)), |m| m.confirmed.and_then(shown)),
    ("used", |m, v| set(&mut m.used, parsed(v, "a whole number from 0")), |m| shown(m.used)),
    ("last_used", |m, v| put(&mut m.last_used, parsed(v, TIME)), |m| m.last_used.and_then(shown)),
    ("createdAt", |m, v| set(&mut m.created_at, parsed(v, MILLISECONDS)), |m| shown(m.created_at)),
    ("updatedAt", |m, v| set(&mut m.updated_at, parsed(v, MILLISECONDS)), |m| shown(m.updated_at)),
    ("written", |m, v| put(&mut m.written, string(v)), |m| line(m.written.as_ref()?)),
    ("anchors", |m, v| set(&mut m.anchors, all(v, anchor)), |m| block(&m.anchors, anchor_map)),
    ("sources", |m, v| set(&mut m.sources, all(v, source)), |m| block(&m.sources, source_map)),
    ("aliases", |m, v| set(&mut m.aliases, all(v, entry_id)), |m| filled(&m.aliases)),
    ("supersededBy", |m, v| put(&mut m.superseded_by, entry_id(v)), |m| shown(m.superseded_by.as_ref()?)),
];
const TITLE: usize = 1;
const SUMMARY: usize = 2;
const DAY: &str = "a day like 2026-03-20";
const RANK: &str = "a whole number from 1 to 100";
const TIME: &str = "a time like 2026-02-13T14:30:00Z";
const MILLISECONDS: &str = "a whole number of milliseconds";

pub(super) fn meta(fields: Vec<Field>) -> Result<Meta> {
    let id = fields.iter().find(|field| field.key == "id").ok_or_else(|| Error::corrupt("id is missing"))?;
    let known = entry_id(id.value.clone()).map_err(|error| in_line(id.line, error.context("id")))?;
    let mut meta = Meta::new(known);
    let mut lines = [0; KEYS.len()];
    // Keys are mostly in our order, so the search begins at the next one.
    let mut next = 0;
    for Field { key, value, line } in fields {
        let mut places = (next..KEYS.len()).chain(0..next);
        let Some(position) = places.find(|place| KEYS[*place].0 == key) else { continue };
        next = position + 1;
        let with_place = |error: Error| in_line(line, error.context(&key));
        if lines[position] > 0 {
            let first = lines[position] + LINES_BEFORE;
            return Err(with_place(Error::corrupt(format!("given twice, first in line {first}"))));
        }
        lines[position] = line;
        if position <= SUMMARY || !value.is_null() {
            KEYS[position].1(&mut meta, value).map_err(with_place)?;
        }
    }
    if lines[TITLE] == 0 {
        return Err(Error::corrupt("title is missing"));
    }
    Ok(meta)
}

fn set<T>(to: &mut T, value: Result<T>) -> Result<()> {
    *to = value?;
    Ok(())
}

fn put<T>(to: &mut Option<T>, value: Result<T>) -> Result<()> {
    set(to, value.map(Some))
}

fn title(value: YamlValue) -> Result<String> {
    match &value {
        YamlValue::Scalar { text, plain: true } if text.is_empty() => Err(Error::corrupt("it is empty")),
        _ => string(value),
    }
}

fn string(value: YamlValue) -> Result<String> {
    text(value).map(Cow::into_owned)
}

fn text(value: YamlValue<'_>) -> Result<Cow<'_, str>> {
    let kind = match value {
        YamlValue::Scalar { text, .. } => return Ok(text),
        YamlValue::List(_) => "list",
        YamlValue::Map(_) => "mapping",
    };
    Err(Error::corrupt(format!("a {kind} instead of text")))
}

fn all<'a, T>(value: YamlValue<'a>, item: fn(YamlValue<'a>) -> Result<T>) -> Result<Vec<T>> {
    match value {
        YamlValue::List(items) => items.into_iter().map(item).collect(),
        _ => Err(Error::corrupt("not a list")),
    }
}

fn wrong(text: &str, allowed: &str) -> Error {
    Error::corrupt(format!("\"{}\" is not {allowed}", one_line(text, 60)))
}

fn entry_id(value: YamlValue) -> Result<EntryId> {
    read(value, EntryId::whole, "an id like id__a1B2c3")
}

fn word<T>(value: YamlValue, parse: fn(&str) -> Option<T>, words: &[&str]) -> Result<T> {
    let text = text(value)?;
    parse(&text).ok_or_else(|| wrong(&text, &format!("one of {}", words.join(", "))))
}

fn parsed<T: std::str::FromStr>(value: YamlValue, what: &str) -> Result<T> {
    read(value, |text| text.parse().ok(), what)
}

/// What `parse` makes of a text; or else that it is not what it should be.
fn read<T>(value: YamlValue, parse: fn(&str) -> Option<T>, what: &str) -> Result<T> {
    let text = text(value)?;
    parse(&text).ok_or_else(|| wrong(&text, what))
}

fn rank(text: &str) -> Option<u8> {
    text.parse().ok().filter(|rank| RANKS.contains(rank))
}

/// Only `2026-03-20`: with a time of day or in another order it would not say which day is meant.
fn day(text: &str) -> Option<Date> {
    text.parse::<Date>().ok().filter(|day| day.to_string() == text)
}

/// Also the words of YAML 1.1, which some editors write.
fn truth(text: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 3]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    let is_true = is_one_of(["true", "yes", "on"]);
    (is_true || is_one_of(["false", "no", "off"])).then_some(is_true)
}

/// A list, or one text with commas or spaces between the tags.
fn tags(value: YamlValue) -> Result<Vec<String>> {
    match value {
        YamlValue::List(_) => all(value, string),
        value => {
            let text = text(value)?;
            let words = text.split(|c: char| c == ',' || c.is_whitespace());
            Ok(words.filter(|word| !word.is_empty()).map(str::to_owned).collect())
        }
    }
}

/// The values of some keys of a mapping that has no others.
fn keyed<const N: usize>(value: YamlValue, names: [&str; N]) -> Result<[Option<String>; N]> {
    let YamlValue::Map(pairs) = value else {
        return Err(Error::corrupt(format!("not like {{{}: …}}", names.join(": …, "))));
    };
    let mut found = [const { None }; N];
    for (key, value) in pairs {
        let key = text(key).map_err(|_| Error::corrupt("a key is not text"))?;
        let place = names.iter().position(|name| *name == key);
        let Some(place) = place.filter(|place| found[*place].is_none()) else {
            return Err(wrong(&key, &format!("one of {}, each once", names.join(", "))));
        };
        found[place] = Some(string(value).map_err(|error| error.context(&key))?);
    }
    Ok(found)
}

fn branch(value: YamlValue) -> Result<Branch> {
    let [name, commit] = keyed(value, ["name", "commit"])?;
    Ok(Branch { name: name.ok_or_else(|| Error::corrupt("it has no name"))?, commit })
}

fn anchor(value: YamlValue) -> Result<Anchor> {
    let [path, name, says, hash, lines, commit] =
        keyed(value, ["path", "in", "says", "hash", "lines", "commit"])?;
    let path = path.ok_or_else(|| Error::corrupt("an item has no path"))?;
    let lines = lines.map(|text| Lines::parse(&text).ok_or_else(|| wrong(&text, LINES))).transpose()?;
    Ok(Anchor { path, hash, lines, commit, name, says })
}

fn source(value: YamlValue) -> Result<Source> {
    let YamlValue::Map(pairs) = value else {
        return Err(Error::corrupt("an item is not like {harness: …, threadId: …}"));
    };
    let mut source = Source::default();
    let mut seen = Vec::new();
    for (key, value) in pairs {
        let key = text(key).map_err(|_| Error::corrupt("a key of an item is not text"))?;
        let Some(known) = source.value_of(&key) else {
            source.other.push((key.into_owned(), value.into_owned()));
            continue;
        };
        if seen.contains(&key) {
            return Err(Error::corrupt(format!("{key} is given twice in an item")));
        }
        if !value.is_null() {
            *known = Some(string(value).map_err(|error| error.context(&key))?);
        }
        seen.push(key);
    }
    Ok(source)
}

/// All of it, without the lines of dashes.
pub(super) fn front_matter(meta: &Meta) -> String {
    KEYS.iter().filter_map(|key| lines(meta, key)).map(|lines| lines + "\n").collect()
}

/// A key with its value, without the last line end.
pub(super) fn lines(meta: &Meta, (key, _, value): &Key) -> Option<String> {
    let value = value(meta)?;
    let gap = if value.starts_with('\n') { "" } else { " " };
    Some(format!("{key}:{gap}{value}"))
}

fn shown(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

fn line(text: &str) -> Option<String> {
    Some(written(text, Style::Block))
}

/// A line for each item.
fn block<T>(items: &[T], item: fn(&T) -> String) -> Option<String> {
    let lines = items.iter().map(|one| format!("\n  - {}", item(one)));
    (!items.is_empty()).then(|| lines.collect())
}

fn filled(items: &[impl ToString]) -> Option<String> {
    (!items.is_empty()).then(|| list(items))
}

fn list(items: &[impl ToString]) -> String {
    let items: Vec<_> = items.iter().map(|item| written(&item.to_string(), Style::Flow)).collect();
    format!("[{}]", items.join(", "))
}

fn branch_map(branch: &Branch) -> String {
    map([("name", Some(branch.name.clone())), ("commit", branch.commit.clone())])
}

fn anchor_map(anchor: &Anchor) -> String {
    let Anchor { path, hash, lines, commit, name, says } = anchor.clone();
    let lines = lines.map(|lines| lines.to_string());
    let path = Some(path);
    map([("path", path), ("in", name), ("says", says), ("hash", hash), ("lines", lines), ("commit", commit)])
}

/// The keys that have a value.
fn map<const N: usize>(pairs: [(&str, Option<String>); N]) -> String {
    let pairs = pairs.into_iter().filter_map(|(key, value)| Some((key, value?)));
    let pairs: Vec<String> =
        pairs.map(|(key, value)| format!("{key}: {}", written(&value, Style::Flow))).collect();
    format!("{{{}}}", pairs.join(", "))
}

fn source_map(source: &Source) -> String {
    let known = source.known().map(|(key, value)| format!("{key}: {}", written(value, Style::Flow)));
    let other =
        source.other.iter().map(|(key, value)| format!("{}: {}", written(key, Style::Flow), flow(value)));
    format!("{{{}}}", known.chain(other).collect::<Vec<_>>().join(", "))
}

/// A value of a foreign key, on one line. One without quotes stays so if it can: it may be a number.
fn flow(value: &YamlValue) -> String {
    match value {
        value if value.is_null() => "~".to_owned(),
        YamlValue::Scalar { text, plain: true } if is_bare(text) => text.clone().into_owned(),
        YamlValue::Scalar { text, .. } => written(text, Style::Flow),
        YamlValue::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        YamlValue::Map(pairs) => {
            let pairs: Vec<_> =
                pairs.iter().map(|(key, value)| format!("{}: {}", flow(key), flow(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

/// A word, a number, a date or a time.
fn is_bare(text: &str) -> bool {
    let mut before = b' ';
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(at, byte)| {
        // A colon or a dash at the end of a word has a meaning in YAML.
        let inside = at > 0 && before.is_ascii_alphanumeric();
        let follows = bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        before = *byte;
        match byte {
            b':' => inside && follows,
            b'-' | b'+' | b'.' => follows,
            byte => byte.is_ascii_alphanumeric() || *byte == b'_',
        }
    })
}
