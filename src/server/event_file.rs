//! The file that events are appended to, a line of JSON each.
//!
//! A thread of its own for each account follows the log and writes. The log never waits for it: a
//! reader of the file that stalls (a FIFO, a hung NFS server), or a file that cannot be written,
//! loses events, and the next line says how many.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

use super::error::StartError;
use crate::api::control::Serving;
use crate::api::control::events::rows;
use crate::journal::events::Event;
use crate::server::{Account, Accounts};

/// How long the thread waits for an event before it looks whether it is to end.
const TICK: Duration = Duration::from_millis(100);

/// How long a stop waits for a file that cannot be written.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// The file that events are written to. When this is dropped, the events so far are written and the
/// file is closed.
pub struct EventFile {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// A file that is ready to be written.
pub struct OpenedEventFile {
    lines: Vec<(Arc<Account>, EventLines)>,
}

/// Opens the file, before anything is mounted, perhaps on its folder.
pub fn open(path: &Path, accounts: &Accounts) -> Result<OpenedEventFile, StartError> {
    let opening = || StartError::system(format!("the event log {}", path.display()));
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let file = file.map_err(opening())?;
    let mut lines = Vec::new();
    for account in accounts.iter() {
        let file = file.try_clone().map_err(opening())?;
        let after = account.file().options().events.newest();
        lines.push((
            Arc::clone(account),
            EventLines { file, path: path.to_owned(), after, lost: 0 },
        ));
    }
    Ok(OpenedEventFile { lines })
}

impl OpenedEventFile {
    /// Starts to write.
    pub fn start(self, serving: &Arc<dyn Serving>) -> Result<EventFile, StartError> {
        let mut file = EventFile { stop: Arc::default(), threads: Vec::new() };
        for (account, mut lines) in self.lines {
            let (serving, stopping) = (Arc::clone(serving), Arc::clone(&file.stop));
            let thread = thread::Builder::new()
                .name("latchfs-events".into())
                .spawn(move || lines.follow(&*serving, &account, &stopping))
                .map_err(StartError::system("starting the event log"))?;
            file.threads.push(thread);
        }
        Ok(file)
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let end = Instant::now() + STOP_WAIT;
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && Instant::now() < end {
                thread::sleep(Duration::from_millis(2));
            }
            // A thread that hangs in a write is left to the end of the process.
            if !thread.is_finished() {
                log::error!("the event log cannot be written: its last events are lost");
            } else if thread.join().is_err() {
                log::error!("the event log was not written to its end");
            }
        }
    }
}

struct EventLines {
    file: File,
    path: PathBuf,
    /// The number of the last event that was looked at.
    after: u64,
    /// Events that could not be written, and that the file does not tell of yet.
    lost: u64,
}

impl EventLines {
    fn follow(&mut self, serving: &dyn Serving, account: &Account, stop: &AtomicBool) {
        let log = &account.file().options().events;
        loop {
            // Asked before the log is: what was noted before the stop is written.
            let last = stop.load(Ordering::Acquire);
            let page = log.follow(self.after, if last { Duration::ZERO } else { TICK });
            self.lost += page.lost;
            self.after = page.last;
            if !page.events.is_empty() {
                self.write(serving, account, &page.events);
            } else if last {
                return;
            }
        }
    }

    fn write(&mut self, serving: &dyn Serving, account: &Account, events: &[Event]) {
        let mut text = String::new();
        if self.lost > 0 {
            text = json!({ "lost": self.lost }).to_string() + "\n";
        }
        for row in rows(serving, account.name(), events) {
            text += &serde_json::to_string(&row).expect("a row is an object with text keys");
            text.push('\n');
        }
        let before = self.file.metadata().map(|meta| meta.len());
        match self.file.write_all(text.as_bytes()) {
            Ok(()) => self.lost = 0,
            Err(error) => {
                if self.lost == 0 {
                    let path = self.path.display();
                    log::error!("the event log {path}: {error}: events are lost");
                }
                self.lost += events.len() as u64;
                // No half lines: a reader takes each for a whole one.
                if let Ok(before) = before
                    && let Err(error) = self.file.set_len(before)
                {
                    log::debug!("the event log cannot be cut back: {error}");
                }
            }
        }
    }
}
