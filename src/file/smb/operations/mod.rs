//! The commands on a tree: each is one call of the service.
//!
//! Decides which of them wait without a thread, and how an error of the service is spelled. Session
//! and tree are found in [`super::chain`].

pub mod close;
pub mod create;
pub mod data;
pub mod directory;
pub mod ioctl;
pub mod lock;
pub mod notify;
pub mod pipe;
pub mod query_info;
pub mod set_info;
mod srvsvc;

use std::pin::Pin;
use std::sync::Arc;

use hyper::body::Bytes;
use tokio::sync::OwnedRwLockReadGuard;

use super::connection::{Connection, Room, on_pool};
use super::logon::Negotiated;
use super::request_row::RequestNotes;
use super::session::{Open, OpenFile, Session, Tree};
use super::status::Status;
use super::wire::create::CreateRequest;
use super::wire::negotiate::SMB_2_0_2;
use super::wire::{self, Command, FileId, Header, WireError};
use crate::file::service::{FileError, Share, StoreError};
use crate::rules::{Caller, Context};

/// Bytes for each credit that a request is charged.
const CREDIT_BYTES: usize = 64 << 10;

/// A request on a tree.
#[derive(Clone)]
pub struct Call {
    pub connection: Arc<Connection>,
    pub session: Arc<Session>,
    pub tree: Arc<Tree>,
    /// What it is about, if the command names a file.
    pub open: Option<Arc<Open>>,
    pub header: Header,
    pub message: Bytes,
    /// None if requests are not recorded.
    pub notes: Option<Arc<RequestNotes>>,
}

/// The answer of a request, with room for its header.
pub struct Answer {
    pub status: Status,
    pub body: Vec<u8>,
    /// The file that related requests mean from now on.
    pub file: Option<FileId>,
    /// The tree that was connected.
    pub tree: Option<u32>,
}

/// An answer that comes later.
pub struct Wait {
    pub answer: Pin<Box<dyn Future<Output = Answer> + Send>>,
    /// Has it come soon, by a CANCEL.
    pub cancel: Box<dyn FnOnce() + Send>,
}

pub enum Done {
    Now(Answer),
    Waits(Wait),
}

impl Answer {
    pub fn of(body: Vec<u8>) -> Self {
        Self { status: Status::SUCCESS, body, file: None, tree: None }
    }

    /// Nothing but that it is done.
    pub fn done() -> Self {
        Self::of(wire::done())
    }

    /// A status without anything else.
    pub fn refused(status: Status) -> Self {
        Self { status, ..Self::of(wire::error(&[])) }
    }
}

impl From<Result<(), Status>> for Answer {
    fn from(done: Result<(), Status>) -> Self {
        done.map_or_else(Self::refused, |()| Self::done())
    }
}

impl Call {
    pub fn open(&self) -> Result<&Arc<Open>, Status> {
        self.open.as_ref().ok_or(Status::FILE_CLOSED)
    }

    pub fn file(&self) -> Result<&OpenFile, Status> {
        self.open()?.file()
    }

    /// Share and path that the request is about, as gates, faults and the journal name them.
    pub fn place(&self, command: Command) -> String {
        let share = self.tree.share.as_deref().unwrap_or("IPC$");
        match &self.open {
            Some(open) => open.place(),
            None => match CreateRequest::parse(&self.message) {
                Ok(request) if command == Command::Create => {
                    format!("{share}/{}", request.name.replace('\\', "/"))
                }
                _ => share.to_owned(),
            },
        }
    }

    /// The time of the request, its client, and where it notes what it does.
    pub fn context(&self, share: &Share, operation: &'static str) -> Context {
        let caller = Caller {
            owner: Arc::clone(&self.session.owner),
            operation,
            address: Some(self.connection.peer),
            request_id: None,
            user_agent: None,
            who: self.session.who.clone(),
        };
        let noted = self.notes.as_ref().map(|notes| Arc::clone(&notes.noted));
        Context { noted, ..Context::new(share.now(), caller) }
    }

    /// The answer of the service; the row of the request has the rule that refused it.
    pub fn told<T>(&self, answer: Result<T, FileError>) -> Result<T, Status> {
        if let (Err(FileError::Denied(denial)), Some(notes)) = (&answer, &self.notes) {
            // A request has one refusal.
            let _ = notes.cause.set(self.session.files.cause(denial));
        }
        Ok(answer?)
    }

