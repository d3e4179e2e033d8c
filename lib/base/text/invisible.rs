//! Characters that print nothing: one list, and where Unicode's own sequences use them all the same. A joiner between two
//! letters of Persian, or a selector after an emoji, is part of the text; anywhere else it can only hide something.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether it is a character that nobody sees, or one that changes what others look like: what Unicode calls
/// `Default_Ignorable_Code_Point`, blanks that are no spaces, and separators of lines and of annotations.
pub fn is_hidden(c: char) -> bool {
    c >= '\u{ad}'
        && matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Scripts whose letters join, or form clusters, from Arabic to Malayalam and beyond.
fn is_joining(c: char) -> bool {
    !is_hidden(c)
        && matches!(c, '\u{600}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18af}'
        | '\u{1a20}'..='\u{1aaf}' | '\u{1b00}'..='\u{1bff}' | '\u{a800}'..='\u{abff}' | '\u{fb50}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}' | '\u{10a00}'..='\u{11fff}' | '\u{1e900}'..='\u{1e95f}')
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}'..='\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}'..='\u{303d}' | '\u{3297}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Does a selector choose a form of this character?
fn selects(selector: char, base: char) -> bool {
    let is_ideograph =
        matches!(base, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
    match selector {
        '\u{fe0e}' | '\u{fe0f}' => is_emoji(base),
        // Signs of mathematics, letters of Myanmar and of Phags-pa.
        '\u{fe00}' => {
            is_ideograph
                || matches!(base, '\u{1000}'..='\u{109f}' | '\u{2200}'..='\u{22ff}'
            | '\u{2a00}'..='\u{2aff}' | '\u{a840}'..='\u{a877}')
        }
        '\u{fe01}' | '\u{fe02}' | '\u{e0100}'..='\u{e01ef}' => is_ideograph,
        '\u{180b}'..='\u{180f}' => matches!(base, '\u{1820}'..='\u{18aa}'),
        _ => false,
    }
}

/// The characters of a text with their places, and whether each is hidden where no sequence of Unicode uses it.
fn marked(text: &str) -> impl Iterator<Item = (usize, char, bool)> {
    // The last two characters that are seen.
    let mut before = ['\0'; 2];
    text.char_indices().map(move |(at, c)| {
        let is_stray = is_hidden(c) && !is_in_sequence(before, c, &text[at + c.len_utf8()..]);
        if !is_stray {
            before = [c, before[0]];
        }
        (at, c, is_stray)
    })
}

fn is_in_sequence([last, second]: [char; 2], c: char, rest: &str) -> bool {
    let next = rest.chars().next().unwrap_or('\0');
    match c {
        '\u{200c}' | '\u{200d}' => {
            let base = if last == '\u{fe0f}' { second } else { last };
            let is_emoji = c == '\u{200d}' && is_emoji(base) && is_emoji(next);
            // Persian joins its endings to words of other scripts, too; a letter alone may have the form that it has in a word.
            let is_between =
                is_joining(next) && (is_joining(last) || c == '\u{200c}' && last.is_alphanumeric());
            is_emoji || is_between || c == '\u{200d}' && is_joining(last) && !next.is_alphanumeric()
        }
        '\u{fe0f}' if next == '\u{20e3}' => last.is_ascii_digit() || matches!(last, '#' | '*'),
        // The flag of a part of a country: a black flag, the letters of the part, and an end.
        '\u{e0020}'..='\u{e007f}' => match last {
            '\u{1f3f4}' => is_flag(c, rest),
            // Looked at with the first one.
            '\u{e0020}'..='\u{e007e}' => true,
            _ => false,
        },
        _ => selects(c, last),
    }
}

fn is_flag(first: char, rest: &str) -> bool {
    const LONGEST: usize = 6;
    let is_letter = |c: char| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let more = rest.chars().take(LONGEST).take_while(|c| is_letter(*c)).count();
    is_letter(first) && (2..LONGEST).contains(&more) && rest.chars().nth(more) == Some('\u{e007f}')
}

/// The places of what is hidden in a text and no part of it.
pub fn strays(text: &str) -> impl Iterator<Item = (usize, char)> {
    let looked_at = if text.is_ascii() { "" } else { text };
    marked(looked_at).filter(|(.., is_stray)| *is_stray).map(|(at, c, _)| (at, c))
}

/// The text without what is hidden in it and no part of it. A separator of lines becomes a line end.
pub fn visible(text: &str) -> Cow<'_, str> {
    if strays(text).next().is_none() {
        return Cow::Borrowed(text);
    }
    let seen = marked(text).filter_map(|(_, c, is_stray)| match c {
        '\u{2028}' | '\u{2029}' => Some('\n'),
        c => (!is_stray).then_some(c),
    });
    Cow::Owned(seen.collect())
}

/// Text without characters that end the line, move the cursor or are hidden.
pub fn in_line(text: &str) -> String {
    marked(text).map(|(_, c, is_stray)| if c.is_control() || is_stray { '\u{fffd}' } else { c }).collect()
}

