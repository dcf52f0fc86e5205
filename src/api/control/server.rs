//! Connections that speak in lines of JSON: one thread each and a bounded number of them.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::connection::ControlConnection;
use super::protocol::ControlAnswer;
use super::refusal::FailureKind;
use super::serving::Serving;
use super::wire::{read_request, write_answer};

/// The most connections at a time: each is a thread. `hold` and `run` take one each.
pub const CONNECTIONS_MAX: usize = 256;

/// The longest line of a request, in bytes, without its end.
pub const LINE_MAX: usize = 1 << 20;

/// How long a client may take to read an answer.
const WRITE_WAIT: Duration = Duration::from_secs(30);

/// How long a stop waits for connections to end what they are doing.
const STOP_WAIT: Duration = Duration::from_secs(5);

impl LineConnections {
    /// Serves a connection on a thread of its own; `pid` is the process behind it.
    pub fn begin(
        self: &Arc<Self>,
        mut stream: UnixStream,
        pid: u32,
        serving: &Arc<dyn Serving>,
    ) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(WRITE_WAIT))?;
        let Some(number) = self.enter(&stream) else {
            let message = format!("the server has {CONNECTIONS_MAX} connections already: end some");
            turn_away(&mut stream, FailureKind::Busy, message.clone());
            return Err(io::Error::other(message));
        };
        let (serving, leaving) = (Arc::clone(serving), Arc::clone(self));
        let spawned = thread::Builder::new().name("latchfs-control".into()).spawn(move || {
            let mut connection = ControlConnection::of_socket(serving, number, pid);
            serve(stream, &mut connection);
            // What it holds ends before the place is free.
            drop(connection);
            leaving.leave(number);
        });
        spawned.map(drop).inspect_err(|_| self.leave(number))
    }

    /// Cuts all connections, and waits a while for them to end what they are doing.
    pub fn stop(&self) {
        if !self.end_all(STOP_WAIT) {
            log::warn!("a control connection is busy and is left to the end of the process");
        }
    }
}

fn turn_away(stream: &mut UnixStream, kind: FailureKind, message: String) {
    // A client that has gone needs no answer.
    drop(stream.write_all(&write_answer(&ControlAnswer::Failed { kind, message })));
}

fn serve(stream: UnixStream, connection: &mut ControlConnection) {
    let mut lines = ControlLines(BufReader::new(stream));
    while let Some(read) = lines.next_line() {
        let request = match read {
            Ok(line) => read_request(&line),
            Err(message) => {
                lines.write(&ControlAnswer::bad(message));
                return;
            }
        };
        match request {
            Ok(received) => connection.carry_out(received, &mut lines),
            Err(message) => lines.write(&ControlAnswer::bad(message)),
        }
    }
}

/// The lines of a connection, both ways.
pub struct ControlLines(BufReader<UnixStream>);

impl ControlLines {
    /// The next line; an error for one that is too long, after which nothing can be read; none at
    /// the end.
    pub fn next_line(&mut self) -> Option<Result<Vec<u8>, String>> {
        let mut line = Vec::new();
        let mut limited = (&mut self.0).take(LINE_MAX as u64 + 1);
        limited.read_until(b'\n', &mut line).ok().filter(|read| *read > 0)?;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > LINE_MAX {
            return Some(Err(format!("a request has at most {LINE_MAX} bytes")));
        }
        Some(Ok(line))
    }

    /// Answers. A client that has gone is noticed at the next read.
    pub fn write(&mut self, answer: &ControlAnswer) {
        drop(self.0.get_mut().write_all(&write_answer(answer)));
    }
}

#[derive(Default)]
struct OpenStreams {
    streams: HashMap<u64, UnixStream>,
    last: u64,
}

/// The connections there are.
#[derive(Default)]
pub struct LineConnections {
    open: Mutex<OpenStreams>,
    left: Condvar,
}

impl LineConnections {
    fn open(&self) -> MutexGuard<'_, OpenStreams> {
        self.open.lock().expect("the list of connections is only added to and taken from")
    }

    /// A place for one more, if there is one.
    fn enter(&self, stream: &UnixStream) -> Option<u64> {
        let mut open = self.open();
        if open.streams.len() >= CONNECTIONS_MAX {
            return None;
        }
        let stream = stream.try_clone().ok()?;
        open.last += 1;
        let number = open.last;
        open.streams.insert(number, stream);
        Some(number)
    }

    fn leave(&self, number: u64) {
        self.open().streams.remove(&number);
        self.left.notify_all();
    }

    /// Cuts all of them and waits for them to end; false if some are still there after `patience`.
    fn end_all(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        let mut open = self.open();
        for stream in open.streams.values() {
            // It may have been closed by the client just now.
            drop(stream.shutdown(Shutdown::Read));
        }
        while !open.streams.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.left.wait_timeout(open, left);
            open = waited.expect("the list of connections is only added to and taken from").0;
        }
        true
    }
}
