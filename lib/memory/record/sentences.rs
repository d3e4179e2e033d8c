//! Sentences: of what a person typed, to find them again word for word, and of a note.
//!
//! Where it is uncertain whether a sentence ends, it does not: a part of one may say the opposite. "Never do these:"
//! and the line after it are one sentence of a turn, and so is everything within quotes, parentheses and backticks.

use crate::base::text::collapsed;
use crate::memory::facts::{PieceKind, pieces};
use crate::memory::lists::List;
use crate::memory::record::plain::words_of;

/// Stands for what is none of the person's own words: a quote or a code block in a turn.
pub(super) const FOREIGN: &str = " \u{fffc} ";

/// A stretch of a turn in which sentences end only where they end.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// It forbids what its list says, or says when it holds: the items belong to it.
    has_items: bool,
    /// It is one short item of a list: the next line is not its end.
    is_item: bool,
}

/// A longer item may go on in the next line. In characters.
const SHORT_ITEM: usize = 60;

/// The sentences of what a person typed, white space collapsed.
pub(super) fn of_turn(text: &str) -> Vec<String> {
    let mut paragraphs = vec![Paragraph::default()];
    let mut is_code = false;
    for line in text.lines() {
        let start = line.trim_start();
        let Some(last) = paragraphs.last_mut() else { break };
        if start.starts_with("```") || start.starts_with("~~~") {
            is_code = !is_code;
            last.text.push_str(FOREIGN);
        } else if is_code || start.starts_with('>') {
            last.text.push_str(FOREIGN);
        } else if start.is_empty() {
            // What follows "do not do this:" belongs to it.
            if !goes_on(&last.text) && !last.text.trim().is_empty() {
                paragraphs.push(Paragraph::default());
            }
        } else if let Some(item) = list_item(start).filter(|_| !last.has_items && !binds_items(&last.text)) {
            let is_item = item.chars().nth(SHORT_ITEM).is_none();
            paragraphs.push(Paragraph { text: format!("{item}\n"), has_items: false, is_item });
        } else if last.is_item && start == line && !goes_on(&last.text) && !is_bound(line) {
            paragraphs.push(Paragraph { text: format!("{line}\n"), ..Paragraph::default() });
        } else {
            last.has_items |= list_item(start).is_some();
            last.text.extend([line, "\n"]);
        }
    }
    paragraphs.iter().flat_map(|paragraph| split(&paragraph.text)).collect()
}

/// Does the next line belong to what stands before it?
fn goes_on(paragraph: &str) -> bool {
    paragraph.trim_end().ends_with([':', '：', ',', '、', '\u{fffc}'])
}

/// Does the list under it belong to it? Not to a heading that says no more than "rules:".
fn binds_items(paragraph: &str) -> bool {
    let words = words_of(split(paragraph).last().map_or("", String::as_str));
    let is_heading = paragraph.trim_end().ends_with([':', '：'])
        && ![List("negation"), List("condition")].iter().any(|speech| speech.is_in(&words));
    goes_on(paragraph) && !is_heading
}

/// Does it say when the line before it holds?
fn is_bound(line: &str) -> bool {
    let words = words_of(line);
    [List("condition"), List("exception")].iter().any(|speech| speech.begins(&words) > 0)
}

/// What stands after the mark of a list.
pub(super) fn list_item(line: &str) -> Option<&str> {
    let marks = ["- ", "* ", "• ", "– ", "+ "];
    let numbered = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "));
        rest.filter(|rest| line.len() - rest.len() <= 4 && line.starts_with(|c: char| c.is_ascii_digit()))
    };
    marks.iter().find_map(|mark| line.strip_prefix(mark)).or_else(numbered)
}

