//! Which notes clearly answer a prompt. Most prompts are answered by none, and a note that does not fit costs more than it
//! gives: it takes room in the session for good.

use crate::memory::search::Strength;

/// The least that the note's best lines must be worth: more than one word that it alone has.
const LINE: f64 = 1.4;
/// The least that it must have of what the prompt says. In a pasted log, some words match by chance.
const SHARE: f64 = 0.2;

/// Does a note with this strength clearly answer?
///
/// The numbers were chosen with one half of `tests/recall/prompts.txt`; a test holds them against the other.
pub(super) fn is_clear(strength: &Strength) -> bool {
    strength.line >= LINE && strength.share >= SHARE
}
