//! What the server notes in its log of events, and the file that misses none of them.
//!
//! The file is written by a thread of its own. While that one is behind by the whole log, those
//! who would add to the log wait: an event is late, or it is written. Only a file that cannot be
//! written loses any, and then the next line says how many.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::control::Serving;
use crate::control::events::rows;
use crate::engine::EventLog;
use crate::engine::events::{Event, Reader};

/// How long the thread waits for an event before it looks whether it is to end.
const TICK: Duration = Duration::from_millis(100);

/// The log of events
#[derive(Debug, Args)]
#[command(next_help_heading = "Events")]
pub struct Events {
    /// What the log of events holds, which `latchfs events` shows
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Which::Refusals)]
    #[arg(env = "LATCHFS_EVENTS")]
    #[arg(hide_short_help = true)]
    pub events: Which,

    /// Write all events to the end of this file, a line of JSON each, and lose none
    #[arg(long, value_name = "FILE", env = "LATCHFS_EVENT_LOG")]
    #[arg(hide_short_help = true)]
    pub event_log: Option<PathBuf>,
}

/// Which events are noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// Refusals, forced closes, deletions
    Refusals,
    /// Grants and ordinary closes too
    All,
}

impl Events {
    /// Has the log note what is wanted; gives the file that follows it, if there is to be one.
    pub fn open(&self, log: &Arc<EventLog>) -> Result<Option<Opened>> {
        log.keep_all(self.events == Which::All);
        let Some(path) = &self.event_log else { return Ok(None) };
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let file = file.with_context(|| format!("the event log {}", path.display()))?;
        let reader = log.reader().context("the log has a reader already")?;
        let path = path.clone();
        Ok(Some(Opened { lines: Lines { file, path, lost: 0 }, reader }))
    }
}

/// A file that is ready to be written.
pub struct Opened {
    lines: Lines,
    reader: Reader,
}

impl Opened {
    /// Starts to write.
    pub fn start(self, serving: Arc<dyn Serving>) -> Result<EventFile> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("latchfs-events".into())
            .spawn(move || self.write(&*serving, &stopping))?;
        Ok(EventFile { stop, thread: Some(thread) })
    }

    fn write(mut self, serving: &dyn Serving, stop: &AtomicBool) {
        loop {
            // Asked before the log is: what was noted before the stop is written.
            let last = stop.load(Ordering::Acquire);
            let events = self.reader.next(if last { Duration::ZERO } else { TICK });
            if !events.is_empty() {
                self.lines.write(serving, &events);
            } else if last {
                return;
            }
        }
    }
}

/// A file that is being written. Ends when dropped, with all that was noted before.
pub struct EventFile {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for EventFile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            log::error!("the event log was not written to its end");
        }
    }
}

struct Lines {
    file: File,
    path: PathBuf,
    /// Events that could not be written, and that the file does not tell of yet.
    lost: u64,
}

impl Lines {
    fn write(&mut self, serving: &dyn Serving, events: &[Event]) {
        let mut text = String::new();
        if self.lost > 0 {
            text = json!({ "lost": self.lost }).to_string() + "\n";
        }
        for row in rows(serving, events) {
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
