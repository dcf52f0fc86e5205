//! The file that events are appended to, a line of JSON each.
//!
//! A thread reads the journal and writes what is listed. The journal never waits for it: a reader
//! of the file that stalls (a FIFO, a hung NFS server), or a file that cannot be written, loses
//! events, and the next line says how many.

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
use crate::api::{events_of, listed};
use crate::journal::{Journal, Row};

/// The pause between two looks at the journal. In that time fewer rows come than are kept.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a stop waits for a file that cannot be written.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// The file that events are written to. When this is dropped, the events so far are written and the
/// file is closed.
pub struct EventFile {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A file that is ready to be written.
pub struct OpenedEventFile {
    lines: EventLines,
    journal: Arc<Journal>,
}

/// Opens the file, before anything is mounted, perhaps on its folder.
pub fn open(path: &Path, journal: &Arc<Journal>) -> Result<OpenedEventFile, StartError> {
    let opening = StartError::system(format!("the event log {}", path.display()));
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let file = file.map_err(opening)?;
    let lines = EventLines { file, path: path.to_owned(), after: journal.newest(), lost: 0 };
    Ok(OpenedEventFile { lines, journal: Arc::clone(journal) })
}

impl OpenedEventFile {
    /// Starts to write.
    pub fn start(self) -> Result<EventFile, StartError> {
        let Self { mut lines, journal } = self;
        let stop = Arc::<AtomicBool>::default();
        let stopping = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("latchfs-events".into())
            .spawn(move || lines.follow(&journal, &stopping))
            .map_err(StartError::system("starting the event log"))?;
        Ok(EventFile { stop, thread: Some(thread) })
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        let end = Instant::now() + STOP_WAIT;
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

struct EventLines {
    file: File,
    path: PathBuf,
    /// The number of the last event that was looked at.
    after: u64,
    /// Events that could not be written, and that the file does not tell of yet.
    lost: u64,
}

impl EventLines {
    fn follow(&mut self, journal: &Journal, stop: &AtomicBool) {
        loop {
            // Asked before the journal is: what was recorded before the stop is written.
            let is_last = stop.load(Ordering::Acquire);
            let page = listed(journal, self.after);
            self.lost += page.lost;
            self.after = page.last;
            if !page.rows.is_empty() {
                self.write(&page.rows);
            }
            if page.last < page.newest {
                continue;
            }
            if is_last {
                return;
            }
            thread::park_timeout(PAUSE);
        }
    }

    fn write(&mut self, rows: &[Row]) {
        let mut text = String::new();
        if self.lost > 0 {
            text = json!({ "lost": self.lost }).to_string() + "\n";
        }
        for event in events_of(rows) {
            text += &serde_json::to_string(&event).expect("a row is an object with text keys");
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
                self.lost += rows.len() as u64;
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
