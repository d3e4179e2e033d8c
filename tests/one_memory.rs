//! The memories that programs keep by themselves, and files of instructions: they become notes, and nothing stands twice.

use crate::support::store::{Store, name, names, value};
use crate::support::terminal::Terminal;
use crate::support::{Sandbox, said};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A note for each line with a port, of the file in whose text it stands; else nothing.
const PORTS: &str = r#"
entries, skipped = [], []
for id in ids:
    new = text[id].split("=== new turns")[-1]
    ports = re.findall(r"^\W*(.*port \d+.*)$", new, re.M)
    entries += [note("Port " + re.search(r"port (\d+)", line).group(1), id, summary=line, body=line,
                     scope="global" if "always" in line.lower() else "repo") for line in ports]
    skipped += [] if ports else [{"source": id, "reason": "nothing"}]
say(entries, skipped)
"#;

/// Where Claude Code keeps what it remembers of a project. A session there says which one it is.
fn memory(sandbox: &Sandbox, project: &Path, file: &str) -> PathBuf {
    let project = project.canonicalize().unwrap_or_else(|_| project.to_path_buf());
    let slug: String =
        project.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let kept = sandbox.home().join(format!(".claude/projects/{slug}"));
    sandbox.write(&kept.join("s.jsonl"), format!("{}\n", json!({"type": "system", "cwd": project})));
    kept.join("memory").join(file)
}

/// Writes a file that changed at this minute of the day on which the tests run, from 12 o'clock on.
fn remember(sandbox: &Sandbox, path: &Path, minute: u64, text: &str) {
    sandbox.write(path, text);
    at(path, minute);
}

fn at(path: &Path, minute: u64) {
    // 2026-02-28T12:00:00Z
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_280_000 + minute * 60);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// With the hooks of Claude Code, from 12 o'clock on, and this LLM.
fn hooked() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.in_a_repository();
    sandbox.librarian(PORTS);
    let (code, _, err) = said(sandbox.command("memory-install-hooks").args(["--harness", "claude-code"]));
    assert_eq!(code, Some(0), "{err}");
    at(&sandbox.home().join(".local/state/agent-memory/hooks.json"), 0);
    sandbox
}

fn consolidate(sandbox: &Sandbox, hour: u64) -> String {
    let (code, out, err) = said(sandbox.consolidate(&[]).env("AXE_NOW", format!("2026-02-28T{hour}:00:00Z")));
    assert_eq!(code, Some(0), "{out}{err}");
    err
}

fn topics(sandbox: &Sandbox) -> Vec<String> {
    let dir = sandbox.store().join("topics");
    names(&dir).iter().map(|name| fs::read_to_string(dir.join(name)).unwrap()).collect()
}

