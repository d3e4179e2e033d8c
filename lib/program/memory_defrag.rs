//! `memory-defrag`: notes are put in order, through the LLM command; then AGENTS.md.

use crate::base::cli::{self, About, Args, Context, ExitCode, FlagRule, flag, path};
use crate::base::command_line::quoted;
use crate::base::error::{Error, Result};
use crate::base::text::{counted, further};
use crate::memory::defrag::Defrag;
use crate::memory::defrag::applied::{Undone, finish_undo, undo};
use crate::memory::defrag::host::DefragHost;
use crate::memory::defrag::plan::{Planned, Summary, counts, numbers};
use crate::memory::pipeline::runner::{Previewed, Runner};
use crate::memory::pipeline::{Failure, WalkEnd};
use crate::memory::section::Outcome;
use crate::program::memory_agents_md::as_json;
use crate::program::notes::CONFIG;
use crate::program::pipeline::{COMMAND_HINT, Mode, open, print_question, tell_parts_left};
use crate::store::batch::Batches;
use crate::store::change::Preview;
use crate::store::topics::Topics;
use serde_json::{Value, json};

pub(super) const ABOUT: About = About {
    name: "memory-defrag",
    caption: "reorganise the notes, then refresh AGENTS.md",
    usage: &[
        "memory-defrag [--force] [--allow-loss] [--json] [--quiet]",
        "memory-defrag --dry-run | --prompt | --apply FILE | --undo",
    ],
    flags: &[
        flag("dry-run", "ask the LLM, show the plan, change nothing"),
        flag("prompt", "print the next prompt; --apply takes the reply"),
        path("apply", "FILE", "apply a reply from FILE, or from stdin (-)"),
        flag("undo", "undo the last defrag"),
        flag("force", "ask even if nothing has changed"),
        flag("allow-loss", "allow losing facts, and archiving more than one note in ten"),
        flag("json", "print the result as one JSON object"),
        flag("quiet", "print no progress and no summary"),
        CONFIG,
    ],
    rules: &[
        FlagRule::AtMostOne(&["--dry-run", "--prompt", "--apply", "--undo"]),
        FlagRule::Apart("--apply", &["--force"], ""),
        FlagRule::Apart("--undo", &["--force"], ""),
        FlagRule::Apart("--prompt", &["--allow-loss"], "it belongs to --apply"),
        FlagRule::Apart("--undo", &["--allow-loss"], "it belongs to --apply"),
    ],
    text: include_str!("memory_defrag.md"),
    ..About::BLANK
};

const NOTHING: &str = "nothing has changed since the last defrag (--force asks anyway)";

type Defragmentation<'a> = Runner<'a, DefragHost<'a, Preview<'a, Topics>>>;

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let mode = Mode::of(args);
    let Some(opened) = open(args, mode, Batches::of_defrag, cx)? else {
        return match (mode, cx.json) {
            (Mode::Prompt, _) => print_question(None, "", cx),
            (_, true) => cx.stdout.json(&result(&Summary::default(), Some("busy"))),
            (_, false) => Ok(()),
        };
    };
    let run = opened.run();
    let topics = Topics::at(&opened.root);
    let notes = Preview::over(&topics, run.is_dry());
    // What a crash left of an undoing comes first, whatever is asked for.
    let undone = if mode == Mode::DryRun { None } else { finish_undo(&notes, &run)? };
    let pipeline = Defrag {
        redactor: &opened.redactor,
        max_prompt_bytes: opened.config.llm.max_prompt(),
        max_hot_tokens: opened.config.agents_md.max_hot_tokens,
        allows_loss: args.has("allow-loss"),
    };
    let host = DefragHost { pipeline, notes, is_forced: args.has("force"), summary: Summary::default() };
    let mut runner = Runner::new(run, host);
    match mode {
        Mode::DryRun => dry_run(&mut runner, args, cx),
        Mode::Prompt => print_question(runner.prompt()?.as_ref(), NOTHING, cx),
        Mode::Undo => take_back(undone, &mut runner, args, cx),
        Mode::Run | Mode::Apply => defrag(&mut runner, opened.reply.as_deref(), args, cx),
    }
}

/// A run, or a reply that somebody brings; then the summary, and what its end means to who called it.
fn defrag(runner: &mut Defragmentation, reply: Option<&str>, args: &Args, cx: &mut Context) -> Result<()> {
    let is_quiet = args.has("quiet");
    let ending = match reply {
        None => runner.run()?,
        Some(reply) => {
            tell_parts_left(runner.apply(reply)?, is_quiet, cx);
            WalkEnd::Completed
        }
    };
    let done = &runner.host.summary;
    // Where nothing could be asked there is nothing to sum up.
    let is_unable = ending == WalkEnd::Failed(Failure::NoCommand);
    if cx.json {
        let stopped = ending.failure().filter(|_| !is_unable).map(Failure::to_string);
        cx.stdout.json(&result(done, stopped.as_deref()))?;
    } else if !is_quiet && (!is_unable || !done.made.is_empty()) {
        let dropped = further(&[(done.dropped.len(), "dropped")]);
        cx.stdout.line(&format!("{}{dropped}", counts(&done.made, done.proposals.len())))?;
    }
    match ending.failure() {
        None => targets(&done.targets, cx),
        Some(Failure::NoCommand) => {
            Err(Error::config("notes have changed, and no LLM command is set to put them in order")
                .hint(COMMAND_HINT))
        }
        Some(Failure::Spent(why)) => {
            cx.reporter.warn(&format!("{why}; the next run goes on"));
            targets(&done.targets, cx)
        }
        Some(failure) => {
            let so_far = match done.made.is_empty() {
                true => "it changed no note",
                false => "what earlier calls changed stands",
            };
            let hint = match failure {
                Failure::NotStarted(_) => format!("install it, or correct llm.command; {so_far}"),
                _ => so_far.to_owned(),
            };
            Err(Error::api(failure.to_string()).hint(hint))
        }
    }
}

