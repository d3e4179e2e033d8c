//! `memory-review`: what agents want to change and only a person may: shown, accepted, rejected.

pub mod text;

use crate::base::ago::ago;
use crate::base::cli::{
    self, About, Args, Cell, Column, Completes, Context, ExitCode, Meaning, Table, Words, flag, value,
};
use crate::base::error::{Error, Result};
use crate::base::text::{counted, disarmed, further, one_line};
use crate::harness::shell::AgentShell;
use crate::memory::review::{self, Attention, Decided, Decision, session_of};
use crate::memory::section::{self, Which};
use crate::program::edited::EditedText;
use crate::program::memory_review::text::{print, show, text_of};
use crate::program::notes::{CONFIG, Printed, Store, ask, can_ask};
use crate::program::person::{self, only_a_person};
use crate::program::screen::present;
use crate::store::entry::{EntryId, Source, one_line as whole_line};
use crate::store::persistence::{Persistence, warn_of};
use crate::store::proposal::{Proposal, ProposalId};
use crate::store::topics::Topics;
use serde_json::json;

pub(super) const ABOUT: About = About {
    name: "memory-review",
    caption: "accept or reject changes that wait for you",
    usage: &[
        "memory-review [--json]",
        "memory-review --accept ID…|- --reject ID…|- [--json]",
        "memory-review --reject-session THREAD_ID [--json]",
    ],
    flags: &[
        value("accept", "ID…", "make these changes; - reads ids from stdin")
            .up_to(usize::MAX)
            .from("changes"),
        value("reject", "ID…", "drop these changes; - reads ids from stdin")
            .up_to(usize::MAX)
            .from("changes"),
        value("reject-session", "THREAD_ID", "drop all changes of a session"),
        flag("json", "one JSON object per line"),
        CONFIG,
    ],
    words: Words::AtMost(usize::MAX),
    completes: Completes::Values("changes"),
    text: include_str!("memory_review.md"),
    ..About::BLANK
};

/// The flags that decide.
const DECISIONS: [&str; 3] = ["accept", "reject", "reject-session"];
/// So many decisions are one change of the store.
const AT_ONCE: usize = 100;

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let decisions: Vec<(&str, &str)> = args.in_order().filter(|(flag, _)| DECISIONS.contains(flag)).collect();
    if let [id, ..] = args.words()[..] {
        return Err(Error::unexpected(&one_line(id, 80)).hint("say what to do with it: --accept or --reject"));
    }
    if decisions.iter().filter(|(_, word)| *word == "-").count() > 1 {
        return Err(Error::usage("stdin can be read only once").hint("give \"-\" to one of the options"));
    }
    if !decisions.is_empty() {
        only_a_person(person::DECIDE, cx)?;
    }
    let store = Store::open(args, cx)?;
    let mut review = Review { store: &store, said: Vec::new(), sources: Vec::new() };
    let mut is_continued = false;
    let ended = if !decisions.is_empty() {
        // A killed run may have made some of them.
        is_continued = Topics::at(&store.root).complete()?;
        if is_continued {
            cx.reporter.warn("the change that an earlier run had begun is carried out now");
        }
        let decisions = review.decisions(&decisions, cx);
        decisions.and_then(|decisions| review.decide(&decisions, cx))
    } else {
        name_new_checkouts(&store, cx);
        let (waiting, broken) = store.service.notes().proposals()?;
        warn_of(&broken, &cx.reporter);
        let sessions = store.service.by_session(waiting);
        match can_ask(cx) && AgentShell::of(&cx.env).is_none() {
            true => review.ask_about(&sessions, cx),
            false => review.list(&sessions, cx),
        }
    };
    let message = match &review.said[..] {
        [] => "review: what an earlier run had begun".to_owned(),
        [one] => format!("review: {one}"),
        all => format!("review: {} changes", all.len()),
    };
    let count = review.said.len() + usize::from(is_continued);
    store.finish(Which::All, message, review.sources.iter(), count, cx);
    ended
}

/// Names the new places whose sessions speak for a repository, to a person once.
fn name_new_checkouts(store: &Store, cx: &Context) {
    let is_told = store.service.new_checkouts().and_then(|new| {
        for checkout in &new {
            cx.reporter.warn(&format!("{checkout}; {}", checkout.next_step()));
        }
        let is_for_nobody = new.is_empty() || AgentShell::of(&cx.env).is_some();
        if is_for_nobody { Ok(()) } else { section::record_told(&store.root, new) }
    });
    if let Err(error) = is_told {
        cx.reporter.warn(&error.line());
    }
}