#[test]
fn what_is_new_in_a_built_in_memory_becomes_a_note_once() {
    let sandbox = hooked();
    let (index, topic) =
        (memory(&sandbox, &sandbox.work(), "MEMORY.md"), memory(&sandbox, &sandbox.work(), "db.md"));
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let lost = memory(&sandbox, Path::new("/gone/with the wind"), "MEMORY.md");
    let old = memory(&sandbox, &sandbox.work(), "old.md");
    remember(&sandbox, &index, 10, "# Memory\n\n- [DB](db.md) — database\n- The server has port 4310.\n");
    remember(&sandbox, &topic, 10, &format!("The database has port 5432.\n\nIts token is {secret}.\n"));
    remember(&sandbox, &lost, 10, "Always use port 7777 everywhere.\n");
    // Somebody has to say that this one is wanted.
    sandbox.write(&old, "The old server has port 1111.\n");
    fs::File::options()
        .write(true)
        .open(&old)
        .unwrap()
        .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_000_000))
        .unwrap();

    let err = consolidate(&sandbox, 15);
    assert!(err.contains("3 files of built-in memories changed; queued now"), "{err}");
    assert_eq!(sandbox.prompts().len(), 2, "those of one project share a call");
    let prompts = sandbox.prompts().concat();
    assert!(!prompts.contains(secret) && prompts.contains("[redacted:"), "{prompts}");
    assert!(!prompts.contains("1111"), "{prompts}");
    assert!(prompts.contains("This is what the agent's own program remembers"), "{prompts}");
    let notes = topics(&sandbox);
    let of = |port: &str| notes.iter().find(|note| note.contains(&format!("title: Port {port}"))).unwrap();
    for port in ["4310", "5432"] {
        assert_eq!((value(of(port), "by"), value(of(port), "scope")), (Some("agent"), Some("repo")));
        assert!(of(port).contains("repo: github.com/o/r"), "{}", of(port));
    }
    // A project that is not known is a place of its own, whatever the model says.
    assert_eq!(value(of("7777"), "scope"), Some("repo"));
    let place = format!("repo: \"local:{}\"", lost.parent().unwrap().display());
    assert!(of("7777").contains(&place), "{place}: {}", of("7777"));
    assert!(!notes.iter().any(|note| note.contains("1111")));

    // Only what is new in a file is new.
    remember(&sandbox, &index, 170, "# Memory\n\n- The proxy has port 8080.\n- The server has port 4310.\n");
    let err = consolidate(&sandbox, 16);
    assert!(err.contains("1 file of built-in memories changed"), "{err}");
    let prompt = sandbox.prompts()[2].clone();
    let session = prompt.split_once("<<< session").unwrap().1;
    assert!(session.contains("8080") && !session.contains("4310"), "{prompt}");
    assert_eq!(topics(&sandbox).len(), 4);
    at(&index, 230);
    assert!(!consolidate(&sandbox, 17).contains("built-in"), "it has nothing new");
    assert_eq!(sandbox.prompts().len(), 3);

    // What was copied or restored is left to a person.
    for number in 0..21 {
        let path = memory(&sandbox, &sandbox.work(), &format!("n{number}.md"));
        remember(&sandbox, &path, 290, &format!("Machine {number} has port 60{number:02}.\n"));
    }
    let err = consolidate(&sandbox, 18);
    assert!(err.contains("21 files of built-in memories changed at once and are not queued"), "{err}");
    let err = consolidate(&sandbox, 19);
    assert!(err.contains("21 files of built-in memories changed at once"), "until they are taken: {err}");
    let health = || fs::read_to_string(sandbox.store().join(".agent-memory/health.json")).unwrap();
    assert!(health().contains("\"memories\""), "{}", health());
    let past = |args: &[&str]| said(sandbox.capture(&["--past", "all"]).args(args));
    let (_, out, err) = past(&["--dry-run"]);
    assert!(err.contains("no sessions, 22 files of built-in memories, "), "{err}");
    assert_eq!(out.lines().count(), 22);
    assert_eq!(sandbox.waiting(), [""; 0]);
    assert_eq!(past(&["--yes"]).0, Some(0));
    assert_eq!(sandbox.waiting().len(), 22);
    fs::remove_file(memory(&sandbox, &sandbox.work(), "n3.md")).unwrap();
    let err = consolidate(&sandbox, 20);
    assert!(!err.contains("at once") && !health().contains("\"memories\""), "{err}{}", health());
    assert!(!err.contains("n3.md"), "a file that is gone has nothing new: {err}");
    assert!(
        !sandbox.store().join("inbox/.failed").exists()
            || names(&sandbox.store().join("inbox/.failed")).is_empty()
    );
}

