//! The asking end of the control socket: commands, and tests in other processes.
//!
//! Decides how long a command waits: as long as the server works on the answer. A server that was
//! stopped by a signal will not answer, and is named instead. A thread of an async runtime must not
//! ask: it would wait.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::call::{Call, has_body, name_in};
use super::failure::RefusalDetail;
use super::failure::{ErrorAnswer, ErrorDetail, REFUSED_HEADER};
use super::guard::{VERSION, VERSION_HEADER};
use super::socket;

/// The longest answer that is read, in bytes: a list of the most handles fits well.
pub const ANSWER_MAX: usize = 64 << 20;

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
    /// The server speaks another version of the API.
    #[error(
        "the server speaks {0}, this command version {VERSION} of the API: use the same latchfs \
         for the server and the command"
    )]
    Version(String),
    #[error("talking to the server: {0}")]
    Io(#[from] io::Error),
    /// The answer makes no sense.
    #[error("the server's answer cannot be read: {0}")]
    Answer(String),
    /// A rule refused.
    #[error("{}", .0.message)]
    Refused(Box<RefusalDetail>),
    /// The call was not carried out, and no rule refused it.
    #[error("{}", .0.message)]
    Failed(Box<ErrorDetail>),
}

/// A client of the server of a control socket. Each call has a connection of its own.
#[derive(Debug)]
pub struct ApiClient {
    socket: PathBuf,
    account: Option<String>,
}

impl ApiClient {
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), account: None }
    }

    /// Asks about this account from now on; about the server's first if there is none.
    #[must_use]
    pub fn of_account(self, account: Option<&str>) -> Self {
        Self { account: account.map(str::to_owned), ..self }
    }

    /// Asks, and waits for the answer.
    pub fn ask<C: Call>(&self, call: &C) -> Result<C::Answer, ClientError> {
        serde_json::from_slice(self.open(call)?.rest()?).map_err(unreadable)
    }

    /// Asks for an answer that goes on, a line at a time.
    pub fn open<C: Call>(&self, call: &C) -> Result<AnswerLines, ClientError> {
        let stream = socket::connect(&self.socket).map_err(|source| {
            let path = self.socket.clone();
            match source.kind() {
                ErrorKind::PermissionDenied => ClientError::NotOwner { path },
                // What the system said tells no more: there is nobody behind the socket.
                _ => ClientError::NoServer { path },
            }
        })?;
        let server = socket::peer(&stream).map(|(_, pid)| pid).unwrap_or_default();
        stream.set_nonblocking(true)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let request = self.request(call)?;
        let answer = watched(&runtime, server, async {
            let stream = TokioIo::new(UnixStream::from_std(stream)?);
            let (mut sender, connection) = http1::handshake(stream).await.map_err(told)?;
            tokio::spawn(connection);
            sender.send_request(request).await.map_err(told)
        })?;
        check_version(&answer)?;
        let (head, body) = answer.into_parts();
        let mut lines = AnswerLines { runtime, server, body, read: Vec::new() };
        if head.status.is_success() {
            return Ok(lines);
        }
        let ErrorAnswer { error } = serde_json::from_slice(lines.rest()?).map_err(unreadable)?;
        Err(failure(error, head.headers.contains_key(REFUSED_HEADER)))
    }

    fn request<C: Call>(&self, call: &C) -> Result<Request<Full<Bytes>>, ClientError> {
        let Value::Object(mut values) = json!(call) else {
            return Err(ClientError::Answer("a call is an object".to_owned()));
        };
        let text = |value: &Value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string()
        };
        let mut parts = Vec::new();
        for part in C::PATH.split('/') {
            let value = name_in(part).map(|name| values.remove(name).unwrap_or_default());
            if value.as_ref().is_some_and(|value| value == "") {
                let (kind, message) = ("bad_request".to_owned(), format!("{part} is empty"));
                return Err(failure(ErrorDetail { kind, message, holder: None }, false));
            }
            parts.push(value.as_ref().map_or_else(|| part.to_owned(), text));
        }
        let mut target = parts.join("/");
        let mut query = Vec::new();
        if let Some(account) = &self.account {
            query.push(format!("account={}", text(&json!(account))));
        }
        let body = if has_body(&C::METHOD) {
            json!(values).to_string()
        } else {
            let given = values.iter().filter(|(_, value)| !value.is_null());
            query.extend(given.map(|(name, value)| format!("{name}={}", text(value))));
            String::new()
        };
        if !query.is_empty() {
            target = format!("{target}?{}", query.join("&"));
        }
        let request = Request::builder()
            .method(C::METHOD)
            .uri(target)
            .header(HOST, "latchfs")
            .header(CONTENT_TYPE, "application/json")
            .header(VERSION_HEADER, VERSION)
            .body(Full::new(body.into()));
        request.map_err(|error| ClientError::Answer(error.to_string()))
    }
}

