//! Ids for notes that a model proposes, and the links between them.

use crate::base::text::alphanumerics;
use crate::store::entry::{self, EntryId};
use crate::store::proposal::ProposalId;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// An id that is in no use yet; from here on it is.
pub(super) fn new_id(title: &str, created_at: i64, ids: &mut BTreeSet<EntryId>) -> EntryId {
    let id = EntryId::make(title, created_at, |id| ids.contains(id));
    ids.insert(id.clone());
    id
}

/// The longest inside of a link, in bytes: a title.
pub const LINK_CAP: usize = 200;
/// Stands for a link that leads nowhere, until its words are gone too. No text of ours has one.
const DEAD: char = '\0';
/// Words that only lead to a link.
#[rustfmt::skip]
const CARRIERS: &[&str] = &[
    "see", "also", "and", "or", "cf", "compare", "more", "detail", "details", "the", "note", "notes", "entry", "entries",
    "related", "in", "for", "under", "at", "read", "link", "links", "to", "as", "further",
    "siehe", "auch", "und", "oder", "vgl", "dazu", "mehr", "ver", "véase", "también", "y", "o", "voir", "aussi", "et", "ou",
];
/// Those that begin what leads to a link.
const POINTERS: &[&str] = &["see", "cf", "compare", "read", "siehe", "vgl", "ver", "véase", "voir"];
/// Words whose full stop ends no sentence.
const ABBREVIATIONS: &[&str] = &["cf", "vgl", "e.g", "z.B"];
const CONJUNCTIONS: &[&str] = &["and", "or", "und", "oder", "y", "o", "et", "ou", "&"];

/// Where the links of a reply may lead.
pub(super) struct LinkTargets<'a> {
    /// The ids that its entries got, by the names that it gives them, and by title.
    pub(super) labels: &'a BTreeMap<String, String>,
    pub(super) ids: &'a BTreeSet<EntryId>,
    /// The changes that wait for a person.
    pub(super) waiting: &'a BTreeSet<ProposalId>,
}

/// `[[n1]]` becomes the id that the entry n1 got. A link that leads nowhere goes: words in it become plain text, a name
/// goes with the words that only carry it. It is told what became of each.
/// Code stays as it is: `[[ -f x ]]` and `a[[0]]` are no links. So does every link of `old`, the text that is replaced:
/// people link to pages that are none of ours.
pub(super) fn resolve_intra_batch_links(
    body: &str,
    targets: &LinkTargets,
    old: &str,
) -> (String, Vec<String>) {
    let body = body.replace(DEAD, "");
    let mut resolved = String::with_capacity(body.len());
    let mut unknown = Vec::new();
    for (line, is_code) in lines(&body) {
        if is_code {
            resolved.push_str(line);
            continue;
        }
        let mut marked = String::with_capacity(line.len());
        // Every second piece between backticks is code.
        for (index, piece) in line.split_inclusive('`').enumerate() {
            match index % 2 {
                0 => resolve_piece(piece, targets, old, &mut marked, &mut unknown),
                _ => marked.push_str(piece),
            }
        }
        resolved.push_str(&without_dead(&marked));
    }
    (resolved, unknown)
}

/// The targets of a body's links that a reader would follow, each once, in order. Links in code do not count.
pub fn links(body: &str) -> Vec<EntryId> {
    let mut links = entry::links(body);
    if !links.is_empty() && (body.contains('`') || body.contains("~~~")) {
        let prose = lines(body).filter(|(_, is_code)| !is_code);
        links = entry::links(&prose.flat_map(|(line, _)| line.split('`').step_by(2)).collect::<String>());
    }
    let mut seen = HashSet::new();
    links.retain(|id| seen.insert(id.clone()));
    links
}

/// The lines of a body, and whether each belongs to a code fence. Where a fence is not closed, all the rest does.
pub fn lines(body: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut fence: Option<&str> = None;
    body.split_inclusive('\n').map(move |line| {
        let start = line.trim_start();
        let marks = ["```", "~~~"].into_iter().find(|marks| start.starts_with(marks));
        let is_code = fence.is_some() || marks.is_some();
        fence = match (fence, marks) {
            (Some(open), Some(mark)) if open == mark => None,
            (None, mark) => mark,
            (open, _) => open,
        };
        (line, is_code)
    })
}

