//! From the fields of a front matter to what they mean: our keys, their types and defaults.
//!
//! Lenient about how a value is written, strict about what it is: a wrong one is an error with its line, key and
//! value, because the next rewrite would lose it otherwise.

use crate::base::error::{Error, Result};
use crate::base::text::one_line;
use crate::store::entry::front_matter::LINES_BEFORE;
use crate::store::entry::id::EntryId;
use crate::store::entry::meta::{Anchor, Branch, By, LINES, Lines, Meta, RANKS, Scope, Source, Status, Tier};
use crate::store::entry::value::{Field, YamlValue};
use crate::store::entry::yaml::in_line;
use jiff::civil::Date;
use std::borrow::Cow;

/// Our keys, in the order in which we write them.
pub(super) const KEYS: [&str; 24] = [
    "id", "title", "summary", "tags", "paths", "status", "tier", "scope", "pinned", "until", "rank", "by",
    "outside", "branch", "confirmed", "used", "last_used", "createdAt", "updatedAt", "written", "anchors",
    "sources", "aliases", "supersededBy",
];
const TITLE: usize = 1;

pub(super) fn meta(fields: Vec<Field>) -> Result<Meta> {
    let id = fields.iter().find(|field| field.key == "id").ok_or_else(|| Error::corrupt("id is missing"))?;
    let mut meta = Meta::new(entry_id(&id.value).map_err(|error| in_line(id.line, error.context("id")))?);
    let mut lines = [0; KEYS.len()];
    // Keys are mostly in our order, so the search begins at the next one.
    let mut next = 0;
    for Field { key, value, line } in fields {
        let mut places = (next..KEYS.len()).chain(0..next);
        let Some(position) = places.find(|place| KEYS[*place] == key) else { continue };
        next = position + 1;
        let with_place = |error: Error| in_line(line, error.context(&key));
        if lines[position] > 0 {
            let first = lines[position] + LINES_BEFORE;
            return Err(with_place(Error::corrupt(format!("given twice, first in line {first}"))));
        }
        lines[position] = line;
        take(&mut meta, &key, value).map_err(with_place)?;
    }
    if lines[TITLE] == 0 {
        return Err(Error::corrupt("title is missing"));
    }
    Ok(meta)
}

fn take(meta: &mut Meta, key: &str, value: YamlValue) -> Result<()> {
    match key {
        "title" if matches!(&value, YamlValue::Scalar { text, plain: true } if text.is_empty()) => {
            return Err(Error::corrupt("it is empty"));
        }
        "title" => meta.title = string(value)?,
        "summary" => meta.summary = string(value)?,
        _ if value.is_null() => {}
        "tags" => meta.tags = tags(value)?,
        "paths" => meta.paths = items(value)?.into_iter().map(string).collect::<Result<_, _>>()?,
        "status" => meta.status = word(value, Status::parse, Status::WORDS)?,
        "tier" => meta.tier = word(value, Tier::parse, Tier::WORDS)?,
        "scope" => meta.scope = word(value, Scope::parse, Scope::WORDS)?,
        "pinned" => meta.pinned = read(value, truth, || "true or false".to_owned())?,
        "until" => meta.until = Some(read(value, day, || "a day like 2026-03-20".to_owned())?),
        "rank" => {
            let rank = |text: &str| text.parse().ok().filter(|rank| RANKS.contains(rank));
            meta.rank = Some(read(value, rank, || "a whole number from 1 to 100".to_owned())?);
        }
        "by" => meta.by = Some(word(value, By::parse, By::WORDS)?),
        "outside" => meta.outside = items(value)?.into_iter().map(string).collect::<Result<_, _>>()?,
        "branch" => {
            let [name, commit] = keyed(value, ["name", "commit"])?;
            let name = name.ok_or_else(|| Error::corrupt("it has no name"))?;
            meta.branch = Some(Branch { name, commit });
        }
        "confirmed" => meta.confirmed = Some(read(value, day, || "a day like 2026-03-20".to_owned())?),
        "used" => meta.used = parsed(value, "a whole number from 0")?,
        "last_used" => meta.last_used = Some(parsed(value, "a time like 2026-02-13T14:30:00Z")?),
        "createdAt" => meta.created_at = parsed(value, "a whole number of milliseconds")?,
        "updatedAt" => meta.updated_at = parsed(value, "a whole number of milliseconds")?,
        "written" => meta.written = Some(string(value)?),
        "anchors" => meta.anchors = items(value)?.into_iter().map(anchor).collect::<Result<_, _>>()?,
        "sources" => meta.sources = items(value)?.into_iter().map(source).collect::<Result<_, _>>()?,
        "aliases" => meta.aliases = items(value)?.iter().map(entry_id).collect::<Result<_, _>>()?,
        "supersededBy" => meta.superseded_by = Some(entry_id(&value)?),
        _ => {}
    }
    Ok(())
}

fn string(value: YamlValue) -> Result<String> {
    text(value).map(Cow::into_owned)
}

fn text(value: YamlValue<'_>) -> Result<Cow<'_, str>> {
    match value {
        YamlValue::Scalar { text, .. } => Ok(text),
        other => Err(not_text(&other)),
    }
}

fn not_text(value: &YamlValue) -> Error {
    let kind = if matches!(value, YamlValue::List(_)) { "list" } else { "mapping" };
    Error::corrupt(format!("a {kind} instead of text"))
}

fn items(value: YamlValue<'_>) -> Result<Vec<YamlValue<'_>>> {
    match value {
        YamlValue::List(items) => Ok(items),
        _ => Err(Error::corrupt("not a list")),
    }
}

fn wrong(text: &str, allowed: &str) -> Error {
    Error::corrupt(format!("\"{}\" is not {allowed}", one_line(text, 60)))
}

fn entry_id(value: &YamlValue) -> Result<EntryId> {
    let YamlValue::Scalar { text, .. } = value else { return Err(not_text(value)) };
    EntryId::whole(text).ok_or_else(|| wrong(text, "an id like id__a1B2c3"))
}

fn word<T>(value: YamlValue, parse: fn(&str) -> Option<T>, words: &[&str]) -> Result<T> {
    read(value, parse, || format!("one of {}", words.join(", ")))
}

fn parsed<T: std::str::FromStr>(value: YamlValue, what: &str) -> Result<T> {
    read(value, |text| text.parse().ok(), || what.to_owned())
}

/// What `parse` makes of a text; or else that it is not what it should be.
fn read<T>(value: YamlValue, parse: impl Fn(&str) -> Option<T>, what: impl Fn() -> String) -> Result<T> {
    let text = text(value)?;
    parse(&text).ok_or_else(|| wrong(&text, &what()))
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
        YamlValue::List(items) => items.into_iter().map(string).collect(),
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
