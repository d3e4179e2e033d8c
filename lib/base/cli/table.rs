//! Rows under a header on a terminal, as wide as it is; in a pipe, columns with tabs between them.
//!
//! In a pipe every row has every column, in one order. On a terminal a column may be left out: those of which all rows are
//! empty, and where it is too narrow those that matter least. What does not fit is cut at a word.

use crate::base::cli::paint::{Meaning, Paint};
use crate::base::cli::stdout::Stdout;
use crate::base::error::Result;
use crate::base::text::{disarmed, one_line};
use std::ops::Range;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between two columns.
const GAP: usize = 2;

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    title: &'static str,
    fit: Fit,
    /// Where a terminal is too narrow, the columns with the highest rank are left out first. Never those of rank 0.
    rank: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Whole,
    /// The same, at the right.
    Number,
    /// Cut, but to no fewer than so many columns of the terminal.
    Cut(usize),
    /// The same, cut at the beginning.
    Tail(usize),
    /// Not on a terminal.
    Pipe,
}

impl Column {
    pub const fn whole(title: &'static str, rank: u8) -> Column {
        Column { title, fit: Fit::Whole, rank }
    }

    pub const fn number(title: &'static str, rank: u8) -> Column {
        Column { title, fit: Fit::Number, rank }
    }

    pub const fn cut(title: &'static str, least: usize, rank: u8) -> Column {
        Column { title, fit: Fit::Cut(least), rank }
    }

    pub const fn tail(title: &'static str, least: usize, rank: u8) -> Column {
        Column { title, fit: Fit::Tail(least), rank }
    }

    pub const fn pipe(title: &'static str) -> Column {
        Column { title, fit: Fit::Pipe, rank: 0 }
    }
}

/// A text of any origin.
pub enum Cell {
    Text(String),
    Meant(Meaning, String),
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

/// The places of what was searched for in a text.
pub type MatchFinder<'a> = &'a dyn Fn(&str) -> Vec<Range<usize>>;

/// The cells of a row, and the line below it.
type Row = (Vec<(Option<Meaning>, String)>, String);

/// The rows are printed at once in a pipe, and kept for a terminal.
pub struct Table<'a> {
    columns: &'a [Column],
    search: Option<MatchFinder<'a>>,
    rows: Vec<Row>,
}

impl<'a> Table<'a> {
    pub fn new(columns: &'a [Column], search: Option<MatchFinder<'a>>) -> Table<'a> {
        Table { columns, search, rows: Vec::new() }
    }

    /// `below`: a line that belongs to the row, on a terminal.
    pub fn row(&mut self, cells: Vec<Cell>, below: &str, stdout: &mut Stdout) -> Result<()> {
        let is_table = stdout.is_terminal();
        let text = |cell: Cell| match cell {
            Cell::Text(text) => (None, text),
            Cell::Meant(meaning, text) => (Some(meaning), text),
        };
        let cells = cells.into_iter().map(text).map(|(meaning, text)| (meaning, one_line(&text, usize::MAX)));
        if is_table {
            let cells = cells.map(|(meaning, text)| (meaning, disarmed(&text).into_owned())).collect();
            self.rows.push((cells, disarmed(&one_line(below, usize::MAX)).into_owned()));
            return Ok(());
        }
        let paint = stdout.paint();
        let cells: Vec<String> = cells.map(|cell| self.painted(&cell.1, cell.0, paint)).collect();
        stdout.line(&cells.join("\t"))
    }

    fn painted(&self, text: &str, meaning: Option<Meaning>, paint: Paint) -> String {
        match (meaning, self.search) {
            (Some(meaning), _) => paint.paint(meaning, text).into_owned(),
            (None, Some(search)) if paint != Paint::default() => {
                paint.parts(Meaning::Found, text, &search(text))
            }
            (None, _) => text.to_owned(),
        }
    }

    /// The table for a terminal of so many columns; empty if no row was kept.
    pub fn text(&self, columns: usize, paint: Paint) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let widths = self.widths(columns);
        let shown = || self.columns.iter().zip(&widths).enumerate().filter(|(_, (_, width))| **width > 0);
        let line = |cell: &dyn Fn(usize) -> (Option<Meaning>, String)| {
            let mut line = String::new();
            for (n, (column, width)) in shown() {
                let (meaning, text) = cell(n);
                let text = match column.fit {
                    Fit::Tail(_) => reversed(&shortened(&reversed(&text), *width)),
                    _ => shortened(&text, *width),
                };
                let padding = " ".repeat(width.saturating_sub(text.width()));
                let text = self.painted(&text, meaning, paint);
                let gap = if line.is_empty() { "" } else { "  " };
                line += &match column.fit {
                    Fit::Number => format!("{gap}{padding}{text}"),
                    _ => format!("{gap}{text}{padding}"),
                };
            }
            line.trim_end().to_owned() + "\n"
        };
        let mut all = line(&|n| (Some(Meaning::Heading), self.columns[n].title.to_owned()));
        for (cells, below) in &self.rows {
            all += &line(&|n| cells.get(n).cloned().unwrap_or_default());
            if !below.is_empty() {
                let below = shortened(below, columns.saturating_sub(4));
                all += &format!("    {}\n", self.painted(&below, None, paint));
            }
        }
        all
    }

    /// How wide each column is; 0 for those that are left out.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let widest = |n: usize| self.rows.iter().filter_map(|row| Some(row.0.get(n)?.1.width())).max();
        let width = |(n, column): (usize, &Column)| match widest(n).unwrap_or(0) {
            0 => 0,
            _ if column.fit == Fit::Pipe => 0,
            widest => widest.max(column.title.width()),
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(width).collect();
        let least = |n: usize, width: usize| match self.columns[n].fit {
            Fit::Cut(least) | Fit::Tail(least) => width.min(least),
            _ => width,
        };
        let sum = |widths: &[usize]| -> usize {
            widths.iter().filter(|width| **width > 0).map(|width| width + GAP).sum()
        };
        // Until all fit if they are cut as far as they may be.
        loop {
            let cut: Vec<usize> = widths.iter().enumerate().map(|(n, width)| least(n, *width)).collect();
            let shown = (0..widths.len()).filter(|n| widths[*n] > 0 && self.columns[*n].rank > 0);
            let last = shown.max_by_key(|n| self.columns[*n].rank);
            match last {
                Some(last) if sum(&cut) > columns + GAP => widths[last] = 0,
                _ => break,
            }
        }
        // Then those that matter least give, the widest first.
        while sum(&widths) > columns + GAP {
            let able = (0..widths.len()).filter(|n| widths[*n] > least(*n, widths[*n]));
            let Some(widest) = able.max_by_key(|n| (self.columns[*n].rank, widths[*n])) else { break };
            widths[widest] -= 1;
        }
        widths
    }
}

