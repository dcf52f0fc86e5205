//! The asking end of the control socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::protocol::{Answer, Request, read_answer, write_line};
use super::socket;

/// The longest answer that is read, in bytes: a list of the most handles fits well.
pub const ANSWER_MAX: u64 = 64 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("no latchfs serves {}: {source}. Start one with `latchfs serve`", path.display())]
    NoServer {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server went away.
    #[error("the server closed the connection")]
    Gone,
    /// The connection failed.
    #[error("talking to the server: {0}")]
    Io(#[from] io::Error),
    /// The answer makes no sense.
    #[error("the server's answer cannot be read: {0}")]
    Answer(String),
}

/// A connection. What it holds ends when it is dropped.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the server of that socket.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let stream = socket::connect(path)
            .map_err(|source| ClientError::NoServer { path: path.to_owned(), source })?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Asks, and waits for the answer.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, ClientError> {
        let sent = self.stream.get_mut().write_all(&write_line(request));
        // A server that turns a client away says why before it hangs up: read that first.
        match (self.read(), sent) {
            (Err(ClientError::Gone | ClientError::Io(_)), Err(error)) => Err(error.into()),
            (answer, _) => answer,
        }
    }

    /// The same for an answer that takes its time: `progress` is told how many files and bytes are
    /// done.
    pub fn ask_and_watch(
        &mut self,
        request: &Request,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Answer, ClientError> {
        let mut answer = self.ask(request)?;
        while let Answer::Progress { files, bytes } = answer {
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

    fn read(&mut self) -> Result<Answer, ClientError> {
        let mut line = Vec::new();
        let mut limited = (&mut self.stream).take(ANSWER_MAX);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Err(ClientError::Gone);
        }
        read_answer(&line).map_err(ClientError::Answer)
    }
}
