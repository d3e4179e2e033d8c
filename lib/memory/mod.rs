//! Notes: taken in, found again, kept in order.

pub(crate) mod addresses;
pub(crate) mod budget;
pub(crate) mod capture;
pub(crate) mod consolidate;
pub(crate) mod defrag;
pub(crate) mod doctor;
pub(crate) mod facts;
pub(crate) mod hash;
pub(crate) mod hooks;
pub(crate) mod links;
pub(crate) mod lists;
pub(crate) mod outside;
pub(crate) mod pipeline;
pub(crate) mod programs;
pub(crate) mod recall;
pub(crate) mod record;
pub(crate) mod redact;
pub(crate) mod review;
pub(crate) mod search;
pub(crate) mod section;
pub(crate) mod service;
pub(crate) mod sync;
pub(crate) mod waiting;