/// The text in at most so many columns, cut after a word if there is one in the second half of them.
fn shortened(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    // The mark takes one.
    let room = columns.saturating_sub(1);
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= room
    };
    let kept: usize = text.chars().take_while(fits).map(char::len_utf8).sum();
    let kept = &text[..kept];
    let is_whole_word = text[kept.len()..].starts_with(' ');
    let end = kept.rfind(' ').filter(|end| !is_whole_word && *end >= kept.len() / 2);
    format!("{}…", kept[..end.unwrap_or(kept.len())].trim_end())
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 5] = [
        Column::whole("ID", 0),
        Column::number("USED", 2),
        Column::cut("TITLE", 12, 0),
        Column::cut("TAGS", 6, 1),
        Column::pipe("MORE"),
    ];

    fn table(rows: &[[&str; 5]]) -> Table<'static> {
        let cells = |row: &[&str; 5]| row.iter().map(|text| (None, (*text).to_owned())).collect();
        let rows = rows.iter().map(|row| (cells(row), String::new())).collect();
        Table { rows, ..Table::new(&COLUMNS, None) }
    }

    #[test]
    fn a_table_is_as_wide_as_the_terminal_and_no_wider() {
        let rows = [
            ["id__1", "7", "The dev server listens on 4310", "topic__ports area__work", "x"],
            ["id__2", "12", "日本語のとても長いタイトルです", "", ""],
        ];
        for columns in [20, 30, 40, 60, 80, 120] {
            let text = table(&rows).text(columns, Paint::default());
            let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap();
            assert!(widest <= columns, "{columns}:\n{text}");
            assert!(text.starts_with("ID ") && !text.contains("MORE"), "{text}");
        }
        let text = table(&rows).text(44, Paint::default());
        assert!(text.contains("The dev server listens…  topic…"), "{text}");
        // What matters least goes first, then what comes before that.
        assert!(!table(&rows).text(31, Paint::default()).contains("USED"));
        assert!(!table(&rows).text(20, Paint::default()).contains("TAGS"));
        let columns = [Column::cut("A", 2, 0), Column::tail("REPOSITORY", 10, 1)];
        let rows =
            vec![(vec![(None, "a".to_owned()), (None, "github.com/acme/shop".to_owned())], String::new())];
        let narrow = Table { rows, ..Table::new(&columns, None) };
        assert_eq!(narrow.text(14, Paint::default()), "A  REPOSITORY\na  …/acme/shop\n");
    }

    #[test]
    fn a_column_without_anything_in_it_is_left_out() {
        let text = table(&[["a", "", "t", "", ""]]).text(80, Paint::default());
        assert_eq!(text, "ID  TITLE\na   t\n");
        assert_eq!(table(&[]).text(80, Paint::default()), "");
    }

    #[test]
    fn text_is_cut_after_a_word_and_a_long_word_anywhere() {
        for (text, columns, expected) in [
            ("one two three", 13, "one two three"),
            ("one two three", 12, "one two…"),
            ("one two three", 8, "one two…"),
            ("github.com/owner/name", 10, "github.co…"),
            ("a verylongwordindeed", 10, "a verylon…"),
            ("日本語です", 6, "日本…"),
            ("x", 0, "…"),
        ] {
            assert_eq!(shortened(text, columns), expected, "{columns}");
        }
    }
}
