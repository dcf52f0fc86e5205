//! Explorations: a test in every order of the requests of its clients that matters.
//!
//! Decides how the clients of a run are threads, and what a failure says. Which order comes next is
//! decided in [`crate::bench::explore`].

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::Duration;

use super::{Error, Server};
use crate::api::{
    BeginRun, CreateExploration, DeleteState, EndExploration, EndRun, ExplorationFailure,
    ExploredStep, SaveState,
};
use crate::bench::explore::{RunStage, Shown, Watched};

/// The saved state that each run begins with: what the server has when the search begins.
const STATE: &str = "latchfs-explore";

/// How long a search waits for the next call of its test, which may compute between two of them.
const PATIENCE_MS: u64 = 600_000;

/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// The exit status of a test program whose clients wait for each other; that of a panic.
const STUCK_STATUS: i32 = 101;

/// A search to make.
#[derive(Clone, Debug)]
pub struct Explore {
    wanted: CreateExploration,
}

impl Explore {
    /// A search over the requests of these clients.
    pub fn new<const N: usize>(clients: [&str; N]) -> Self {
        let clients = clients.map(str::to_owned).to_vec();
        let state = Some(STATE.to_owned());
        let idle_ms = Some(PATIENCE_MS);
        Self { wanted: CreateExploration { clients, state, idle_ms, ..Default::default() } }
    }

    /// The most runs.
    #[must_use]
    pub fn budget(mut self, runs: u32) -> Self {
        self.wanted.budget = Some(runs);
        self
    }

    /// The most answers that are lost in a run.
    #[must_use]
    pub fn drops(mut self, answers: u32) -> Self {
        self.wanted.drops = Some(answers);
        self
    }

