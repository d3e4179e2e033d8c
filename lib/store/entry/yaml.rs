//! Reads front matter with a YAML parser: the values, and the positions of keys and comments.
//!
//! It uses the parser's events instead of mapping onto types, since they keep scalars as written, and have comments
//! and offsets. Aliases are replaced by copies; depth and size are limited before and after that.

use crate::base::error::{Error, Result};
use crate::store::entry::front_matter::{CAP, LINES_BEFORE};
use crate::store::entry::value::{Field, YamlValue};
use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StructureStyle};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

const DEPTH_CAP: usize = 32;
/// The limit for values plus bytes of text, copies of aliases included. Front matter without aliases stays below it.
const COST_CAP: usize = 4 * CAP;

#[derive(Debug, Default)]
pub(super) struct Yaml {
    pub(super) fields: Vec<Field<'static>>,
    /// The byte offset of each field's key.
    pub(super) starts: Vec<usize>,
    /// In the order of the file, without line ends.
    pub(super) comments: Vec<Range<usize>>,
    /// The whole front matter is one `{…}`.
    pub(super) in_braces: bool,
}

impl Yaml {
    pub(super) fn read(text: &str) -> Result<Yaml> {
        let options = granit_parser::options! {
            disallow_directives: true,
            flow_nesting_limit: DEPTH_CAP,
            block_nesting_limit: DEPTH_CAP,
            max_buffered_comment_events: CAP,
        };
        let mut tree = Tree::default();
        let mut document = Yaml::default();
        for next in Parser::new_from_str_with_options(text, options) {
            let (event, span) = next.map_err(syntax_error)?;
            if let Event::Comment(..) = event {
                document.comments.push(range(&span));
                continue;
            }
            tree.take(event, &span).map_err(|error| in_line(span.start.line(), error))?;
        }
        document.comments.sort_by_key(|comment| comment.start);
        document.in_braces = tree.in_braces;
        let pairs = match tree.root {
            Some(YamlValue::Map(pairs)) => pairs,
            Some(value) if !value.is_null() => return Err(Error::corrupt("the front matter has no keys")),
            _ => Vec::new(),
        };
        for ((key, value), (start, line)) in pairs.into_iter().zip(tree.keys) {
            let YamlValue::Scalar { text: key, .. } = key else {
                return Err(in_line(line, Error::corrupt("a key is not text")));
            };
            document.starts.push(start);
            document.fields.push(Field { key, value, line });
        }
        Ok(document)
    }
}

/// The values that are being built from events.
#[derive(Default)]
struct Tree {
    root: Option<YamlValue<'static>>,
    open: Vec<OpenNode>,
    anchors: HashMap<usize, YamlNode>,
    /// The positions of the keys of the outermost mapping: where each begins, and its line.
    keys: Vec<(usize, usize)>,
    in_braces: bool,
    documents: usize,
    cost: usize,
}

/// A list or mapping whose end has not been seen.
struct OpenNode {
    node: YamlNode,
    key: Option<YamlValue<'static>>,
    anchor: usize,
}

#[derive(Clone)]
struct YamlNode {
    value: YamlValue<'static>,
    cost: usize,
    /// The number of levels inside, so far.
    depth: usize,
}

