//! Notes: taken in, found again, kept in order.

pub(crate) mod capture;
pub(crate) mod redact;
pub(crate) mod search;
pub(crate) mod service;
