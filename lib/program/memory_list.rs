//! `memory-list`: list the notes by title, or search them.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, apart, flag, value};
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::repository;
use crate::base::stderr;
use crate::base::text::{disarmed, one_line};
use crate::memory::search::{Found, Index, Query, Wanted};
use crate::memory::service::{Filter, belongs_to};
use crate::program::notes::{Listed, SCOPES, STATUSES, Store, TIERS, place_here, wanted_tag};
use crate::store::entry::{By, EntryId, Meta, Scope, Status, Tier};
use crate::store::persistence::{Persistence, Place, warn_of};
use crate::store::proposal::ProposalId;
use crate::store::topics::Topics;
use jiff::civil::Date;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) const ABOUT: About = About {
    name: "memory-list",
    caption: "list notes, or search them",
    usage: &["memory-list [--query WORDS] [--limit N] [FILTERS] [--sort KEY] [--json]"],
    commands: &[],
    flags: &[
        value("query", "WORDS", "only notes that match, best first"),
        value("status", "S", "captured, consolidated or promoted"),
        value("tier", "T", "hot, warm or cold"),
        value("tag", "T", "topic__x, area__x, or x for topic__x; repeatable"),
        value("scope", "S", "global or repo"),
        value("repo", "R", "only notes of this repository (host/owner/name; . for the current)"),
        flag("all", "notes of every repository, not only of the current one"),
        flag("pinned", "only pinned notes"),
        value("by", "WHO", "person, agent or tool: who said what the note says"),
        flag("expired", "only notes whose last day (until) is over"),
        flag("archived", "archived notes instead of those in use"),
        value("sort", "KEY", "used, updated, created or title"),
        value("limit", "N", "at most N notes"),
        flag("json", "one JSON object a line"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "In a repository it lists that repository's notes and the global ones; with --all, and outside of any \
           repository, all notes.\n\n\
           Prints a table on a terminal. In a pipe the columns are separated by tabs: id, tier, status, used, \
           title, tags, the repository or \"global\", with --query the line that matches best, and last, where there is \
           one, a remark: who said it, until when it holds, and whether a change of it waits for you. Finding nothing \
           is not an error.\n\n    \
           memory-list --query 'retry \"exponential backoff\" tag:http' --limit 5\n    \
           memory-list --query \"dev server port\" --json | memory-read -",
    sections: &[(
        "QUERY",
        "A query finds the notes that contain any of its words. Rare words count more, and so do words in the \
         title and notes with more of the words. Word endings (\"retries\" finds \"retry\"), case and accents do \
         not matter. Common synonyms and small typing errors count a little. \"A phrase in quotes\" must occur \
         as it is; if no note has it, its words are searched. tag:x or topic__x must be one of the tags. With --json, \
         score (0 to 1) says how much of the query a note has, and line is the line that matches best.",
    )],
};

#[derive(Debug, Default)]
struct Args {
    query: Option<String>,
    filter: Filter,
    all: bool,
    archived: bool,
    expired: bool,
    sort: Option<Sort>,
    limit: Option<usize>,
    json: bool,
    config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
enum Sort {
    Used,
    Updated,
    Created,
    Title,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut args = Args::default();
    let filter = &mut args.filter;
    while let Some(arg) = p.next()? {
        match arg {
            Long("query") => args.query = Some(p.text()?),
            Long("status") => filter.status = Some(p.one_of(Status::parse, STATUSES)?),
            Long("tier") => filter.tier = Some(p.one_of(Tier::parse, TIERS)?),
            Long("scope") => filter.scope = Some(p.one_of(Scope::parse, SCOPES)?),
            Long("tag") => filter.tags.push(wanted_tag("--tag", &p.text()?)?),
            Long("repo") => filter.repo = Some(p.text()?),
            Long("all") => args.all = true,
            Long("pinned") => filter.pinned = true,
            Long("by") => filter.by = Some(p.one_of(By::parse, "person, agent or tool")?),
            Long("expired") => args.expired = true,
            Long("archived") => args.archived = true,
            Long("sort") => args.sort = Some(p.one_of(Sort::named, SORTS)?),
            Long("limit") => args.limit = Some(p.count()?),
            Long("json") => args.json = true,
            Long("config") => args.config = Some(p.path()?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    if args.all && args.filter.repo.is_some() {
        return Err(apart("--all", "--repo").hint("--repo alone lists the notes of one repository"));
    }
    Ok(args)
}

const SORTS: &str = "used, updated, created or title";

impl Sort {
    fn named(name: &str) -> Option<Sort> {
        Some(match name {
            "used" => Sort::Used,
            "updated" => Sort::Updated,
            "created" => Sort::Created,
            "title" => Sort::Title,
            _ => return None,
        })
    }
}

fn run(mut args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    let reporter = Reporter::new(false);
    let store = Store::open(args.config.as_deref(), env, &reporter)?;
    if args.filter.repo.as_deref() == Some(".") {
        args.filter.repo = Some(place_here(env)?.name);
    }
    let is_narrow = !args.all && args.filter.repo.is_none();
    let view = View {
        here: env
            .current_dir()
            .ok()
            .filter(|_| is_narrow)
            .and_then(|dir| repository::of(&dir))
            .map(|here| here.name),
        elsewhere: AtomicUsize::new(0),
    };
    let today = env.today();
    args.filter.over_on = args.expired.then_some(today);
    let place = if args.archived { Place::Archive } else { Place::Topics };
    let index = Index::at(&store.root);
    let rows = match &args.query {
        Some(query) => found(&Query::parse(query), &args, &view, &index, place, &reporter)?,
        None => listed(&args, &view, &index, place, &reporter)?,
    };
    let (proposals, _) = Topics::at(&store.root).proposals()?;
    let mut waiting: BTreeMap<&EntryId, Vec<ProposalId>> = BTreeMap::new();
    for proposal in &proposals {
        if let Some(note) = &proposal.note {
            waiting.entry(note).or_default().push(proposal.id.clone());
        }
    }
    print(&rows, &view, &waiting, today, args.json, args.query.is_some(), stdout)?;
    stdout.flush()?;
    let elsewhere = view.elsewhere.into_inner();
    if elsewhere > 0 && !args.json && (rows.is_empty() || stdout.is_terminal()) {
        // A search that has found enough does not look at the rest.
        let is_counted =
            args.query.is_none() || args.sort.is_some() || args.limit.is_none_or(|limit| rows.len() < limit);
        stderr::line(&match elsewhere {
            _ if !is_counted => "notes of other repositories are not shown: --all".to_owned(),
            1 => "1 note of another repository is not shown: --all".to_owned(),
            many => format!("{many} notes of other repositories are not shown: --all"),
        });
    }
    if stdout.is_terminal() && !args.json && !proposals.is_empty() {
        stderr::line(&match proposals.len() {
            1 => "1 change waits for your decision: memory review".to_owned(),
            many => format!("{many} changes wait for your decision: memory review"),
        });
    }
    // The answer does not depend on it, and a store that cannot be written to can be searched.
    let _ = index.keep_up();
    Ok(ExitCode::SUCCESS)
}

/// What is listed of all repositories.
struct View {
    /// The repository whose notes are listed, beside the global ones. `None`: all.
    here: Option<String>,
    /// How many notes were left out because they are another's.
    elsewhere: AtomicUsize,
}

impl View {
    fn shows(&self, meta: &Meta) -> bool {
        let Some(here) = &self.here else { return true };
        let is_here = meta.scope == Scope::Global || belongs_to(meta, here);
        if !is_here {
            self.elsewhere.fetch_add(1, Ordering::Relaxed);
        }
        is_here
    }

    /// The repository of a note: of several the current one, or else the first. `None` for a global note.
    fn repo<'a>(&self, meta: &'a Meta) -> Option<&'a str> {
        if meta.scope == Scope::Global {
            return None;
        }
        let mut repos = meta.sources.iter().filter_map(|source| source.repo.as_deref());
        let first = repos.clone().next();
        repos.find(|repo| Some(*repo) == self.here.as_deref()).or(first)
    }
}

/// What is worth a remark: who said it, until when it holds, and that a change waits.
fn remark(meta: &Meta, waits: bool, today: Date) -> String {
    let by = meta.by.map(|by| format!("by {by}"));
    let until = meta.until.map(|until| match meta.is_expired(today) {
        true => format!("expired on {until}"),
        false => format!("until {until}"),
    });
    let waits = waits.then(|| "a change waits: memory review".to_owned());
    [by, until, waits].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn listed(args: &Args, view: &View, index: &Index, place: Place, reporter: &Reporter) -> Result<Vec<Found>> {
    let scan = index.scan(place, |note| {
        let is_shown = args.filter.matches(&note.meta) && view.shows(&note.meta);
        is_shown.then(|| Found::listed(note))
    })?;
    warn_of(&scan.broken, reporter);
    let rows = scan.found.into_iter().flatten().collect();
    Ok(ordered(rows, args.sort.unwrap_or(Sort::Title), args.limit))
}

fn found(
    query: &Query,
    args: &Args,
    view: &View,
    index: &Index,
    place: Place,
    reporter: &Reporter,
) -> Result<Vec<Found>> {
    // In another order than that of the best, any of them may be the first.
    let most = args.limit.filter(|_| args.sort.is_none()).unwrap_or(usize::MAX);
    let wanted = |meta: &Meta| args.filter.matches(meta) && view.shows(meta);
    let is_any = args.filter == Filter::default() && view.here.is_none();
    let wanted: Option<&Wanted<'_>> = if is_any { None } else { Some(&wanted) };
    let findings = index.find(place, query, wanted, most)?;
    warn_of(&findings.broken, reporter);
    if !findings.loosened.is_empty() && !findings.found.is_empty() {
        let phrases: Vec<String> = findings.loosened.iter().map(|phrase| format!("\"{phrase}\"")).collect();
        let its = if phrases.len() == 1 { "its" } else { "their" };
        let phrases = phrases.join(" and ");
        reporter.warn(&format!("no note has {phrases}; notes with {its} words are shown"));
    }
    Ok(match args.sort {
        Some(sort) => ordered(findings.found, sort, args.limit),
        None => findings.found,
    })
}

fn ordered(mut rows: Vec<Found>, sort: Sort, limit: Option<usize>) -> Vec<Found> {
    let title = |row: &Found| (row.view.meta.title.to_lowercase(), row.view.meta.id.clone());
    match sort {
        Sort::Title => rows.sort_by_cached_key(title),
        key => rows.sort_by_cached_key(|row| {
            let number = match key {
                Sort::Used => i64::try_from(row.view.meta.used).unwrap_or(i64::MAX),
                Sort::Updated => row.view.meta.updated_at,
                Sort::Created => row.view.meta.created_at,
                Sort::Title => 0,
            };
            (std::cmp::Reverse(number), title(row))
        }),
    }
    rows.truncate(limit.unwrap_or(usize::MAX));
    rows
}

fn print(
    rows: &[Found],
    view: &View,
    waiting: &BTreeMap<&EntryId, Vec<ProposalId>>,
    today: Date,
    json: bool,
    with_line: bool,
    stdout: &mut Stdout,
) -> Result<()> {
    let proposals = |row: &Found| waiting.get(&row.view.meta.id).map_or(&[][..], Vec::as_slice);
    if json {
        for row in rows {
            let (line, proposals) = (row.line.as_deref(), proposals(row));
            let change = !proposals.is_empty();
            let repo = Some(view.repo(&row.view.meta));
            let listed = Listed::of(&row.view.meta, &row.view.path);
            stdout.json(&Listed {
                repo,
                score: with_line.then_some(row.score),
                line,
                change,
                proposals,
                ..listed
            })?;
        }
        return Ok(());
    }
    let is_table = stdout.is_terminal();
    let title = |row: &Found| one_line(&row.view.meta.title, if is_table { TITLE_WIDTH } else { usize::MAX });
    let widths = rows.iter().filter(|_| is_table).map(|row| title(row).chars().count());
    let width = widths.max().unwrap_or(0);
    let repo = |row: &Found| match (row.view.meta.scope, view.repo(&row.view.meta)) {
        (Scope::Global, _) => "global".to_owned(),
        (Scope::Repo, Some(repo)) => one_line(repo, if is_table { REPO_WIDTH } else { usize::MAX }),
        // Somebody wrote the scope by hand.
        (Scope::Repo, None) => "-".to_owned(),
    };
    let repo_widths = rows.iter().filter(|_| is_table).map(|row| repo(row).chars().count());
    let repo_width = repo_widths.max().unwrap_or(0);
    for row in rows {
        let Meta { id, tier, status, used, tags, .. } = &row.view.meta;
        let (title, tags) = (title(row), tags.join(" "));
        let line = row.line.as_deref().filter(|_| with_line);
        let remark = remark(&row.view.meta, !proposals(row).is_empty(), today);
        if is_table {
            let tier = tier.to_string();
            let status = status.to_string();
            let remark = if remark.is_empty() { remark } else { format!("  ({remark})") };
            let repo = repo(row);
            let text =
                format!("{id}  {tier:4}  {status:12}  {used:4}  {repo:repo_width$}  {title:width$}  {tags}");
            stdout.line(&disarmed((text.trim_end().to_owned() + &remark).trim_end()))?;
            if let Some(line) = line {
                stdout.line(&disarmed(&format!("    {}", one_line(line, LINE_WIDTH))))?;
            }
        } else {
            let tags = one_line(&tags, usize::MAX);
            let used = used.to_string();
            let repo = repo(row);
            let columns = [id.as_str(), tier.as_str(), status.as_str(), &used, &title, &tags, &repo];
            let mut text = columns.join("\t");
            if with_line {
                text.push('\t');
                text.push_str(&one_line(line.unwrap_or(""), usize::MAX));
            }
            if !remark.is_empty() {
                text.extend(["\t", &remark]);
            }
            stdout.line(&text)?;
        }
    }
    Ok(())
}

/// The widest title and repository, and the longest matching line, in a table.
const TITLE_WIDTH: usize = 45;
const REPO_WIDTH: usize = 30;
const LINE_WIDTH: usize = 100;