    /// A time by which the clock may be advanced, once in a run.
    #[must_use]
    pub fn advance(mut self, time: Duration) -> Self {
        self.wanted.advance_ms.push(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Runs the order of this token alone.
    #[must_use]
    pub fn replay(mut self, token: &str) -> Self {
        self.wanted.replay = Some(token.to_owned());
        self
    }
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Explored {
    /// How many orders were run.
    pub runs: u64,
    /// Whether every order that matters was run.
    pub complete: bool,
    /// Why it is not complete, and what else was noted.
    pub notes: Vec<String>,
}

/// An order in which the test failed. Its text is for people.
pub struct Race {
    /// Replays the order.
    pub token: String,
    /// The message of the panic.
    pub message: String,
    failure: ExplorationFailure,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the test fails in the order {}: {}", self.token, self.message)?;
        for (at, step) in self.failure.order.iter().enumerate() {
            let ExploredStep { client, operation, object, choice, status } = step;
            let status = status.map(|status| format!(" -> {status}")).unwrap_or_default();
            writeln!(f, "{:>4}  {client}  {operation} {object}{status}  {choice}", at + 1)?;
        }
        write!(f, "to run it again: Explore::new(...).replay(\"{}\")", self.token)
    }
}

impl Race {
    fn new(failure: ExplorationFailure, message: String) -> Self {
        Self { token: failure.token.clone(), message, failure }
    }
}

// A test that unwraps the result shows this.
impl fmt::Debug for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A run of a test that is explored.
pub struct Run<'a> {
    server: &'a Server,
    exploration: u64,
    number: u64,
    strings: &'a BTreeMap<String, String>,
}

/// The work of a client. It is given the connection string of the client.
pub type Work<'a> = &'a (dyn Fn(&str) + Sync);

impl Run<'_> {
    /// Runs the clients at the same time, a thread each, in the order that is tried. Panics as the
    /// first of them that panics.
    pub fn clients<const N: usize>(&self, works: [(&str, Work<'_>); N]) {
        let panics = thread::scope(|scope| {
            let threads = works.map(|(name, work)| scope.spawn(move || self.client(name, work)));
            self.wait();
            threads.map(|thread| thread.join().unwrap_or_else(Err))
        });
        if let Some(panic) = panics.into_iter().find_map(Result::err) {
            resume_unwind(panic);
        }
    }

    /// Waits for the end of the run. Threads that wait for each other cannot be ended, nor can a
    /// test that has them: it says so and ends the process.
    fn wait(&self) {
        let controls = self.server.accounts().controls();
        let look = |shown: &mut Shown| {
            let run = shown.live.run.as_ref().filter(|run| run.number == self.number);
            Ok(run.map(|run| (run.stage, run.notes.join("; "))))
        };
        loop {
            match controls.stage.of(self.exploration, look) {
                Ok(Some((RunStage::Running, _))) => thread::sleep(LOOK),
                Ok(Some((RunStage::Stuck, notes))) => {
                    eprintln!("latchfs: the explored test cannot go on: {notes}");
                    std::process::exit(STUCK_STATUS);
                }
                Ok(Some((RunStage::Mismatch | RunStage::Livelock, notes))) => panic!("{notes}"),
                Ok(Some((RunStage::Over, _)) | None) | Err(_) => return,
            }
        }
    }

    fn client(&self, name: &str, work: Work<'_>) -> Result<(), Box<dyn Any + Send>> {
        let controls = self.server.accounts().controls();
        let at = (self.exploration, self.number, name);
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let begins = controls.client_starts(at, Watched { pid: None, threads: vec![thread] });
        let begins = begins.unwrap_or_else(|error| panic!("client {name}: {error}"));
        // A run that is given up answers nobody, and ends the requests of its clients.
        let _ = begins.blocking_recv();
        let string = self.strings.get(name).map_or("", String::as_str);
        let done = catch_unwind(AssertUnwindSafe(|| work(string)));
        // A run that was given up has ended without this client.
        let _ = controls.client_finished(at);
        done
    }
}

impl Server {
    /// Calls `test` once for each order of its clients' requests that matters, until it panics in
    /// one, which is an error. Each call finds the data that the server has now. It sets up what it
    /// needs, runs its clients once with [`Run::clients`], and checks the outcome.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// use latchfs::testing::{Explore, Server};
    ///
    /// let server = Server::start()?;
    /// let explored = server.explore(Explore::new(["A", "B"]), |run| {
    ///     let met = AtomicU32::new(0);
    ///     // A client of its own would be made of this string, and ask the server.
    ///     let work = |connection: &str| {
    ///         assert!(connection.contains("BlobEndpoint="));
    ///         met.fetch_add(1, Ordering::Relaxed);
    ///     };
    ///     run.clients([("A", &work), ("B", &work)]);
    ///     assert_eq!(met.into_inner(), 2);
    /// })?;
    /// assert!(explored.complete);
    /// # Ok::<(), latchfs::testing::Error>(())
    /// ```
    pub fn explore(&self, search: Explore, test: impl Fn(&Run<'_>)) -> Result<Explored, Error> {
        let state = || STATE.to_owned();
        self.session()?.save_state(SaveState { name: state() })?;
        let found = self.search(search.wanted, test);
        let deleted = self.session()?.delete_state(DeleteState { name: state() });
        // What went wrong in the search comes first.
        let found = found?;
        deleted?;
        Ok(found)
    }

    fn search(
        &self,
        wanted: CreateExploration,
        test: impl Fn(&Run<'_>),
    ) -> Result<Explored, Error> {
        let created = self.session()?.create_exploration(wanted)?;
        let id = created.exploration;
        let last = self.runs(id, &created.clients, test);
        let found = self.session()?.end_exploration(EndExploration { id })?;
        let last = last?;
        if let Some(failure) = found.failure {
            return Err(Error::Race(Box::new(Race::new(failure, last))));
        }
        let notes = found.incomplete.into_iter().chain(found.notes).collect();
        Ok(Explored { runs: found.runs, complete: found.complete, notes })
    }

    /// All runs; what the last failing one said.
    fn runs(
        &self,
        id: u64,
        strings: &BTreeMap<String, String>,
        test: impl Fn(&Run<'_>),
    ) -> Result<String, Error> {
        let mut last = String::new();
        loop {
            let begun = self.session()?.begin_run(BeginRun { id })?;
            let Some(number) = begun.run else { return Ok(last) };
            let run = Run { server: self, exploration: id, number, strings };
            let panic = catch_unwind(AssertUnwindSafe(|| test(&run))).err();
            if let Some(panic) = &panic {
                last = message(&**panic);
            }
            let (run, failed) = (number, panic.is_some());
            let signature = failed.then(|| "panic".to_owned());
            self.session()?.end_run(EndRun { id, run, failed, signature })?;
        }
    }
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