fn resolve_piece(
    piece: &str,
    targets: &LinkTargets,
    old: &str,
    resolved: &mut String,
    unknown: &mut Vec<String>,
) {
    let mut rest = piece;
    while let Some((before, after)) = rest.split_once("[[") {
        resolved.push_str(before);
        let Some((inner, behind)) = after.split_once("]]").filter(|(inner, _)| is_link(inner)) else {
            resolved.push_str("[[");
            rest = after;
            continue;
        };
        // `[[id__a1B2c3|words]]` shows other words.
        let (name, words) = inner.split_once('|').map_or((inner, None), |(name, words)| (name, Some(words)));
        let target = targets.labels.get(name).cloned().or_else(|| known(name, targets));
        match (target, words) {
            (Some(id), _) => resolved.push_str(&format!("[[{id}]]")),
            (None, _) if old.contains(&format!("[[{inner}]]")) => resolved.push_str(&format!("[[{inner}]]")),
            (None, None) if is_name(name) => {
                unknown.push(format!("[[{inner}]] has no target and is removed"));
                resolved.push(DEAD);
            }
            (None, words) => {
                unknown.push(format!("[[{inner}]] has no target and is now plain text"));
                resolved.push_str(words.unwrap_or(inner));
            }
        }
        rest = behind;
    }
    resolved.push_str(rest);
}

fn known(name: &str, targets: &LinkTargets) -> Option<String> {
    let note = EntryId::parse(name).filter(|id| targets.ids.contains(id));
    let change = || ProposalId::whole(name).filter(|id| targets.waiting.contains(id));
    note.map(|id| id.to_string()).or_else(|| change().map(|id| id.to_string()))
}

/// A name, or words: not a number, nor what a shell tests, which has blanks at its ends.
fn is_link(inner: &str) -> bool {
    is_inside(inner) && !inner.contains(['$', '=']) && !inner.chars().all(|c| c.is_ascii_digit())
}

/// May this stand between the brackets of a link?
pub fn is_inside(inner: &str) -> bool {
    (1..=LINK_CAP).contains(&inner.len()) && inner.trim() == inner && !inner.contains(['[', ']', '\n'])
}

