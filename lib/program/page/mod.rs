//! A report as one HTML file: what `memory-page` and `axe-runs --html` write.
//!
//! *document* is what a page says, and the file; *plot* has its numbers over time; *target* says where it may go. `page.html`,
//! `page.css` and `page.js` are the same for every page.

mod document;
mod plot;
mod target;

pub use crate::program::page::document::{Item, Page, PageText, Panel, PanelEntry, Related, Warning, facts};
pub use crate::program::page::plot::Plot;
pub use crate::program::page::target::PageTarget;
