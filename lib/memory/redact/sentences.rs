//! Secrets that a person says: "the password is …", "log in as bob / …", "PIN 1234", in several languages.
//!
//! What stands for the secret must look like one: letters with digits or signs, and no name of code.

use memchr::memmem;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use crate::memory::redact::chars::{count, holds, inner, is_in, leading, past, split_end, trailing, until};
use crate::memory::redact::near::{Certainty, Near, Span, place};
use crate::memory::redact::rules::words;
use crate::memory::redact::value::{
    chosen, dice, dotted, identifier, made_up, mixed, odd_hex, password as passes, phrase, placeholder,
    random, strong,
};

/// The most words between what is named and what is said of it: "the password of the new server is now …".
const WORDS: usize = 8;

/// How many lines below a sentence are read.
const LINES: usize = 6;

/// The longest secret that a sentence holds, in bytes.
const LONGEST: usize = 160;

static CONNECTORS: LazyLock<Vec<&str>> = LazyLock::new(|| words("connectors"));
static ADVERBS: LazyLock<Vec<&str>> = LazyLock::new(|| words("adverbs"));
static FILLERS: LazyLock<Vec<&str>> = LazyLock::new(|| words("fillers"));

static SUFFIXES: LazyLock<Vec<&str>> = LazyLock::new(|| words("suffixes"));
static LINKS: LazyLock<Vec<&str>> = LazyLock::new(|| words("links"));
static JOINS: LazyLock<Vec<&str>> = LazyLock::new(|| words("joins"));

pub(super) fn password(near: &mut Near) {
    let found = near.spans.len();
    said(near, |text, connected, quoted| {
        let number = (6..=24).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
        let made = || match quoted {
            true => passes(text) || phrase(text) && !text.contains(&b' '),
            false => number || (random(text) || phrase(text)) && !is_path(text) || strong(text),
        };
        connected && made() || dice(text) || chosen(text) && !is_address(text)
    });
    if near.spans.len() == found {
        said_before(near);
        answered(near);
        // A commit is no secret.
        let is_commit = |text: &[u8]| text.len() == 40 && text.iter().all(u8::is_ascii_hexdigit);
        below(near, |text| (random(text) || chosen(text)) && !is_path(text) && !is_commit(text));
    }
    around(near);
}

/// What can be nothing else than a secret, wherever it stands on the line of the word, or alone on the next: made by a
/// generator of capitals, small letters and digits, or a password as people make it up.
pub(super) fn around(near: &mut Near) {
    let (before, mut line) = (near.before(), near.line());
    let start = near.at - before.len();
    // A mark says such a word, too.
    if start < near.done.around || before.ends_with(b"[redacted:") {
        return;
    }
    near.done.around = start + line.len();
    let ends =
        |byte: &u8| byte.is_ascii_whitespace() || b"\"'`,;<>()[]{}|=\\".contains(byte) || *byte >= 0xE2;
    let mut next = alone_below(near);
    // Of a line that is too long, the last word may be cut.
    if near.bytes.get(near.done.around).is_some_and(|byte| *byte != b'\n') {
        (line, next) = (&line[..line.iter().rposition(ends).unwrap_or(0)], b"");
    }
    // Where a line is cut, so may be a name and its value.
    let is_cut = start > 0 && near.bytes[start - 1] != b'\n';
    let mut is_other = false;
    let tokens = line.split(ends).chain(next.split(ends)).map(|token| inner(token, b".:!?*-"));
    for token in tokens.filter(|token| !token.is_empty()).skip(2 * usize::from(is_cut)) {
        // `"requestId": "…"`, `sha256: …`: what names something else.
        if !std::mem::replace(&mut is_other, names_other(token))
            && let Some(secret) = certain(near.bytes, token)
        {
            near.spans.push(Span::of(near.bytes, secret, near.kind, Certainty::Nearby));
        }
    }
    spelled(near, line);
}

