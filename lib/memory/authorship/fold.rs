//! What a text looks like: invisible characters left out, and characters that look like ASCII replaced by it. A name
//! that was changed in this is no name that anybody may trust.

use crate::base::text::is_odd;
use std::borrow::Cow;
use std::ops::Range;

/// A text as a reader sees it.
pub(super) struct Folded<'a> {
    pub(super) text: Cow<'a, str>,
    /// For each byte of the text: was it written otherwise, or after something invisible? Empty: nothing was.
    changed: Vec<bool>,
}

impl<'a> Folded<'a> {
    pub(super) fn of(raw: &'a str) -> Folded<'a> {
        if raw.is_ascii() || !raw.chars().any(|c| is_invisible(c) || c == '。' || lookalike(c).is_some()) {
            return Folded { text: Cow::Borrowed(raw), changed: Vec::new() };
        }
        let mut text = String::with_capacity(raw.len());
        let mut changed = Vec::with_capacity(raw.len());
        let mut after_invisible = false;
        for (at, c) in raw.char_indices() {
            if is_invisible(c) {
                after_invisible = true;
                continue;
            }
            // The Japanese full stop is a dot within a host, and ends a sentence elsewhere.
            let is_dot = c == '。'
                && text.ends_with(|c: char| c.is_ascii_alphanumeric())
                && raw[at + c.len_utf8()..].starts_with(|c: char| c.is_ascii_alphanumeric());
            // A range, as people write it: 1–100.
            let is_range = matches!(c, '‐'..='―')
                && text.ends_with(|c: char| c.is_ascii_digit())
                && raw[at + c.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
            let seen = match lookalike(c) {
                _ if is_dot => Some('.'),
                _ if is_range => None,
                seen => seen,
            };
            text.push(seen.unwrap_or(c));
            changed.resize(text.len(), seen.is_some() || after_invisible);
            after_invisible = false;
        }
        Folded { text: Cow::Owned(text), changed }
    }

    /// Was anything in this stretch written otherwise?
    pub(super) fn is_changed(&self, range: Range<usize>) -> bool {
        self.changed.get(range).is_some_and(|bytes| bytes.contains(&true))
    }
}

/// Does it leave no trace on a page, or change the direction of a text?
fn is_invisible(c: char) -> bool {
    is_odd(c) && !matches!(c, '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200c}' | '\u{200d}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Letters of other scripts, and what they look like.
const LETTERS: [(&str, &str); 4] = [
    // Cyrillic
    ("аԁеһіјӏорԛѕсуүхԝѵАВЕЅІЈКМНОРСТУХҮԌԜ", "adehijlopqscyyxwvABESIJKMHOPCTYXYGW"),
    // Greek
    ("αικνορτυχωεηΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aikvoptuxwenABEZHIKMNOPTYX"),
    // Armenian, and the rest of Latin
    ("օսհոզցıɑɡᴄᴏᴜᴠᴡᴢꜱɩℓʟʀᴀᴅᴇᴋᴍᴘᴛ", "ouhnqgiagcouvwzsillradekmpt"),
    // Roman numerals
    ("ⅰⅴⅹⅼⅽⅾⅿⅠⅤⅩⅬⅭⅮⅯ", "ivxlcdmIVXLCDM"),
];

/// Marks that look like those of addresses and commands.
const MARKS: [(&str, char); 6] =
    [("‐‑‒–—―−﹣", '-'), ("⁄∕⧸╱", '/'), ("ː∶꞉˸", ':'), ("․", '.'), ("│∣ǀ❘¦", '|'), ("ˋ‵", '`')];

fn lookalike(c: char) -> Option<char> {
    let code = c as u32;
    let from = |first: u32, base: u8, count: u32| {
        let letter = (code - first) % count;
        u8::try_from(letter).ok().map(|letter| char::from(base + letter))
    };
    match code {
        // No script in these ranges looks like ASCII.
        ..0xa6 | 0x3000..=0xa6ff | 0xac00..=0xfdff => None,
        0xff01..=0xff5e => char::from_u32(code - 0xff01 + 0x21),
        0x1d400..=0x1d6a3 => {
            let letter = (code - 0x1d400) % 52;
            if letter < 26 {
                from(0x1d400, b'A', 52)
            } else {
                u8::try_from(letter - 26).ok().map(|n| char::from(b'a' + n))
            }
        }
        0x1d7ce..=0x1d7ff => from(0x1d7ce, b'0', 10),
        0x24b6..=0x24cf => from(0x24b6, b'A', 26),
        0x24d0..=0x24e9 => from(0x24d0, b'a', 26),
        _ => MARKS.iter().find(|(marks, _)| marks.contains(c)).map(|(_, mark)| *mark).or_else(|| {
            LETTERS.iter().find_map(|(theirs, ours)| {
                let at = theirs.chars().position(|other| other == c)?;
                ours.chars().nth(at)
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_lookalikes_have_equal_lengths() {
        for (theirs, ours) in LETTERS {
            assert_eq!(theirs.chars().count(), ours.len(), "{theirs}");
        }
    }

    #[test]
    fn a_text_is_read_as_it_looks() {
        for (raw, seen) in [
            ("gіthub.com", "github.com"),
            ("ｃｕｒｌ　－ｋ", "curl　-k"),
            ("ev\u{200b}il.c\u{ad}om", "evil.com"),
            ("𝐜𝐮𝐫𝐥 𝟒𝟑𝟏𝟎 ⓒⓤⓡⓛ", "curl 4310 curl"),
            ("evil。com", "evil.com"),
            ("終わり。次", "終わり。次"),
            ("Größe, ñandú, straße", "Größe, ñandú, straße"),
            ("1–100 — so", "1–100 - so"),
            ("—no-verify", "-no-verify"),
        ] {
            let folded = Folded::of(raw);
            assert_eq!(folded.text, seen);
            assert_eq!(folded.is_changed(0..seen.len()), raw != seen, "{raw}");
        }
        let folded = Folded::of("ok gіt");
        assert!(!folded.is_changed(0..3) && folded.is_changed(3..6));
    }
}
