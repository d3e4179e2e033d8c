//! How a command is measured, and how a figure is printed.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counted runs of each command; their medians are compared.
pub const RUNS: usize = 41;

/// Runs a command as a child of a fresh process, whose children's peak is then the command's.
pub fn print_peak(words: &[OsString]) {
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
pub struct Home(tempfile::TempDir);

impl Home {
    pub fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn command(&self, words: &[&str]) -> Command {
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

    pub fn time(&self, words: &[&str]) -> Duration {
        let mut command = self.command(words);
        let started = Instant::now();
        let status = command.status().unwrap();
        let taken = started.elapsed();
        assert!(status.success(), "{words:?}: {status}");
        taken
    }

    /// Median times of the commands, run in turn.
    pub fn times(&self, commands: &[&[&str]], runs: usize) -> Vec<Duration> {
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
    pub fn peak(&self, words: &[&str]) -> f64 {
        let own = own();
        let mut all = vec![own.as_str(), "peak"];
        all.extend(words);
        let output = self.command(&all).stdout(Stdio::piped()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<f64>().unwrap() / 1024.0
    }
}

/// Waits until what was written is on disk: else the machine is busy with it while something else is measured.
pub fn settle() {
    assert!(Command::new("sync").status().unwrap().success());
}

/// This program: with `nothing` it is the unit.
pub fn own() -> String {
    std::env::current_exe().unwrap().into_os_string().into_string().unwrap()
}

pub fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// What a figure is to keep to.
#[derive(Debug, Clone, Copy)]
pub enum Aim {
    Most(f64),
    Least(f64),
}

/// How many figures had an aim, and how many missed it.
static AIMS: AtomicUsize = AtomicUsize::new(0);
static MISSED: AtomicUsize = AtomicUsize::new(0);

/// One line of the table. `aim`: what it says, and whether it is met.
pub fn line(figure: &str, value: &str, ratio: &str, aim: Option<(String, bool)>) {
    let verdict = match aim {
        Some((aim, is_met)) => {
            AIMS.fetch_add(1, Ordering::Relaxed);
            MISSED.fetch_add(usize::from(!is_met), Ordering::Relaxed);
            if is_met { aim } else { format!("{aim}  MISSED") }
        }
        None => String::new(),
    };
    println!("{}", format!("{figure:<56} {value:>12} {ratio:>11}  {verdict}").trim_end());
}

/// The table's last line.
pub fn summary() {
    let (aims, missed) = (AIMS.load(Ordering::Relaxed), MISSED.load(Ordering::Relaxed));
    println!("{aims} aims, {missed} missed");
}

/// A figure whose ratio has an aim.
pub fn judged(figure: &str, value: &str, ratio: f64, aim: Aim, unit: &str) {
    let (told, is_met) = match aim {
        Aim::Most(most) => (format!("≤ {most}{unit}"), ratio <= most),
        Aim::Least(least) => (format!("≥ {least}{unit}"), ratio >= least),
    };
    line(figure, value, &format!("{ratio:.2}{unit}"), Some((told, is_met)));
}

pub fn row(figure: &str, value: &str, ratio: Option<f64>, aim: Option<f64>, unit: &str) {
    match (ratio, aim) {
        (Some(ratio), Some(aim)) => judged(figure, value, ratio, Aim::Most(aim), unit),
        (ratio, _) => line(figure, value, &ratio.map(|r| format!("{r:.2}{unit}")).unwrap_or_default(), None),
    }
}

pub fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

/// A time that has an aim of its own, with its ratio to the program that does nothing.
pub fn time_row(figure: &str, time: Duration, nothing: Duration, aim: Option<u64>) {
    let ratio = format!("{:.1}×", time.as_secs_f64() / nothing.as_secs_f64());
    let aim = aim.map(|aim| (format!("≤ {aim} ms"), time <= Duration::from_millis(aim)));
    line(figure, &ms(time), &ratio, aim);
}

/// What programs weigh, in MiB.
pub fn size_rows(programs: &[(&str, Option<f64>)]) {
    for (program, aim) in programs {
        let size = fs::metadata(program).unwrap().len() as f64 / (1 << 20) as f64;
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        row(&format!("size of {name}"), "", Some(size), *aim, " MiB");
    }
}