/// The next line, if one word is all that it says.
fn alone_below<'a>(near: &Near<'a, '_>) -> &'a [u8] {
    let next = until(near.below(LONGEST), |byte| byte == b'\n');
    let said = behind_speaker(next);
    let is_other = names_other(inner(&next[..next.len() - said.len()], b": "));
    let behind = near.behind();
    // A list of constants goes on.
    let ends_in_code = behind.trim_ascii_end().last().is_some_and(|byte| b";{(".contains(byte));
    let is_alone = !ends_in_code && !said.trim_ascii().contains(&b' ') || behind.contains(&b'?');
    if is_alone && !is_other { said } else { b"" }
}

/// The secret of a word that can be nothing else.
fn certain<'a>(bytes: &[u8], token: &'a [u8]) -> Option<&'a [u8]> {
    if token.len() < 8 {
        return None;
    }
    // `name(`, `name="`, and somebody who is mentioned.
    let is_name = match &bytes[place(bytes, token) + token.len()..] {
        [b'=', next, ..] => next.is_ascii_alphanumeric() || b"\"'".contains(next),
        [b'(', ..] => true,
        _ => token[0] == b'@' && !strong(&token[1..]) || identifier(token),
    };
    let last = memchr::memrchr(b':', token).map_or(token, |at| &token[at + 1..]);
    if is_name || names_other(inner(&token[..token.len() - last.len()], b":")) {
        return None;
    }
    let is_secret = |token: &&[u8]| {
        (mixed(token) || made_up(token) || odd_hex(token) || grouped(token))
            && (!is_path(token) || is_joined(token))
            && !placeholder(token)
    };
    // `user:SECRET@host`
    [token, last, until(last, |byte| byte == b'@')].into_iter().find(is_secret)
}

/// `m7ny tmq4 aqd2 3ny5 …`, `D M 6 T F 1 D K`
fn spelled(near: &mut Near, line: &[u8]) {
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).collect();
    let is_word = |word: &[u8]| word.iter().all(u8::is_ascii_alphanumeric);
    for same in words.chunk_by(|one, next| one.len() == next.len() && is_word(one) && is_word(next)) {
        let (many, length) = (same.len(), same[0].len());
        if length == 0 || many < 6 && (many < 4 || length != 4) {
            continue;
        }
        let text = &line[place(line, same[0])..place(line, same[many - 1]) + length];
        let has_digit = |word: &&&[u8]| word.iter().any(u8::is_ascii_digit);
        let is_mixed = |word: &&[u8]| has_digit(&word) && word.iter().any(u8::is_ascii_alphabetic);
        if same.iter().filter(has_digit).count() > 1
            && (many >= 6 || same.iter().any(is_mixed))
            && text.iter().any(u8::is_ascii_alphabetic)
        {
            near.push(text);
        }
    }
}

/// `P7TQ-OZHP-6XKQ-NXR3`: four groups or more of the same length.
fn grouped(token: &[u8]) -> bool {
    let groups: Vec<&[u8]> = token.split(|byte| *byte == b'-').collect();
    let is_group =
        |group: &&[u8]| group.len() == groups[0].len() && group.iter().all(u8::is_ascii_alphanumeric);
    groups.len() > 3
        && (4..=8).contains(&groups[0].len())
        && groups.iter().all(is_group)
        && (groups.len() > 5 || token.iter().any(u8::is_ascii_digit))
        && token.iter().any(u8::is_ascii_alphabetic)
}

/// `Word.Word123`, which no name of code is.
fn is_joined(token: &[u8]) -> bool {
    let words: Vec<&[u8]> = token.split(|byte| *byte == b'.').collect();
    words.len() == 2
        && words.iter().all(|word| word.first().is_some_and(u8::is_ascii_uppercase))
        && trailing(token, 9, |byte| byte.is_ascii_digit()) > 2
}

static OTHERS: LazyLock<Vec<&str>> = LazyLock::new(|| words("others"));

