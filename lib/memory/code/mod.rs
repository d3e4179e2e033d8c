//! The code that a note was drawn from: which places it names, and whether they are still as they were.

mod blocks;
mod checkout;
mod said;
mod state;

pub use crate::memory::code::checkout::{Code, anchored_again, checkout_of};
pub use crate::memory::code::state::{
    CodeFiles, CodeState, NoteState, NoteStates, file_of_anchor, place_of, state_of_anchor, states,
};
