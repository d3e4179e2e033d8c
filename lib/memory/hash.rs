//! A short hash, where two states of one text are held against each other, or the ids of one session and its kin.

use crate::base::text::hex;
use sha2::{Digest, Sha256};

/// Twelve hexadecimal digits.
pub(super) fn hash(text: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(text.as_ref())[..6])
}
