//! Whose words an operation changes. What a person has made their own is joined in whole sentences or waits for that
//! person; so does an address or a command that is in none of the notes that a text is made of.

use crate::base::error::{Error, Result};
use crate::base::text::one_line;
use crate::memory::defrag::dropped::NAMED;
use crate::memory::defrag::plan::drafts::Drafts;
use crate::memory::defrag::plan::planned::Verdict;
use crate::memory::facts::{PieceKind, pieces};
use crate::memory::pipeline::reply::Text;
use crate::memory::record::{NoteText, Record, collapsed, orders_not_in, sentences_of_note};
use crate::store::entry::{By, Entry, EntryId, Source, add_missing};
use crate::store::proposal::{Draft, Op, Proposal};
use std::collections::BTreeSet;
use unicode_segmentation::UnicodeSegmentation;

/// So many characters of a sentence are quoted.
const QUOTED: usize = 100;

impl Drafts<'_> {
    pub(super) fn is_kept(&self, id: &EntryId) -> bool {
        self.drafts.get(id).is_some_and(|draft| draft.entry.kept().is_some())
    }

    /// What waits, if a person is to decide whether these notes become those.
    pub(super) fn waits(&self, ids: &[EntryId], made: &[Entry]) -> Result<Option<Verdict>> {
        let texts: Vec<Text> = made.iter().map(Text::of).collect();
        let entries = ids.iter().map(|id| Ok(&self.draft(id)?.entry)).collect::<Result<Vec<&Entry>>>()?;
        let kept: Vec<&Entry> = entries.iter().copied().filter(|entry| entry.kept().is_some()).collect();
        let mut reasons = Vec::new();
        if !kept.is_empty() {
            not_own(&kept, &texts, &mut reasons);
        }
        foreign(if kept.is_empty() { &entries } else { &kept }, &texts, &mut reasons);
        if reasons.is_empty() {
            return Ok(None);
        }
        // Both what was taken from a note and what the model wrote may hold a secret.
        let reasons = reasons.iter().map(|reason| (self.clean)(reason)).collect();
        Ok(Some(Verdict::Waits(self.waiting(ids, &texts, reasons)?)))
    }

    /// The first text takes the place of the first note, other texts are new, and other notes go to the archive.
    pub(super) fn waiting(
        &self,
        ids: &[EntryId],
        texts: &[Text],
        reasons: Vec<String>,
    ) -> Result<Vec<Proposal>> {
        let entries = ids.iter().map(|id| Ok(&self.draft(id)?.entry)).collect::<Result<Vec<&Entry>>>()?;
        let Some(first) = entries.first() else { return Ok(Vec::new()) };
        // One question about a note is enough, however many ways a model has to put it.
        if let Some(id) = ids.iter().find(|id| self.found.waiting.contains(id)) {
            return Err(Error::refused(format!("a change of {id} waits for memory-review already")));
        }
        let by = entries.iter().filter_map(|entry| entry.meta().by).chain([By::Agent]).max();
        let mut sources: Vec<Source> = Vec::new();
        add_missing(&mut sources, entries.iter().flat_map(|entry| entry.meta().sources.iter().cloned()));
        let (scope, until) = (first.meta().scope, first.meta().until);
        let drafts = texts.iter().cloned().map(|Text { title, summary, tags, body }| {
            let sources = sources.clone();
            Draft { title, summary, tags, scope, until, body, sources }
        });
        let at = self.at();
        let proposal = |op: Op, note: Option<&Entry>, entry: Option<Draft>, reasons: Vec<String>| {
            // The id is made from the title of the new text, or from the note's id.
            let title = match (&entry, note) {
                (Some(draft), _) => draft.title.clone(),
                (None, note) => note.map_or_else(String::new, |note| note.meta().id.to_string()),
            };
            Proposal {
                note: note.map(|note| note.meta().id.clone()),
                base: note.map(Entry::base),
                entry,
                reasons,
                ..Proposal::new(op, &title, by.unwrap_or(By::Agent), at)
            }
        };
        let written = drafts.enumerate().map(|(number, draft)| match number {
            0 => proposal(Op::Update, Some(first), Some(draft), reasons.clone()),
            _ => proposal(Op::Create, None, Some(draft), reasons.clone()),
        });
        let mut all: Vec<Proposal> = written.collect();
        let gone = if texts.is_empty() { &entries[..] } else { &entries[1..] };
        for entry in gone {
            let reasons = match texts.is_empty() {
                true => reasons.clone(),
                false => vec![format!("what it says would be part of {}", first.meta().id)],
            };
            all.push(proposal(Op::Retire, Some(entry), None, reasons));
        }
        Ok(all)
    }

    /// The last step for a note that was made of `parts`: who said it, and that we wrote it, so that an edit is seen
    /// later. Where a person had edited a part, that stays known.
    ///
    /// # Errors
    /// What the person had made their own would no longer be known as that.
    pub(super) fn finish(&self, entry: &mut Entry, parts: &[Entry]) -> Result<()> {
        let kept: Vec<&Entry> = parts.iter().filter(|part| part.kept().is_some()).collect();
        let of: Vec<&Entry> = if kept.is_empty() { parts.iter().collect() } else { kept.clone() };
        let mut by = weakest(&of);
        if by == Some(By::Person)
            && !sentences([Text::of(entry)]).is_subset(&sentences(of.iter().map(|entry| Text::of(entry))))
        {
            by = Some(By::Agent);
        }
        let edited = kept.iter().find(|part| part.is_edited());
        entry.update(|meta| {
            meta.by = by;
            if let Some(edited) = edited {
                meta.written.clone_from(&edited.meta().written);
            }
        })?;
        if edited.is_none() {
            entry.seal()?;
        }
        match entry.kept() {
            None if !kept.is_empty() => {
                Err(Error::refused("it would no longer be known that the person wrote or accepted it"))
            }
            _ => Ok(()),
        }
    }
}

