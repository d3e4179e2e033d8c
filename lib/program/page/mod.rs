//! A report as one HTML file: what `memory-page` and `axe-runs --html` write.
//!
//! What it shows was written by models and strangers. So the page is the same bytes for everybody, and what differs stands in
//! blocks of JSON, which no browser runs. Its policy allows that one script and that one style sheet, by their hashes, and no
//! network. The script puts text into the page, and never HTML.

mod plot;

use crate::base::cli::Context;
use crate::base::error::{Error, Result, reason, unwritable};
use crate::base::file;
use crate::base::text::{border, disarmed, filled, json_without, one_line};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use crate::program::page::plot::Plot;

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// A browser reads one block at a time. One of so many bytes takes it a few milliseconds.
const BLOCK: usize = 128 << 10;
/// The bytes of a long text that are shown. A browser lays out more only with a pause.
const LONG: usize = 64 << 10;

/// Text in which nothing is hidden or live: control characters and those that change the order of others are named.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PageText(String);

impl<T: AsRef<str>> From<T> for PageText {
    fn from(text: T) -> PageText {
        PageText(disarmed(text.as_ref()).into_owned())
    }
}

impl PageText {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn line(text: &str) -> PageText {
        one_line(text, usize::MAX).into()
    }

    /// The beginning of a text, and the command that shows the rest if there is more.
    pub fn start(text: &str, command: &str) -> PageText {
        let text = PageText::from(text);
        match text.0.get(..border(&text.0, LONG)) {
            Some(start) if start.len() < text.0.len() => PageText(format!("{start}\n… the rest: {command}")),
            _ => text,
        }
    }