    pub fn negotiated(&self) -> &Negotiated {
        self.connection.negotiated.get().expect("a tree was connected after the dialect was chosen")
    }

    /// Refuses more bytes than a request was charged for, and than one may have.
    pub fn check_charge(&self) -> Result<(), Status> {
        let bytes = self.message.len().max(self.answer_bytes());
        let negotiated = self.negotiated();
        // The bound is on the data; headers are not counted.
        let most = negotiated.max_bytes as usize + CREDIT_BYTES;
        let charged = usize::from(self.header.credit_charge.max(1)) * CREDIT_BYTES;
        let is_charged = negotiated.dialect != SMB_2_0_2;
        let answer = self.answer_bytes();
        if bytes > most || answer > negotiated.max_bytes as usize || is_charged && answer > charged
        {
            return Err(Status::INVALID_PARAMETER);
        }
        let sent = self.message.len().saturating_sub(CREDIT_BYTES / 16);
        if is_charged && sent > charged { Err(Status::INVALID_PARAMETER) } else { Ok(()) }
    }

    /// How many bytes the request wants at most.
    fn answer_bytes(&self) -> usize {
        let at = match Command::of(self.header.command) {
            Some(Command::Read | Command::QueryInfo | Command::ChangeNotify) => 4,
            Some(Command::QueryDirectory) => 28,
            _ => return 0,
        };
        let mut fields = wire::Reader::new(&self.message);
        let wanted = fields.skip(wire::header::SIZE + at).and_then(|()| fields.large());
        wanted.unwrap_or_default()
    }
}

/// Room for a long answer.
pub async fn room_for(call: &Call, command: Command) -> Option<Room> {
    if !matches!(command, Command::Read | Command::QueryDirectory) {
        return None;
    }
    Some(call.connection.enter(call.answer_bytes()).await)
}

/// Carries a request out, once requests that end its tree or close its file are done.
pub async fn carry_out(command: Command, call: Call) -> Result<Done, Status> {
    let turn = Arc::clone(&call.tree.turn).read_owned().await;
    // The tree may have ended meanwhile.
    call.session.tree(call.tree.id)?;
    if command == Command::Close {
        return close::close(call, turn).await.map(Done::Now);
    }
    let of_open = match &call.open {
        Some(open) => Some(Arc::clone(&open.turn).read_owned().await),
        None => None,
    };
    let turns = Turns(turn, of_open);
    match command {
        Command::Lock => lock::lock(call, turns).await,
        Command::ChangeNotify => {
            let begun = on_pool(move || {
                let begun = notify::notify(&call);
                drop(turns);
                begun
            });
            begun.await?.map(Done::Waits)
        }
        _ => {
            let work = sync(command).ok_or(Status::NOT_SUPPORTED)?;
            let answer = on_pool(move || {
                let answer = work(&call);
                drop(turns);
                answer
            });
            answer.await?.map(Done::Now)
        }
    }
}

/// Held while a request is under way: what it is about is not closed meanwhile.
#[expect(dead_code, reason = "they are held, not looked at")]
pub struct Turns(OwnedRwLockReadGuard<()>, Option<OwnedRwLockReadGuard<()>>);

type Work = fn(&Call) -> Result<Answer, Status>;

fn sync(command: Command) -> Option<Work> {
    Some(match command {
        Command::Create => create::create,
        Command::Flush => data::flush,
        Command::Read => data::read,
        Command::Write => data::write,
        Command::Ioctl => ioctl::ioctl,
        Command::QueryDirectory => directory::list,
        Command::QueryInfo => query_info::query,
        Command::SetInfo => set_info::set,
        _ => return None,
    })
}

impl From<WireError> for Status {
    fn from(_: WireError) -> Self {
        Self::INVALID_PARAMETER
    }
}

impl From<FileError> for Status {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Denied(denial) => Self::from(&denial),
            FileError::Store(StoreError::NoSpace) => Self::DISK_FULL,
            FileError::Store(StoreError::FileTooLong) => Self::FILE_TOO_LARGE,
            FileError::Store(StoreError::ReadOnly) => Self::MEDIA_WRITE_PROTECTED,
            FileError::Store(StoreError::PermissionDenied) => Self::ACCESS_DENIED,
            FileError::Store(StoreError::NameTooLong) => Self::OBJECT_NAME_INVALID,
            FileError::Store(error) => {
                log::error!("a request of an SMB client: {error}");
                Self::UNEXPECTED_IO_ERROR
            }
        }
    }
}