/// Is it a name that says nothing to a reader: an id, or `n4`, as replies name their entries?
pub fn is_name(name: &str) -> bool {
    let is_label = name.strip_prefix('n').is_some_and(|digits| {
        (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_label || ProposalId::whole(name).is_some() || EntryId::whole(name).is_some()
}

/// What waits no longer, and the note that it became, if it became one.
pub type EndedChanges = BTreeMap<ProposalId, Option<EntryId>>;

/// The text in which links to what waits no longer lead to a note, or are gone. `None`: there is no such link.
pub fn resolved(body: &str, ended: &EndedChanges) -> Option<String> {
    let links: BTreeSet<ProposalId> = waiting_links(body).collect();
    let mut found: Option<String> = None;
    for (from, to) in links.iter().filter_map(|link| ended.get_key_value(link)) {
        let (text, link) = (found.as_deref().unwrap_or(body), format!("[[{from}]]"));
        found = Some(match to {
            Some(id) => text.replace(&link, &format!("[[{id}]]")),
            None => without_links(text, &link),
        });
    }
    found
}

/// The text without links to what waits: a reader of notes cannot follow them yet.
pub fn without_waiting(body: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(body);
    loop {
        let Some(id) = waiting_links(&shown).next() else { return shown };
        shown = Cow::Owned(without_links(&shown, &format!("[[{id}]]")));
    }
}

fn waiting_links(body: &str) -> impl Iterator<Item = ProposalId> {
    let inner = body.split("[[").skip(1).filter_map(|rest| rest.split_once("]]"));
    inner.filter_map(|(inner, _)| ProposalId::whole(inner))
}

fn without_links(body: &str, link: &str) -> String {
    let marked = body.replace(DEAD, "").replace(link, DEAD.encode_utf8(&mut [0; 4]));
    marked.split_inclusive('\n').map(without_dead).collect()
}

/// Part of a line, and the mark that ends it, with the blanks after it.
#[derive(Default)]
struct Clause {
    text: String,
    end: String,
}

/// A line without dead links and without the words that only carry them; nothing, if nothing else stands in it.
fn without_dead(line: &str) -> Cow<'_, str> {
    if !line.contains(DEAD) {
        return Cow::Borrowed(line);
    }
    let text = line.trim_end_matches(['\n', '\r']);
    let end = &line[text.len()..];
    let mut clauses = clauses(&joined(text));
    for at in 0..clauses.len() {
        if clauses[at].text.contains(DEAD) {
            bury(&mut clauses, at);
        }
    }
    let left: String = clauses.into_iter().flat_map(|clause| [clause.text, clause.end]).collect();
    let left = left.trim_end();
    match left.contains(char::is_alphanumeric) {
        true => Cow::Owned(format!("{left}{end}")),
        false => Cow::Borrowed(""),
    }
}

/// Dead links in a list of links go with what joins them to it.
fn joined(text: &str) -> String {
    let mut text = text.to_owned();
    let joints = CONJUNCTIONS.iter().map(|word| format!(" {word} ")).chain([", ".to_owned()]);
    for joint in joints {
        let both = format!("{DEAD}{joint}{DEAD}");
        while text.contains(&both) {
            text = text.replace(&both, DEAD.encode_utf8(&mut [0; 4]));
        }
        text = text.replace(&format!("{DEAD}{joint}[["), "[[").replace(&format!("]]{joint}{DEAD}"), "]]");
    }
    text
}

fn clauses(text: &str) -> Vec<Clause> {
    let mut all = vec![Clause::default()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let before_blank = chars.peek().is_none_or(|next| next.is_whitespace() || *next == ')');
        let Some(last) = all.last_mut() else { break };
        let is_end = match c {
            '(' | ')' | '—' | '–' => true,
            '.' => before_blank && !ABBREVIATIONS.iter().any(|word| last.text.ends_with(word)),
            '!' | '?' | ',' | ';' | ':' => before_blank,
            _ => false,
        };
        if !is_end {
            last.text.push(c);
            continue;
        }
        last.end.push(c);
        while c != '('
            && let Some(blank) = chars.next_if(|next| next.is_whitespace())
        {
            last.end.push(blank);
        }
        all.push(Clause::default());
    }
    all
}

/// Takes the dead links out of a clause, and out of the line what of it only carried them.
fn bury(clauses: &mut [Clause], at: usize) {
    let is_soft = |end: &str| end.starts_with([',', ';', ':', '—', '–']);
    let text = std::mem::take(&mut clauses[at].text);
    let before = at.checked_sub(1).map(|before| clauses[before].end.clone()).unwrap_or_default();
    if !is_carrier(&text) {
        clauses[at].text = without_tail(&text);
    } else if before.ends_with('(') && clauses[at].end.starts_with(')') {
        clauses[at].end.remove(0);
        let last = &mut clauses[at - 1];
        last.end.pop();
        last.text.truncate(last.text.trim_end().len());
    } else if is_soft(&before) {
        clauses[at - 1].end.clear();
    } else if is_soft(&clauses[at].end) {
        let rest = text.replace(DEAD, "");
        let rest = rest.trim_end();
        clauses[at].end.clear();
        clauses[at].text = if rest.is_empty() { String::new() } else { format!("{rest} ") };
    } else {
        // A whole sentence; the mark of a list stays for what follows.
        let mark =
            text.len() - text.trim_start_matches(|c: char| c.is_whitespace() || "-*+>#".contains(c)).len();
        clauses[at].text = text[..mark].to_owned();
        clauses[at].end.clear();
    }
}

fn is_one_of(word: &str, list: &[&str]) -> bool {
    list.contains(&&*word.to_lowercase())
}

fn is_carrier(text: &str) -> bool {
    alphanumerics(text).all(|word| is_one_of(word, CARRIERS))
}

/// Without the dead links, and where one ends the text, without what points to it.
fn without_tail(text: &str) -> String {
    let trimmed = text.trim_end();
    let Some(head) = trimmed.strip_suffix(DEAD) else {
        return text.replace(&format!(" {DEAD}"), "").replace(&format!("{DEAD} "), "").replace(DEAD, "");
    };
    let carried: Vec<&str> = alphanumerics(head).rev().take_while(|word| is_one_of(word, CARRIERS)).collect();
    // "and see", not the "to" of what stands before it.
    let points = carried.iter().rposition(|word| is_one_of(word, POINTERS));
    let mut left = head.trim_end();
    for word in points.map_or(&[][..], |last| &carried[..=last]) {
        left = left.strip_suffix(word).unwrap_or(left).trim_end_matches(|c: char| !c.is_alphanumeric());
    }
    if points.is_some() {
        let joint = CONJUNCTIONS.iter().find_map(|word| left.strip_suffix(&format!(" {word}")));
        left = joint.unwrap_or(left);
    }
    let left = left.replace(&format!(" {DEAD}"), "").replace(DEAD, "");
    left.trim_end().to_owned() + &text[trimmed.len()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_code_do_not_count_and_others_count_once() {
        for (body, expected) in [
            ("[[id__AAAAAA]] [[id__BBBBBB]]\n[[id__AAAAAA]]", "AB"),
            ("`[[id__AAAAAA]]` and [[id__BBBBBB]] `x` [[id__CCCCCC]]", "BC"),
            ("```sh\n[[id__AAAAAA]]\n~~~\n[[id__BBBBBB]]\n```\n[[id__CCCCCC]]", "C"),
            ("  ~~~\n[[id__AAAAAA]]\n  ~~~\n[[id__BBBBBB]]", "B"),
            ("[[id__AAAAAA]]\n```\n[[id__BBBBBB]]", "A"),
            ("[[id__AAAAAA|words]] [[id__nope]] [id__BBBBBB]", ""),
            ("", ""),
        ] {
            let found: String = links(body).iter().filter_map(|id| id.as_str().chars().last()).collect();
            assert_eq!(found, expected, "{body:?}");
        }
    }

    #[test]
    fn a_link_that_leads_nowhere_goes_with_the_words_that_carry_it() {
        let labels = BTreeMap::from([("n1".to_owned(), "id__a1B2c3".to_owned())]);
        let targets = LinkTargets { labels: &labels, ids: &BTreeSet::new(), waiting: &BTreeSet::new() };
        for (body, expected) in [
            ("Use make. See also [[n4]].", "Use make."),
            ("See also [[n4]].", ""),
            ("See also [[n4]].\n", ""),
            ("Use make (see [[n4]]) now.", "Use make now."),
            ("Use make (see [[n4]]).", "Use make."),
            ("Use make, see [[n4]].", "Use make."),
            ("Use make and see [[n4]].", "Use make."),
            ("Use make; cf. [[n4]]", "Use make"),
            ("See [[n4]] and [[n1]].", "See [[id__a1B2c3]]."),
            ("See [[n1]], [[n4]].", "See [[id__a1B2c3]]."),
            ("See [[n4]], [[n5]].", ""),
            ("- one\n- See [[n4]]\n- two", "- one\n- two"),
            ("Read [[Guards are pure]].", "Read Guards are pure."),
            ("Read [[n4|the guards]].", "Read the guards."),
            ("`a [[n4]]` stays, [[n1]] too", "`a [[n4]]` stays, [[id__a1B2c3]] too"),
        ] {
            assert_eq!(resolve_intra_batch_links(body, &targets, "").0, expected, "{body:?}");
        }
    }

    #[test]
    fn a_link_to_what_waits_leads_to_the_note_when_it_lands() {
        let from = ProposalId::whole("p__a1B2c3").unwrap();
        let body = "Run it.\n\nSee also [[p__a1B2c3]].\n";
        let to = EntryId::parse("b1B2c3").unwrap();
        let ended = |to: Option<EntryId>| EndedChanges::from([(from.clone(), to)]);
        assert_eq!(resolved(body, &ended(Some(to))).unwrap(), "Run it.\n\nSee also [[id__b1B2c3]].\n");
        assert_eq!(resolved(body, &ended(None)).unwrap(), "Run it.\n\n");
        assert_eq!(resolved("p__a1B2c3", &ended(None)), None);
        assert_eq!(without_waiting(body), "Run it.\n\n");
    }
}