    pub fn time(time: Timestamp) -> PageText {
        PageText(time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M UTC").to_string())
    }
}

/// What a page shows.
#[derive(Debug, Serialize)]
pub struct Page {
    pub title: &'static str,
    /// When it was made, and from what.
    pub made: PageText,
    /// What an item is called: one, many.
    pub things: [&'static str; 2],
    /// What the events of an item are called.
    pub events: &'static str,
    /// The names of choices among the values of the items, and the value that is chosen at first; empty: all.
    pub filters: &'static [(&'static str, &'static str)],
    pub warnings: Vec<Warning>,
    pub panels: Vec<Panel>,
    #[serde(skip)]
    pub items: Vec<Item>,
}

/// A line above the list that leads to the items with a value of a filter, which is an index.
#[derive(Debug, Serialize)]
pub struct Warning {
    pub text: &'static str,
    pub filter: usize,
    pub value: &'static str,
}

/// One row of the list, and what is shown when it is opened.
#[derive(Debug, Default, Serialize)]
pub struct Item {
    pub id: PageText,
    /// Other ids that lead to it.
    pub aliases: Vec<PageText>,
    pub title: PageText,
    /// For each filter the values that the item has.
    pub values: Vec<Vec<PageText>>,
    pub facts: Vec<(String, PageText)>,
    /// Markdown.
    pub text: PageText,
    /// Other items, by their ids.
    pub related: Related,
    /// When, and what.
    pub events: Vec<(PageText, PageText)>,
    pub command: PageText,
}

/// Ids under what they have to do with an item.
pub type Related = BTreeMap<&'static str, BTreeSet<PageText>>;

/// A part of the page beside the list.
#[derive(Debug, Default, Serialize)]
pub struct Panel {
    pub name: &'static str,
    pub about: &'static str,
    pub entries: Vec<PanelEntry>,
    pub plots: Vec<Plot>,
}

/// A text under a title, and the commands that go with it.
#[derive(Debug, Default, Serialize)]
pub struct PanelEntry {
    pub title: PageText,
    pub text: PageText,
    pub commands: Vec<PageText>,
    /// Lines with `+` and `-` are shown as new and gone.
    pub is_diff: bool,
}

/// The keys of a JSON object by their own names, without those that say nothing, and those that are shown in another way.
///
/// # Errors
/// It cannot be written as JSON.
pub fn facts(value: &impl Serialize, shown: &[&str]) -> Result<Vec<(String, PageText)>> {
    let Value::Object(keys) = serde_json::to_value(value).map_err(unwritable)? else { return Ok(Vec::new()) };
    let keys = keys.into_iter().filter(|(key, _)| !shown.contains(&&**key));
    let text = |value: Value| match value {
        Value::Null | Value::Bool(false) => String::new(),
        Value::String(text) => text,
        value => value.to_string(),
    };
    let facts = keys.map(|(key, value)| (key, PageText::line(&text(value))));
    Ok(facts.filter(|(_, value)| !matches!(value.as_str(), "" | "[]")).collect())
}

impl Page {
    /// The file. It depends on the page alone.
    ///
    /// # Errors
    /// A value cannot be written as JSON.
    pub fn html(&self) -> Result<String> {
        let mut data = block("id=\"page\"", &json(self)?);
        let mut items = String::new();
        for item in &self.items {
            items.push_str(if items.is_empty() { "[" } else { ",\n" });
            items.push_str(&json(item)?);
            if items.len() >= BLOCK {
                data += &block("class=\"items\"", &(std::mem::take(&mut items) + "]"));
            }
        }
        if !items.is_empty() {
            data += &block("class=\"items\"", &(items + "]"));
        }
        let values = [
            ("{policy}", &*policy()),
            ("{title}", self.title),
            ("{style}", STYLE),
            ("{data}", &data),
            ("{script}", SCRIPT),
        ];
        Ok(filled(HTML, '{', &values))
    }
}

/// Nothing may be loaded, and nothing may run but these.
fn policy() -> String {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

fn block(attribute: &str, json: &str) -> String {
    format!("<script type=\"application/json\" {attribute}>{json}</script>\n")
}

/// JSON that cannot end its block, or begin a comment in it: what HTML knows stands in strings alone, and is escaped. So is
/// all that is not ASCII: a browser reads megabytes of ASCII at once, and takes ten times as long for anything else.
fn json(value: &impl Serialize) -> Result<String> {
    let json = serde_json::to_string(value).map_err(unwritable)?;
    Ok(json_without(&json, |c| !c.is_ascii() || matches!(c, '<' | '>' | '&')))
}

/// How every page begins.
const MARK: &[u8] = b"<!doctype html>\n<!-- A page of the axe toolkit -->\n";

/// What the top of a working copy has in it.
const REPOSITORIES: [&str; 3] = [".git", ".hg", ".jj"];

/// Where a page goes, looked at before the work begins. It holds all that an agent has learned, so it is the user's alone, and
/// lands in no repository by accident.
#[derive(Debug)]
pub enum PageTarget {
    Stdout,
    File(PathBuf),
}

impl PageTarget {
    /// `None` and `-` are stdout. `flag` names the file. `is_forced`: also in a repository, or in the place of another file.
    ///
    /// # Errors
    /// `Usage`: it goes to a terminal, into `store`, into a repository, or would replace another file. `Io`: what is there is no
    /// regular file.
    pub fn of(
        path: Option<&Path>,
        flag: &str,
        is_forced: bool,
        store: &Path,
        cx: &Context,
    ) -> Result<PageTarget> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            if cx.stdout.is_terminal() {
                let hint = format!("name a file: {} {flag} page.html", cx.program);
                return Err(Error::usage("a page is not for a terminal").hint(hint));
            }
            return Ok(PageTarget::Stdout);
        };
        let shown = path.display();
        // A link leads to the file that is replaced.
        let real = path.canonicalize().or_else(|_| real_name(path)).map_err(|why| {
            Error::io(format!("\"{shown}\" cannot be written: {}", reason(&why)))
                .hint("name a file in a directory that exists")
        })?;
        let dir = real.parent().unwrap_or(&real);
        if store.canonicalize().is_ok_and(|store| dir.starts_with(store)) {
            return Err(Error::usage(format!("\"{shown}\" is in the store of the notes"))
                .hint("write the page somewhere else"));
        }
        // Whatever is in it: what looks like a repository may become one.
        let is_top = |top: &&Path| REPOSITORIES.iter().any(|name| top.join(name).symlink_metadata().is_ok());
        if let Some(top) = dir.ancestors().find(is_top).filter(|_| !is_forced) {
            let top = top.display();
            return Err(Error::usage(format!(
                "\"{shown}\" is in the repository \"{top}\", and may be committed"
            ))
            .hint("write the page somewhere else, or add --force"));
        }
        // Only a regular file is replaced, not a link that leads nowhere either.
        let is_there = file::if_exists(real.symlink_metadata())?.is_some();
        if is_there && !is_page(&real)? && !is_forced {
            return Err(Error::usage(format!("\"{shown}\" is not a page that axe wrote"))
                .hint("give another name, or add --force"));
        }
        Ok(PageTarget::File(real))
    }

    /// Writes the page, and prints the path of a file.
    pub fn write(&self, page: &Page, cx: &mut Context) -> Result<()> {
        let html = page.html()?;
        match self {
            PageTarget::Stdout => cx.stdout.text(&html),
            PageTarget::File(path) => {
                file::sweep_aged(path, |left| left.starts_with(MARK) || left.is_empty());
                file::install(path, html.as_bytes(), 0o600)?;
                cx.stdout.line(&path.display().to_string())
            }
        }
    }
}

/// Of a file that does not exist yet.
fn real_name(path: &Path) -> io::Result<PathBuf> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(dir.canonicalize()?.join(path.file_name().unwrap_or_default()))
}

