//! What agents' runs and their logs cost.

use crate::measure::{Home, RUNS, median, ms, own, row, size_rows};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) fn bench() {
    let own = own();
    let nothing: &[&str] = &[&own, "nothing"];
    let axe_run = env!("CARGO_BIN_EXE_axe-run");
    let home = Agents::new();
    home.agent("plain", "");
    home.agent("logged", "[memory]\nenabled = true\nlast_n = 10");
    home.log("logged", 4096);
    let plain: &[&str] = &[axe_run, "plain"];
    let logged: &[&str] = &[axe_run, "logged"];
    let version: &[&str] = &[axe_run, "--version"];
    let cat: &[&str] = &["/bin/sh", "-c", "cat"];
    let times = home.0.times(&[nothing, version, plain, logged, cat], RUNS);
    let ratio = |time: Duration| Some(time.as_secs_f64() / times[0].as_secs_f64());
    row("a program that does nothing", &ms(times[0]), Some(1.0), None, "×");
    row("start-up: axe-run --version", &ms(times[1]), ratio(times[1]), Some(1.5), "×");
    row("a run with the command cat", &ms(times[2]), ratio(times[2]), Some(3.0), "×");
    row("the same with a log", &ms(times[3]), ratio(times[3]), None, "×");
    row("  of which sh -c cat takes", &ms(times[4]), ratio(times[4]), None, "×");
    row("peak memory of a run with cat", "", Some(home.0.peak(plain)), Some(8.0), " MiB");

    remote(&home, nothing);
    logs(&home);
    trimming(&home);
    size_rows(&[
        (env!("CARGO_BIN_EXE_axe"), None),
        (axe_run, Some(4.0)),
        (env!("CARGO_BIN_EXE_axe-gc"), Some(4.0)),
        (env!("CARGO_BIN_EXE_axe-agents"), None),
        (env!("CARGO_BIN_EXE_axe-config"), None),
    ]);
}

/// Runs that ask a model over HTTP.
fn remote(home: &Agents, nothing: &[&str]) {
    let axe_run = env!("CARGO_BIN_EXE_axe-run");
    let port = serve();
    let config = home.0.path().join(".config/axe/config.toml");
    let local = format!(
        "[providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:{port}\"\napi_key = \"k\"\n"
    );
    fs::write(&config, fs::read_to_string(&config).unwrap() + &local).unwrap();
    home.agent_of("remote", "local/m", "");
    home.agent_of("eight", "local/m", "sub_agents = [\"remote\"]");
    let remote: &[&str] = &[axe_run, "remote"];
    let eight: &[&str] = &[axe_run, "eight"];
    let times = home.0.times(&[nothing, remote, eight], RUNS);
    let ratio = |time: Duration| Some(time.as_secs_f64() / times[0].as_secs_f64());
    row("a run against a server on this machine", &ms(times[1]), ratio(times[1]), Some(3.0), "×");
    row("the same with eight sub-agents at once", &ms(times[2]), ratio(times[2]), None, "×");
    row("peak memory of a run against a server", "", Some(home.0.peak(remote)), Some(8.0), " MiB");
    row("peak memory with eight sub-agents at once", "", Some(home.0.peak(eight)), Some(16.0), " MiB");
}

/// What the length of a log costs a run.
fn logs(home: &Agents) {
    let axe_run = env!("CARGO_BIN_EXE_axe-run");
    home.agent("tiny", "[memory]\nenabled = true\nlast_n = 10");
    home.agent("huge", "[memory]\nenabled = true\nlast_n = 10");
    home.log("tiny", 8 * 1024);
    home.log("huge", 100 << 20);
    let tiny: &[&str] = &[axe_run, "--dry-run", "tiny"];
    let huge: &[&str] = &[axe_run, "--dry-run", "huge"];
    let times = home.0.times(&[tiny, huge], RUNS);
    let growth = times[1].as_secs_f64() / times[0].as_secs_f64();
    row("dry run, last_n = 10: 100 MB log against a tiny one", &ms(times[1]), Some(growth), Some(2.0), "×");
    let memory = [home.0.peak(tiny), home.0.peak(huge)];
    row(
        "  peak memory of the same",
        &format!("{:.2} MiB", memory[1]),
        Some(memory[1] / memory[0]),
        Some(1.1),
        "×",
    );
}

/// A home with agents in it.
struct Agents(Home);

impl Agents {
    fn new() -> Agents {
        let home = Home::new();
        fs::create_dir_all(home.path().join(".config/axe/agents")).unwrap();
        fs::write(
            home.path().join(".config/axe/config.toml"),
            "[providers.cat]\nkind = \"command\"\ncommand = \"cat\"\n",
        )
        .unwrap();
        Agents(home)
    }

    fn agent(&self, name: &str, toml: &str) {
        self.agent_of(name, "cat/x", toml);
    }

