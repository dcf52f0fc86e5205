//! The asking end of the control socket.
//!
//! Decides how long a command waits: as long as the server works on the answer. A server that was
//! stopped by a signal will not answer, and is named instead.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::protocol::{ControlAnswer, ControlRequest};
use super::socket;
use super::wire::{read_answer, write_request};

/// The longest answer that is read, in bytes: a list of the most handles fits well.
pub const ANSWER_MAX: u64 = 64 << 20;

/// How often a server that does not answer is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the server of {} is gone; start it with `latchfs serve`", path.display())]
    NoServer { path: PathBuf },
    /// This user may not connect to the control socket.
    #[error(
        "the control socket {} is open to the user who runs the server, and to root: run the \
         command as that user",
        path.display()
    )]
    NotOwner { path: PathBuf },
    /// The server went away.
    #[error("the server closed the connection")]
    Gone,
    /// The server's process was stopped by a signal and does not run.
    #[error("the server (pid {0}) is stopped: let it go on with `kill -CONT {0}`")]
    Stopped(i32),
    #[error("talking to the server: {0}")]
    Io(#[from] io::Error),
    /// The answer makes no sense.
    #[error("the server's answer cannot be read: {0}")]
    Answer(String),
}

/// A connection. What it holds ends when it is dropped.
#[derive(Debug)]
pub struct ControlClient {
    stream: BufReader<UnixStream>,
    account: Option<String>,
}

impl ControlClient {
    /// Connects to the server of that socket.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let stream = socket::connect(path).map_err(|source| {
            let path = path.to_owned();
            match source.kind() {
                ErrorKind::PermissionDenied => ClientError::NotOwner { path },
                // What the system said tells no more: there is nobody behind the socket.
                _ => ClientError::NoServer { path },
            }
        })?;
        stream.set_read_timeout(Some(LOOK))?;
        Ok(Self { stream: BufReader::new(stream), account: None })
    }

    /// Asks about this account from now on; about the server's first if there is none.
    #[must_use]
    pub fn of_account(self, account: Option<&str>) -> Self {
        Self { account: account.map(str::to_owned), ..self }
    }

    /// Asks, and waits for the answer.
    pub fn ask(&mut self, request: &ControlRequest) -> Result<ControlAnswer, ClientError> {
        let sent =
            self.stream.get_mut().write_all(&write_request(request, self.account.as_deref()));
        // A server that turns a client away says why before it hangs up: read that first.
        match (self.read(), sent) {
            (Err(ClientError::Gone | ClientError::Io(_)), Err(error)) => Err(error.into()),
            (answer, _) => answer,
        }
    }

    /// As [`ControlClient::ask`], for an answer that takes long: `progress` is called with the
    /// number of files and bytes done.
    pub fn ask_and_watch(
        &mut self,
        request: &ControlRequest,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<ControlAnswer, ClientError> {
        let mut answer = self.ask(request)?;
        while let ControlAnswer::Progress { files, bytes } = answer {
            progress(files, bytes);
            answer = self.read()?;
        }
        Ok(answer)
    }

    /// Returns when the server closes the connection.
    pub fn wait_for_end(&mut self) {
        // Any error is an end as well.
        drop(self.read());
    }

    fn read(&mut self) -> Result<ControlAnswer, ClientError> {
        let mut line = Vec::new();
        loop {
            let room = ANSWER_MAX.saturating_sub(line.len() as u64);
            // What came before a pause stays in the line.
            match (&mut self.stream).take(room).read_until(b'\n', &mut line) {
                Ok(0) if line.is_empty() => return Err(ClientError::Gone),
                Ok(_) => return read_answer(&line).map_err(ClientError::Answer),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if let Some(pid) = self.stopped() {
                        return Err(ClientError::Stopped(pid));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The server's process, if a signal or a debugger has stopped it.
    fn stopped(&self) -> Option<i32> {
        let peer = rustix::net::sockopt::socket_peercred(self.stream.get_ref()).ok()?;
        let pid = peer.pid.as_raw_nonzero().get();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may hold anything, brackets too.
        let (_, behind) = stat.rsplit_once(") ")?;
        matches!(behind.as_bytes().first(), Some(b'T' | b't')).then_some(pid)
    }
}