fn names_other(word: &[u8]) -> bool {
    let ends = |end: &&str| {
        let at = word.len().checked_sub(end.len());
        at.is_some_and(|at| word[at..].eq_ignore_ascii_case(end.as_bytes()))
    };
    OTHERS.iter().any(ends)
}

/// What somebody says behind a name, as `bob: ` and `[10:41] bob: ` and `<bob> `.
fn behind_speaker(line: &[u8]) -> &[u8] {
    let label = leading(line, 40, |byte| byte.is_ascii_alphanumeric() || b" []<:>".contains(&byte));
    let end = line[..label].iter().rposition(|byte| b":>".contains(byte)).filter(|at| *at > 2);
    end.map_or(line, |end| &line[end + 1..])
}

/// "The new password is:", and it is on the next line, or, wrapped, on the next lines.
fn below(near: &mut Near, is_secret: impl Fn(&[u8]) -> bool) {
    const FRAME: &[u8] = b" \t\r|`*>-\xe2\x94\x82\x83\x95\x91";
    let line = inner(near.behind(), FRAME);
    let last = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let is_heading = line.is_empty() && inner(near.before(), b" \t|`*#-").is_empty();
    if line.len() > 120 || !(is_heading || line.ends_with(b":") || is_in(&CONNECTORS, last)) {
        return;
    }
    let lines = near.below(4 * LONGEST).split(|byte| *byte == b'\n').map(|line| inner(line, FRAME));
    let is_one =
        |line: &&[u8]| line.len() >= 6 && !line.contains(&b' ') && is_secret(line) && !placeholder(line);
    let lines = lines.take(LINES).skip_while(|line| line.is_empty()).take_while(is_one);
    lines.for_each(|line| near.push(line));
}

/// "SECRET is the password", "use SECRET as the password of …"
fn said_before(near: &mut Near) {
    let ending = until(near.behind(), |byte| byte.is_ascii_punctuation() || byte.is_ascii_whitespace());
    if near.word().last() != Some(&b' ')
        && !ending.is_empty()
        && ending.is_ascii()
        && !is_in(&SUFFIXES, ending)
    {
        return;
    }
    if near.word()[0] >= 0xE3 {
        return said_unspaced(near);
    }
    // A word's case can say it: "поставь SECRET паролем".
    let name = String::from_utf8_lossy(near.word()).to_lowercase();
    let (mut rest, mut linked) = (near.before(), is_in(&LINKS, name.as_bytes()));
    for _ in 0..WORDS {
        rest = rest.trim_ascii_end();
        let start = rest.iter().rposition(|byte| b" \t".contains(byte)).map_or(0, |at| at + 1);
        let quoted = quoted_end(rest);
        let word = inner(&rest[start..], b"`\"',*(");
        if [&b"-"[..], "–".as_bytes(), "—".as_bytes()].contains(&word) && linked {
            rest = &rest[..start];
            continue;
        }
        let lower = String::from_utf8_lossy(word).to_lowercase();
        if linked && let Some(text) = quoted.or_else(|| candidate(word).map(|(text, _)| text)) {
            let good = chosen(text)
                || strong(text)
                || random(text)
                || phrase(text) && (quoted.is_none() || !text.contains(&b' '));
            if good && (strong(text) || !is_path(text)) && !placeholder(text) {
                return near.push(text);
            }
        }
        // A full stop, a comma, a sign of code: another clause.
        if word.is_empty()
            || !is_plain(past(&rest[start..], b"("))
            || linked && !is_in(&ADVERBS, lower.as_bytes())
        {
            return;
        }
        linked |= is_in(&LINKS, lower.as_bytes());
        rest = &rest[..start];
    }
}

/// "用SECRET作为密码", "SECRETをパスワードに": what is written in other letters is the secret.
fn said_unspaced(near: &mut Near) {
    let (before, words) = split_end(near.before(), 60, |byte| !byte.is_ascii_graphic());
    let text = inner(split_end(before, 64, |byte| byte.is_ascii_graphic()).1, b"`\"'");
    let links = ["作", "为", "為", "是", "当", "を", "は", "が", "를", "을"];
    near.offer(text, holds(words, &links) && (chosen(text) || strong(text)));
}

