//! Skills: where they are looked for, and what of them goes into the prompt.

use crate::support::{Sandbox, said};

fn skill_of(sandbox: &Sandbox, args: &[&str]) -> Result<String, (Option<i32>, String)> {
    let (code, out, err) = said(sandbox.run("a").args(args));
    match code {
        Some(0) => {
            assert!(err.lines().all(|line| line.contains("not valid UTF-8")), "{err}");
            let out = out.strip_suffix("Execute the task described in your instructions.").unwrap();
            Ok(out.trim_start_matches("## Skill\n\n").to_owned())
        }
        code => Err((code, err)),
    }
}

#[test]
fn an_agents_skill_is_looked_for_in_the_configuration_alone() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "skill = 'skills/x/SKILL.md'");
    sandbox.file("skills/x/SKILL.md", "a stranger's");
    let place = sandbox.config().join("skills/x/SKILL.md");
    let missing =
        format!("axe-run: skill not found: skills/x/SKILL.md; looked for \"{}\"\n", place.display());
    assert_eq!(skill_of(&sandbox, &[]), Err((Some(2), missing)));
    sandbox.write(&sandbox.config().join("skills/x/SKILL.md"), "mine");
    assert_eq!(skill_of(&sandbox, &[]).unwrap(), "mine\n\n");
    let absolute = sandbox.home().join("s.md");
    sandbox.write(&absolute, "absolute");
    sandbox.agent_file("a", &format!("name = 'a'\nmodel = 'a/m'\nskill = '{}'", absolute.display()));
    assert_eq!(skill_of(&sandbox, &[]).unwrap(), "absolute\n\n");
}

#[test]
fn a_skill_on_the_command_line_is_looked_for_in_the_configuration_then_here() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "skill = 'skills/gone/SKILL.md'");
    sandbox.file("s.md", "here");
    assert_eq!(skill_of(&sandbox, &["--skill", "s.md"]).unwrap(), "here\n\n");
    assert_eq!(skill_of(&sandbox, &["--skill=./s.md"]).unwrap(), "here\n\n");
    sandbox.write(&sandbox.config().join("s.md"), "configured");
    assert_eq!(skill_of(&sandbox, &["--skill", "s.md"]).unwrap(), "configured\n\n");
    let absolute = sandbox.work().join("s.md");
    assert_eq!(skill_of(&sandbox, &["--skill", absolute.to_str().unwrap()]).unwrap(), "here\n\n");
    let places = [sandbox.config(), sandbox.work()].map(|dir| dir.join("gone.md").display().to_string());
    let line = format!("skill not found: gone.md; looked for \"{}\", \"{}\"", places[0], places[1]);
    assert_eq!(skill_of(&sandbox, &["--skill", "gone.md"]), Err((Some(2), format!("axe-run: {line}\n"))));
}

#[test]
fn front_matter_is_left_out_and_the_text_stays() {
    let cases = [
        ("---\nname: x\ndescription: y\n---\n\n# Do\n\n---\nit\n", "# Do\n\n---\nit\n\n\n"),
        ("---\r\nname: x\r\n---\r\n# Do\r\n", "# Do\r\n\n\n"),
        ("\u{feff}---\nname: x\n---\n# Do", "# Do\n\n"),
        ("# Do\n---\nname: x\n---\n", "# Do\n---\nname: x\n---\n\n\n"),
        ("---\nnever closed\n", "---\nnever closed\n\n\n"),
        ("---\nname: x\n---\n", ""),
        ("", ""),
    ];
    for (text, expected) in cases {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "cat", "skill = 'x.md'");
        sandbox.write(&sandbox.config().join("x.md"), text);
        assert_eq!(skill_of(&sandbox, &[]).unwrap(), expected, "{text:?}");
    }
}

#[test]
fn a_skill_that_cannot_be_read_says_why() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "skill = 'skills'");
    std::fs::create_dir(sandbox.config().join("skills")).unwrap();
    let (code, err) = skill_of(&sandbox, &[]).unwrap_err();
    assert_eq!(code, Some(2));
    assert!(err.contains("\"skills\"") && err.contains("is not a regular file"), "{err}");
    sandbox.write(&sandbox.config().join("big.md"), "x".repeat((1 << 20) + 1));
    let (code, err) = skill_of(&sandbox, &["--skill", "big.md"]).unwrap_err();
    assert_eq!(code, Some(2));
    assert!(err.contains("big.md") && err.contains("is larger than 1 MiB"), "{err}");
}

#[test]
fn a_skill_that_is_not_text_is_mended() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "skill = 'x.md'");
    sandbox.write(&sandbox.config().join("x.md"), b"caf\xe9");
    assert_eq!(skill_of(&sandbox, &[]).unwrap(), "caf\u{fffd}\n\n");
}
