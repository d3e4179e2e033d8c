//! From lines to answers: who reads, asks and writes, and when it ends.
//!
//! One thread reads, some ask, and the main thread writes and hands out the lines. It hands out a line only when an answer has
//! come, so there are never more lines at the service than jobs. The reader stops when [`WINDOW`] lines for each job are in
//! memory, asked or answered, so a slow reader of the output slows down everything, and memory stays the same.

use crate::agent::stats::Cost;
use crate::base::cli::{Progress, Stdout};
use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result};
use crate::base::sync::{lock, spawn};
use crate::base::{exec, signal};
use crate::program::axe_map::line::{Line, Lines, Record};
use crate::program::axe_map::work::{Outcome, Task};
use crate::store::answers::{AnswerState, Answers};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Lines in memory for each job.
const WINDOW: usize = 16;
/// How long a signal waits for the answers that are on their way.
const GRACE: Duration = Duration::from_secs(3);

/// Where the answers go.
pub(super) enum Sink<'a> {
    Stdout(&'a mut Stdout),
    File(Answers),
}

/// What was done so far.
#[derive(Default)]
struct Totals {
    read: u64,
    answered: u64,
    failed: u64,
    tokens: (u64, u64),
    cost: Cost,
}

enum Event {
    Line(Line),
    /// The end of the input.
    Ended(Result<()>),
    Done(u64, Box<Outcome>),
    Signal,
}

pub(super) struct Flow<'a> {
    task: Arc<Task>,
    sink: Sink<'a>,
    jobs: usize,
    is_ordered: bool,
    most_errors: u64,
    totals: Arc<Mutex<Totals>>,
    /// Lines that have failed since the last one that has not.
    in_a_row: u64,
    /// Outcomes that wait for earlier lines, and the number of the one that is written next.
    early: BTreeMap<u64, Option<Record>>,
    next: u64,
    /// Why no more lines are asked.
    stopped: Option<Result<()>>,
    /// One for each line in memory.
    places: Option<Receiver<()>>,
}

