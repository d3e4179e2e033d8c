//! Which notes clearly answer a prompt. Most prompts are answered by none, and a note that does not fit costs more than it
//! gives: it takes room in the session for good.

use crate::memory::search::Found;

/// The least that a note must have of the prompt, in words that no other note has; in its best lines; and of all that the prompt
/// says: in a pasted log, some words match by chance.
const ALL: f64 = 1.6;
const LINE: f64 = 0.8;
const SHARE: f64 = 0.16;
/// A note after the best one must match at least this part of what the best one matches.
const NEXT: f64 = 0.7;
/// A text of so many words mentions much that it is not about: its title, tags or summary must have a rare word of the prompt.
const LONG: u32 = 600;
const LONG_SUBJECT: f64 = 1.0;

/// Those of the notes that clearly answer, of all that were found, the best first. One that has a name of the prompt does,
/// whatever else it says.
///
/// The numbers were chosen with all of `tests/recall`. So the tests there keep them from getting worse, and say nothing about other
/// prompts.
pub(super) fn clear(found: &[Found]) -> impl Iterator<Item = &Found> {
    let mut best: f64 = 0.0;
    found.iter().filter(move |found| {
        let strength = &found.strength;
        let is_enough = strength.all >= ALL && strength.line >= LINE && strength.share >= SHARE;
        let is_about = strength.words < LONG || strength.subject >= LONG_SUBJECT;
        let is_clear = found.is_named || is_enough && is_about && strength.all >= NEXT * best;
        if is_clear {
            best = best.max(strength.all);
        }
        is_clear
    })
}
