//! The links of a note that a reader would follow.

use crate::store::entry::{self, EntryId};
use std::collections::HashSet;

/// The targets of a body's links, each once, in order. Links in code do not count.
pub(super) fn links(body: &str) -> Vec<EntryId> {
    let mut links = entry::links(body);
    if links.is_empty() {
        return links;
    }
    if body.contains('`') || body.contains("~~~") {
        links = entry::links(&without_code(body));
    }
    let mut seen = HashSet::new();
    links.retain(|id| seen.insert(id.clone()));
    links
}

/// The lines outside of code fences, without inline code.
fn without_code(body: &str) -> String {
    let mut prose = String::with_capacity(body.len());
    let mut fence: Option<&str> = None;
    for line in body.split_inclusive('\n') {
        let start = line.trim_start();
        let marks = ["```", "~~~"].into_iter().find(|marks| start.starts_with(marks));
        match (fence, marks) {
            (None, None) => line.split('`').step_by(2).for_each(|piece| prose.push_str(piece)),
            (None, opening) => fence = opening,
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
        }
    }
    // If a fence is not closed, the rest of the note counts as code.
    prose
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_code_do_not_count_and_others_count_once() {
        for (body, expected) in [
            ("[[id__AAAAAA]] [[id__BBBBBB]]\n[[id__AAAAAA]]", "AB"),
            ("`[[id__AAAAAA]]` and [[id__BBBBBB]] `x` [[id__CCCCCC]]", "BC"),
            ("```sh\n[[id__AAAAAA]]\n~~~\n[[id__BBBBBB]]\n```\n[[id__CCCCCC]]", "C"),
            ("  ~~~\n[[id__AAAAAA]]\n  ~~~\n[[id__BBBBBB]]", "B"),
            ("[[id__AAAAAA]]\n```\n[[id__BBBBBB]]", "A"),
            ("[[id__AAAAAA|words]] [[id__nope]] [id__BBBBBB]", ""),
            ("", ""),
        ] {
            let found: String = links(body).iter().filter_map(|id| id.as_str().chars().last()).collect();
            assert_eq!(found, expected, "{body:?}");
        }
    }
}
