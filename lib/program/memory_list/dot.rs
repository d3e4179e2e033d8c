//! Notes and their links as a graph, in the language of graphviz.

use crate::base::text::{disarmed, one_line};
use crate::memory::search::Found;
use crate::store::entry::{EntryId, Meta, Tier, links};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The longest label, in characters.
const LABEL: usize = 60;

/// The graph of these notes. A link to another one is left out.
pub fn graph(rows: &[Found]) -> String {
    let itself = |row: &Found| (row.view.meta.id.clone(), row.view.meta.id.clone());
    let mut known: BTreeMap<EntryId, EntryId> = rows.iter().map(itself).collect();
    for Meta { id, aliases, .. } in rows.iter().map(|row| &row.view.meta) {
        for alias in aliases {
            known.entry(alias.clone()).or_insert_with(|| id.clone());
        }
    }
    let mut text = "digraph notes {\n  node [shape=box];\n".to_owned();
    for Meta { id, title, tier, .. } in rows.iter().map(|row| &row.view.meta) {
        let style = match tier {
            Tier::Hot => ", style=bold",
            Tier::Warm => "",
            Tier::Cold => ", style=dashed",
        };
        let _ = writeln!(text, "  {id} [label=\"{}\"{style}];", escaped(title));
    }
    for row in rows {
        let id = &row.view.meta.id;
        let body = row.view.note().map(|note| String::from_utf8_lossy(note.entry.body()));
        let all = links(&body.unwrap_or_default());
        let linked: BTreeSet<&EntryId> = all.iter().filter_map(|link| known.get(link)).collect();
        for other in linked {
            let _ = writeln!(text, "  {id} -> {other};");
        }
    }
    text + "}\n"
}

/// Within quotes a backslash begins an escape, and an ampersand an entity.
fn escaped(title: &str) -> String {
    let title = disarmed(&one_line(title, LABEL)).into_owned();
    title.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_title_leaves_its_label() {
        for (title, expected) in [
            ("a \"b\"", "a \\\"b\\\""),
            ("ends with \\", "ends with \\\\"),
            ("\\N \\\" &lt;b&gt;", "\\\\N \\\\\\\" &amp;lt;b&amp;gt;"),
            ("x\u{202e}y", "x<U+202E>y"),
            ("two\nlines", "two lines"),
        ] {
            assert_eq!(escaped(title), expected, "{title:?}");
        }
    }
}
