//! Feeds the rows of the journal to the report, on a thread of its own: no request waits for it.
//!
//! Decides when the journal is looked at. A row is looked at soon after it comes, while the process
//! behind its connection can still be found, and all rows before a report is read.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{Engine, ReportRow};
use crate::clock::{SystemClock, TimeSource as _};
use crate::journal::json::object_of;
use crate::journal::peers::{identity, process_of};
use crate::journal::row::{FileEvent, ServerChange};
use crate::journal::{Event, Happening, Journal, Reads, Row};
use crate::rules::address::ObjectAddress;
use crate::rules::who::{ClockSequence, Identity, Who};
use crate::rules::{Access, Timestamp};
use crate::sync::{Mutex, MutexGuard};

const POISON: &str = "nothing panics while the report is held";

/// The pause between two looks. In that time fewer rows come than the journal keeps.
const PAUSE: Duration = Duration::from_millis(50);

/// The most rows that are taken at a time: requests that end meanwhile wait for it.
const PAGE: usize = 64;

/// The report of a server.
pub struct Reporter {
    journal: Arc<Journal>,
    fed: Mutex<Fed>,
}

#[derive(Debug, Default)]
struct Fed {
    /// The number of the last row that was looked at.
    after: u64,
    engine: Engine,
}

impl Reporter {
    pub fn new(journal: Arc<Journal>) -> Self {
        Self { journal, fed: Mutex::default() }
    }

    /// Looks at the rows so far, then lets `read` read or change the report.
    pub fn with<T>(&self, read: impl FnOnce(&mut Engine) -> T) -> T {
        let mut fed = self.fed();
        fed.catch_up(&self.journal);
        read(&mut fed.engine)
    }

    fn catch_up(&self) -> u64 {
        let mut fed = self.fed();
        fed.catch_up(&self.journal);
        fed.after
    }

    fn fed(&self) -> MutexGuard<'_, Fed> {
        self.fed.lock().expect(POISON)
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reporter({:?})", self.journal)
    }
}

impl Fed {
    fn catch_up(&mut self, journal: &Journal) {
        let mut clients = Clients::default();
        loop {
            let page = journal.after(self.after, PAGE, Reads::All);
            if page.lost > 0 {
                self.engine.lost();
            }
            page.rows.iter().for_each(|row| feed(&mut self.engine, &mut clients, row));
            self.after = page.last;
            if page.last >= page.newest {
                return;
            }
        }
    }
}

/// The clients of the rows of one look, by connection and thread: each is looked up once.
#[derive(Default)]
struct Clients(HashMap<(Arc<str>, Option<ClockSequence>), Identity>);

impl Clients {
    fn of(&mut self, who: &Who, when: Timestamp) -> Identity {
        if let Some(named) = &who.named {
            return named.clone();
        }
        let known = self.0.entry((Arc::clone(&who.connection), who.thread));
        let look = || identity(who, process_of(&who.connection, when).as_ref());
        known.or_insert_with(look).clone()
    }
}

fn feed(engine: &mut Engine, clients: &mut Clients, row: &Row) {
    let account = row.account.as_deref().unwrap_or_default();
    match &*row.event {
        Event::Request(request) => {
            let client = clients.of(&request.who, row.system);
            let object = object_of(request.service, &request.path).unwrap_or_default();
            let (seq, time) = (row.seq, row.time);
            let (client, object) = (&client, object.as_str());
            engine.request(&ReportRow { seq, time, account, client, request, object });
        }
        Event::File(FileEvent {
            share,
            path,
            who,
            what: Happening::Granted { access, .. },
            ..
        // What SMB clients write has rows of its own.
        }) if access.contains(Access::W) && !who.client.name.starts_with("SMB ") => {
            let (share, path) = (share.to_string(), path.trim_matches('/').to_owned());
            let object = ObjectAddress::File { share, path }.to_string();
            engine.opened((row.seq, row.time), account, &who.to_string().into(), &object);
        }
        Event::Changed(ServerChange { kind, detail, is_barrier: true, .. }) => {
            engine.barrier((*kind == "mark").then_some(detail));
        }
        _ => {}
    }
}

/// Looks the processes of new clients up, for as long as this is waited for.
async fn look_up(journal: &Journal) {
    loop {
        for client in journal.arrivals().await {
            process_of(&client, SystemClock.now());
        }
    }
}

/// The thread that feeds a report until this is dropped.
#[derive(Debug)]
pub struct Follower {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Stop {
    is_set: AtomicBool,
    rings: Notify,
}

impl Follower {
    pub fn start(reporter: Arc<Reporter>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let stop = Arc::<Stop>::default();
        let stopping = Arc::clone(&stop);
        let thread = thread::Builder::new().name("latchfs-report".into()).spawn(move || {
            runtime.block_on(async {
                while !stopping.is_set.load(Ordering::Acquire) {
                    let seen = reporter.catch_up();
                    // A burst of requests wakes this thread once.
                    let more = async {
                        sleep(PAUSE).await;
                        reporter.journal.wait_past(seen).await;
                    };
                    tokio::select! {
                        () = look_up(&reporter.journal) => {}
                        () = more => {}
                        () = stopping.rings.notified() => return,
                    }
                }
            });
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.is_set.store(true, Ordering::Release);
        // A permit: the thread need not be waiting yet.
        self.stop.rings.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error!("the report was not fed to its end");
        }
    }
}