/// The text in quotes at the end.
fn quoted_end(text: &[u8]) -> Option<&[u8]> {
    let (open, inside) =
        QUOTES.chunks_exact(2).find_map(|pair| Some((pair[0], text.strip_suffix(pair[1].as_bytes())?)))?;
    let start = memmem::rfind(inside, open.as_bytes())? + open.len();
    Some(inside[start..].trim_ascii()).filter(|text| (4..=64).contains(&text.len()))
}

/// Letters alone, as words of prose have them.
fn is_plain(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_alphabetic() || *byte >= 0x80 || b"'-".contains(byte))
}

/// What the next speaker says, in the line below.
fn reply<'a>(near: &Near<'a, '_>, most: usize) -> Option<&'a [u8]> {
    let line = until(near.below(most), |byte| byte == b'\n');
    Some(behind_speaker(line)).filter(|said| said.len() < line.len())
}

/// The next speaker's words, when this one asks for the secret.
fn answered(near: &mut Near) {
    let Some(text) = reply(near, LONGEST).filter(|_| near.behind().contains(&b'?')) else { return };
    let text = inner(text, b" `\"'.,\r");
    let passes = passes(text) || phrase(text) && !text.contains(&b' ');
    near.offer(text, passes && !text.contains(&b'/'));
}

pub(super) fn token(near: &mut Near) {
    // `token=…` is a name and its value.
    if near.bytes.get(near.end) == Some(&b'=') {
        return;
    }
    let is_token = |text: &[u8], digits: usize| {
        text.len() >= 16 && count(text, u8::is_ascii_digit) >= digits && random(text) && !is_path(text)
    };
    said(near, |text, _, _| is_token(text, 2) && !identifier(text));
    below(near, |text| is_token(text, 1));
    around(near);
}

/// "log in as bob / …", "creds: bob:…", "user/pass: bob/…"
pub(super) fn login(near: &mut Near) {
    const CONNECTORS: [&str; 9] = ["is", "are", "sind", "sont", "son", "as", "lauten", "used", "for"];
    const JOINS: [&str; 13] =
        ["/", ":", "|", ",", "and ", "with ", "und ", "et ", "y ", "e ", "mit ", "avec ", "con "];
    const NAMES: [&str; 7] =
        ["the password ", "password ", "pw ", "pass ", "Passwort ", "password: ", "pw: "];
    let strip = |text: &[u8], starts: &[&str]| {
        starts.iter().find(|start| text.starts_with(start.as_bytes())).map_or(0, |start| start.len())
    };
    let mut user = near.behind();
    for _ in 0..3 {
        user = past(user, b" \t:=*`\"'(");
        let next = word(user);
        if !is_in(&CONNECTORS, next) {
            break;
        }
        user = &user[next.len()..];
    }
    let length = leading(user, 65, |byte| byte.is_ascii_alphanumeric() || b"._-@+\\".contains(&byte));
    if !(1..=64).contains(&length) || user.len() == near.behind().len() {
        return;
    }
    let (user, rest) = user.split_at(length);
    let gap = past(rest, b" \t`\"'*");
    let join = strip(gap, &JOINS);
    if join == 0 && random(user) && count(user, u8::is_ascii_digit) > 1 {
        return near.push(user);
    }
    if join == 0 || join > 1 && gap.len() == rest.len() {
        return;
    }
    let mut secret = past(&gap[join..], b" \t`\"'*");
    let name = strip(secret, &NAMES);
    if name > 0 {
        secret = past(&secret[name..], b" \t`\"'*:");
    }
    if let Some((text, _)) = candidate(secret) {
        near.offer(text, (chosen(text) || strong(text)) && !is_address(text));
    }
}