/// The changes of one session.
type OfSession = [(Attention, Proposal)];

/// The sessions, where several wait.
const COLUMNS: &[Column] = &[
    Column::number("CHANGES", 0),
    Column::whole("LOOK AT", 1),
    Column::cut("SESSION", 16, 0),
    Column::tail("REPOSITORY", 12, 3),
    Column::whole("WHEN", 2),
    Column::cut("FIRST", 16, 0),
];

/// One row for each session.
fn overview(sessions: &[Vec<(Attention, Proposal)>], cx: &mut Context) -> Result<String> {
    let now = cx.env.now();
    let mut table = Table::new(COLUMNS, None);
    for session in sessions {
        let Some((attention, first)) = session.first() else { continue };
        let Source { harness, thread_id, repo, at, .. } = first.session.clone().unwrap_or_default();
        let attention = match attention {
            Attention::Dangerous => Cell::Meant(Meaning::Error, "danger".to_owned()),
            Attention::Kept => Cell::Meant(Meaning::Warning, "yours".to_owned()),
            Attention::Usual => String::new().into(),
        };
        let when = at.and_then(|at| at.parse().ok()).map(|at| ago(at, now));
        let from = [harness, thread_id].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let cells = vec![
            session.len().to_string().into(),
            attention,
            if from.is_empty() { "none".to_owned() } else { from }.into(),
            repo.unwrap_or_default().into(),
            when.unwrap_or_default().into(),
            first.title().to_string().into(),
        ];
        table.row(cells, "", &mut cx.stdout)?;
    }
    Ok(table.text(cx.stdout.columns(), cx.stdout.paint()))
}