#[test]
fn one_setting_leaves_built_in_memories_alone() {
    let sandbox = hooked();
    let path = sandbox.home().join(".config/agent-memory/config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config["capture"] = json!({"memories": false});
    sandbox.write(&path, config.to_string());
    remember(&sandbox, &memory(&sandbox, &sandbox.work(), "MEMORY.md"), 10, "The server has port 4310.\n");
    assert!(!consolidate(&sandbox, 15).contains("built-in"));
    assert!(sandbox.prompts().is_empty());
    let (_, _, err) = said(sandbox.capture(&["--past", "all", "--dry-run"]).env("X", "1"));
    assert!(err.contains("no sessions") && !err.contains("built-in"), "{err}");
}

/// A store with notes of sessions that all see, a pinned one, and one that the person wrote.
fn two_notes() -> Store {
    let store = Store::new();
    let found = "sources:\n  - {harness: amp, repo: github.com/o/r}\n";
    for (id, title, body, more) in [
        ("AAAAAA", "Dev server", "The dev server has port `4310`.", found),
        ("BBBBBB", "Proxy", "The proxy has port 8080.", found),
        ("EEEEEE", "Retries end after nine attempts", "Retries end after nine attempts.", found),
        ("FFFFFF", "Mirror", "The mirror has port 9091.", format!("pinned: true\n{found}").as_str()),
        ("GGGGGG", "Relay", "The relay has port 9092.", ""),
    ] {
        let front =
            format!("id: id__{id}\ntitle: {title}\nsummary: {body}\ntier: hot\nscope: global\n{more}");
        let times = "createdAt: 1771000000000\nupdatedAt: 1771000000000\n";
        store.put(&format!("topics/{}", name(id, title)), format!("---\n{front}{times}---\n\n{body}\n"));
    }
    store
}

#[test]
fn recall_leaves_out_what_the_programs_own_index_says() {
    let store = two_notes();
    let work = store.sandbox.work();
    let index = memory(&store.sandbox, &work, "MEMORY.md");
    let asked = |event: Value, variable: (&str, &str)| {
        let mut command = store.sandbox.command("memory-recall");
        command.args(["--harness", "claude-code"]).env("AGENT_MEMORY_RECALL_MS", "60000");
        let (code, out, err) = said(command.env(variable.0, variable.1).write_stdin(event.to_string()));
        assert_eq!((code, err.as_str()), (Some(0), ""));
        out
    };
    let start = |session: &str, variable: (&str, &str)| {
        let event = json!({"hook_event_name": "SessionStart", "session_id": session, "source": "startup", "cwd": work});
        let out = asked(event, variable);
        assert_eq!(out.contains("4310"), out.contains("nine attempts"), "where the title says all: {out}");
        assert!(
            out.contains("port 9091") && out.contains("port 9092"),
            "pinned, and the person's own: {out}"
        );
        (out.contains("4310"), out.contains("8080"))
    };
    let none = ("X", "");
    assert_eq!(start("a", none), (true, true));
    let line = "- [Server](server.md) — The **dev server** has port 4310\n- Retries end after nine attempts\n- The mirror has port 9091.\n- The relay has port 9092.\n";
    store.sandbox.write(&index, format!("# Memory\n\n{line}"));
    assert_eq!(start("b", none), (false, true));
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": "b", "cwd": work,
        "prompt": "which port has the dev server?"});
    assert!(!asked(prompt, none).contains("4310"));
    // Another port is another text.
    store.sandbox.write(&index, line.replace("4310", "4311").replace("nine", "ten"));
    assert_eq!(start("c", none), (true, true));
    // A session gets the beginning of the index.
    store.sandbox.write(&index, format!("{}{line}", "- more\n".repeat(200)));
    assert_eq!(start("d", none), (true, true));
    store.sandbox.write(&index, line);
    assert_eq!(start("e", ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1")), (true, true));
    store
        .sandbox
        .write(&store.sandbox.home().join(".claude/settings.json"), r#"{"autoMemoryEnabled": false}"#);
    assert_eq!(start("f", none), (true, true));
    assert_eq!(start("g", ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "0")), (false, true));
    store
        .sandbox
        .write(&store.sandbox.home().join(".claude/settings.json"), r#"{"autoMemoryEnabled": true}"#);
    assert_eq!(start("h", none), (false, true));
    store.sandbox.file(".claude/settings.local.json", r#"{"autoMemoryEnabled": false}"#);
    assert_eq!(start("i", none), (true, true));
}

#[test]
fn the_doctor_names_what_a_corrected_note_contradicts() {
    let store = two_notes();
    let index = memory(&store.sandbox, &store.sandbox.work(), "MEMORY.md");
    store.sandbox.write(
        &index,
        "# Memory\n\n- [Server](server.md) — The dev server has port 4310\n- The proxy has port 8080.\n- Use npm for all builds.\n",
    );
    let found = || {
        let (_, out, _) = store.run("memory-doctor", &["--json"]);
        let mut report: Value = serde_json::from_str(&out).unwrap();
        let findings = report["findings"].as_array_mut().unwrap();
        findings.retain(|finding| finding["check"] == "memory");
        findings.clone()
    };
    assert!(found().is_empty());
    store.sandbox.file("new.md", "The dev server has port 4320.\n");
    let (code, _, err) = store
        .run("memory-update", &["AAAAAA", "--body", "new.md", "--summary", "The dev server has port 4320."]);
    assert_eq!(code, Some(0), "{err}");
    // What a model has replaced is kept in the archive.
    let (front, times) = ("scope: global\nstatus: consolidated\n", "createdAt: 1\nupdatedAt: 2\n");
    store.put(
        "archive/old -- id__CCCCCC.md",
        format!("---\nid: id__CCCCCC\ntitle: Builds\n{front}{times}supersededBy: id__DDDDDD\n---\n\nUse npm for all builds.\n"),
    );
    store.put(
        "topics/new -- id__DDDDDD.md",
        format!("---\nid: id__DDDDDD\ntitle: Builds\n{front}{times}---\n\nUse pnpm for all builds.\n"),
    );
    let found = found();
    let what: Vec<&str> = found.iter().map(|finding| finding["what"].as_str().unwrap()).collect();
    assert_eq!(found.len(), 2, "{what:?}");
    assert!(
        what.iter()
            .any(|what| what.contains("line 3 ") && what.contains("4310") && what.contains("id__AAAAAA"))
    );
    assert!(what.iter().any(|what| what.contains("line 5 ") && what.contains("id__DDDDDD")), "{what:?}");
    for finding in &found {
        assert_eq!(finding["file"], json!(index));
        assert!(finding["mend"].as_str().unwrap().contains(&format!("open {}", index.display())));
    }
}

#[test]
fn init_offers_to_switch_the_built_in_memory_off_and_uninstalling_takes_it_back() {
    let before = "{\n  // mine\n  \"model\": \"x\"\n}\n";
    for (typed, is_off) in [("y\ny\nn\n", true), ("y\n\nn\n", false)] {
        let sandbox = Sandbox::new();
        let files = [".claude/settings.json", ".qwen/settings.json"].map(|file| sandbox.home().join(file));
        sandbox.write(&files[0], "{\"model\": \"x\", \"autoMemoryEnabled\": true}\n");
        sandbox.write(&files[1], before);
        let mut terminal = Terminal::open();
        terminal.keyboard.write_all(typed.as_bytes()).unwrap();
        let mut init = sandbox.std_command("memory-config");
        init.arg("init").stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
        assert!(init.status().unwrap().success());
        drop(init);
        let shown = terminal.all();
        assert!(shown.contains("switch off the built-in memory of Claude Code, Qwen Code?"), "{shown}");
        let text = |file: &Path| fs::read_to_string(file).unwrap();
        assert_eq!(text(&files[0]).contains("\"autoMemoryEnabled\": false"), is_off, "{}", text(&files[0]));
        assert_eq!(text(&files[1]).contains("\"enableManagedAutoMemory\": false"), is_off);
        assert!(text(&files[0]).contains("memory-recall") && text(&files[1]).contains("// mine"));
        // Installing once more changes nothing, and another edit is kept.
        let run = |program: &str| said(&mut sandbox.command(program));
        assert_eq!(run("memory-install-hooks").0, Some(0));
        let edited = text(&files[1]).replace("\"x\"", "\"y\"");
        sandbox.write(&files[1], edited);
        assert_eq!(run("memory-uninstall-hooks").0, Some(0));
        assert_eq!(text(&files[0]), "{\"model\": \"x\", \"autoMemoryEnabled\": true}\n");
        assert_eq!(text(&files[1]), before.replace("\"x\"", "\"y\""));
    }
}

#[test]
fn a_file_is_imported_once_as_a_dry_run_first() {
    let sandbox = Sandbox::new();
    sandbox.in_a_repository();
    let text = "# Rules\n\n- The server has port 4310.\n- Be kind.\n\n<!-- agent-memory:start -->\n## Memory\n\nport 9999\n<!-- agent-memory:end -->\n";
    sandbox.file("AGENTS.md", text);
    // The clock goes on between a dry run and the run.
    let minute = std::cell::Cell::new(0);
    let now = || {
        minute.set(minute.get() + 1);
        format!("2026-03-01T15:{:02}:00Z", minute.get())
    };
    let file = fs::File::options().append(true).open(sandbox.work().join("AGENTS.md")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_772_000_000)).unwrap();
    let import = |args: &[&str]| said(sandbox.command("memory-import").env("AXE_NOW", now()).args(args));
    let (code, _, err) = import(&["AGENTS.md"]);
    assert!(code == Some(2) && err.contains("no LLM command is set") && err.contains("llm.command"), "{err}");
    sandbox.librarian(PORTS);
    for (args, expected) in [
        (&["none.md"][..], "no file \"none.md\""),
        (&["."], "\".\" is not a file"),
        (&[], "no file is named"),
        (&["--yes", "--dry-run", "AGENTS.md"], "--yes"),
    ] {
        let (code, out, err) = import(args);
        assert!(code == Some(1) && out.is_empty() && err.contains(expected), "{args:?}: {code:?} {out}{err}");
    }
    // What failed leaves nothing behind.
    sandbox.llm("exit 3", json!({}));
    for flag in ["--dry-run", "--yes"] {
        let (code, out, err) = import(&[flag, "AGENTS.md"]);
        assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
        assert!(
            err.contains("AGENTS.md: nothing was imported: ") && err.contains("; run memory-import again")
        );
        assert!(!err.contains("next try") && sandbox.queued().is_empty(), "{err}");
    }
    sandbox.librarian(PORTS);
    // What a killed import left in the queue is no entry of a run.
    let left = json!({"version": 1, "timestamp": "2026-02-28T15:00:00Z", "harness": "manual",
        "retrieval": {"method": "memory-file", "path": sandbox.work().join("AGENTS.md")}, "context": {}});
    assert_eq!(
        said(sandbox.command("memory-capture").arg("--entry").write_stdin(left.to_string())).0,
        Some(0)
    );
    assert_eq!(sandbox.queued().len(), 1);
    assert_eq!(said(&mut sandbox.consolidate(&[])).0, Some(0));
    assert!(sandbox.queued().is_empty() && sandbox.prompts().is_empty() && topics(&sandbox).is_empty());
    // In a pipe nobody can be asked.
    let (code, out, err) = import(&["AGENTS.md"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains("(repo): Port 4310") && err.contains("nothing is written; --yes writes it"),
        "{out}{err}"
    );
    assert!(sandbox.queued().is_empty() && topics(&sandbox).is_empty());
    let prompt = sandbox.prompts()[0].clone();
    assert!(
        prompt.contains("which the person wants to have as notes") && !prompt.contains("9999"),
        "{prompt}"
    );

    let calls = sandbox.prompts().len();
    let typed = |typed: &str| {
        let mut terminal = Terminal::open();
        terminal.keyboard.write_all(typed.as_bytes()).unwrap();
        let mut import = sandbox.std_command("memory-import");
        import
            .arg("AGENTS.md")
            .env("AXE_NOW", now())
            .stdin(terminal.stdio())
            .stdout(terminal.stdio())
            .stderr(terminal.stdio());
        let status = import.status().unwrap();
        drop(import);
        let shown = terminal.all();
        assert!(status.success(), "{shown}");
        shown
    };
    let shown = typed("n\n");
    assert!(shown.contains("Write this? [y/N]") && shown.contains("nothing is written"), "{shown}");
    assert!(topics(&sandbox).is_empty() && sandbox.queued().is_empty());
    let shown = typed("y\n");
    assert!(shown.contains("1 kb entries written"), "{shown}");
    assert_eq!(
        sandbox.prompts().len(),
        calls,
        "what was shown is not paid for twice, nor later than the dry run"
    );
    let notes = topics(&sandbox);
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("repo: github.com/o/r") && notes[0].contains("port 4310"), "{}", notes[0]);
    let (code, _, err) = import(&["--yes", "AGENTS.md"]);
    assert!(code == Some(0) && err.contains("nothing new since it was read before"), "{err}");
    assert_eq!(fs::read_to_string(sandbox.work().join("AGENTS.md")).unwrap(), text);
    assert_eq!(sandbox.prompts().len(), calls);
}

#[test]
fn the_dry_run_of_an_agents_file_is_not_paid_for_twice_either() {
    let sandbox = Sandbox::new();
    sandbox.in_a_repository();
    sandbox.librarian(PORTS);
    sandbox.file("Memory.md", "The server has port 4310.\n");
    let file = fs::File::options().append(true).open(sandbox.work().join("Memory.md")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_772_000_000)).unwrap();
    for (flag, now, notes) in [("--dry-run", "2026-03-01T15:00:00Z", 0), ("--yes", "2026-03-01T15:01:00Z", 1)]
    {
        let (code, out, err) =
            said(sandbox.command("memory-import").env("AXE_NOW", now).args([flag, "Memory.md"]));
        assert_eq!((code, topics(&sandbox).len()), (Some(0), notes), "{out}{err}");
        assert_eq!(sandbox.prompts().len(), 1, "{out}{err}");
    }
}

#[test]
fn only_a_persons_own_file_holds_everywhere() {
    let sandbox = Sandbox::new();
    sandbox.in_a_repository();
    sandbox.librarian(
        PORTS.replace("note(\"Port \" + re.search(r\"port (\\d+)\", line).group(1)", "note(line").as_str(),
    );
    sandbox.write(
        &sandbox.home().join(".claude/CLAUDE.md"),
        "Always use port 4310 for servers.\n\n## Gemini Added Memories\n- Always use port 7777.\n",
    );
    sandbox.file("CLAUDE.md", "Always use port 5555 for servers.\n");
    sandbox.file("Memory.md", "The agent likes port 6666.\n");
    let own = sandbox.home().join(".claude/CLAUDE.md");
    let (code, out, err) =
        said(sandbox.command("memory-import").args(["--yes", "--json", "CLAUDE.md", "Memory.md"]).arg(&own));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(err.contains("what stands below \"Added Memories\" is an agent's, and is left out"), "{err}");
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&result["processed"], &result["written"], &result["waiting"]),
        (&json!(3), &json!(3), &json!(0))
    );
    let notes = topics(&sandbox);
    assert!(!notes.iter().any(|note| note.contains("7777")));
    for (port, scope, by) in
        [("4310", "global", "person"), ("5555", "repo", "agent"), ("6666", "repo", "agent")]
    {
        let note = notes.iter().find(|note| note.contains(port)).unwrap();
        assert_eq!((value(note, "scope"), value(note, "by")), (Some(scope), Some(by)), "{note}");
    }
}
