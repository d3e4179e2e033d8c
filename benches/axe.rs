//! What agents' runs and their logs cost.

use crate::measure::{Aim, Home, RUNS, judged, median, ms, own, row, settle, size_rows};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub fn bench() {
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
    size_rows(&[
        (env!("CARGO_BIN_EXE_axe"), Some(3.0)),
        (axe_run, Some(8.0)),
        (env!("CARGO_BIN_EXE_axe-gc"), Some(8.0)),
        (env!("CARGO_BIN_EXE_axe-agents"), Some(3.0)),
        (env!("CARGO_BIN_EXE_axe-config"), Some(3.0)),
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
    for (name, more) in [
        ("peak memory of a streamed answer of 16 MB", &[][..]),
        ("  of the same with --json", &["--json"]),
        ("  of the same in a conversation", &["--conversation", "c"]),
    ] {
        let streamed = [&[axe_run, "remote", "--stream", "-p", "stream"], more].concat();
        row(name, "", Some(home.0.peak(&streamed)), Some(64.0), " MiB");
    }
}

/// What the length of a log costs: a run that reads its end, one that appends to it, counting it, trimming it.
/// The log has to be read once to say how many entries it holds; all else is to be independent of its length.
fn logs(home: &Agents) {
    let (axe_run, axe_gc) = (env!("CARGO_BIN_EXE_axe-run"), env!("CARGO_BIN_EXE_axe-gc"));
    let mut first: Option<Vec<Duration>> = None;
    for megabytes in [1, 100, 1000] {
        let name = format!("log-{megabytes}");
        home.agent(&name, "[memory]\nenabled = true\nlast_n = 10");
        let log = home.log(&name, megabytes * 1_000_000);
        settle();
        let look: &[&str] = &[axe_run, "--dry-run", &name];
        let append: &[&str] = &[axe_run, &name];
        let count: &[&str] = &[axe_gc, "--no-analysis", "--dry-run", &name];
        let times = home.0.times(&[look, append, count], if megabytes == 1000 { 9 } else { RUNS });
        let against = first.get_or_insert_with(|| times.clone());
        let ratio = |act: usize| times[act].as_secs_f64() / against[act].as_secs_f64();
        let most = Aim::Most(2.0);
        judged(&format!("dry run, last_n = 10, log of {megabytes} MB"), &ms(times[0]), ratio(0), most, "×");
        row("  peak memory of the same", "", Some(home.0.peak(look)), Some(8.0), " MiB");
        judged(&format!("a run that appends to it, {megabytes} MB"), &ms(times[1]), ratio(1), most, "×");
        let figure = format!("count of a log of {megabytes} MB");
        let rate = fs::metadata(&log).unwrap().len() as f64 / times[2].as_secs_f64() / f64::from(1 << 30);
        // Of a short log the program's start is most.
        match megabytes {
            1 => row(&figure, &ms(times[2]), Some(rate), None, " GiB/s"),
            _ => judged(&figure, &ms(times[2]), rate, Aim::Least(1.0), " GiB/s"),
        }
        row("  peak memory of the same", "", Some(home.0.peak(count)), Some(8.0), " MiB");
        trim(home, &name, &log, times[2], if megabytes == 1000 { 3 } else { 9 });
        fs::remove_file(&log).unwrap();
    }
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

/// What trimming a log costs. What the trim itself adds to counting is held against putting the kept bytes in the
/// log's place by hand.
fn trim(home: &Agents, name: &str, log: &Path, counting: Duration, runs: usize) {
    let trim: &[&str] = &[env!("CARGO_BIN_EXE_axe-gc"), "--no-analysis", name];
    let whole = home.0.path().join("whole.md");
    fs::rename(log, &whole).unwrap();
    let bring_back = || {
        fs::copy(&whole, log).unwrap();
        File::open(log).unwrap().sync_all().unwrap();
    };
    let (mut trims, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        bring_back();
        trims.push(home.0.time(trim));
        let kept = fs::read(log).unwrap();
        bring_back();
        let started = Instant::now();
        replace_by_hand(log, &kept);
        copies.push(started.elapsed());
    }
    let time = median(&mut trims);
    row("trim of it to 10 entries", &ms(time), None, None, "");
    let own = time.saturating_sub(counting);
    let ratio = own.as_secs_f64() / median(&mut copies).as_secs_f64();
    row("  without the counting, against the same by hand", &ms(own), Some(ratio), Some(3.0), "×");
    bring_back();
    row("  peak memory of the trim", "", Some(home.0.peak(trim)), Some(8.0), " MiB");
    fs::remove_file(&whole).unwrap();
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
    if body.contains("\"stream\":true") {
        return stream_of_16_mb(reader.get_mut());
    }
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

/// A word in each event, as models answer.
fn stream_of_16_mb(to: &mut TcpStream) {
    let mut to = BufWriter::new(to);
    to.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").unwrap();
    let word = "a word and then another word in a line that ends here \\n".repeat(4);
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n");
    let length = word.replace("\\n", "n").len();
    for _ in 0..16_000_000 / length {
        to.write_all(event.as_bytes()).unwrap();
    }
    to.write_all(b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
        .unwrap();
    to.flush().unwrap();
}