impl Tree {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<()> {
        // A node that is a key of the outermost mapping.
        if event.is_node()
            && let [OpenNode { node: YamlNode { value: YamlValue::Map(_), .. }, key: None, .. }] =
                self.open.as_slice()
        {
            self.keys.push((range(span).start, span.start.line()));
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Error::corrupt("a second YAML document begins here"));
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                // The parser reports an empty value as ~.
                let text = if plain && span.is_empty() { String::new() } else { text.into_owned() };
                let cost = 1 + text.len();
                self.spend(cost)?;
                let value = YamlValue::Scalar { text: Cow::Owned(text), plain };
                self.place(YamlNode { value, cost, depth: 0 }, anchor)?;
            }
            Event::Alias(anchor) => {
                let inside = || Error::corrupt("an alias inside its own anchor");
                let node = self.anchors.get(&anchor).cloned().ok_or_else(inside)?;
                self.spend(node.cost)?;
                self.place(node, 0)?;
            }
            Event::SequenceStart(_, anchor, _) => self.begin(YamlValue::List(Vec::new()), anchor),
            Event::MappingStart(style, anchor, _) => {
                self.in_braces |= self.open.is_empty() && style == StructureStyle::Flow;
                self.begin(YamlValue::Map(Vec::new()), anchor);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(OpenNode { mut node, anchor, .. }) = self.open.pop() {
                    self.spend(1)?;
                    (node.cost, node.depth) = (node.cost + 1, node.depth + 1);
                    self.place(node, anchor)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, value: YamlValue<'static>, anchor: usize) {
        self.open.push(OpenNode { node: YamlNode { value, cost: 0, depth: 0 }, key: None, anchor });
    }

    /// Adds a complete value to its parent.
    fn place(&mut self, node: YamlNode, anchor: usize) -> Result<()> {
        if self.open.len() + node.depth > DEPTH_CAP {
            return Err(Error::corrupt(format!("more than {DEPTH_CAP} levels, aliases copied out")));
        }
        if anchor > 0 {
            self.spend(node.cost)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(OpenNode { node: parent, key, .. }) = self.open.last_mut() else {
            self.root = Some(node.value);
            return Ok(());
        };
        parent.cost += node.cost;
        parent.depth = parent.depth.max(node.depth);
        match &mut parent.value {
            YamlValue::List(items) => items.push(node.value),
            YamlValue::Map(pairs) => match key.take() {
                Some(key) => pairs.push((key, node.value)),
                None => *key = Some(node.value),
            },
            YamlValue::Scalar { .. } => {}
        }
        Ok(())
    }

    fn spend(&mut self, cost: usize) -> Result<()> {
        self.cost += cost;
        if self.cost > COST_CAP {
            return Err(Error::corrupt(format!("more than {} KiB, aliases copied out", COST_CAP >> 10)));
        }
        Ok(())
    }
}

fn range(span: &Span) -> Range<usize> {
    span.byte_range().unwrap_or_default()
}

fn syntax_error(error: ScanError) -> Error {
    in_line(error.marker().line(), Error::corrupt(error.info()))
}

/// The error, with the number of the line in the note's file.
pub(super) fn in_line(line: usize, error: Error) -> Error {
    error.context(format_args!("line {}", line + LINES_BEFORE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        Yaml::read(text).unwrap_err().message().to_owned()
    }

    #[test]
    fn scalars_are_as_written() {
        let text = "a: no\nb: 1e3\nc: \"x\\ty\"\nd:\ne: |\n  # x\n  y\n\"f\": 'it''s'\ng: p\n  q\nh: ~\n";
        let document = Yaml::read(text).unwrap();
        let found: Vec<_> = document.fields.iter().map(|field| (&*field.key, field.value.clone())).collect();
        let expected = [
            ("a", "no"),
            ("b", "1e3"),
            ("c", "x\ty"),
            ("d", ""),
            ("e", "# x\ny\n"),
            ("f", "it's"),
            ("g", "p q"),
            ("h", "~"),
        ];
        assert_eq!(found, expected.map(|(key, value)| (key, YamlValue::quoted(value))));
        let nulls: Vec<_> = document.fields.iter().filter(|field| field.value.is_null()).collect();
        assert_eq!(nulls.len(), 2, "{nulls:?}");
        let starts: Vec<_> = document.starts.iter().map(|start| &text[*start..start + 1]).collect();
        assert_eq!(starts, ["a", "b", "c", "d", "e", "\"", "g", "h"]);
        assert_eq!(document.fields[7].line, 11);
    }

    #[test]
    fn every_comment_is_found_and_nothing_else() {
        let text = concat!(
            "# 0\na: x # 1\n  # 2\nb: # 3\n  # 4\n  - x # 5\n\n  - y#no\n# 6\nc: | # 7\n  t\n  # no\n\n# 8\n",
            "d: \"x # no\n  y\" # 9\ne: [x, # 10\n  y] # 11\nf:\n- x\n# 12\n- y\n  # 13\ng: # 14\n# 15"
        );
        let document = Yaml::read(text).unwrap();
        let found: Vec<_> = document.comments.iter().map(|comment| &text[comment.clone()]).collect();
        assert_eq!(found, (0..16).map(|number| format!("# {number}")).collect::<Vec<_>>());
    }

    #[test]
    fn aliases_are_copied_out() {
        let document = Yaml::read("a: &x [1, {b: 2}]\nc: *x\n").unwrap();
        assert_eq!(document.fields[0].value, document.fields[1].value);
    }

    #[test]
    fn faults_name_the_line_of_the_file() {
        assert!(fault("a: b\nc: d: e\n").starts_with("line 3: "), "{}", fault("a: b\nc: d: e\n"));
        assert!(fault("a: \tb\n\tc: d\n").starts_with("line "));
        assert_eq!(fault("a: b\n--- c\n"), "line 3: a second YAML document begins here");
        assert_eq!(fault("- a\n"), "the front matter has no keys");
        assert_eq!(fault("a: b\n? [c]\n: d\n"), "line 3: a key is not text");
        assert_eq!(fault("a: &x [*x]\n"), "line 2: an alias inside its own anchor");
        assert!(fault("%YAML 1.2\n--- {a: b}\n").starts_with("line 2: "));
        assert!(Yaml::read("").unwrap().fields.is_empty());
        assert!(Yaml::read("# a\n").unwrap().fields.is_empty());
    }

    #[test]
    fn bombs_are_refused() {
        let laughs: String = (1..30).map(|n| format!("l{n}: &l{n} [*l{0}, *l{0}, *l{0}]\n", n - 1)).collect();
        assert!(fault(&format!("l0: &l0 lol\n{laughs}")).ends_with("aliases copied out"));
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(30_000), "*a, ".repeat(8_000));
        assert!(fault(&long).contains("more than 256 KiB"), "{}", fault(&long));
        let chain: String = (1..5_000).map(|n| format!("c{n}: &c{n} [*c{}]\n", n - 1)).collect();
        assert!(fault(&format!("c0: &c0 x\n{chain}")).contains("more than 32 levels"));
        for deep in ["[", "{a: ", "- ", "? "] {
            assert!(Yaml::read(&deep.repeat(CAP / deep.len())).is_err());
        }
        let steps: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        assert!(fault(&steps).starts_with("line "));
    }
}
