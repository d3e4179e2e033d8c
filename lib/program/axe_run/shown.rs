//! What `axe-run` shows besides the answer: the lines of `--verbose`, and the dry run.

use crate::agent::log::AgentLog;
use crate::agent::named::NamedConversation;
use crate::agent::prepare::PreparedAgent;
use crate::agent::stats::{RunStats, millis};
use crate::base::cli::{Reporter, Stdout};
use crate::base::error::Result;
use crate::base::text::size;
use crate::program::axe_run::load::Loaded;
use crate::provider::message::{Attachment, ChatTurn, Reply, Request};
use crate::store::conversation::Exchange;
use std::fmt::Write;
use std::time::Instant;

/// The verbose lines before the call.
pub(super) fn describe(
    prepared: &PreparedAgent,
    piped: bool,
    attached: usize,
    timeout: u64,
    reporter: &Reporter,
) {
    let skill = if prepared.skill_path.is_empty() { "(none)" } else { &prepared.skill_path };
    reporter.verbose(&format!("Model:    {}", prepared.model()));
    reporter.verbose(&format!("Workdir:  {}", prepared.workdir.display()));
    reporter.verbose(&format!("Skill:    {skill}"));
    reporter.verbose(&format!("Files:    {} file(s)", prepared.files.len()));
    reporter.verbose(&format!("Stdin:    {}", if piped { "yes" } else { "no" }));
    if attached > 0 {
        reporter.verbose(&format!("Attached: {attached} file(s)"));
    }
    reporter.verbose(&format!("Timeout:  {timeout}s"));
    reporter.verbose(&format!("Params:   {}", params(prepared)));
}

/// The verbose lines after it.
pub(super) fn report(reply: &Reply, stats: &RunStats, started: Instant, reporter: &Reporter) {
    let cumulative = if stats.tool_calls > 0 { " (cumulative)" } else { "" };
    reporter.verbose(&format!("Duration: {}ms", millis(started.elapsed())));
    reporter.verbose(&format!(
        "Tokens:   {} input, {} output{cumulative}",
        stats.tokens.input, stats.tokens.output
    ));
    reporter.verbose(&format!("Stop:     {}", reply.stop_reason));
    if stats.tokens.cache_read + stats.tokens.cache_write > 0 {
        reporter.verbose(&format!(
            "Cache:    {} of the input read, {} written",
            stats.tokens.cache_read, stats.tokens.cache_write
        ));
    }
    if let Some(cost) = stats.cost.amount() {
        reporter.verbose(&format!("Cost:     {cost:.6}"));
    }
}

/// Unset parameters print as 0.
fn params(prepared: &PreparedAgent) -> String {
    let params = &prepared.agent.params;
    let mut text = format!(
        "temperature={}, max_tokens={}",
        params.temperature.unwrap_or(0.0),
        params.max_tokens.unwrap_or(0)
    );
    for (name, value) in &params.extra {
        let _ = write!(text, ", {name}={value}");
    }
    text
}

/// What a dry run shows.
pub(super) struct DryRun<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) request: &'a Request,
    pub(super) log: &'a AgentLog,
    pub(super) conversation: Option<&'a NamedConversation>,
    pub(super) prompt: Option<String>,
    pub(super) piped: Option<String>,
}

pub(super) fn dry_run(run: &DryRun, stdout: &mut Stdout) -> Result<()> {
    let DryRun { loaded: Loaded { prepared, timeout, .. }, request, conversation, .. } = run;
    let PreparedAgent { agent, workdir, files, skill, .. } = prepared;
    let model = prepared.model();
    let mut out = String::new();
    let mut part = |title: &str, text: &str| {
        let gap = if out.is_empty() { "" } else { "\n" };
        // Each part ends with one newline, however many its text has.
        let _ = writeln!(out, "{gap}{title}\n{}", text.trim_end_matches('\n'));
    };
    let or_none = |text: &str| if text.is_empty() { "(none)".to_owned() } else { text.to_owned() };
    let (workdir, params) = (workdir.display(), params(prepared));
    part(
        "=== Dry Run ===",
        &format!("\nModel:    {model}\nWorkdir:  {workdir}\nTimeout:  {timeout}s\nParams:   {params}"),
    );
    part("--- System Prompt ---", &request.system);
    part("--- Skill ---", &or_none(skill));
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    part(&format!("--- Files ({}) ---", paths.len()), &or_none(&paths.join("\n")));
    if let Some(prompt) = &run.prompt {
        part("--- Prompt ---", prompt);
    }
    part("--- Stdin ---", &or_none(run.piped.as_deref().unwrap_or_default()));
    if let Some(ChatTurn::Attached(_, files)) = request.turns.last() {
        let line =
            |file: &Attachment| format!("{} ({}, {})", file.name, file.media, size(file.length as u64));
        let lines: Vec<_> = files.iter().map(line).collect();
        part(&format!("--- Attachments ({}) ---", lines.len()), &lines.join("\n"));
    }
    if let Some(NamedConversation { exchanges, .. }) = conversation {
        let text =
            |exchange: &Exchange| format!("[user]\n{}\n[assistant]\n{}\n", exchange.user, exchange.assistant);
        let text: String = exchanges.iter().map(text).collect();
        part(&format!("--- Conversation ({}) ---", exchanges.len()), &or_none(&text));
    }
    if let Some(schema) = &prepared.schema {
        part("--- Schema ---", &schema.value().to_string());
    }
    match &run.log.entries {
        None => {}
        Some(Err(why)) => part("--- Memory ---", &format!("(error: {why})")),
        Some(Ok(text)) => part("--- Memory ---", &or_none(text)),
    }
    if !agent.sub_agents.is_empty() {
        let config = &agent.sub_agents_config;
        let (names, parallel) = (agent.sub_agents.join(", "), if config.parallel { "yes" } else { "no" });
        let (depth, timeout) = (config.depth(), config.timeout);
        let limits = format!("Max Depth: {depth}\nParallel:  {parallel}\nTimeout:   {timeout}s");
        part("--- Sub-Agents ---", &format!("{names}\n{limits}"));
    }
    if !prepared.tools.is_empty() {
        let tools = prepared.tools.iter().map(|tool| format!("{}: {}", tool.name, tool.shown));
        part("--- Tools ---", &tools.collect::<Vec<_>>().join("\n"));
    }
    stdout.text(&out)
}
