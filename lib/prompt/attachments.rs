//! Files that go to the model as they are: images and PDFs, recognised by their first bytes.

use crate::base::env::Env;
use crate::base::error::{Error, Result, reason};
use crate::base::file;
use crate::base::text::size;
use crate::provider::message::{Attachment, PDF};
use base64::prelude::{BASE64_STANDARD, Engine};

/// The largest size of all files together, in bytes. Encoded, they are a third larger, and services take 32 MB.
const CAP: u64 = 20 * 1024 * 1024;

/// Reads the files, which are relative to the current directory; `-` takes `stdin`.
pub fn read(paths: &[&str], stdin: &mut Option<Vec<u8>>, env: &Env) -> Result<Vec<Attachment>> {
    let mut left = CAP;
    let mut attachments = Vec::with_capacity(paths.len());
    for path in paths {
        let failed = |why: String| Error::usage(format!("cannot attach \"{path}\": {why}"));
        let whole = env.current_dir()?.join(env.expand(path));
        let bytes = match *path {
            "-" => stdin
                .take()
                .ok_or_else(|| failed("nothing is piped in, or it is attached already".to_owned()))?,
            _ => file::read(&whole, CAP).map_err(|e| failed(reason(&e)).because(e))?,
        };
        left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            failed(format!("the attached files have more than {} together", size(CAP)))
                .hint("attach fewer or smaller files")
        })?;
        let media = media(&bytes).ok_or_else(|| {
            let what =
                if bytes.is_empty() { "it is empty" } else { "it is not a PNG, JPEG, GIF, WebP or PDF file" };
            failed(what.to_owned()).hint("pipe text in, or name it in the agent's files")
        })?;
        let whole = if *path == "-" { "stdin".into() } else { whole };
        let name = whole.file_name().unwrap_or(path.as_ref()).to_string_lossy().into_owned();
        let data = BASE64_STANDARD.encode(&bytes);
        attachments.push(Attachment { name, media: media.into(), length: bytes.len(), data });
    }
    Ok(attachments)
}

/// The kind of a file, whatever its name.
pub fn media(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some(PDF),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_content() {
        for (bytes, kind) in [
            (&b"\x89PNG\r\n\x1a\n..."[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"GIF88a", None),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVEfmt ", None),
            (b"%PDF-1.7", Some(PDF)),
            (b"<svg>", None),
            (b"", None),
        ] {
            assert_eq!(media(bytes), kind, "{bytes:?}");
        }
    }
}