/// Looks along the sentence for what is a secret, and no placeholder. `is_secret` gets a text, whether a word like "is" comes
/// before it, and whether it stands in quotes.
fn said(near: &mut Near, is_secret: impl Fn(&[u8], bool, bool) -> bool) {
    let behind = near.behind();
    let Some(mut rest) = behind_name(near) else { return };
    let (mut connected, mut apart) = (false, false);
    for _ in 0..WORDS {
        rest = past(rest, b" \t*");
        // A closing quote or bracket of the name itself.
        if behind.len() - rest.len() <= 2 && matches!(rest, [b'"' | b'\'' | b'`', b' ' | b':' | b'*', ..]) {
            rest = &rest[1..];
            continue;
        }
        // "When it asks for the password, type …"
        if let [b',', clause @ ..] = rest {
            (rest, apart) = (past(clause, b" "), true);
        } else if let Some(behind) = behind_parentheses(rest) {
            rest = behind;
        }
        let sign = joined_sign(rest);
        let next = if sign > 0 { &rest[..sign] } else { word(rest) };
        let connects = sign > 0 || is_in(&CONNECTORS, next);
        if connects || connected && is_in(&ADVERBS, next) {
            (rest, connected) = (&rest[next.len()..], true);
            continue;
        }
        if next.is_empty() || next.starts_with(b"--") {
            return;
        }
        if let Some((text, quoted)) = candidate(rest)
            && (connected || !apart || text.len() >= 16 && random(text))
            && is_secret(text, connected, quoted)
            && !placeholder(text)
        {
            near.push(text);
            // "from SECRET to SECRET", "SECRET or SECRET"
            let end = place(near.bytes, text) + text.len() - near.end;
            rest = past(&behind[end.min(behind.len())..], b" `\"'*,\xe2\x80\x9c\x9d");
            let join = word(rest);
            if !is_in(&JOINS, join) {
                return;
            }
            (rest, connected) = (&rest[join.len()..], true);
            continue;
        }
        // Go on over plain words, and stop where the sentence or the clause does.
        if !is_plain(next) && !is_address(next) {
            return;
        }
        (rest, connected) = (&rest[next.len()..], false);
    }
}

/// What stands behind the word that names a secret, if it is a whole word and no value itself.
fn behind_name<'a>(near: &Near<'a, '_>) -> Option<&'a [u8]> {
    let behind = near.behind();
    // `mechanism=password`, `user:password:uid`
    if near.some_before(1) == b"=" || near.some_before(1) == b":" && behind.starts_with(b":") {
        return None;
    }
    // `passwords`, `password_file`, `passwordless`: not the word.
    let ends_in_word = near.word().last().is_some_and(|byte| !byte.is_ascii_punctuation() && *byte != b' ');
    match behind.first()? {
        byte if ends_in_word && byte.is_ascii_alphanumeric() => {
            let ending = word(behind);
            is_in(&SUFFIXES, ending).then(|| &behind[ending.len()..])
        }
        byte => (!ends_in_word || b" :=*`\"'\t|,".contains(byte) || *byte >= 0xC2).then_some(behind),
    }
}

/// "the password (of the test server): …"
fn behind_parentheses(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b"(")?;
    let close = inside.iter().take(40).position(|byte| *byte == b')').unwrap_or_default();
    inside.get(close + 1..).filter(|behind| joined_sign(behind) > 0)
}

/// The length of a sign that needs no space: `:`, `：`, `是`.
fn joined_sign(rest: &[u8]) -> usize {
    let signs = ["：", "是", "为", "為", "は", "는", "은", ":", "="];
    let dots = leading(rest, 60, |byte| byte == b'.');
    let sign = signs.iter().find(|sign| rest.starts_with(sign.as_bytes())).map_or(0, |sign| sign.len());
    if dots > 3 { dots } else { sign }
}

/// Up to white space, or a sign that ends a word.
fn word(text: &[u8]) -> &[u8] {
    until(text, |byte| byte.is_ascii_whitespace() || b",;:=".contains(&byte))
}

