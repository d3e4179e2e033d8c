//! Notes: taken in, found again, kept in order.

pub mod addresses;
pub mod budget;
pub mod capture;
pub mod checkouts;
pub mod conformance;
pub mod consolidate;
pub mod defrag;
pub mod doctor;
pub mod facts;
pub mod hash;
pub mod hooks;
pub mod links;
pub mod lists;
pub mod named;
pub mod outside;
pub mod pipeline;
pub mod programs;
pub mod recall;
pub mod record;
pub mod redact;
pub mod review;
pub mod search;
pub mod section;
pub mod service;
pub mod sync;
pub mod waiting;