/// An answer that goes on. What the call holds ends when this is dropped.
pub struct AnswerLines {
    runtime: Runtime,
    /// The process of the server.
    server: u32,
    body: Incoming,
    read: Vec<u8>,
}

impl AnswerLines {
    /// The next line; `None` at the end.
    pub fn next_line<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ClientError> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return serde_json::from_slice(&line).map(Some).map_err(|error| {
                    // An error that came after the head.
                    match serde_json::from_slice(&line) {
                        Ok(ErrorAnswer { error }) => failure(error, true),
                        Err(_) => unreadable(error),
                    }
                });
            }
            match self.next_bytes()? {
                Some(bytes) => self.read.extend(bytes),
                None => return Ok(None),
            }
        }
    }

    /// The first line of an answer that has one.
    pub fn first<T: DeserializeOwned>(&mut self) -> Result<T, ClientError> {
        self.next_line()?.ok_or(ClientError::Gone)
    }

    /// Returns when the answer has ended, however.
    pub fn wait_for_end(&mut self) {
        while let Ok(Some(_)) = self.next_bytes() {}
    }

    /// The answer up to its end.
    fn rest(&mut self) -> Result<&[u8], ClientError> {
        while let Some(bytes) = self.next_bytes()? {
            self.read.extend(bytes);
        }
        Ok(&self.read)
    }

    fn next_bytes(&mut self) -> Result<Option<Bytes>, ClientError> {
        if self.read.len() > ANSWER_MAX {
            return Err(ClientError::Answer(format!("it has more than {ANSWER_MAX} bytes")));
        }
        let body = &mut self.body;
        watched(&self.runtime, self.server, async {
            match body.frame().await {
                Some(frame) => {
                    let bytes = frame.map_err(told)?.into_data();
                    Ok(Some(bytes.unwrap_or_default()))
                }
                None => Ok(None),
            }
        })
    }
}

/// Waits for the server, as long as its process runs.
fn watched<T>(
    runtime: &Runtime,
    server: u32,
    answer: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    runtime.block_on(async {
        tokio::pin!(answer);
        loop {
            match timeout(LOOK, &mut answer).await {
                Ok(answer) => return answer,
                Err(_) if is_stopped(server) => {
                    return Err(ClientError::Stopped(i32::try_from(server).unwrap_or_default()));
                }
                Err(_) => {}
            }
        }
    })
}

/// Whether a signal or a debugger has stopped the process.
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before it may hold anything, brackets too.
    let state = stat.rsplit_once(") ").and_then(|(_, behind)| behind.bytes().next());
    matches!(state, Some(b'T' | b't'))
}

fn check_version(answer: &Response<Incoming>) -> Result<(), ClientError> {
    match answer.headers().get(VERSION_HEADER) {
        Some(version) if version == VERSION => Ok(()),
        Some(version) => {
            let version = version.to_str().unwrap_or("?");
            Err(ClientError::Version(format!("version {version} of the API")))
        }
        None => Err(ClientError::Version("no version of the API".to_owned())),
    }
}

fn failure(error: ErrorDetail, refused: bool) -> ClientError {
    let ErrorDetail { kind, message, holder } = &error;
    match serde_json::from_value(json!(kind)) {
        Ok(kind) if refused => {
            let (message, holder) = (message.clone(), holder.as_deref().cloned());
            ClientError::Refused(Box::new(RefusalDetail { kind, message, holder }))
        }
        _ => ClientError::Failed(Box::new(error)),
    }
}

fn unreadable(error: serde_json::Error) -> ClientError {
    ClientError::Answer(error.to_string())
}

fn told(error: hyper::Error) -> ClientError {
    if error.is_parse() {
        // 0.2 and older answer with lines of JSON.
        return ClientError::Version("the protocol of 0.2 or older".to_owned());
    }
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return ClientError::Gone;
    }
    ClientError::Io(io::Error::other(error))
}
