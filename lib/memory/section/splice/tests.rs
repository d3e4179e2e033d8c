//! The position of a section, and what stays around it.

use super::*;

const SECTION: &str =
    "<!-- agent-memory:start -->\n## Memory\n\ntext\n```\ncode\n```\n<!-- agent-memory:end -->";

/// `S` is a start, `E` an end, `H` our heading, each a marker if it is alone on its line.
fn file(text: &str) -> String {
    let line = |line: &str| match line.trim_start_matches('\u{feff}').trim() {
        "S" => line.replace('S', START),
        "E" => line.replace('E', END),
        "H" => line.replace('H', HEADING),
        _ => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The lines that the section begins and ends in, or the fault.
fn found(text: &str) -> std::result::Result<Option<(usize, usize)>, String> {
    let text = file(text);
    let number = |at: usize| text[..at].matches('\n').count() + 1;
    let range = find(text.as_bytes()).map_err(|error| error.line())?;
    Ok(range.map(|range| {
        assert!(text[range.clone()].starts_with(START) && text[range.clone()].ends_with(END));
        (number(range.start), number(range.end))
    }))
}

#[test]
fn a_section_is_found_by_lines_of_their_own() {
    for (text, lines) in [
        ("S\nE", (1, 2)),
        ("a\nS\nx\nE\nb", (2, 4)),
        ("   S  \r\nx\r\n E\r\n", (1, 3)),
        ("\u{feff}S\nE\n", (1, 2)),
        ("see S\nS\nE\nE of it", (2, 3)),
        ("S\n```\nE\n", (1, 3)),
        ("    S\n\tE\nS\n    E\nE", (3, 5)),
    ] {
        assert_eq!(found(text), Ok(Some(lines)), "{text}");
    }
    for text in ["", "a", "see S", "    S\n    E", "\tS\n\tE", "S.\nE", "\u{feff}a"] {
        let text = text.replace("S.", "-S-");
        assert!(matches!(found(&text), Ok(None) | Err(_)), "{text}");
        assert_eq!(
            found(&text).is_err(),
            text.ends_with("\nE") && !text.contains("\tE") && !text.contains("    E")
        );
    }
}

#[test]
fn markers_in_a_fence_are_text() {
    for text in [
        "```\nS\nE\n```\n",
        "~~~md\nS\n```\nE\n~~~",
        "````\n```\nS\n```\n````\nE is no marker",
        "```\nS\n```\nand\n```\nE\n```",
        "   ```\nE\n   ```",
        "```\nS\nH\n```\n```\nE\n```",
    ] {
        assert_eq!(found(text), Ok(None), "{text}");
    }
    assert_eq!(found("```\nS\nE\n```\nS\nE"), Ok(Some((5, 6))));
    assert_eq!(found("```\nS\n```\nS\nE"), Ok(Some((4, 5))));
    assert_eq!(found("```\nS\nH\n```\nS\nH\nE"), Ok(Some((5, 7))));
    assert_eq!(found("S\n```\nS in prose\n```\nE\n```\nS\nE\n```"), Ok(Some((1, 5))));
}

#[test]
fn an_open_fence_hides_no_section() {
    for (text, lines) in [
        ("```\nS\nE", (2, 3)),
        ("~~~\n```\nS\nH\nE", (3, 5)),
        ("```\nopen\nS\nH\n```rust\nx\n```\nE", (3, 8)),
        ("```\nopen\nS\nH\n```\nx\n```\nE\n", (3, 8)),
        ("```\nopen\nS\nH\n```\nx\n```\n```\ny\n```\nE\n", (3, 11)),
    ] {
        assert_eq!(found(text), Ok(Some(lines)), "{text}");
    }
}

#[test]
fn broken_markers_are_reported_with_their_lines() {
    for (text, fault) in [
        ("a\nS\nb", "the start on line 2 has no end"),
        ("a\nE", "the end on line 2 has no start before it"),
        ("E\nS", "the end on line 1 has no start before it; the start on line 2 has no end"),
        ("S\nS\nE", "the start on line 1 is followed by another on line 2 before it has an end"),
        (
            "S\nS\nE\nE",
            "the start on line 1 is followed by another on line 2 before it has an end; the end on line 4 has no start \
             before it",
        ),
        ("S\nE\nx\nS\nE", "there are 2 sections, on lines 1 to 2 and on lines 4 to 5"),
        ("S\nE\nE", "the end on line 3 has no start before it"),
        ("S\nE\nS", "the start on line 3 has no end"),
        ("S\r\nS\r\n", "the start on line 1 is followed by another on line 2 before it has an end"),
        ("```\nS\n```\nE", "the end on line 4 has no start before it"),
    ] {
        assert_eq!(found(text), Err(fault.to_owned()), "{text}");
    }
    assert!(found(&"E\n".repeat(1000)).unwrap_err().ends_with("; and 995 more"));
}

#[test]
fn a_file_of_nothing_but_fences_or_markers_is_read_once() {
    for line in ["```x\n", "```\n", "~~~\n```\n", "````\n```\n~~~\n"] {
        assert_eq!(find(line.repeat(300_000).as_bytes()).unwrap(), None);
    }
    assert!(find(file("S\n").repeat(100_000).as_bytes()).is_err());
    assert!(find(file("S\nE\n").repeat(100_000).as_bytes()).is_err());
}

fn number(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below
}

#[test]
fn whatever_a_file_holds_it_stays_and_the_section_is_found_again() {
    const PARTS: [&[u8]; 20] = [
        b"\n",
        b"\n",
        b"\r\n",
        b"\r\n",
        b"\r",
        b"text",
        b"```",
        b"~~~",
        b"```sh\n",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\0",
        b" ",
        b"    ",
        b"\t",
        b"\xc3\xa9",
        b"# Rules\n",
        START.as_bytes(),
        END.as_bytes(),
        b"<!-- ",
    ];
    let mut state = 1;
    let mut refused = 0;
    for _ in 0..20_000 {
        let length = number(&mut state, 16);
        let old: Vec<u8> =
            (0..length).flat_map(|_| PARTS[number(&mut state, PARTS.len())].to_vec()).collect();
        let Ok(at) = find(&old) else {
            refused += 1;
            continue;
        };
        let new = spliced(&old, at.as_ref(), SECTION);
        let told = || format!("{:?} → {:?}", String::from_utf8_lossy(&old), String::from_utf8_lossy(&new));
        let place = find(&new)
            .unwrap_or_else(|why| panic!("{why}: {}", told()))
            .unwrap_or_else(|| panic!("{}", told()));
        let (before, after) = (&new[..place.start], &new[place.end..]);
        match &at {
            // All that was there, and blank lines between.
            None => {
                assert!(before.starts_with(&old) && before[old.len()..].trim_ascii().is_empty(), "{}", told())
            }
            Some(at) => assert!(before == &old[..at.start] && after == &old[at.end..], "{}", told()),
        }
        assert_eq!(spliced(&new, Some(&place), SECTION), new, "{}", told());
        let shorter = spliced(&new, Some(&place), "<!-- agent-memory:start -->\n<!-- agent-memory:end -->");
        let again = find(&shorter);
        // If the file has an open fence, only our heading shows that the markers are real.
        if let Ok(Some(again)) = again {
            assert_eq!(spliced(&shorter, Some(&again), SECTION), new, "{}", told());
        }
    }
    assert!((100..10_000).contains(&refused), "{refused}");
}

#[test]
fn the_section_has_the_line_ends_of_its_file() {
    for (old, newline) in [
        ("a\r\nb\r\n", "\r\n"),
        ("a\r\nb", "\r\n"),
        ("a\r\nb\nc\n", "\n"),
        ("a\nb", "\n"),
        ("a", "\n"),
        ("", "\n"),
        ("a\r\nb\nc\r\n", "\r\n"),
    ] {
        let new = spliced(old.as_bytes(), None, SECTION);
        let new = String::from_utf8(new).unwrap();
        assert!(new.starts_with(old) && new.ends_with(&format!("{END}{newline}")), "{old:?}: {new:?}");
        assert!(new.contains(&SECTION.replace('\n', newline)), "{old:?}: {new:?}");
    }
}

#[test]
fn an_empty_line_stands_before_a_new_section() {
    for (old, between) in [
        ("a", "\n\n"),
        ("a\n", "\n"),
        ("a\n\n", ""),
        ("", ""),
        ("\u{feff}", ""),
        ("a\r\n", "\r\n"),
        ("a\r\n\r\n", ""),
        ("\n", "\n"),
    ] {
        let new = spliced(old.as_bytes(), None, "X");
        assert!(new.starts_with(format!("{old}{between}X").as_bytes()), "{old:?}: {new:?}");
    }
}
