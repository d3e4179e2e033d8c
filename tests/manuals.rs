//! What the manuals and CONTRIBUTING say about keys, formats and files, compared with the programs.

use crate::support::root;
use crate::support::store::Store;
use crate::support::{Said, Sandbox, said};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// A section of a Markdown file, from its heading up to the next of the same or a higher level.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let level = heading.split(' ').next().unwrap();
    let ends = (2..=level.len()).filter_map(|n| rest.find(&format!("\n{} ", "#".repeat(n))));
    &rest[..ends.min().unwrap_or(rest.len())]
}

/// The terms of a list: "- `term`: text".
fn terms(section: &str) -> Vec<&str> {
    let items = section.lines().filter_map(|line| line.strip_prefix("- `"));
    items.map(|item| item.split_once('`').unwrap().0).collect()
}

/// The text of an item, on one line.
fn item(section: &str, term: &str) -> String {
    let text = section.split_once(&format!("- `{term}`: ")).unwrap().1;
    text.split("\n- ").next().unwrap().split("\n\n").next().unwrap().replace('\n', " ")
}

/// The first block of lines indented by four spaces that begins with `start`.
fn sample(section: &str, start: &str) -> String {
    let lines = section.lines().skip_while(|line| *line != format!("    {start}"));
    let block: Vec<&str> = lines.take_while(|line| line.is_empty() || line.starts_with("    ")).collect();
    block.iter().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect()
}

/// The range in the text of a setting: "1 to 604800".
fn range(text: &str) -> Option<(&str, &str)> {
    let (before, after) = text.split_once(" to ")?;
    let least = before.rsplit(' ').next()?;
    let most = after.split(|c: char| !c.is_ascii_digit()).next()?;
    (least.parse::<u64>().is_ok() && !most.is_empty()).then_some((least, most))
}

#[test]
fn the_manuals_defaults_are_those_in_force() {
    let sandbox = Sandbox::new();
    let (code, out, err) = said(sandbox.command("memory-config").args(["show", "--json"]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let shown: Value = serde_json::from_str(&out).unwrap();
    let page = read("man/memory-configuration.7.md");
    let section = section(&page, "## CONFIG.JSON");
    let keys = terms(section);
    assert_eq!(keys.len(), shown.as_object().unwrap().len());
    for key in keys {
        let value = match &shown[key]["value"] {
            Value::String(text) => text.replace(sandbox.home().to_str().unwrap(), "~"),
            other => other.to_string(),
        };
        let text = item(section, key);
        let told = text.split_once("efault: ").or_else(|| text.split_once(", default ")).unwrap().1;
        assert!(told.starts_with(&value), "{key}: {value}: {told}");
        let next = told[value.len()..].chars().next();
        assert!(next.is_none_or(|c| ".:, ".contains(c)), "{key}: {value}: {told}");
    }
}

#[test]
fn what_a_setting_may_be_is_what_is_refused_beyond() {
    let page = read("man/memory-configuration.7.md");
    let section = section(&page, "## CONFIG.JSON");
    let mut count = 0;
    for setting in terms(section) {
        let text = item(section, setting);
        let Some((least, most)) = range(&text) else { continue };
        let (head, key) = setting.split_once('.').unwrap();
        let sandbox = Sandbox::new();
        sandbox.file("c.json", format!("{{\"{head}\": {{\"{key}\": -1}}}}"));
        let (code, _, err) = said(sandbox.command("memory-config").args(["show", "--config", "c.json"]));
        assert_eq!(code, Some(2));
        assert!(err.contains(&format!("a whole number from {least} to {most}")), "{err}");
        count += 1;
    }
    assert!(count >= 9, "{count}");
}

#[test]
fn the_manuals_limits_of_an_agent_are_what_is_refused_beyond() {
    let page = read("man/axe-configuration.7.md");
    let section = section(&page, "## AGENT FILE");
    let mut count = 0;
    for setting in terms(section) {
        let text = item(section, setting);
        let Some((table, key)) = setting.split_once('.') else { continue };
        if !text.contains("from 0") || table == "params" {
            continue;
        }
        let most = range(&text).map(|(_, most)| most.parse::<i64>().unwrap() + 1);
        for wrong in [Some(-1), most].into_iter().flatten() {
            let sandbox = Sandbox::new();
            let toml = format!("name = 'a'\nmodel = 'command/cat'\n[{table}]\n{key} = {wrong}\n");
            sandbox.agent_file("a", &toml);
            let output = sandbox.run("a").arg("--dry-run").output().unwrap();
            assert_eq!(output.code(), Some(2), "{setting} = {wrong}: {}", output.err());
            assert!(output.err().contains(setting), "{}", output.err());
            count += 1;
        }
    }
    assert!(count >= 6, "{count}");
}

#[test]
fn every_variable_of_ours_is_in_a_manual() {
    fn sources(dir: &std::path::Path, into: &mut String) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => sources(&path, into),
                false => {
                    let text = fs::read_to_string(&path).unwrap();
                    *into += text.split("#[cfg(test)]\nmod tests").next().unwrap();
                }
            }
        }
    }
    let mut source = String::new();
    sources(&root().join("lib"), &mut source);
    let is_ours = |word: &&str| {
        (word.starts_with("AXE_") || word.starts_with("AGENT_MEMORY_"))
            && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    // The last is only for the tests.
    let read_by_us: BTreeSet<&str> =
        source.split('"').filter(is_ours).filter(|name| *name != "AXE_FIXTURES").collect();
    assert!(read_by_us.len() >= 7, "{read_by_us:?}");
    let pages = ["man/axe-configuration.7.md", "man/memory-configuration.7.md"].map(read);
    let mut told = BTreeSet::new();
    for page in &pages {
        let names = terms(section(page, "## ENVIRONMENT"));
        // AXE_<PROVIDER>_BASE_URL is a pattern.
        told.extend(names.into_iter().filter(is_ours));
    }
    assert_eq!(told, read_by_us);
}