/// The sentences of a note's title, summary or body: items of lists, headings and lines of code end theirs.
pub fn of_note(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut paragraph = String::new();
    for piece in pieces(text) {
        if piece.begins {
            found.extend(split(&std::mem::take(&mut paragraph)));
        }
        match piece.kind {
            PieceKind::Prose => paragraph.push_str(piece.text),
            PieceKind::Span => paragraph.extend(["`", piece.text, "`"]),
            PieceKind::Code => found.push(collapsed(piece.text)),
        }
    }
    found.extend(split(&paragraph));
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// What ends a sentence where no blank follows.
const WIDE: [char; 5] = ['。', '！', '？', '｡', '．'];

/// The sentences of a paragraph.
fn split(text: &str) -> Vec<String> {
    let (mut found, mut start) = (Vec::new(), 0);
    // The marks that must still close.
    let mut open: Vec<char> = Vec::new();
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |(_, next)| *next);
        if open.last() == Some(&c) || (c == '”' && open.last() == Some(&'“')) {
            let is_apostrophe = c == '\'' && before.is_alphanumeric() && next.is_alphanumeric();
            if !is_apostrophe {
                open.pop();
            }
        } else if let Some(close) = closing(c, before, next) {
            open.push(close);
        }
        let end = at + c.len_utf8();
        if open.is_empty() && ends(text, start, end, c, next) {
            // What closes a quote or a parenthesis belongs to the sentence.
            found.push(collapsed(&text[start..end]));
            start = end;
        }
        before = c;
    }
    found.push(collapsed(&text[start..]));
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// What opens, and what closes it.
const PAIRS: [&str; 12] = ["\"\"", "``", "“”", "„“", "«»", "»«", "「」", "『』", "()", "（）", "[]", "‘’"];

/// What closes that which a character opens.
fn closing(c: char, before: char, next: char) -> Option<char> {
    match c {
        // `6"`, `:(`
        '"' if before.is_ascii_digit() => None,
        '(' if matches!(before, ':' | ';' | '-') => None,
        '\'' => (!before.is_alphanumeric() && !next.is_whitespace()).then_some(c),
        _ => PAIRS.iter().find(|pair| pair.starts_with(c)).and_then(|pair| pair.chars().nth(1)),
    }
}