fn is_page(path: &Path) -> Result<bool> {
    let (file, _) = file::open_regular(path)?;
    let mut start = Vec::new();
    file.take(MARK.len() as u64).read_to_end(&mut start)?;
    Ok(start == MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(texts: &[&str]) -> Page {
        let item = |text: &&str| Item { id: "id__AAAAAA".into(), text: text.into(), ..Item::default() };
        Page {
            title: "Notes",
            made: "now".into(),
            things: ["note", "notes"],
            events: "History",
            filters: &[],
            warnings: Vec::new(),
            panels: Vec::new(),
            items: texts.iter().map(item).collect(),
        }
    }

    #[test]
    fn the_policy_names_the_script_and_the_style_as_they_stand_in_the_file() {
        let html = page(&[]).html().unwrap();
        for (start, end) in [("<script>", "</script>"), ("<style>", "</style>")] {
            let text = html.split_once(start).unwrap().1.split_once(end).unwrap().0;
            assert!(text.len() > 1000);
            let hash = STANDARD.encode(Sha256::digest(text));
            assert_eq!(html.matches(&format!("'sha256-{hash}'")).count(), 1, "{start}");
        }
        let marks = ["{policy}", "{style}", "{data}", "{script}"];
        assert!(html.matches("<script").count() == 2 && !marks.iter().any(|mark| html.contains(mark)));
        assert!(html.ends_with("</html>\n"));
        // Neither may end what it stands in.
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("<!--") && !STYLE.contains("</"));
    }

    #[test]
    fn the_script_makes_no_html_of_text_and_reaches_no_network() {
        for live in [
            "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "fetch(",
            "XMLHttp", "import(", "WebSocket", "sendBeacon", "srcdoc", ".src", "localStorage", "window.open",
            "new Worker",
        ] {
            assert!(!SCRIPT.contains(live), "{live}");
        }
        assert!(!HTML.contains(" on") && !HTML.contains("http:") && !HTML.contains("https:"));
    }

    #[test]
    fn no_text_ends_its_block_and_nothing_is_hidden() {
        let texts = [
            "</script><script>alert(1)</script>",
            "<!-- <script>",
            "]]>\u{2028}\u{2029}&lt;",
            "\u{1b}[31m\u{7}\u{9b}",
            "a\u{202e}b\u{200b}\u{e0041}\u{feff}",
            "{script} {data} {policy}",
            "quote \" backslash \\ tab \t line \n end, \u{4f60}\u{1f389}",
        ];
        let html = page(&texts).html().unwrap();
        let blocks: Vec<&str> = html.split("class=\"items\">").skip(1).collect();
        let block = blocks[0].split_once("</script>").unwrap().0;
        assert!(
            !block.contains([
                '<', '>', '&', '\u{1b}', '\u{9b}', '\u{202e}', '\u{2028}', '\u{200b}', '\u{e0041}'
            ])
        );
        let items: Vec<serde_json::Value> = serde_json::from_str(block).unwrap();
        let read: Vec<&str> = items.iter().map(|item| item["text"].as_str().unwrap()).collect();
        assert_eq!((read[0], read[1], read[5], read[6]), (texts[0], texts[1], texts[5], texts[6]));
        assert_eq!((read[3], read[4]), ("\\u{1b}[31m\\u{7}\\u{9b}", "a<U+202E>b<U+200B><U+E0041><U+FEFF>"));
    }

    #[test]
    fn of_a_long_text_the_beginning_is_shown() {
        let text = "\u{e9}".repeat(LONG);
        let shown = PageText::start(&text, "memory-read id__AAAAAA");
        assert_eq!(shown.as_str(), format!("{}\n… the rest: memory-read id__AAAAAA", &text[..LONG]));
        assert_eq!(PageText::start(&text[..LONG], "x").as_str(), &text[..LONG]);
    }

    #[test]
    fn many_items_are_many_blocks() {
        let text = "x".repeat(1000);
        let html = page(&vec![&*text; 1000]).html().unwrap();
        let blocks: Vec<&str> = html.split("class=\"items\">").skip(1).collect();
        let sizes = blocks.iter().map(|block| block.split_once("</script>").unwrap().0);
        let counts = sizes.map(|block| {
            assert!(block.len() < BLOCK + 4096);
            serde_json::from_str::<Vec<serde_json::Value>>(block).unwrap().len()
        });
        assert_eq!((counts.sum::<usize>(), blocks.len() > 5), (1000, true));
    }
}
