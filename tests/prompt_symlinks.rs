//! Symlinks in the way of context files: inside they are followed, out of the working directory never.

use crate::prompt_files::find;
use crate::support::{Sandbox, said, symlink};

/// A file and a folder outside, and links to them and to what is inside.
fn linked() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.home().join("secret/key.txt"), "secret");
    sandbox.file("real/a.txt", "a");
    let work = sandbox.work();
    symlink(sandbox.home().join("secret/key.txt"), work.join("out.txt"));
    symlink(sandbox.home().join("secret"), work.join("outdir"));
    symlink("../home/secret/key.txt", work.join("relative.txt"));
    symlink("outdir/key.txt", work.join("twice.txt"));
    sandbox
}

#[test]
fn a_link_that_leads_out_is_left_out_however_it_is_met() {
    let sandbox = linked();
    let out_of = |path: &str| format!("\"{path}\" is left out: it is outside the working directory");
    let absolute = sandbox.home().join("secret/key.txt");
    let absolute = absolute.to_str().unwrap();
    let above = sandbox.home().join("secret/*.txt");
    let above = above.to_str().unwrap();
    let cases = [
        ("out.txt", Some("out.txt")),
        ("relative.txt", Some("relative.txt")),
        ("twice.txt", Some("twice.txt")),
        ("outdir/key.txt", Some("outdir/key.txt")),
        ("outdir/*.txt", Some("outdir")),
        ("outdir/**", Some("outdir")),
        ("../home/secret/key.txt", Some("../home/secret/key.txt")),
        ("../home/**/*.txt", None),
        ("real/../../home/secret/key.txt", None),
        (absolute, None),
        (above, None),
        ("*.txt", Some("out.txt")),
        ("*/key.txt", None),
        ("**/*.txt", Some("out.txt")),
        ("**/key.txt", None),
    ];
    for (pattern, left_out) in cases {
        let (names, err) = find(&sandbox, &[pattern]);
        let expected: &[&str] = if pattern == "**/*.txt" { &["real/a.txt"] } else { &[] };
        assert_eq!(names, expected, "{pattern}: {err}");
        if let Some(path) = left_out {
            assert!(err.contains(&out_of(path)), "{pattern}: {err}");
        }
        let (_, out, err) = said(sandbox.run("a").arg("-phi"));
        assert!(!out.contains("secret\n") && !err.contains("secret\n"), "{pattern}: {out}");
    }
}

#[test]
fn a_link_that_stays_inside_is_followed_under_its_own_name() {
    let sandbox = Sandbox::new();
    sandbox.file("real/a.txt", "the text");
    symlink("real/a.txt", sandbox.work().join("link.txt"));
    symlink("real", sandbox.work().join("folder"));
    symlink(sandbox.work().join("real/a.txt"), sandbox.work().join("real/absolute.txt"));
    let cases: [(&str, &[&str]); 5] = [
        ("link.txt", &["link.txt"]),
        ("*.txt", &["link.txt"]),
        ("folder/a.txt", &["folder/a.txt"]),
        ("folder/a*.txt", &["folder/a.txt", "folder/absolute.txt"]),
        ("real/*", &["real/a.txt", "real/absolute.txt"]),
    ];
    for (pattern, expected) in cases {
        assert_eq!(
            find(&sandbox, &[pattern]),
            (expected.iter().map(|s| (*s).to_owned()).collect(), String::new()),
            "{pattern}"
        );
    }
    let (names, err) = find(&sandbox, &["**/*.txt"]);
    assert_eq!(err, "");
    for name in ["link.txt", "real/a.txt", "real/absolute.txt"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    find(&sandbox, &["link.txt"]);
    let (_, out, _) = said(sandbox.run("a").arg("-phi"));
    assert_eq!(out, "## Context Files\n\n### link.txt\n```txt\nthe text\n```\n\nhi");
}

#[test]
fn links_that_lead_nowhere_or_in_circles_end() {
    let sandbox = Sandbox::new();
    sandbox.file("sub/a.txt", "a");
    symlink("gone", sandbox.work().join("dangling.txt"));
    symlink("circle.txt", sandbox.work().join("circle.txt"));
    symlink("two.txt", sandbox.work().join("one.txt"));
    symlink("one.txt", sandbox.work().join("two.txt"));
    symlink("..", sandbox.work().join("sub/up"));
    symlink(".", sandbox.work().join("sub/self"));
    for pattern in ["dangling.txt", "circle.txt", "one.txt"] {
        let warning =
            format!("Warning: files: \"{pattern}\" is left out: the target of this symlink does not exist\n");
        assert_eq!(find(&sandbox, &[pattern]), (vec![], warning));
    }
    for pattern in ["**/*.txt", "**"] {
        let (names, err) = find(&sandbox, &[pattern]);
        assert_eq!(names, ["sub/a.txt"], "{pattern}: {err}");
        assert_eq!(err.matches("the target of this symlink does not exist").count(), 4, "{pattern}: {err}");
    }
    assert_eq!(find(&sandbox, &["sub/up/sub/self/a.txt"]).0, ["sub/up/sub/self/a.txt"]);
}
