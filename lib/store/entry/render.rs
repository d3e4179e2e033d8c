//! Writes front matter.

use crate::store::entry::meta::{Anchor, Meta, Source};
use crate::store::entry::scalar::{Style, written};
use crate::store::entry::schema::KEYS;
use crate::store::entry::value::YamlValue;

/// All of it, without the lines of dashes.
pub(super) fn front_matter(meta: &Meta) -> String {
    KEYS.iter().filter_map(|key| lines(meta, key)).map(|lines| lines + "\n").collect()
}

/// A key with its value, without the last line end. `None` if the default needs no line.
pub(super) fn lines(meta: &Meta, key: &str) -> Option<String> {
    let line = |value: &str| Some(format!("{key}: {value}"));
    match key {
        "id" => line(meta.id.as_str()),
        "title" => line(&written(&meta.title, Style::Block)),
        "summary" => line(&written(&meta.summary, Style::Block)),
        "tags" => line(&list(&meta.tags)),
        "paths" if meta.paths.is_empty() => None,
        "paths" => line(&list(&meta.paths)),
        "status" => line(meta.status.as_str()),
        "tier" => line(meta.tier.as_str()),
        "scope" => line(meta.scope.as_str()),
        "pinned" => line(if meta.pinned { "true" } else { "false" }),
        "until" => line(&meta.until?.to_string()),
        "rank" => line(&meta.rank?.to_string()),
        "by" => line(meta.by?.as_str()),
        "outside" if meta.outside.is_empty() => None,
        "outside" => line(&list(&meta.outside)),
        "branch" => {
            let branch = meta.branch.as_ref()?;
            line(&map([("name", Some(branch.name.clone())), ("commit", branch.commit.clone())]))
        }
        "confirmed" => line(&meta.confirmed?.to_string()),
        "used" => line(&meta.used.to_string()),
        "last_used" => line(&meta.last_used?.to_string()),
        "createdAt" => line(&meta.created_at.to_string()),
        "updatedAt" => line(&meta.updated_at.to_string()),
        "written" => line(&written(meta.written.as_ref()?, Style::Block)),
        "anchors" => block(key, &meta.anchors, anchor),
        "sources" => block(key, &meta.sources, source),
        "aliases" if meta.aliases.is_empty() => None,
        "aliases" => line(&list(&meta.aliases.iter().map(ToString::to_string).collect::<Vec<_>>())),
        "supersededBy" => line(meta.superseded_by.as_ref()?.as_str()),
        _ => None,
    }
}

/// A line for each item.
fn block<T>(key: &str, items: &[T], item: fn(&T) -> String) -> Option<String> {
    let lines = items.iter().map(|one| format!("\n  - {}", item(one)));
    (!items.is_empty()).then(|| format!("{key}:{}", lines.collect::<String>()))
}

fn list(items: &[String]) -> String {
    let items: Vec<_> = items.iter().map(|item| written(item, Style::Flow)).collect();
    format!("[{}]", items.join(", "))
}

fn anchor(anchor: &Anchor) -> String {
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

fn source(source: &Source) -> String {
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