#[test]
fn the_manuals_queue_entry_can_be_queued() {
    let sandbox = Sandbox::new();
    let page = read("man/memory.7.md");
    let entry = sample(section(&page, "## QUEUE ENTRY"), "{");
    let (code, out, err) =
        said(sandbox.command("memory-capture").args(["--entry", "--json"]).write_stdin(entry));
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let methods = terms(section(&page, "## QUEUE ENTRY"));
    let wrong = r#"{"version": 1, "timestamp": "2026-02-13T14:30:05Z", "harness": "amp", "retrieval": {"method": "x"}, "context": {}}"#;
    let (code, _, err) = said(sandbox.command("memory-capture").arg("--entry").write_stdin(wrong));
    assert_eq!(code, Some(1));
    for method in methods {
        assert!(err.contains(method), "{method}: {err}");
    }
}

#[test]
fn the_manuals_note_is_one_and_has_no_key_that_is_not_told() {
    let store = Store::new();
    let page = read("man/memory.7.md");
    let note = sample(section(&page, "## NOTE"), "---");
    store.put("topics/guards-must-be-pure -- topic__xstate id__a1B2c3.md", note);
    let read: Value =
        serde_json::from_str(&store.out("memory-read", &["--json", "--no-count", "a1B2c3"])).unwrap();
    let keys: BTreeSet<&str> = read
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .filter(|key| !["path", "body"].contains(key))
        .collect();
    assert_eq!(keys, terms(section(&page, "## NOTE")).into_iter().collect());
    assert_eq!(
        read["body"].as_str().unwrap().trim_end(),
        "A guard may run several times. See [[id__Zz9yX1]]."
    );
}

#[test]
fn the_manuals_proposal_is_one_and_has_no_key_that_is_not_told() {
    let store = Store::new();
    let page = read("man/memory.7.md");
    store.put("proposals/p__a1B2c3.json", sample(section(&page, "## PROPOSAL"), "{"));
    let read: Value = serde_json::from_str(&store.out("memory-review", &["--json"])).unwrap();
    let keys: BTreeSet<&str> = read
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .filter(|key| !["path", "changed", "diff"].contains(key))
        .collect();
    let told = section(&page, "## PROPOSAL");
    assert_eq!(keys, terms(told).into_iter().collect());
    for key in
        read["entry"].as_object().unwrap().keys().chain(read["evidence"][0].as_object().unwrap().keys())
    {
        assert!(told.contains(key), "{key}");
    }
}