/// What opens and what closes quoted text, in turn.
static QUOTES: LazyLock<Vec<&str>> = LazyLock::new(|| words("quotes"));

/// The word or the quoted text at the start, and whether it is in quotes.
fn candidate(rest: &[u8]) -> Option<(&[u8], bool)> {
    let pair = QUOTES.chunks_exact(2).find(|pair| rest.starts_with(pair[0].as_bytes()));
    if let Some(pair) = pair {
        let inside = &rest[pair[0].len()..];
        return Some((inner(&inside[..memmem::find(inside, pair[1].as_bytes())?], b" \xc2\xa0"), true));
    }
    let stops = |byte: u8| b" \t\r\n\"`\\<>|,;".contains(&byte) || byte >= 0xE3;
    let text = past(until(&rest[..rest.len().min(LONGEST)], stops), b"(*");
    let text =
        ["“", "”", "»", "’"].iter().find_map(|quote| text.strip_suffix(quote.as_bytes())).unwrap_or(text);
    let end = text.iter().rposition(|byte| !b".:)]*'?".contains(byte))?;
    Some((&text[..=end], false))
}

/// `a/b/c`, `x.y.z`, `A::B`: a place in files or code.
fn is_path(text: &[u8]) -> bool {
    !text.iter().any(u8::is_ascii_alphabetic) && text.contains(&b'.')
        || dotted(text)
        || is_address(text)
        || holds(text, &["(", "[", "::"])
        || text.starts_with(b"/")
}

/// `bob@host`
fn is_address(text: &[u8]) -> bool {
    let is_name = |part: &[u8]| {
        !part.is_empty() && part.iter().all(|byte| byte.is_ascii_lowercase() || b".-".contains(byte))
    };
    memchr::memrchr(b'@', text).is_some_and(|at| is_name(&text[..at]) && is_name(&text[at + 1..]))
}

/// So many digits after "is", "code" and the like.
pub(super) fn number(near: &mut Near, many: RangeInclusive<usize>) {
    let mut rest = near.behind();
    let is_apart = near.word().last().is_some_and(|byte| *byte == b' ' || !byte.is_ascii());
    if !is_apart && !rest.first().is_some_and(|byte| b" :=*\"'".contains(byte)) {
        return;
    }
    // "the pin for the door is …": any words, if one that connects comes last.
    let (mut is_loose, mut connects) = (false, is_apart);
    for _ in 0..WORDS {
        let gap = past(rest, b" :=*`\"'\t#");
        connects |= rest[..rest.len() - gap.len()].contains(&b':');
        rest = gap;
        let next = word(rest);
        if next.is_empty() || !is_plain(next) {
            break;
        }
        (is_loose, connects) = (
            is_loose || !is_in(&FILLERS, next),
            is_in(&CONNECTORS, next) || connects && is_in(&FILLERS, next),
        );
        rest = &rest[next.len()..];
    }
    let (digits, rest) = rest.split_at(leading(rest, rest.len(), |byte| byte.is_ascii_digit()));
    let ends = match rest {
        [b'.', next, ..] => !next.is_ascii_alphanumeric(),
        [b'A'..=b'Z'] => true,
        [b'A'..=b'Z', next, ..] => !next.is_ascii_alphanumeric(),
        [next, ..] => !next.is_ascii_alphanumeric() && !b"_-/%:".contains(next),
        [] => true,
    };
    if many.contains(&digits.len()) && ends && (connects || !is_loose) {
        return near.push(digits);
    }
    // What the next speaker answers.
    if many.start() > &3
        && near.behind().iter().any(|byte| b"?:".contains(byte))
        && let Some(said) = reply(near, 80)
        && let Some(code) = said
            .split(|byte| b" ,.;".contains(byte))
            .take(4)
            .find(|word| many.contains(&word.len()) && word.iter().all(u8::is_ascii_digit))
    {
        near.push(code);
    }
}