/// Who vouches least for one of them vouches for what is made of them. Of notes of older versions it is not known.
fn weakest(parts: &[&Entry]) -> Option<By> {
    let all: Vec<Option<By>> = parts.iter().map(|part| part.meta().by).collect();
    match all.contains(&Some(By::Tool)) {
        true => Some(By::Tool),
        false => all.into_iter().collect::<Option<Vec<By>>>()?.into_iter().max(),
    }
}

/// What the texts add to what the person made their own, or take from it.
fn not_own(kept: &[&Entry], texts: &[Text], reasons: &mut Vec<String>) {
    let own = sentences(kept.iter().map(|entry| Text::of(entry)));
    let made = sentences(texts.iter().cloned());
    let all = words(&texts.iter().flat_map(|text| text.note().texts()).collect::<Vec<_>>().join("\n"));
    // A title may go where its words stand in a sentence.
    let is_taken = |sentence: &&String| !made.contains(*sentence) && !all.contains(&words(sentence));
    for (what, sentences) in [
        ("it adds", made.difference(&own).collect::<Vec<_>>()),
        ("it takes away", own.iter().filter(is_taken).collect()),
    ] {
        if !sentences.is_empty() {
            reasons.push(format!("{what} {}, and the note is the person's own", quoted(&sentences)));
        }
    }
    let known: BTreeSet<String> = kept
        .iter()
        .flat_map(|entry| Text::of(entry).all().unicode_words().map(str::to_lowercase).collect::<Vec<_>>())
        .collect();
    let has = |tag: &String| kept.iter().any(|entry| entry.meta().tags.contains(tag));
    let name = |tag: &str| tag.split_once("__").map_or(tag, |(_, name)| name).to_lowercase();
    // More than one word could be an order.
    let new: Vec<&String> = texts
        .iter()
        .flat_map(|text| &text.tags)
        .filter(|tag| !has(tag) && !known.contains(&name(tag)))
        .collect();
    if !new.is_empty() {
        reasons.push(format!("it adds the tag {}, and the note is the person's own", quoted(&new)));
    }
}

/// The addresses, flags and commands of the texts that are in none of the notes, and what always waits.
fn foreign(parts: &[&Entry], texts: &[Text], reasons: &mut Vec<String>) {
    let before = parts.iter().map(|part| Text::of(part).all()).collect::<Vec<_>>().join("\n");
    let old = NoteText { body: &before, ..NoteText::default() };
    let mut found = BTreeSet::new();
    for text in texts.iter().map(Text::note) {
        let orders = orders_not_in(&text, &before);
        found.extend(
            orders.iter().map(|order| format!("\"{}\" is in none of the notes", one_line(order, QUOTED))),
        );
        found.extend(
            Record::default().dangers(&text, Some(&old)).iter().map(|danger| format!("it {}", danger.does())),
        );
        // Words of several commands make another one.
        let before = words(&before);
        for command in text.texts().into_iter().flat_map(commands) {
            if !before.contains(&words(command)) {
                found
                    .insert(format!("the command \"{}\" is in none of the notes", one_line(command, QUOTED)));
            }
        }
    }
    reasons.extend(found.into_iter().take(NAMED));
}

/// Lines of code, and spans of it with two words or more.
fn commands(text: &str) -> Vec<&str> {
    let code = pieces(text).into_iter().filter(|piece| piece.kind != PieceKind::Prose);
    let lines = code.flat_map(|piece| match piece.kind {
        PieceKind::Span => vec![piece.text],
        _ => piece.text.lines().collect(),
    });
    lines.filter(|line| line.split_whitespace().nth(1).is_some()).collect()
}

/// The sentences of these notes, without their full stops: a title has none.
fn sentences(texts: impl IntoIterator<Item = Text>) -> BTreeSet<String> {
    let all = texts.into_iter().flat_map(|text| {
        let texts = text.note().texts();
        texts.into_iter().flat_map(sentences_of_note).collect::<Vec<String>>()
    });
    let bare = all.map(|sentence| collapsed(sentence.trim_end_matches(['.', '。'])));
    bare.filter(|sentence| !sentence.is_empty()).collect()
}

/// The words of a text, each between blanks, without the marks around them.
fn words(text: &str) -> String {
    let bare =
        text.split_whitespace().map(|word| word.trim_matches(|c: char| "`\"'.,;:!?()*_#>[]".contains(c)));
    bare.filter(|word| !word.is_empty()).fold(" ".to_owned(), |words, word| words + word + " ")
}

fn quoted(sentences: &[&String]) -> String {
    let some = sentences.iter().take(NAMED).map(|sentence| format!("\"{}\"", one_line(sentence, QUOTED)));
    let more = if sentences.len() > NAMED { ", …" } else { "" };
    some.collect::<Vec<_>>().join(", ") + more
}
