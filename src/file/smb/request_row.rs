//! The row of a request in the journal: what it asked for, what it read and changed, and how it was
//! answered.
//!
//! Decides what a row tells of a command. `ETags` before and after a change come from the service,
//! which takes them under the file's lock.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::connection::Connection;
use super::operations::{Answer, Call, Done, Wait};
use super::session::Open;
use super::status::Status;
use super::wire::Command;
use super::wire::create::CreateRequest;
use super::wire::data::{ReadRequest, WriteRequest};
use super::wire::set_info::{CLASS_BASIC, SetInfo};
use crate::file::rules::ShareMode;
use crate::journal::Event;
use crate::journal::row::{AnswerEnd, AnsweredRequest, RequestRefusal};
use crate::rules::asked::{Asked, Parts};
use crate::rules::service::ServiceKind;
use crate::rules::{Cause, Noted};

/// Where a request notes what it reads and changes, and which rule refused it.
#[derive(Debug, Default)]
pub struct RequestNotes {
    pub noted: Arc<Noted>,
    pub cause: OnceLock<Cause>,
}

/// A request under way, for the journal. Dropped without an answer, its client went away.
pub struct RequestRow(Option<Box<Gathered>>);

struct Gathered {
    connection: Arc<Connection>,
    account: Arc<str>,
    began: Instant,
    notes: Arc<RequestNotes>,
    open: Option<Arc<Open>>,
    /// It makes a file that is not there, and replaces none.
    only_makes: bool,
    answered: AnsweredRequest,
}

impl RequestRow {
    /// Begins the row of a request on a share; empty if requests are not recorded. `call` notes
    /// what it does from now on.
    pub fn begin(command: Command, call: &mut Call) -> Self {
        let connection = Arc::clone(&call.connection);
        let journal = &connection.site.accounts.controls().journal;
        if call.tree.share.is_none() || !journal.records_all() {
            return Self(None);
        }
        let notes = Arc::<RequestNotes>::default();
        call.notes = Some(Arc::clone(&notes));
        let answered = AnsweredRequest {
            operation: command.name(),
            path: call.place(command),
            asked: asked(command, call),
            ..AnsweredRequest::of(ServiceKind::File, call.session.who.clone())
        };
        Self(Some(Box::new(Gathered {
            connection,
            account: Arc::clone(&call.session.account),
            began: Instant::now(),
            notes,
            open: call.open.clone(),
            only_makes: command == Command::Create && only_makes(call),
            answered,
        })))
    }

    /// The request is answered now, or when its wait ends.
    pub fn settle(self, done: Result<Done, Status>) -> Result<Done, Status> {
        match done {
            Ok(Done::Waits(Wait { answer, cancel })) => {
                let answer = Box::pin(async move {
                    let answer: Answer = answer.await;
                    self.answered(answer.status);
                    answer
                });
                Ok(Done::Waits(Wait { answer, cancel }))
            }
            Ok(Done::Now(answer)) => {
                self.answered(answer.status);
                Ok(Done::Now(answer))
            }
            Err(status) => {
                self.answered(status);
                Err(status)
            }
        }
    }

    pub fn answered(mut self, status: Status) {
        if let Some(mut row) = self.0.take() {
            row.refuse(status);
            // The end of a connection ends what waits on its opens.
            let is_gone = row.connection.is_gone();
            row.push(if is_gone { AnswerEnd::ClientGone } else { AnswerEnd::Sent });
        }
    }

    /// A fault, a reset or a restore closes the connection instead.
    pub fn dropped(mut self) {
        if let Some(row) = self.0.take() {
            row.push(AnswerEnd::Dropped);
        }
    }
}

impl Drop for RequestRow {
    fn drop(&mut self) {
        if let Some(row) = self.0.take() {
            row.push(AnswerEnd::ClientGone);
        }
    }
}

impl Gathered {
    fn refuse(&mut self, status: Status) {
        let cause = self.notes.cause.get();
        let by_rule = cause.map(|cause| cause.spelled.status);
        self.answered.status = Some(by_rule.unwrap_or_else(|| status.http()));
        if status.is_failure() {
            self.answered.code = status.to_string();
            let cause = cause.cloned().map(Box::new);
            let message =
                cause.as_ref().map_or_else(|| status.to_string(), |it| it.message.clone());
            self.answered.refusal = Some(RequestRefusal { message, cause, conflict: None });
        }
    }

    fn push(self, end: AnswerEnd) {
        let Self { connection, account, began, notes, open, only_makes, mut answered } = self;
        (answered.answer, answered.took) = (end, began.elapsed());
        answered.given = notes.noted.take();
        if answered.refusal.is_some() {
            answered.given.changed.clear();
        }
        let file = open.as_ref().and_then(|open| open.file().ok());
        // Nobody else has written since this open read, if its share mode keeps others out.
        let is_alone = file.is_some_and(|file| {
            !file.share_mode.contains(ShareMode::W) && file.has_read.load(Ordering::Relaxed)
        });
        if only_makes || is_alone {
            answered.given.changed.iter_mut().for_each(|changed| changed.guarded = Some(true));
        }
        if let Some(file) = file.filter(|_| answered.given.etag_read.is_some()) {
            file.has_read.store(true, Ordering::Relaxed);
        }
        let controls = connection.site.accounts.controls();
        controls.journal.push(Some(account), Event::Request(Box::new(answered)));
    }
}

fn only_makes(call: &Call) -> bool {
    const CREATE: u32 = 2;
    const OPEN_IF: u32 = 3;
    let request = CreateRequest::parse(&call.message);
    request.is_ok_and(|request| [CREATE, OPEN_IF].contains(&request.disposition))
}

/// What a request asks for. A message that cannot be read asks for nothing, and is refused.
fn asked(command: Command, call: &Call) -> Asked {
    let range =
        |first: u64, length: usize| Parts::Range(first, first.saturating_add(length as u64));
    let message = &call.message;
    match command {
        Command::Read => {
            let read = ReadRequest::parse(message).ok();
            let parts = read.map(|read| range(read.offset, read.length as usize));
            Asked { parts, ..Asked::default() }
        }
        Command::Write => match WriteRequest::parse(message) {
            Ok(write) => Asked {
                parts: Some(range(write.offset, write.data.len())),
                length: Some(write.data.len() as u64),
                ..Asked::default()
            },
            Err(_) => Asked::default(),
        },
        Command::SetInfo => {
            let is_basic = SetInfo::parse(message).is_ok_and(|set| set.class == CLASS_BASIC);
            Asked { parts: is_basic.then_some(Parts::Headers), ..Asked::default() }
        }
        _ => Asked::default(),
    }
}
