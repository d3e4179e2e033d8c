//! From lines to answers: who reads, asks and writes, and when it ends.
//!
//! One thread reads, some ask, and the main thread writes and hands out the lines. It hands out a line only when an answer has
//! come, so there are never more lines at the service than jobs. The reader stops when [`WINDOW`] lines for each job are in
//! memory, asked or answered, so a slow reader of the output slows down everything, and memory stays the same.

use crate::agent::stats::Cost;
use crate::base::cli::{Progress, Stdout};
use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result, unwritable};
use crate::base::sync::{lock, spawn};
use crate::base::text::{counted, further};
use crate::base::{exec, signal};
use crate::program::axe_map::line::{Line, OutputLine, lines};
use crate::program::axe_map::work::{LineOutcome, Task};
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

enum FlowEvent {
    Line(Line),
    /// The end of the input.
    Ended(Result<()>),
    Done(u64, Box<LineOutcome>),
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
    early: BTreeMap<u64, Option<OutputLine>>,
    turn: u64,
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
            turn: 0,
            stopped: None,
            places: None,
        }
    }

    /// Asks for all lines.
    pub(super) fn run(mut self) -> Result<()> {
        let (started, totals) = (Instant::now(), Arc::clone(&self.totals));
        let what = format!("{}: {}", self.task.agent.name, self.task.agent.model());
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
        let finished = wait_at_signal(events.clone());
        let mut pool = WorkerPool::new(Arc::clone(&self.task), self.jobs, events);
        let (mut waiting, mut has_ended, mut is_signalled) = (VecDeque::new(), false, false);
        loop {
            while self.stopped.is_none()
                && pool.asked < pool.jobs
                && let Some(line) = waiting.pop_front()
            {
                pool.ask(line)?;
            }
            if pool.asked == 0 && (self.stopped.is_some() || has_ended && waiting.is_empty()) {
                break;
            }
            match self.next(&coming)? {
                None => break,
                Some(FlowEvent::Line(line)) => {
                    lock(&self.totals).read += 1;
                    if self.is_wanted(&line) {
                        waiting.push_back(line);
                    } else {
                        self.free();
                    }
                }
                Some(FlowEvent::Ended(end)) => {
                    has_ended = true;
                    if end.is_err() {
                        self.stop(end);
                    }
                }
                Some(FlowEvent::Done(at, outcome)) => {
                    pool.asked -= 1;
                    let record = self.count(*outcome);
                    self.place(at, record)?;
                    if matches!(&self.sink, Sink::Stdout(stdout) if stdout.is_unread()) {
                        return Ok(());
                    }
                }
                Some(FlowEvent::Signal) => {
                    is_signalled = true;
                    self.stop(Ok(()));
                    self.write_early()?;
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

    /// The next event. Before it waits, what is written is synced.
    fn next(&mut self, coming: &Receiver<FlowEvent>) -> Result<Option<FlowEvent>> {
        match coming.try_recv() {
            Err(TryRecvError::Empty) => {
                self.sync()?;
                Ok(coming.recv().ok())
            }
            event => Ok(event.ok()),
        }
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
    fn count(&mut self, outcome: LineOutcome) -> Option<OutputLine> {
        let LineOutcome { record, error, is_last, was_asked, stats } = outcome;
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
                let what = counted(self.in_a_row as usize, "line has failed", "lines in a row have failed");
                let message = format!("{what}: {}", error.message());
                let hint = error.next_step().unwrap_or("go on with --resume FILE when that is corrected");
                self.stop(Err(Error::api(message).hint(hint)));
            }
        }
        record
    }

    /// Writes an outcome when its turn comes.
    fn place(&mut self, at: u64, record: Option<OutputLine>) -> Result<()> {
        if !self.is_ordered {
            let Some(record) = record else { return Ok(()) };
            return self.write(&record);
        }
        self.early.insert(at, record);
        while let Some(record) = self.early.remove(&self.turn) {
            self.turn += 1;
            if let Some(record) = record {
                self.write(&record)?;
            }
        }
        Ok(())
    }

    /// Answers that wait for a line that may never come are written now.
    fn write_early(&mut self) -> Result<()> {
        self.is_ordered = false;
        for record in std::mem::take(&mut self.early).into_values().flatten() {
            self.write(&record)?;
        }
        Ok(())
    }

    fn write(&mut self, record: &OutputLine) -> Result<()> {
        self.free();
        match &mut self.sink {
            Sink::Stdout(stdout) => {
                stdout.json(record)?;
                stdout.flush()
            }
            Sink::File(answers) => {
                let line = serde_json::to_string(record).map_err(unwritable)? + "\n";
                answers.append(line.as_bytes())
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
        let cost = self.cost.amount().filter(|cost| *cost > 0.0);
        format!(
            "{done} of {} lines{}, {} tokens{}, {:.1}/s",
            self.read,
            further(&[(self.failed as usize, "failed")]),
            self.tokens.0 + self.tokens.1,
            cost.map(|cost| format!(", cost {cost:.4}")).unwrap_or_default(),
            done as f64 / started.elapsed().as_secs_f64().max(0.001)
        )
    }
}

/// Reads lines, each when there is a place for it.
fn read(places: &SyncSender<()>, events: &Sender<FlowEvent>) {
    let mut lines = lines(io::stdin().lock());
    while places.send(()).is_ok() {
        let event = match lines.next() {
            Some(Ok(line)) => FlowEvent::Line(line),
            Some(Err(error)) => FlowEvent::Ended(Err(error)),
            None => FlowEvent::Ended(Ok(())),
        };
        let is_end = matches!(event, FlowEvent::Ended(_));
        if events.send(event).is_err() || is_end {
            return;
        }
    }
}

/// At a signal, tells the main thread, and waits for the answers that are on their way. What is returned is dropped when
/// everything is written.
fn wait_at_signal(events: Sender<FlowEvent>) -> Sender<()> {
    let (finished, ended) = channel();
    signal::before_end(move |ending| {
        let _ = events.send(FlowEvent::Signal);
        let grace = Deadline::after(GRACE);
        let wait = Duration::from_millis(20);
        while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
            && !grace.passed()
            && !ending.is_repeated()
        {}
    });
    finished
}

/// The threads that ask, each for one line after another.
struct WorkerPool {
    task: Arc<Task>,
    jobs: usize,
    events: Sender<FlowEvent>,
    lines: Sender<(u64, Line)>,
    to_ask: Arc<Mutex<Receiver<(u64, Line)>>>,
    workers: usize,
    /// Lines that have no answer yet, and how many there were in all.
    asked: usize,
    count: u64,
}

impl WorkerPool {
    fn new(task: Arc<Task>, jobs: usize, events: Sender<FlowEvent>) -> WorkerPool {
        let (lines, to_ask) = channel();
        let to_ask = Arc::new(Mutex::new(to_ask));
        WorkerPool { task, jobs, events, lines, to_ask, workers: 0, asked: 0, count: 0 }
    }

    /// Starts a thread if all are busy.
    fn ask(&mut self, line: Line) -> Result<()> {
        if self.asked == self.workers {
            let (task, lines, events) =
                (Arc::clone(&self.task), Arc::clone(&self.to_ask), self.events.clone());
            match spawn(move || work(&task, &lines, &events)) {
                Ok(()) => self.workers += 1,
                // Fewer do it, too.
                Err(_) if self.workers > 0 => self.jobs = self.workers,
                Err(e) => return Err(Error::io(format!("no thread could be started: {e}"))),
            }
        }
        let _ = self.lines.send((self.count, line));
        (self.count, self.asked) = (self.count + 1, self.asked + 1);
        Ok(())
    }
}

fn work(task: &Task, lines: &Mutex<Receiver<(u64, Line)>>, events: &Sender<FlowEvent>) {
    loop {
        let next = lock(lines).recv();
        let Ok((at, line)) = next else { return };
        if events.send(FlowEvent::Done(at, Box::new(task.ask(line)))).is_err() {
            return;
        }
    }
}