#[test]
fn the_manuals_replies_are_taken() {
    let page = read("man/memory.7.md");
    let sandbox = Sandbox::new();
    sandbox.settings(serde_json::json!({"storage": {"autoCommit": false}}));
    let queue_id = sandbox.heard("s1", "Must guards be pure?");
    let other = sandbox.heard("s2", "Does it rain?");
    let (code, prompt, err) = said(&mut sandbox.consolidate(&["--prompt"]));
    assert_eq!(code, Some(0), "{err}");
    let batch = prompt.lines().next().unwrap().strip_prefix("batch: ").unwrap();
    let reply = sample(section(&page, "### Reply to memory-consolidate"), "{");
    let reply =
        reply.replacen("QUEUE ID", &queue_id, 1).replacen("QUEUE ID", &other, 1).replace("batch__…", batch);
    let (code, out, err) = said(sandbox.consolidate(&["--apply", "-"]).write_stdin(reply));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("2 entries processed"), "{out}{err}");
    assert!(sandbox.note_named("guards-must-be-pure").contains("summary: I/O belongs in actors."));

    let store = Store::new();
    store.noted("aaaaaa", "Guards", "", "Guards are pure; see src/guard.rs.");
    store.noted("bbbbbb", "Actors", "", "Actors talk to port 8081.");
    let prompt = store.tidied(&["--prompt"]);
    let batch = prompt.lines().next().unwrap().strip_prefix("batch: ").unwrap();
    let reply = sample(section(&page, "### Reply to memory-defrag"), "{").replace("batch__…", batch);
    let reply = reply
        .replace("[\"id__…\", \"id__…\"]", "[\"id__aaaaaa\", \"id__bbbbbb\"]")
        .replace("id__…", "id__bbbbbb");
    let (code, out, err) = store.apply(&reply);
    assert_eq!(code, Some(0), "{out}{err}");
    // Each operation is understood: what is not done is dropped for what it would do.
    assert!(!err.contains("operations["), "{err}");
    assert!(out.contains("re-tiered"), "{out}{err}");
}

#[test]
fn the_manuals_agent_and_log_are_what_they_say() {
    let page = read("man/axe-configuration.7.md");
    let sandbox = Sandbox::new();
    sandbox.agent_file("reviewer", &sample(section(&page, "## DESCRIPTION"), "name = \"reviewer\""));
    let page = read("man/axe.7.md");
    let log = sample(section(&page, "## LOG"), "## 2026-02-28T15:04:05Z");
    sandbox.write_log("reviewer", &log);
    let output = sandbox.run("reviewer").arg("--dry-run").output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    assert!(
        output.out().contains("--- Memory ---\n## 2026-02-28T15:04:05Z\n**Task:** what"),
        "{}",
        output.out()
    );
    sandbox.agent("a", "cat", "[memory]\nenabled = true");
    sandbox.run("a").args(["-p", "x"]).assert().success();
    let shape = |log: &str| -> Vec<String> {
        log.lines().map(|line| line.split_inclusive(' ').next().unwrap_or("").to_owned()).collect()
    };
    assert_eq!(shape(sandbox.log("a").trim_end()), shape(log.trim_end()));
}

#[test]
fn the_manuals_envelope_has_the_keys_of_the_real_one() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    let output = sandbox.run("a").args(["--json", "-p", "x"]).output().unwrap();
    let envelope: Value = serde_json::from_str(&output.out()).unwrap();
    let page = read("man/axe.7.md");
    let told = section(&page, "## JSON").replace('\n', " ");
    for key in envelope.as_object().unwrap().keys() {
        assert!(told.contains(&format!(" {key}")), "{key}");
    }
}

#[test]
fn the_tree_in_contributing_is_the_one_on_disk() {
    let page = read("CONTRIBUTING.md");
    let tree = page.split("```\nbins/").nth(1).unwrap().split("```").next().unwrap();
    let mut told: Vec<&str> = tree
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .map(|dir| dir.trim_end_matches('/'))
        .filter(|dir| !["the"].contains(dir))
        .collect();
    told.push("bins");
    for dir in &told {
        assert!(root().join(dir).is_dir(), "{dir}");
    }
    for entry in fs::read_dir(root().join("lib")).unwrap() {
        let entry = entry.unwrap();
        let dir = format!("lib/{}", entry.file_name().to_str().unwrap());
        assert!(!entry.path().is_dir() || told.contains(&dir.as_str()), "{dir}");
    }
}