impl<'a> Flow<'a> {
    pub(super) fn new(
        task: Task,
        sink: Sink<'a>,
        jobs: usize,
        is_ordered: bool,
        most_errors: u64,
    ) -> Flow<'a> {
        Flow {
            task: Arc::new(task),
            sink,
            jobs,
            is_ordered,
            most_errors,
            totals: Arc::default(),
            in_a_row: 0,
            early: BTreeMap::new(),
            next: 0,
            stopped: None,
            places: None,
        }
    }

    /// Asks for all lines.
    pub(super) fn run(mut self) -> Result<()> {
        let (started, totals) = (Instant::now(), Arc::clone(&self.totals));
        let what = format!("{}: {}", self.task.agent.name, self.task.agent.model);
        // On one terminal, the lines of the output are progress enough.
        let is_shown = !matches!(&self.sink, Sink::Stdout(stdout) if stdout.is_terminal());
        let progress = Progress::of(is_shown, move || format!("{what}: {}", lock(&totals).line(started)));
        let walked = self.walk();
        drop(progress);
        // Nothing may go on without us: a line that is still asked, or a command.
        exec::end_all();
        walked?;
        let totals = lock(&self.totals);
        match totals.failed {
            0 => Ok(()),
            failed => Err(Error::refused(format!("{failed} of {} lines failed", totals.answered + failed))
                .hint("see \"error\" in their lines of the output")),
        }
    }

    /// Until everything is written, or nothing more can be.
    fn walk(&mut self) -> Result<()> {
        let (events, coming) = channel();
        let (places, taken) = sync_channel(self.jobs * WINDOW);
        self.places = Some(taken);
        let to_main = events.clone();
        spawn(move || read(&places, &to_main))?;
        let (finished, ended) = channel::<()>();
        let to_main = events.clone();
        signal::before_end(move |ending| {
            let _ = to_main.send(Event::Signal);
            let grace = Deadline::after(GRACE);
            let wait = Duration::from_millis(20);
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
                && !grace.passed()
                && !ending.is_repeated()
            {}
        });
        let (lines, to_ask) = channel();
        let to_ask = Arc::new(Mutex::new(to_ask));
        let (mut waiting, mut count, mut asked, mut workers) = (VecDeque::new(), 0, 0, 0);
        let (mut has_ended, mut is_signalled) = (false, false);
        loop {
            while self.stopped.is_none()
                && asked < self.jobs
                && let Some(line) = waiting.pop_front()
            {
                if asked == workers {
                    let (task, lines, events) = (Arc::clone(&self.task), Arc::clone(&to_ask), events.clone());
                    match spawn(move || work(&task, &lines, &events)) {
                        Ok(()) => workers += 1,
                        // Fewer do it, too.
                        Err(_) if workers > 0 => self.jobs = workers,
                        Err(e) => return Err(Error::io(format!("no thread could be started: {e}"))),
                    }
                }
                let _ = lines.send((count, line));
                (count, asked) = (count + 1, asked + 1);
            }
            if asked == 0 && (self.stopped.is_some() || has_ended && waiting.is_empty()) {
                break;
            }
            let event = match coming.try_recv() {
                Err(TryRecvError::Empty) => {
                    self.sync()?;
                    coming.recv().ok()
                }
                event => event.ok(),
            };
            match event {
                None => break,
                Some(Event::Line(line)) => {
                    lock(&self.totals).read += 1;
                    if self.is_wanted(&line) {
                        waiting.push_back(line);
                    } else {
                        self.free();
                    }
                }
                Some(Event::Ended(end)) => {
                    has_ended = true;
                    if end.is_err() {
                        self.stop(end);
                    }
                }
                Some(Event::Done(at, outcome)) => {
                    asked -= 1;
                    let record = self.counted(*outcome);
                    self.place(at, record)?;
                    if let Sink::Stdout(stdout) = &self.sink
                        && stdout.is_unread()
                    {
                        return Ok(());
                    }
                }
                Some(Event::Signal) => {
                    is_signalled = true;
                    self.stop(Ok(()));
                    // Answers that wait for a line that may never come are written now.
                    self.is_ordered = false;
                    for record in std::mem::take(&mut self.early).into_values().flatten() {
                        self.write(&record)?;
                    }
                }
            }
        }
        self.sync()?;
        drop(finished);
        if is_signalled {
            // The thread that has seen the signal ends the program.
            std::thread::sleep(GRACE);
        }
        self.stopped.take().unwrap_or(Ok(()))
    }

    fn stop(&mut self, why: Result<()>) {
        self.stopped.get_or_insert(why);
    }

    /// Whether a line is to be asked. One whose answer is there is not.
    fn is_wanted(&mut self, line: &Line) -> bool {
        let Sink::File(answers) = &mut self.sink else { return true };
        match answers.knows(&line.id, &line.input) {
            AnswerState::No => return true,
            AnswerState::Yes => {}
            AnswerState::Otherwise => self.stop(Err(line.conflict())),
        }
        false
    }

    /// Counts an outcome, and decides whether it is the last.
    fn counted(&mut self, outcome: Outcome) -> Option<Record> {
        let Outcome { record, error, is_last, was_asked, stats } = outcome;
        let mut totals = lock(&self.totals);
        totals.tokens.0 += stats.tokens.input;
        totals.tokens.1 += stats.tokens.output;
        totals.cost += stats.cost;
        if record.is_some() {
            *(if error.is_some() { &mut totals.failed } else { &mut totals.answered }) += 1;
        }
        let answered = totals.answered;
        drop(totals);
        self.in_a_row = if error.is_some() { self.in_a_row + u64::from(was_asked) } else { 0 };
        if let Some(error) = error {
            if is_last {
                self.stop(Err(error.context(format!("stopped after {answered} answers"))));
            } else if self.in_a_row >= self.most_errors {
                let what = match self.in_a_row {
                    1 => "1 line has failed".to_owned(),
                    lines => format!("{lines} lines in a row have failed"),
                };
                let message = format!("{what}: {}", error.message());
                let next = error.next_step().unwrap_or("go on with --resume FILE when that is corrected");
                self.stop(Err(Error::api(message).hint(next)));
            }
        }
        record
    }

    /// Writes an outcome when its turn comes.
    fn place(&mut self, at: u64, record: Option<Record>) -> Result<()> {
        if !self.is_ordered {
            return record.map_or(Ok(()), |record| self.write(&record));
        }
        self.early.insert(at, record);
        while let Some(record) = self.early.remove(&self.next) {
            self.next += 1;
            if let Some(record) = record {
                self.write(&record)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, record: &Record) -> Result<()> {
        self.free();
        match &mut self.sink {
            Sink::Stdout(stdout) => {
                stdout.json(record)?;
                stdout.flush()
            }
            Sink::File(answers) => {
                let mut line =
                    serde_json::to_vec(record).map_err(|e| Error::io(format!("cannot write JSON: {e}")))?;
                line.push(b'\n');
                answers.append(&line)
            }
        }
    }

    /// Lets the reader read one more line.
    fn free(&self) {
        let _ = self.places.as_ref().map(Receiver::try_recv);
    }

    fn sync(&mut self) -> Result<()> {
        match &mut self.sink {
            Sink::Stdout(_) => Ok(()),
            Sink::File(answers) => answers.sync(),
        }
    }
}

impl Totals {
    /// `12 of 40 lines, 1 failed, 3400 tokens, cost 0.12, 2.1/s`
    fn line(&self, started: Instant) -> String {
        let done = self.answered + self.failed;
        let mut text = format!("{done} of {} lines", self.read);
        if self.failed > 0 {
            text += &format!(", {} failed", self.failed);
        }
        text += &format!(", {} tokens", self.tokens.0 + self.tokens.1);
        if let Some(cost) = self.cost.amount().filter(|cost| *cost > 0.0) {
            text += &format!(", cost {cost:.4}");
        }
        text + &format!(", {:.1}/s", done as f64 / started.elapsed().as_secs_f64().max(0.001))
    }
}

/// Reads lines, each when there is a place for it.
fn read(places: &SyncSender<()>, events: &Sender<Event>) {
    let mut lines = Lines::new(io::stdin().lock());
    while places.send(()).is_ok() {
        let event = match lines.next() {
            Some(Ok(line)) => Event::Line(line),
            Some(Err(error)) => Event::Ended(Err(error)),
            None => Event::Ended(Ok(())),
        };
        let is_end = matches!(event, Event::Ended(_));
        if events.send(event).is_err() || is_end {
            return;
        }
    }
}

/// Asks for one line after another.
fn work(task: &Task, lines: &Mutex<Receiver<(u64, Line)>>, events: &Sender<Event>) {
    loop {
        let next = lock(lines).recv();
        let Ok((at, line)) = next else { return };
        if events.send(Event::Done(at, Box::new(task.ask(line)))).is_err() {
            return;
        }
    }
}