/// Names the session of these changes.
fn heading(changes: &OfSession) -> String {
    let Some(source) = changes.first().and_then(|(_, proposal)| proposal.session.as_ref()) else {
        return "from no session".to_owned();
    };
    let Source { harness, thread_id, repo, at, .. } = source;
    let day = at.as_deref().and_then(|at| at.get(..10));
    let parts = [harness.as_deref(), thread_id.as_deref(), repo.as_deref(), day];
    whole_line(&format!("session: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(" ")))
}

/// The same in one line, with how many there are and what they are about.
fn summary(changes: &OfSession) -> String {
    let of = |attention| changes.iter().filter(|(there, _)| *there == attention).count();
    let named = [(of(Attention::Dangerous), "dangerous"), (of(Attention::Kept), "of your notes or global")];
    format!("{}: {}{}", heading(changes), counted(changes.len(), "change", "changes"), further(&named))
}

/// The changes that are decided about, one by one.
struct Review<'a> {
    store: &'a Store,
    /// What was decided, for the history.
    said: Vec<String>,
    sources: Vec<Source>,
}

impl Review<'_> {
    fn list(&self, sessions: &[Vec<(Attention, Proposal)>], cx: &mut Context) -> Result<()> {
        let all = sessions.iter().flatten().map(|(_, proposal)| proposal.clone()).collect();
        let mut all = self.store.service.all_pending(all)?.into_iter();
        let (paint, mut text) = (cx.stdout.paint(), String::new());
        for session in sessions {
            for (number, pending) in all.by_ref().take(session.len()).enumerate() {
                if cx.json {
                    print(&pending, cx)?;
                    continue;
                }
                text += if text.is_empty() { "" } else { "\n" };
                if number == 0 {
                    text += &paint.paint(Meaning::Heading, &disarmed(&heading(session)));
                    text += "\n\n";
                }
                text += &text_of(&pending, paint);
            }
        }
        present(&cx.stdout.narrowed(&text), cx)
    }

    /// What the flags say, in their order.
    fn decisions(&self, decisions: &[(&str, &str)], cx: &Context) -> Result<Vec<Decision>> {
        const CHANGES: Printed =
            Printed { what: "changes", list: "proposals", by: "memory-review --json prints" };
        let mut all = Vec::new();
        for (flag, word) in decisions {
            let named = match (*flag, *word) {
                ("reject-session", session) => self.ids_of_session(session)?,
                (_, "-") => CHANGES.ids_on_stdin(parse_id, cx)?,
                (_, word) => vec![self.store.service.named_change(word)?],
            };
            let is_accepted = *flag == "accept";
            all.extend(named.into_iter().map(|id| Decision { is_accepted, ..rejection(id) }));
        }
        Ok(all)
    }

    fn ids_of_session(&self, thread_id: &str) -> Result<Vec<ProposalId>> {
        let (waiting, _) = self.store.service.notes().proposals()?;
        let is_of_it =
            |proposal: &Proposal| session_of(proposal).is_some_and(|(_, session)| session == thread_id);
        let ids: Vec<_> = waiting.into_iter().filter(is_of_it).map(|proposal| proposal.id).collect();
        if ids.is_empty() {
            let session = one_line(thread_id, 80);
            return Err(Error::not_found(format!("no change of the session \"{session}\" waits"))
                .hint("see the sessions with: memory-review"));
        }
        Ok(ids)
    }

    /// Carries out decisions, all in one change, and returns what came of each.
    fn carry_out(&mut self, decisions: &[Decision]) -> Result<Vec<Result<(Proposal, Decided)>>> {
        let all = self.store.service.decide(decisions)?;
        for (proposal, decided) in all.iter().flatten() {
            let verb = match decided {
                Decided::Accepted(_) => "accept",
                Decided::Rejected => "reject",
                Decided::NoteChanged => continue,
            };
            self.said.push(format!("{verb} {}: {}", proposal.op, proposal.title()));
            self.sources.extend(proposal.session.clone());
        }
        Ok(all)
    }

    /// What flags say. So many at once that the store is not read for each, and so few that much is done when it fails.
    fn decide(&mut self, decisions: &[Decision], cx: &mut Context) -> Result<()> {
        cx.each(decisions.chunks(AT_ONCE), |some, cx| {
            let all = self.carry_out(some)?;
            cx.each(all, |decided, cx| {
                decided.and_then(|(proposal, decided)| self.print(proposal, decided, cx))
            })
        })
    }

    fn print(&self, proposal: Proposal, decided: Decided, cx: &mut Context) -> Result<()> {
        let id = proposal.id.clone();
        match decided {
            Decided::Accepted(note) => {
                let (note, path) = (&note.entry.meta().id, &note.path);
                let decided = json!({"proposal": id, "decision": "accepted", "id": note, "path": path});
                cx.print(&decided, &path.to_string_lossy())
            }
            Decided::Rejected => cx.print(&json!({"proposal": id, "decision": "rejected"}), &id.to_string()),
            Decided::NoteChanged => {
                print(&self.store.service.pending(proposal)?, cx)?;
                Err(Error::conflict(format!("the note has changed since {id} was proposed; nothing is done"))
                    .hint("this is the change now; if it is right, accept it again"))
            }
        }
    }

    /// Asks about each. What is not answered waits on. What is decided shows at once: the next answer may take an hour.
    fn ask_about(&mut self, sessions: &[Vec<(Attention, Proposal)>], cx: &mut Context) -> Result<()> {
        if sessions.is_empty() {
            return cx.stdout.line("nothing waits for a decision");
        }
        if sessions.len() > 1 {
            let overview = overview(sessions, cx)?;
            present(&(overview + "\n"), cx)?;
        }
        let total: usize = sessions.iter().map(Vec::len).sum();
        let mut above = 0;
        for session in sessions {
            let drop = session_of(&session[0].1).map(|_| "[d]rop all of this session");
            let (title, is_one) = match session.len() {
                1 => (heading(session), true),
                _ => (summary(session), false),
            };
            let gap = if above > 0 { "\n" } else { "" };
            let title = cx.stdout.narrowed(&disarmed(&format!("{gap}{title}")));
            cx.stdout.line(&title)?;
            // Several are one line until the person opens it.
            let choices = [Some("[o]pen"), drop, Some("[s]kip"), Some("[q]uit")];
            let mut last = if is_one { 'o' } else { answer(choices, cx)? };
            let opened = if last == 'o' { &session[..] } else { &[] };
            for (number, (_, proposal)) in opened.iter().enumerate() {
                let gap = if number > 0 { "\n" } else { "" };
                let count = format!("{gap}({} of {total})", above + number + 1);
                last = self.ask_about_one(proposal, &count, drop, cx)?;
                if matches!(last, 'd' | 'q') {
                    break;
                }
            }
            above += session.len();
            match last {
                'q' => return Ok(()),
                'd' => self.drop_all(session, cx)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Asks until one change is decided about, or left. Returns the letter of the answer.
    fn ask_about_one(
        &mut self,
        proposal: &Proposal,
        count: &str,
        drop: Option<&'static str>,
        cx: &mut Context,
    ) -> Result<char> {
        let mut pending = self.store.service.pending(proposal.clone())?;
        show(count, &pending, cx)?;
        loop {
            let choices = ["[a]ccept", "[e]dit and accept", "[r]eject"].map(Some);
            let choices = choices.into_iter().chain([drop, Some("[s]kip"), Some("[q]uit")]);
            let answer = answer(choices, cx)?;
            match answer {
                'e' if !self.edited(proposal, cx)? => continue,
                'd' | 's' | 'q' => return Ok(answer),
                _ => {}
            }
            let shown = pending.note.as_ref().map(|note| note.entry.base());
            let decision = Decision { id: proposal.id.clone(), is_accepted: answer != 'r', shown };
            let decided = self.carry_out(&[decision]).and_then(|mut all| all.pop().transpose());
            let said = match decided.map(|decided| decided.map_or(Decided::Rejected, |(_, decided)| decided))
            {
                Ok(Decided::NoteChanged) => {
                    cx.stdout.line("the note has changed in this moment; this is the change now:")?;
                    pending = self.store.service.pending(self.store.service.proposal(&proposal.id)?)?;
                    show(count, &pending, cx)?;
                    continue;
                }
                Ok(Decided::Accepted(note)) => format!("accepted: {}", note.path.display()),
                Ok(Decided::Rejected) => "rejected".to_owned(),
                // One that cannot be accepted does not stop the others.
                Err(error) => {
                    cx.stdout.line(&disarmed(&format!("not accepted: {}", error.line())))?;
                    return Ok(answer);
                }
            };
            self.store.refresh(Which::All, cx);
            cx.stdout.line(&disarmed(&said))?;
            return Ok(answer);
        }
    }

    fn drop_all(&mut self, session: &OfSession, cx: &mut Context) -> Result<()> {
        let ids: Vec<ProposalId> = session.iter().map(|(_, proposal)| proposal.id.clone()).collect();
        // One that somebody else has decided about meanwhile is no fault.
        let rejected = self.carry_out(&ids.into_iter().map(rejection).collect::<Vec<_>>())?;
        let count = rejected.iter().flatten().count();
        cx.stdout.line(&format!("rejected: {}", counted(count, "change", "changes")))?;
        self.store.refresh(Which::All, cx);
        Ok(())
    }

    /// Lets the person edit the text; `true`: it has another one now.
    fn edited(&self, proposal: &Proposal, cx: &mut Context) -> Result<bool> {
        let Some(before) = review::draft_text(proposal) else {
            return cx.stdout.line("it brings no text that could be edited").map(|()| false);
        };
        let id = proposal.note.as_ref().map_or_else(|| proposal.id.to_string(), EntryId::to_string);
        let text = EditedText::of(&self.store.root, &id, before);
        cx.stdout.flush()?;
        let set = text.edit(&cx.env).and_then(|after| {
            after.map(|after| self.store.service.set_draft(&proposal.id, after)).transpose()
        });
        match set {
            Ok(Some(())) => text.done().map(|()| true),
            Ok(None) => cx.stdout.line("nothing was changed").map(|()| false),
            Err(error) => {
                let error = text.keep(error, "; [e] opens it again").line();
                cx.stdout.line(&disarmed(&format!("the text is left as it was: {error}")))?;
                Ok(false)
            }
        }
    }
}

fn rejection(id: ProposalId) -> Decision {
    Decision { id, is_accepted: false, shown: None }
}

/// The letter of the choice that a person makes, by it or by the choice's first word.
fn answer(choices: impl IntoIterator<Item = Option<&'static str>>, cx: &mut Context) -> Result<char> {
    let choices: Vec<&str> = choices.into_iter().flatten().collect();
    let (last, others) = choices.split_last().unwrap_or((&"", &[]));
    let question = format!("{} or {last}? ", others.join(", "));
    let words = choices.iter().map(|choice| choice.replace(['[', ']'], ""));
    let words: Vec<String> = words.flat_map(|words| words.split(' ').next().map(str::to_owned)).collect();
    loop {
        let Some(typed) = ask(&question, cx)? else { return Ok('q') };
        let meant = words.iter().find(|word| typed == **word || typed == word[..1]);
        if let Some(letter) = meant.and_then(|word| word.chars().next()) {
            return Ok(letter);
        }
    }
}

fn parse_id(word: &str) -> Result<ProposalId> {
    ProposalId::parse(word).ok_or_else(|| {
        Error::usage(format!("\"{}\" is not the id of a change", one_line(word, 80)))
            .hint("write it like p__a1B2c3; see what waits with: memory-review")
    })
}
