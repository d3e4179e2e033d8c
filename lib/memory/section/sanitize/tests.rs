//! A note's text changes nothing around it, and nothing in it is live. Ordinary text stays as it is.

use super::*;
use crate::fuzz::section;
use crate::harness::recalled::{END, START, without_sections};

fn shown(text: &str) -> String {
    body(text.as_bytes(), 4)
}

#[test]
fn ordinary_text_stays_byte_for_byte() {
    for text in [
        "Plain.\n",
        "One.\n\nTwo with `code`, `Vec<T>`, `@name/package` and a [link](x).\n",
        "See <https://a.b/c?d=e> or a@b.c; 1 < 2, a <- b.\n",
        "- a\n- b\n  ```sh\n  # install\n  ls <file\n  ```\n- c\n",
        "1. a\n\n   ~~~\n   <x>\n   ~~~\n",
        "- a\n  - b\n    ```sh\n    ls\n\n    ls\n    ```\n",
        "```rust\nlet x = \"# no heading\"; // @x <b> ![y](z)\n```\n",
        "````\n```\n````\n",
        "~~~ sh\n```\n~~~\n",
        "```\n\t```\n    ```\n   ```\n",
        "#### Deep enough\n\n##### Deeper\n",
        "A rule:\n\n---\n\n| a | b |\n|---|---|\n| 1 | `2` |\n",
        "> quoted\n> - list\n\n* [ ] task\n",
        "```a`b is no fence\n",
        "#hashtag and #!shebang\n",
        "a -- b --> c\n",
        "🦀, \u{e9}, 👩\u{200d}💻 and a long\nparagraph `of` two lines\n",
    ] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn lines_are_whole_and_the_ends_are_trimmed() {
    assert_eq!(shown(""), "");
    assert_eq!(shown(" \n\n\t"), "");
    assert_eq!(shown("\n\na\n\nb\n\n\n"), "a\n\nb\n");
    assert_eq!(shown("a\r\nb\rc\u{2028}d"), "a\nb\nc\nd\n");
    assert_eq!(shown("\u{feff}a\u{0}\u{1b}[0m\tb"), "a\u{fffd}\u{fffd}[0m\tb\n");
    assert_eq!(body(b"a\xffb", 4), "a\u{fffd}b\n");
}

#[test]
fn invisible_characters_are_removed() {
    assert_eq!(shown("\u{202e}a\u{200b}b\u{e0041} \u{2066}c"), "ab c\n");
    assert_eq!(line("\u{61c}a\u{202e}b"), "ab");
    assert_eq!(shown("<\u{200b}img>, !\u{2060}[a](b) and @\u{200e}x"), "&lt;img>, !\\[a](b) and \\@x\n");
}

#[test]
fn html_images_and_imports_are_escaped() {
    for (text, expected) in [
        ("a <b>c</b>", "a &lt;b>c&lt;/b>"),
        ("<details>\n\nmore\n\n</details>", "&lt;details>\n\nmore\n\n&lt;/details>"),
        ("<script>\nx", "&lt;script>\nx"),
        ("<?php\n<!DOCTYPE x>\n<![CDATA[", "&lt;?php\n&lt;!DOCTYPE x>\n&lt;!\\[CDATA["),
        ("![a](b) and [![a](b)](c)", "!\\[a](b) and [!\\[a](b)](c)"),
        ("\\![a](b)", "\\!\\[a](b)"),
        ("@~/.ssh/id_rsa and (@x) @ y", "\\@~/.ssh/id_rsa and (\\@x) @ y"),
        ("- @a\n  \\@b", "- \\@a\n  \\@b"),
        // Code spans are code only where that is certain.
        ("`<b>` <b>", "`<b>` &lt;b>"),
        ("a ` b\n`<b>` c\n\n`<b>`", "a ` b\n`&lt;b>` c\n\n`<b>`"),
        ("\\`<b>`", "\\`&lt;b>`"),
        ("``<b>` <c>`` <d>", "``<b>` <c>`` &lt;d>"),
        ("| ` | <b> ` |", "| ` | &lt;b> ` |"),
        ("<https://a`b> <i> `", "&lt;https://a`b> <i> `"),
        ("    <b>\n", "&lt;b>"),
        (
            "1. a\n   - b\n     ```\n     <b> @x\n     ```",
            "1. a\n   - b\n     ```\n     &lt;b> \\@x\n     ```",
        ),
    ] {
        assert_eq!(shown(text).trim(), expected, "{text:?}");
    }
    assert_eq!(line("`<b>` <i> @x ![y](z)"), "`<b>` &lt;i> \\@x !\\[y]\\(z)");
    // A line of ours holds no link, and no text defines one.
    assert_eq!(
        line("[a](b), [c][d], <https://x.example>, [[id__a1B2c3]]"),
        "[a]\\(b), [c]\\[d], &lt;https://x.example>, [[id__a1B2c3]]"
    );
    assert_eq!(
        shown("[a](b), <https://x.example>\n\n[a]: http://x.example\n"),
        "[a](b), <https://x.example>\n\n[a]\\: http://x.example\n"
    );
}

#[test]
fn an_open_fence_is_closed_by_one_of_its_kind() {
    for (open, close) in [
        ("```", "```"),
        ("~~~~~", "~~~~~"),
        ("````md\n```", "````"),
        ("~~~ x\n```", "~~~"),
        ("```\n``` no closer", "```"),
        ("```\n~~~", "```"),
        ("```\nx\n```\n```", "```"),
        ("```\n    ```\n\t```", "```"),
    ] {
        assert_eq!(shown(&format!("a\n{open}\ncode")), format!("a\n{open}\ncode\n{close}\n"), "{open}");
    }
}

#[test]
fn a_text_with_an_uncertain_fence_is_quoted() {
    for text in [
        "- a\n  ```\n  code",
        "- a\n  ```\n  code\nplain\n  ```",
        "- a\n  ```\n  code\n   ```",
        "> ```\n> code",
        "- ```\ncode",
        "1. x\n\n\t```\n\tcode",
        "   ```sh\ncode",
        "    ```\n    code",
    ] {
        let quoted = |line: &str| if line.is_empty() { ">\n".to_owned() } else { format!("> {line}\n") };
        let lines: String = text.split('\n').map(quoted).collect();
        assert_eq!(shown(text), lines, "{text:?}");
    }
    assert_eq!(shown("> ```\n\n`<x>`"), "> > ```\n>\n> `&lt;x>`\n");
}

#[test]
fn a_comment_is_text() {
    assert_eq!(shown("Said <!-- in passing --> here."), "Said &lt;!-- in passing --> here.\n");
    assert_eq!(shown("<!--\nhidden\n-->"), "&lt;!--\nhidden\n-->\n");
    assert_eq!(shown("```\n<!-- x\n```\n`<!-- y`"), "```\n&lt;!-- x\n```\n`&lt;!-- y`\n");
}

#[test]
fn markers_in_a_note_are_no_markers() {
    let wild = "<!--\tAgent-Memory:END-->";
    for marker in [START, END, wild, "<!--agent-memory:end -->"] {
        let text = marker.replace('<', "&lt;");
        for (before, after) in
            [("", ""), ("a\n", "\nb"), ("```\n", "\n```"), ("> ", ""), ("12: ", ""), ("+", ""), ("`", "`")]
        {
            assert_eq!(shown(&format!("{before}{marker}{after}")), format!("{before}{text}{after}\n"));
        }
        assert!(shown(&format!("- ```\n{marker}")).contains(&text), "a quoted one");
        assert!(!line(marker).contains("<!--"));
    }
    // As it is recognised in a transcript, however it is shown there.
    let section =
        format!("{START}\n{}{END}\nrest", shown(&format!("{END}\n> {END}\n7→{END}\n{START}\n+{END}")));
    assert_eq!(without_sections(&section).lines().last(), Some("rest"));
    assert_eq!(without_sections(&section).lines().count(), 2, "{section}");
}

#[test]
fn headings_go_below_those_of_the_section() {
    assert_eq!(shown("# A\n## B\ntext\n#### C ##"), "#### A\n##### B\ntext\n###### C ##\n");
    assert_eq!(shown("### A\n#"), "###### A\n####\n");
    assert_eq!(
        shown("- x\n  ## A\n\n```\n# code\n```\n    # code"),
        "- x\n  #### A\n\n```\n# code\n```\n    # code\n"
    );
    assert_eq!(shown("> # quoted\n- # in a list"), "> # quoted\n- # in a list\n");
    // An underline under text would make a heading.
    assert_eq!(shown("Title\n=====\n\nPart\n---\ntext"), "Title\n\n=====\n\nPart\n\n---\ntext\n");
    assert_eq!(shown("# A\n\n---\n\n```\nx\n```\n---\n"), "#### A\n\n---\n\n```\nx\n```\n---\n");
}

#[test]
fn a_line_holds_no_comment_and_keeps_its_code() {
    assert_eq!(line("a <!-- b # `c`"), "a &lt;!-- b # `c`");
}

fn assert_contained(shown: &str) {
    assert!(shown.is_empty() || shown.ends_with('\n'), "{shown:?}");
    section::assert_contained(&format!("{START}\n## Memory\n\n{shown}{END}"));
    let section = format!("{START}\n{shown}{END}\nrest\n");
    assert_eq!(without_sections(&section).lines().nth(1), Some("rest"), "{shown:?}");
}

#[test]
fn whatever_the_text_it_stays_contained() {
    const PARTS: [&str; 44] = [
        "```", "~~~", "````", "~~~~", "```sh", "\n", "\n", "\n", "\n", "\n\n", " ", "  ", "   ", "    ",
        "\t", "- ", "1. ", "10. ", "> ", "<!--", "-->", START, END, "# ", "===", "---", "<pre>", "<div>",
        "word", "`", "``", "`", "\\", "|", "<b>", "![a](b)", "!", "[a](b)", "@x", "<https://a>", "</b>", "<",
        "\u{200b}", "&",
    ];
    let mut state = 7_u64;
    let mut number = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };

    for _ in 0..20_000 {
        let text: String = (0..number(18)).map(|_| PARTS[number(PARTS.len())]).collect();
        assert_contained(&shown(&text));
        assert_contained(&shown(&shown(&text)));
    }
}
