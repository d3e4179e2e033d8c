//! The manual pages of section 7, in the order in which they are listed. `man/` has their text.

use crate::base::cli::Manual;

/// The first page is the family's own.
pub(super) const AXE: &[Manual] = &[
    page(include_str!("../../man/axe.7.md")),
    page(include_str!("../../man/axe-configuration.7.md")),
    page(include_str!("../../man/axe-pipelines.7.md")),
    page(include_str!("../../man/axe-security.7.md")),
    page(include_str!("../../man/axe-installation.7.md")),
    page(include_str!("../../man/axe-comparison.7.md")),
];

/// The first page is the family's own.
pub(super) const MEMORY: &[Manual] = &[
    page(include_str!("../../man/memory.7.md")),
    page(include_str!("../../man/memory-configuration.7.md")),
    page(include_str!("../../man/memory-hooks.7.md")),
    page(include_str!("../../man/memory-pipelines.7.md")),
];

/// A text begins with `# FAMILY-TOPIC(7): CAPTION`. The family's own page is on its formats.
const fn page(text: &'static str) -> Manual {
    let (title, _) = text.split_at(find(text, b'\n'));
    let (_, title) = title.split_at("# ".len());
    let (name, rest) = title.split_at(find(title, b'('));
    let (_, caption) = rest.split_at("(7): ".len());
    let dash = find(name, b'-');
    let topic = if dash == name.len() { "formats" } else { name.split_at(dash + 1).1 };
    Manual { name, topic, caption, text }
}

/// Where the character is, or else the end.
const fn find(text: &str, character: u8) -> usize {
    let mut at = 0;
    while at < text.len() && text.as_bytes()[at] != character {
        at += 1;
    }
    at
}
