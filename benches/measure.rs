//! How a command is measured, and how a figure is printed.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Counted runs of each command; their medians are compared.
pub(crate) const RUNS: usize = 41;

/// Runs a command as a child of a fresh process, whose children's peak is then the command's.
pub(crate) fn print_peak(words: &[OsString]) {
    let status = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{words:?}: {status}");
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN).unwrap();
    println!("{}", usage.max_rss());
}

/// A home directory, thrown away afterwards.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path())
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    pub(crate) fn time(&self, words: &[&str]) -> Duration {
        let mut command = self.command(words);
        let started = Instant::now();
        let status = command.status().unwrap();
        let taken = started.elapsed();
        assert!(status.success(), "{words:?}: {status}");
        taken
    }

    /// Median times of the commands, run in turn.
    pub(crate) fn times(&self, commands: &[&[&str]], runs: usize) -> Vec<Duration> {
        let mut times = vec![Vec::with_capacity(runs); commands.len()];
        for run in 0..=runs {
            for (words, times) in commands.iter().zip(&mut times) {
                let taken = self.time(words);
                // The first round warms the caches.
                if run > 0 {
                    times.push(taken);
                }
            }
        }
        times.iter_mut().map(|times| median(times)).collect()
    }

    /// Peak resident memory of a command and what it runs, in MiB.
    pub(crate) fn peak(&self, words: &[&str]) -> f64 {
        let own = own();
        let mut all = vec![own.as_str(), "peak"];
        all.extend(words);
        let output = self.command(&all).stdout(Stdio::piped()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<f64>().unwrap() / 1024.0
    }
}

/// This program: with `nothing` it is the unit.
pub(crate) fn own() -> String {
    std::env::current_exe().unwrap().into_os_string().into_string().unwrap()
}

pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

pub(crate) fn row(figure: &str, value: &str, ratio: Option<f64>, aim: Option<f64>, unit: &str) {
    let shown = ratio.map(|r| format!("{r:.2}{unit}")).unwrap_or_default();
    let verdict = match (ratio, aim) {
        (Some(ratio), Some(aim)) if ratio <= aim => format!("≤ {aim}{unit}"),
        (Some(_), Some(aim)) => format!("≤ {aim}{unit}  MISSED"),
        _ => String::new(),
    };
    println!("{figure:<52} {value:>12} {shown:>10}  {verdict}");
}

pub(crate) fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

/// A time that has an aim of its own, with its ratio to the program that does nothing.
pub(crate) fn time_row(figure: &str, time: Duration, nothing: Duration, aim: Option<u64>) {
    let aim = aim.map(Duration::from_millis);
    let ratio = format!("{:.1}×", time.as_secs_f64() / nothing.as_secs_f64());
    let verdict =
        aim.map(|aim| format!("≤ {} ms{}", aim.as_millis(), if time <= aim { "" } else { "  MISSED" }));
    println!("{figure:<52} {:>12} {ratio:>10}  {}", ms(time), verdict.unwrap_or_default());
}

/// What programs weigh, in MiB.
pub(crate) fn size_rows(programs: &[(&str, Option<f64>)]) {
    for (program, aim) in programs {
        let size = fs::metadata(program).unwrap().len() as f64 / (1 << 20) as f64;
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        row(&format!("size of {name}"), "", Some(size), *aim, " MiB");
    }
}
