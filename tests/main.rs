//! Behaviour, through the real binaries. One module a program, and one a concern that all share.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may write files, and fails by panicking"
)]

mod children;
mod support;

mod axe_run;
mod commands;
mod crowd;
mod layers;
mod signals;
mod stdin;
