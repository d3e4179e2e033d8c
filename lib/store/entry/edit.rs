//! Replaces lines of a front matter, and keeps all others byte for byte.

use crate::base::error::{Error, Result};
use crate::store::entry::yaml::Yaml;
use std::ops::Range;

/// A key and its new lines, without the last line end. `None` removes the lines.
type KeyChange<'a> = (&'a str, Option<String>);

/// `text`, which was read as `document`, with the lines of each key replaced, or added at the end if there are none.
///
/// Comments among the replaced lines stay: one on the line of the key stays there, others move below. The caller must
/// read the result again and compare: anchors, `? key` and the like can make it wrong.
pub(super) fn replace(text: &str, document: &Yaml, changes: &[KeyChange], newline: &str) -> Result<String> {
    let (Some(first), false) = (document.starts.first(), document.in_braces) else {
        return Err(Error::corrupt("no lines of keys"));
    };
    let indent = &text[line_start(text, *first)..*first];
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (key, lines) in changes {
        let mut new = String::new();
        for line in lines.iter().flat_map(|lines| lines.split('\n')) {
            new.extend([indent, line, newline]);
        }
        match document.fields.iter().position(|field| field.key == *key) {
            Some(position) => {
                let old = lines_of(text, document, position)?;
                let new = with_comments(text, document, &old, new, newline);
                edits.push((old, new));
            }
            None => edits.push((text.len()..text.len(), new)),
        }
    }
    edits.sort_by_key(|(old, _)| old.start);
    let mut edited = String::with_capacity(text.len() + 64);
    let mut kept = 0;
    for (old, new) in edits {
        edited.push_str(text.get(kept..old.start).ok_or_else(|| Error::corrupt("keys overlap"))?);
        edited.push_str(&new);
        kept = old.end;
    }
    edited.push_str(&text[kept..]);
    Ok(edited)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The whole lines of a key and its value, without the comments and empty lines after them.
fn lines_of(text: &str, document: &Yaml, position: usize) -> Result<Range<usize>> {
    let key = document.starts[position];
    let start = line_start(text, key);
    let next = document.starts.get(position + 1).map_or(text.len(), |next| line_start(text, *next));
    if !text[start..key].bytes().all(|byte| byte == b' ') || next <= start {
        return Err(Error::corrupt(format!("{} does not begin a line", document.fields[position].key)));
    }
    let mut end = next;
    loop {
        let last = line_start(text, end - 1);
        let line = &text[last..end];
        let blanks = line.len() - line.trim_ascii_start().len();
        let is_comment =
            || document.comments.binary_search_by_key(&(last + blanks), |found| found.start).is_ok();
        if last <= start || !(blanks == line.len() || is_comment()) {
            return Ok(start..end);
        }
        end = last;
    }
}

/// The new lines, with the comments of the old ones.
fn with_comments(text: &str, document: &Yaml, old: &Range<usize>, new: String, newline: &str) -> String {
    let first_end = text[old.clone()].find('\n').map_or(old.end, |end| old.start + end);
    let mut beside = String::new();
    let mut below = String::new();
    for comment in document.comments.iter().filter(|comment| old.contains(&comment.start)) {
        let before = &text[line_start(text, comment.start)..comment.start];
        let blanks = &before[before.trim_ascii_end().len()..];
        if comment.start < first_end && !new.is_empty() {
            beside = format!("{blanks}{}", &text[comment.clone()]);
        } else {
            // A comment behind removed text loses the spaces before it.
            let blanks = if blanks.len() == before.len() { blanks } else { "" };
            below.extend([blanks, &text[comment.clone()], newline]);
        }
    }
    let line_end = new.find(newline).unwrap_or(new.len());
    let (line, more) = new.split_at(line_end);
    [line, &beside, more, &below].concat()
}
