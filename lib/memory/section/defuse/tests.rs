//! What a note's text may do to what stands around it: nothing.

use super::*;
use crate::harness::recalled::{END, START, without_sections};

fn shown(text: &str) -> String {
    body(text.as_bytes(), 4)
}

#[test]
fn ordinary_text_stays_byte_for_byte() {
    for text in [
        "Plain.\n",
        "One.\n\nTwo with `code`, <b>tags</b> and a [link](x).\n",
        "- a\n- b\n  ```sh\n  ls\n  ```\n- c\n",
        "1. a\n\n   ~~~\n   x\n   ~~~\n",
        "- ```\n  x\n  ```\nafter\n",
        "```rust\nlet x = \"# no heading\";\n```\n",
        "````\n```\n````\n",
        "~~~ sh\n```\n~~~\n",
        "    ```\n    indented code\n",
        "#### Deep enough\n\n##### Deeper\n",
        "A rule:\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "Said <!-- in passing --> here.\n",
        "```html\n<!-- two\nlines -->\n```\n",
        "```a`b is no fence\n",
        "#hashtag and #!shebang\n",
        "a -- b --> c\n",
        "<details>\n\nmore\n\n</details>\n",
        "<pre>x</pre>\n",
        "\u{202e}bidi, 🦀 and \u{e9}\n",
    ] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn lines_are_whole_and_without_empty_ones_around() {
    assert_eq!(shown(""), "");
    assert_eq!(shown(" \n\n\t"), "");
    assert_eq!(shown("\n\na\n\nb\n\n\n"), "a\n\nb\n");
    assert_eq!(shown("a\r\nb\rc"), "a\nb\nc\n");
    assert_eq!(shown("\u{feff}a\u{0}\u{1b}[0m\tb"), "a\u{fffd}\u{fffd}[0m\tb\n");
    assert_eq!(body(b"a\xffb", 4), "a\u{fffd}b\n");
}

#[test]
fn an_open_fence_is_closed_by_one_of_its_kind() {
    for (open, close) in [
        ("```", "```"),
        ("~~~~~", "~~~~~"),
        ("````md\n```", "````"),
        ("   ```sh", "```"),
        ("~~~ x\n```", "~~~"),
        ("```\n``` no closer", "```"),
        ("```\n~~~", "```"),
        ("```\nx\n```\n```", "```"),
    ] {
        assert_eq!(shown(&format!("a\n{open}\ncode")), format!("a\n{open}\ncode\n{close}\n"), "{open}");
    }
}

#[test]
fn where_it_cannot_be_told_what_is_open_the_text_is_quoted() {
    for text in [
        "- a\n  ```\n  code",
        "- a\n  ```\n  code\nplain\n  ```",
        "> ```\n> code",
        "- ```\ncode",
        "1. x\n\n\t```\n\tcode\n",
        "<div>\n```\n</div>",
        "<script>\nx",
        "<pre class=a>\n# x",
        "<?php\n",
        "<!DOCTYPE\nhtml>",
        "<![CDATA[\nx",
    ] {
        let quoted = |line: &str| if line.is_empty() { ">\n".to_owned() } else { format!("> {line}\n") };
        let lines: String = text.trim_end().split('\n').map(quoted).collect();
        assert_eq!(shown(text), lines, "{text:?}");
    }
    assert_eq!(shown("> ```\n\nx"), "> > ```\n>\n> x\n");
}

#[test]
fn a_comment_that_stays_open_is_text() {
    assert_eq!(shown("a <!-- b\nc"), "a &lt;!-- b\nc\n");
    assert_eq!(shown("a <!-- b --> <!-- c\n"), "a <!-- b --> &lt;!-- c\n");
    assert_eq!(shown("<!--\nhidden\n-->"), "&lt;!--\nhidden\n-->\n");
    assert_eq!(shown("```\n<!-- x\n```"), "```\n&lt;!-- x\n```\n");
    assert_eq!(shown("- ```\n<!-- x"), "> - ```\n> &lt;!-- x\n");
}

#[test]
fn markers_in_a_note_are_no_markers() {
    let wild = "<!--\tAgent-Memory:END-->";
    for marker in [START, END, wild, "<!--agent-memory:end -->"] {
        let text = marker.replace('<', "&lt;");
        for (before, after) in
            [("", ""), ("a\n", "\nb"), ("```\n", "\n```"), ("> ", ""), ("12: ", ""), ("+", "")]
        {
            assert_eq!(shown(&format!("{before}{marker}{after}")), format!("{before}{text}{after}\n"));
        }
        assert!(shown(&format!("- ```\n{marker}")).contains(&text), "a quoted one");
        assert!(!in_heading(marker).contains("<!--") && !in_text(marker).contains("<!--"));
        assert!(!in_link(marker).replace("\\<", "").contains("<!--"));
    }
    // As it is known in a transcript, however it is shown there.
    let section =
        format!("{START}\n{}{END}\nrest", shown(&format!("{END}\n> {END}\n7→{END}\n{START}\n+{END}")));
    assert_eq!(without_sections(&section).lines().last(), Some("rest"));
    assert_eq!(without_sections(&section).lines().count(), 2, "{section}");
}

#[test]
fn headings_go_below_those_of_the_section() {
    assert_eq!(shown("# A\n## B\ntext\n#### C ##"), "#### A\n##### B\ntext\n###### C ##\n");
    assert_eq!(shown("### A\n#"), "###### A\n####\n");
    assert_eq!(shown("  ## A\n\n```\n# code\n```\n    # code\n"), "#### A\n\n```\n# code\n```\n    # code\n");
    assert_eq!(shown("Title\n=====\n\nPart\n---\ntext"), "#### Title\n\n##### Part\ntext\n");
    assert_eq!(shown("one\ntwo\n===\n\nA\n=\n"), "one\ntwo\n\\===\n\n#### A\n");
    assert_eq!(shown("> # quoted\n- # in a list"), "> # quoted\n- # in a list\n");
    assert_eq!(shown("# A\n\nlist:\n\n- x\n---\n\n---\n"), "#### A\n\nlist:\n\n- x\n---\n\n---\n");
}

#[test]
fn a_title_cannot_leave_its_link() {
    assert_eq!(in_link(r"a](b) [c] `d` \ <e>"), r"a\](b) \[c\] \`d\` \\ \<e>");
    assert_eq!(in_heading("a <!-- b # `c`"), "a &lt;!-- b # `c`");
}

/// A reader of fences and comments, as simple as can be.
fn is_open_after(text: &str) -> bool {
    let mut open: Option<Fence> = None;
    for line in text.lines().filter(|line| indentation(line) <= 3) {
        let found = fence(line.as_bytes());
        open = match (open, found) {
            (None, found) => found,
            (Some(open), Some(found)) if found.closes(&open) => None,
            (open, _) => open,
        };
    }
    open.is_some() || text.rfind(OPEN) > text.rfind(CLOSE)
}

#[test]
fn whatever_the_text_nothing_is_open_after_it() {
    const PARTS: [&str; 26] = [
        "```", "~~~", "````", "~~~~", "```sh", "\n", "\n", "\n", "\n\n", " ", "   ", "    ", "\t", "- ",
        "1. ", "> ", "<!--", "-->", START, END, "# ", "===", "---", "<pre>", "<div>", "word",
    ];
    let mut state = 7_u64;
    let mut number = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..20_000 {
        let text: String = (0..number(14)).map(|_| PARTS[number(PARTS.len())]).collect();
        let shown = shown(&text);
        // What is in a list or a quote ends with it: at the margin nothing may be open.
        let top: String = shown.lines().map(|line| format!("{line}\n")).collect();
        let nested = |line: &str| contained(line).1 != Prefix::Blank;
        if !shown.lines().any(nested) {
            assert!(!is_open_after(&top), "{text:?} → {shown:?}");
        }
        assert!(shown.is_empty() || shown.ends_with('\n'), "{text:?}");
        let section = format!("{START}\n{shown}{END}\nrest\n");
        assert_eq!(without_sections(&section).lines().nth(1), Some("rest"), "{text:?} → {shown:?}");
        let lines: Vec<&str> = shown.lines().collect();
        if let Some((places, open)) = places(&lines) {
            let headings = headings(&lines, &places, &texts(&lines, &places));
            let highest = headings.iter().flatten().map(|heading| heading.level).min();
            assert!(open.is_none() && highest.is_none_or(|level| level >= 4), "{text:?} → {shown:?}");
        }
    }
}