    fn agent_of(&self, name: &str, model: &str, toml: &str) {
        let path = self.0.path().join(format!(".config/axe/agents/{name}.toml"));
        let text = format!("name = \"{name}\"\nmodel = \"{model}\"\nsystem_prompt = \"Be brief.\"\n{toml}");
        fs::write(path, text).unwrap();
    }

    /// A log of at least `bytes` bytes, for the agent of that name.
    fn log(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.0.path().join(format!(".local/share/axe/memory/{name}.md"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = BufWriter::new(File::create(&path).unwrap());
        let (mut written, mut n) = (0, 0u64);
        while written < bytes {
            let entry = format!(
                "## 2026-01-01T00:00:00Z\n**Task:** task {n}\n**Result:** {}\n\n",
                "what came of it, in some words. ".repeat(12)
            );
            file.write_all(entry.as_bytes()).unwrap();
            written += entry.len() as u64;
            n += 1;
        }
        file.flush().unwrap();
        path
    }
}

/// What counting and trimming a long log cost. The log has to be read once to say how many entries it holds;
/// what the trim itself adds is held against copying the kept bytes by hand.
fn trimming(home: &Agents) {
    let axe_gc = env!("CARGO_BIN_EXE_axe-gc");
    let keep = "[memory]\nenabled = true\nlast_n = 10";
    home.agent("long", keep);
    home.agent("longest", keep);
    let count: &[&str] = &[axe_gc, "--no-analysis", "--dry-run", "longest"];
    home.log("longest", 1 << 30);
    let time = home.0.times(&[count], 5)[0];
    let rate = 1.0 / time.as_secs_f64();
    println!("{:<52} {:>12} {rate:>7.2} GiB/s  ≥ 1 GiB/s", "count of a 1 GiB log", ms(time));
    row("  peak memory of the same", "", Some(home.0.peak(count)), Some(8.0), " MiB");
    fs::remove_file(home.log("longest", 0)).unwrap();

    let whole = home.0.path().join("whole.md");
    let log = home.log("long", 100 << 20);
    fs::rename(&log, &whole).unwrap();
    let trim: &[&str] = &[axe_gc, "--no-analysis", "long"];
    let only_count: &[&str] = &[axe_gc, "--no-analysis", "--dry-run", "long"];
    let (mut trims, mut counts, mut copies) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..9 {
        fs::copy(&whole, &log).unwrap();
        File::open(&log).unwrap().sync_all().unwrap();
        counts.push(home.0.time(only_count));
        trims.push(home.0.time(trim));
        let kept = fs::read(&log).unwrap();
        fs::copy(&whole, &log).unwrap();
        File::open(&log).unwrap().sync_all().unwrap();
        let started = Instant::now();
        replace_by_hand(&log, &kept);
        copies.push(started.elapsed());
    }
    let (trim_time, count_time, copy) = (median(&mut trims), median(&mut counts), median(&mut copies));
    row("trim of a 100 MiB log to 10 entries", &ms(trim_time), None, None, "");
    row("  of which counting, to say how many went", &ms(count_time), None, None, "");
    let own = trim_time.saturating_sub(count_time);
    let ratio = own.as_secs_f64() / copy.as_secs_f64();
    row("  the trim alone against the same by hand", &ms(own), Some(ratio), Some(3.0), "×");
    fs::copy(&whole, &log).unwrap();
    row("  peak memory of the trim", "", Some(home.0.peak(trim)), Some(8.0), " MiB");
}

/// Reads the tail of `log` and puts `kept` in its place as a careful program would: synced, renamed, and the
/// directory synced. Most of the time goes into freeing the old file.
fn replace_by_hand(log: &Path, kept: &[u8]) {
    let mut tail = vec![0; 64 * 1024];
    let mut file = File::open(log).unwrap();
    file.seek(SeekFrom::End(-(tail.len() as i64))).unwrap();
    file.read_exact(&mut tail).unwrap();
    let beside = log.with_extension("new");
    let mut new = File::create(&beside).unwrap();
    new.write_all(kept).unwrap();
    new.sync_all().unwrap();
    fs::rename(beside, log).unwrap();
    File::open(log.parent().unwrap()).unwrap().sync_all().unwrap();
    drop(file);
}

/// A model on 127.0.0.1 that answers at once, in OpenAI's format. An agent that is offered tools is told to call
/// eight others first.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer(stream.unwrap()));
        }
    });
    port
}

fn answer(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let message = if body.contains("\"tools\"") && !body.contains("\"role\":\"tool\"") {
        let call = |n| {
            format!(
                r#"{{"id":"c{n}","type":"function","function":{{"name":"call_agent","arguments":"{{\"agent\":\"remote\",\"task\":\"t{n}\"}}"}}}}"#
            )
        };
        let calls: Vec<String> = (0..8).map(call).collect();
        format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, calls.join(","))
    } else {
        r#"{"role":"assistant","content":"done"}"#.to_owned()
    };
    let reply = format!(
        r#"{{"model":"m","choices":[{{"message":{message},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1}}}}"#
    );
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        reply.len()
    );
    reader.get_mut().write_all((head + &reply).as_bytes()).unwrap();
}
