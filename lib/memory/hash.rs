//! A short hash, where two states of one text are held against each other, or the ids of one session and its kin.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Twelve hexadecimal digits.
pub(super) fn hash(text: impl AsRef<[u8]>) -> String {
    let digest = Sha256::digest(text.as_ref());
    digest.iter().take(6).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
