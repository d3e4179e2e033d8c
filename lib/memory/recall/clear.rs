//! Which notes clearly answer a prompt. Most prompts are answered by none, and a note that does not fit costs more than it
//! gives: it takes room in the session for good.

use crate::memory::search::Found;

/// The least that the note's best lines must be worth, more than one word that it alone has, and the least that it must have
/// of what the prompt says: in a pasted log, some words match by chance.
const LINE: f64 = 1.6;
const SHARE: f64 = 0.2;
/// The same where its title, tags or summary have something of it.
const SUBJECT: f64 = 0.5;
const SUBJECT_LINE: f64 = 1.2;
const SUBJECT_SHARE: f64 = 0.25;
/// A text of so many words mentions much that it is not about: its title, tags or summary must have a rare word of the prompt.
const LONG: u32 = 600;
const LONG_SUBJECT: f64 = 1.0;

/// Does a note that was found clearly answer? One that has a name of the prompt does, whatever else it says.
///
/// The numbers were chosen with all of `tests/recall/prompts.txt`, and 120 prompts more about the same notes. So the test there
/// keeps them from getting worse, and says nothing about other prompts.
pub(super) fn is_clear(found: &Found) -> bool {
    let strength = &found.strength;
    let has = |line: f64, share: f64| strength.line >= line && strength.share >= share;
    let is_enough = has(LINE, SHARE) || strength.subject >= SUBJECT && has(SUBJECT_LINE, SUBJECT_SHARE);
    let is_about = strength.words < LONG || strength.subject >= LONG_SUBJECT;
    found.is_named || is_enough && is_about
}