/// Text as it may stand on a terminal, for whoever has to see all of it: control characters, line ends and tabs aside, are
/// escaped, and what is hidden is named: `<U+FE01>`.
pub fn disarmed(text: &str) -> Cow<'_, str> {
    let is_live = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_live) && strays(text).next().is_none() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 32);
    for (_, c, is_stray) in marked(text) {
        match c {
            c if is_live(c) => shown.extend(c.escape_unicode()),
            c if is_stray => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// JSON as it may stand on a terminal: the same text, with what is hidden or moves the cursor as escapes.
pub fn escaped_json(json: String) -> String {
    let is_live = |c: char| c.is_control() || is_hidden(c);
    if json.contains(is_live) { json_without(&json, is_live) } else { json }
}

/// The same JSON with these characters, which stand in its strings alone, as escapes.
pub fn json_without(json: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(json.len() + json.len() / 8);
    for c in json.chars() {
        if !is_escaped(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts in which each invisible character belongs to what is seen.
    const WHOLE: &[&str] = &[
        "می\u{200c}خواهم",
        "API\u{200c}ها",
        "۲۰\u{200c}ساله",
        "ه\u{200d} ۱۴۰۲",
        "र\u{94d}\u{200d}य",
        "क\u{94d}\u{200c}ष",
        "ක\u{dca}\u{200d}ර",
        "ন\u{9cd}\u{200d}",
        "👩\u{200d}👩\u{200d}👧\u{200d}👦",
        "❤\u{fe0f}\u{200d}🔥",
        "🏳\u{fe0f}\u{200d}🌈",
        "🧑🏽\u{200d}💻",
        "☎\u{fe0e}",
        "1\u{fe0f}\u{20e3}",
        "#\u{fe0f}\u{20e3}",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "葛\u{e0100}飾",
        "辻\u{e0101}",
        "ᠠ\u{180b}ᠪ",
        "≨\u{fe00}",
        "™\u{fe0f}",
    ];

    #[test]
    fn what_belongs_to_a_sequence_stays() {
        for text in WHOLE {
            assert!(text.contains(is_hidden), "{text}");
            assert_eq!(visible(text), *text, "{:?}", strays(text).collect::<Vec<_>>());
            assert_eq!(disarmed(text), *text);
        }
    }

    #[test]
    fn what_belongs_to_none_is_removed_named_and_found() {
        let all: Vec<char> = ('\0'..=char::MAX).filter(|c| is_hidden(*c)).collect();
        assert_eq!(all.len(), 4180);
        for c in all {
            let gap = if matches!(c, '\u{2028}' | '\u{2029}') { "\n" } else { "" };
            let text = format!("a{c}b {c}{c}");
            assert_eq!(visible(&text), format!("a{gap}b {gap}{gap}"), "{:x}", u32::from(c));
            assert!(
                disarmed(&text).starts_with(&format!("a<U+{:04X}>b", u32::from(c))),
                "{}",
                disarmed(&text)
            );
            assert_eq!(strays(&text).count(), 3);
            assert!(!escaped_json(text).contains(c));
        }
        for (text, seen) in [
            ("می\u{200c}\u{200c}خواهم", "می\u{200c}خواهم"),
            ("👩\u{200d}x \u{200d}👩", "👩x 👩"),
            ("☎\u{fe0f}\u{fe0f}\u{fe01}", "☎\u{fe0f}"),
            ("🏴\u{e0073}\u{e0065}\u{e006e}\u{e0064} \u{e0074}", "🏴 "),
            ("🏴\u{e0067}\u{e0062}\u{e0065}\u{e007f}\u{e0067}", "🏴\u{e0067}\u{e0062}\u{e0065}\u{e007f}"),
            ("1\u{fe0f} a\u{fe0f}\u{20e3}", "1 a\u{20e3}"),
            ("葛\u{e0100}\u{e0100}x\u{e0100}", "葛\u{e0100}x"),
        ] {
            assert_eq!(visible(text), seen, "{}", text.escape_unicode());
        }
    }

    #[test]
    fn json_on_a_terminal_says_the_same() {
        let text = "a\u{202e}\u{9b}\u{e0041}\"é🦀";
        let json = serde_json::to_string(text).unwrap();
        let escaped = escaped_json(json);
        assert_eq!(escaped, r#""a\u202e\u009b\udb40\udc41\"é🦀""#);
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }

    #[test]
    fn disarmed_text_shows_what_is_hidden_and_moves_no_cursor() {
        assert_eq!(disarmed("a\u{1b}[2J\r\nb\u{202e}c\u{200b}"), "a\\u{1b}[2J\\u{d}\nb<U+202E>c<U+200B>");
        assert_eq!(disarmed("\tü 👩\u{200d}💻"), "\tü 👩\u{200d}💻");
    }
}
