//! The lists of `speech.txt`: what words tell about a sentence.

use crate::memory::lists::List;

/// May stand before a sentence and be left out.
pub(super) const LEAD_IN: List = List("lead-in");
/// Says before a colon or comma that a rule follows.
pub(super) const ANNOUNCEMENT: List = List("announcement");
/// May stand after a sentence.
pub(super) const LEAD_OUT: List = List("lead-out");
/// It is about this moment or this place.
pub(super) const THIS_TIME: List = List("this time");
/// Says since when a general sentence holds.
pub(super) const SINCE_WHEN: List = List("since when");
pub(super) const QUESTION: List = List("question");
pub(super) const SUPPOSITION: List = List("supposition");
/// It is what somebody else says.
pub(super) const REPORT: List = List("report");
pub(super) const NEGATION: List = List("negation");
pub(super) const CONDITION: List = List("condition");
pub(super) const QUANTIFIER: List = List("quantifier");
/// It takes a rule back.
pub(super) const LET_GO: List = List("let go");
/// It allows what was forbidden.
pub(super) const PERMISSION: List = List("permission");
/// It goes on with the sentence before it.
pub(super) const EXCEPTION: List = List("exception");
/// Says nothing about the subject.
pub(super) const FILLER: List = List("filler");