/// Does the sentence that began at `start` end at `end`, with the character `c`?
fn ends(text: &str, start: usize, end: usize, c: char, next: char) -> bool {
    let is_closer = "\"”“»«」』)）]’'`".contains(c);
    // `He said "Stop."`: the end is before the mark.
    let mut inner = if is_closer { &text[start..end - c.len_utf8()] } else { &text[start..end] };
    for _ in 0..if is_closer { 3 } else { 0 } {
        inner = inner.strip_suffix(|c| "\"”“»)’'".contains(c)).unwrap_or(inner);
    }
    let Some(mark) = inner.chars().next_back() else { return false };
    if WIDE.contains(&mark) {
        return if is_closer { next.is_whitespace() } else { !"」』）”\"".contains(next) };
    }
    if !matches!(mark, '.' | '!' | '?' | '…') || !(next.is_whitespace()) {
        return false;
    }
    let Some(follows) =
        text[end..].trim_start().trim_start_matches(|c| "\"'“„«([¿¡`*_".contains(c)).chars().next()
    else {
        return true;
    };
    let goes_on = follows.is_lowercase();
    if mark != '.' || is_closer {
        // "What? no." is two; "wait … then" is one.
        return !(goes_on && (mark == '…' || is_closer));
    }
    if inner.ends_with("..") {
        return !goes_on;
    }
    let word = inner[..inner.len() - 1]
        .rsplit(|c: char| c.is_whitespace() || "(\"'`".contains(c))
        .next()
        .unwrap_or("");
    let word = word.to_lowercase();
    let letters = word.chars().count();
    // "No. 3" is a number; "No. When I ask …" is two sentences.
    let is_number = ["no", "nos"].contains(&word.as_str());
    let is_abbreviation = List("abbreviations").has(&word) && (!is_number || follows.is_ascii_digit());
    if is_abbreviation || (letters == 1 && word.chars().all(char::is_alphabetic)) {
        return false;
    }
    // "Am 3. März", "1. Words"
    if (1..=2).contains(&letters) && word.chars().all(|c| c.is_ascii_digit()) {
        return false;
    }
    // Some write without capitals. A short word before may be an abbreviation that is not listed.
    !goes_on || letters >= 3 || letters == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_they_end() {
        for (text, expected) in [
            ("Use tabs. Never push!  Why? Because.", &["Use tabs.", "Never push!", "Why?", "Because."][..]),
            (
                "Run v1.2.3 of src/main.rs at https://h.example/a.b?c. Then stop",
                &["Run v1.2.3 of src/main.rs at https://h.example/a.b?c.", "Then stop"],
            ),
            (
                "Use a linter, e.g. Clippy, i.e. the best. Done.",
                &["Use a linter, e.g. Clippy, i.e. the best.", "Done."],
            ),
            ("no, use pnpm here. don't use npm.", &["no, use pnpm here.", "don't use npm."]),
            ("run it incl. tests and max. three", &["run it incl. tests and max. three"]),
            (
                "Wir liefern am 3. März, z. B. früh. Immer.",
                &["Wir liefern am 3. März, z. B. früh.", "Immer."],
            ),
            (
                "Nutze bzw. teste Dr. Meiers Tool. Nie npm.",
                &["Nutze bzw. teste Dr. Meiers Tool.", "Nie npm."],
            ),
            (
                "¿Por qué? ¡Nunca uses npm! Usa pnpm, p. ej. aquí.",
                &["¿Por qué?", "¡Nunca uses npm!", "Usa pnpm, p. ej. aquí."],
            ),
            ("El Sr. López manda. Siempre.", &["El Sr. López manda.", "Siempre."]),
            ("タブを使う。決してpushしない！なぜ？", &["タブを使う。", "決してpushしない！", "なぜ？"]),
            ("彼は「使う。押す。」と言った。終わり。", &["彼は「使う。押す。」と言った。", "終わり。"]),
            (
                "It says \"Hello. Always push. Bye.\" and stops. No.",
                &["It says \"Hello. Always push. Bye.\" and stops.", "No."],
            ),
            (
                "It says 'Hello. Always push. Bye.' Really?",
                &["It says 'Hello. Always push. Bye.'", "Really?"],
            ),
            ("Er sagt „Immer. Push.“ Nein.", &["Er sagt „Immer. Push.“", "Nein."]),
            ("Wait ... then go… on. Yes", &["Wait ... then go… on.", "Yes"]),
            ("Never (at all. Push. Ever) do it.", &["Never (at all. Push. Ever) do it."]),
            ("The users' files. Don't touch.", &["The users' files.", "Don't touch."]),
            ("It's `a. B. c` that counts. So.", &["It's `a. B. c` that counts.", "So."]),
            ("", &[]),
            (" . ", &["."]),
        ] {
            assert_eq!(of_turn(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_part_of_what_a_person_typed_is_no_sentence() {
        for (turn, part) in [
            ("Never do these:\n- push to main.\n- Use npm.", "push to main."),
            ("Never do these:\n- push to main.\n- Use npm.", "Use npm."),
            ("Never do this:\n\npush to main.", "push to main."),
            ("The page says\n> Always push.\nIs that so?", "Always push."),
            ("The page says\n> Always push.\nIs that so?", "Is that so?"),
            ("Output:\n```\nAlways push.\n```\nwhat?", "Always push."),
            ("I never\nforce push.", "force push."),
            ("\"Fine. Always push. Ok", "Always push."),
        ] {
            assert!(!of_turn(turn).contains(&part.to_owned()), "{:?}", of_turn(turn));
        }
    }

    #[test]
    fn items_of_a_list_are_sentences_unless_the_line_above_turns_them_around() {
        assert_eq!(of_turn("rules:\n- use tabs\n- no emojis"), ["rules:", "use tabs", "no emojis"]);
        assert_eq!(of_turn("- one\n2. two"), ["one", "two"]);
        assert_eq!(of_turn("never:\n- one\n- two"), ["never: - one - two"]);
    }

    #[test]
    fn items_headings_and_code_are_sentences_of_a_note() {
        assert_eq!(
            of_note(
                "# Ports\n\nThe server\nlistens on `43. B`. Fine.\n- one\n- two. Three.\n\n```\nmake x\n```\n"
            ),
            ["Ports", "The server listens on `43. B`.", "Fine.", "one", "two.", "Three.", "make x"]
        );
    }
}