/// The notes are in order; a target that is not is an error.
fn targets(targets: &[Outcome], cx: &Context) -> Result<()> {
    let mut faults = targets.iter().filter_map(|outcome| Some(outcome.standing.as_ref().err()?.line()));
    let Some(fault) = faults.next() else { return Ok(()) };
    faults.for_each(|further| cx.reporter.warn(&further));
    Err(Error::io(fault).hint("the notes are in order; afterwards run memory-agents-md"))
}

/// The result as a program reads it.
fn result(done: &Summary, stopped: Option<&str>) -> Value {
    let mut object = changes(done);
    object["agentsMd"] = done.targets.iter().map(as_json).collect();
    object["stopped"] = json!(stopped);
    for (name, count) in numbers(&done.made) {
        object[name] = count.into();
    }
    object
}

/// What was done, or would be: operations without the files' bytes, and proposals without the text, which is what
/// `memory-review` shows.
fn changes(done: &Summary) -> Value {
    let operations = done.made.iter().map(|Planned { op, from, into, reason, lost, gone, .. }| {
        json!({"op": op, "from": from, "into": into, "reason": reason, "lost": lost, "gone": gone})
    });
    let proposals = done.proposals.iter().map(|proposal| {
        let title = proposal.entry.as_ref().map(|entry| &entry.title);
        json!({
            "id": proposal.id, "op": proposal.op, "note": proposal.note, "title": title, "reasons": proposal.reasons,
        })
    });
    json!({
        "operations": operations.collect::<Vec<_>>(),
        "dropped": done.dropped,
        "proposals": proposals.collect::<Vec<_>>(),
        "warnings": done.warnings,
        "remarks": done.remarks,
    })
}

/// Takes the last defrag back. What a crash left of an undoing is what was asked for, and no reason to take back one
/// more.
fn take_back(
    undone: Option<Undone>,
    runner: &mut Defragmentation,
    args: &Args,
    cx: &mut Context,
) -> Result<()> {
    let Undone { batch, notes, targets: outcomes } = match undone {
        Some(undone) => undone,
        None => {
            runner.finish_writing()?;
            undo(&runner.host.notes, &runner.run)?
        }
    };
    if cx.json {
        let agents_md: Value = outcomes.iter().map(as_json).collect();
        cx.stdout.json(&json!({"undone": batch, "notes": notes, "agentsMd": agents_md}))?;
    } else if !args.has("quiet") {
        cx.stdout.line(&format!("{} as before {batch}", counted(notes, "note is", "notes are")))?;
    }
    targets(&outcomes, cx)
}

/// What a run would do, with the store left as it is.
fn dry_run(runner: &mut Defragmentation, args: &Args, cx: &mut Context) -> Result<()> {
    let (ending, previewed) = runner.dry_run()?;
    let done = &runner.host.summary;
    let failure = ending.failure();
    if cx.json {
        let mut object = changes(done);
        object["notes"] = json!(done.total);
        object["reply"] = json!(previewed.first().map(|previewed| &previewed.reply));
        object["stopped"] = json!(failure.map(Failure::to_string));
        cx.stdout.json(&object)?;
    } else if let Some(Previewed { reply, parts }) = previewed.first() {
        for line in done.lines() {
            cx.stdout.line(&line)?;
        }
        // Without them it would not be this.
        let loss = if args.has("allow-loss") { " --allow-loss" } else { "" };
        let config = args.path("config").map(|path| format!(" --config {}", quoted(&path.to_string_lossy())));
        let config = config.unwrap_or_default();
        let what = match parts {
            0 | 1 => "to do this".to_owned(),
            parts => format!("to do what the first of {parts} calls gave, and ask about the rest again"),
        };
        cx.stdout.line(&format!(
            "\n{what}: memory-defrag --apply {}{loss}{config}",
            quoted(&reply.to_string_lossy())
        ))?;
    } else if failure.is_none() {
        cx.reporter.warn(NOTHING);
    }
    match failure {
        None => Ok(()),
        Some(Failure::Spent(why)) => {
            cx.reporter.warn(why);
            Ok(())
        }
        Some(failure) => Err(Error::api(failure.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_go_together_is_refused() {
        for words in [
            &["--dry-run", "--prompt"][..],
            &["--undo", "--force"],
            &["--apply", "x", "--force"],
            &["--prompt", "--allow-loss"],
            &["--undo", "--apply", "x"],
            &["--limit", "3"],
            &["x"],
        ] {
            assert!(!cli::accepts(&ABOUT, words), "{words:?}");
        }
        for words in
            [&["--force", "--dry-run"][..], &["--allow-loss", "--apply", "-"], &["--force", "--prompt"]]
        {
            assert!(cli::accepts(&ABOUT, words), "{words:?}");
        }
    }
}
