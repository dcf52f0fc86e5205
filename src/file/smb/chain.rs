//! A message, or a chain of them in one frame: requests one after the other, and their answers as
//! one frame.
//!
//! Decides which session, tree and file a request means, that requests come signed or sealed, and
//! that answers go as the requests came. What a request does is decided in [`super::operations`].

use std::sync::{Arc, PoisonError};

use hyper::body::Bytes;

use super::connection::{Connection, Ended, Room, heavy};
use super::gates_and_faults::{self, Arrival};
use super::operations::{self, Answer, Call, Done, Wait};
use super::request_row::RequestRow;
use super::session::Session;
use super::status::Status;
use super::wire::{self, Command, FileId, Header, Reader, header};
use super::{logon, tree};

/// The most requests of a chain.
const CHAIN_MAX: usize = 256;

/// The requests of a frame.
pub struct Chain {
    connection: Arc<Connection>,
    requests: Vec<(Header, Bytes)>,
    /// The session that the frame was sealed for.
    sealed: Option<Arc<Session>>,
    room: Option<Room>,
}

/// What a related request takes over from the one before it.
#[derive(Clone, Copy, Default)]
struct Related {
    session: u64,
    tree: u32,
    file: Option<FileId>,
    refused: Option<Status>,
}

/// The answers of a chain that are not sent yet.
#[derive(Default)]
struct Answers {
    messages: Vec<(Vec<u8>, Option<Arc<Session>>)>,
    room: Vec<Room>,
}

/// How a request ends.
enum End {
    Answered(Answer, Option<Arc<Session>>),
    Waits(Wait, Arc<Session>),
}

impl Chain {
    /// Takes the requests of a frame. Logons are carried out before the next frame is read, all
    /// else side by side with what follows.
    pub async fn take(
        connection: &Arc<Connection>,
        message: Bytes,
        sealed: Option<Arc<Session>>,
        room: Room,
    ) -> Result<(), Ended> {
        let requests = split(connection, &message, sealed.as_ref())?;
        let Some((first, bytes)) = requests.first() else { return Ok(()) };
        let is_alone = requests.len() == 1;
        match Command::of(first.command) {
            Some(Command::Negotiate) if is_alone => logon::negotiate(connection, first, bytes),
            Some(Command::SessionSetup) if is_alone => {
                logon::session_setup(connection, first, bytes, sealed.as_deref()).await
            }
            // Nothing else is answered before the dialect is known.
            _ if connection.negotiated.get().is_none() => Err(Ended),
            _ => {
                let connection = Arc::clone(connection);
                let chain = Self { connection, requests, sealed, room: Some(room) };
                tokio::spawn(chain.run());
                Ok(())
            }
        }
    }

    async fn run(self) {
        let connection = Arc::clone(&self.connection);
        tokio::select! {
            ended = self.work() => if ended.is_err() { connection.cut() },
            () = connection.gone() => {}
        }
    }

    async fn work(mut self) -> Result<(), Ended> {
        let mut related = Related::default();
        let mut answers = Answers::default();
        let mut requests = std::mem::take(&mut self.requests).into_iter().peekable();
        while let Some((header, message)) = requests.next() {
            match self.one(&header, &message, &mut related, &mut answers).await? {
                End::Answered(answer, session) => {
                    self.add(&mut answers, &header, related, answer, session);
                }
                End::Waits(wait, session) if requests.peek().is_none() => {
                    // Nobody needs the message any more.
                    drop((requests, message, self.room.take()));
                    return self.wait(&header, wait, session, answers).await;
                }
                // Others follow, and a chain does not wait (MS-SMB2 3.3.5.2.7).
                End::Waits(wait, session) => {
                    (wait.cancel)();
                    let mut answer = wait.answer.await;
                    if answer.status == Status::CANCELLED {
                        answer = Answer::refused(Status::INTERNAL_ERROR);
                    }
                    self.add(&mut answers, &header, related, answer, Some(session));
                }
            }
        }
        self.flush(&mut answers).await
    }

    /// Carries one request out. Session, tree and file of a related one are those of the request
    /// before it.
    async fn one(
        &self,
        header: &Header,
        message: &Bytes,
        related: &mut Related,
        answers: &mut Answers,
    ) -> Result<End, Ended> {
        if !header.has(header::FLAG_RELATED) {
            let (session, tree) = (header.session_id, header.tree_id);
            *related = Related { session, tree, ..Related::default() };
        }
        let refused = |status: Status| Ok(End::Answered(Answer::refused(status), None));
        if related.session == 0 && header.has(header::FLAG_RELATED) {
            // It is the first of its chain, or the one before it had no session.
            let session = self.connection.session(header.session_id);
            return Ok(End::Answered(Answer::refused(Status::INVALID_PARAMETER), session));
        }
        let session = self.connection.session(related.session);
        let Some(command) = Command::of(header.command) else {
            return refused(Status::INVALID_PARAMETER);
        };
        let Some(session) = session else {
            return match command {
                Command::Echo => Ok(End::Answered(Answer::done(), None)),
                _ if header.has(header::FLAG_RELATED) => refused(Status::INVALID_PARAMETER),
                _ => {
                    // A client that has logged off knows the keys for the answer.
                    let left = self.connection.left(related.session);
                    Ok(End::Answered(Answer::refused(Status::USER_SESSION_DELETED), left))
                }
            };
        };
        let done = match self.admit(header, message, &session).await? {
            Err(status) => Err(status),
            Ok(()) => self.go(command, header, message, (&session, related), answers).await?,
        };
        Ok(match done {
            Ok(Done::Now(answer)) => {
                related.file = answer.file.or(related.file);
                related.refused = Some(answer.status).filter(|status| status.is_failure());
                End::Answered(answer, Some(session))
            }
            Ok(Done::Waits(wait)) => End::Waits(wait, session),
            Err(status) => {
                related.refused = Some(status);
                End::Answered(Answer::refused(status), Some(session))
            }
        })
    }

    /// Checks how a request came. A broken signature ends the connection.
    async fn admit(
        &self,
        header: &Header,
        message: &Bytes,
        session: &Arc<Session>,
    ) -> Result<Result<(), Status>, Ended> {
        if let Some(sealed) = &self.sealed {
            let is_its = Arc::ptr_eq(sealed, session);
            session.admits(true);
            return if is_its { Ok(Ok(())) } else { Err(Ended) };
        }
        if !header.has(header::FLAG_SIGNED) {
            let is_free = !self.connection.site.options.signing && session.admits(false);
            return Ok(if is_free { Ok(()) } else { Err(Status::ACCESS_DENIED) });
        }
        let (signer, signed) = (Arc::clone(session), message.clone());
        let verified = heavy(message.len(), move || signer.keys.verifies(&signed)).await;
        match verified {
            Ok(true) if session.admits(false) => Ok(Ok(())),
            Ok(true) => Ok(Err(Status::ACCESS_DENIED)),
            Ok(false) => Err(Ended),
            Err(status) => Ok(Err(status)),
        }
    }

    async fn go(
        &self,
        command: Command,
        header: &Header,
        message: &Bytes,
        (session, related): (&Arc<Session>, &Related),
        answers: &mut Answers,
    ) -> Result<Result<Done, Status>, Ended> {
        let site = &self.connection.site;
        if site.accounts.halted().is_some() {
            return Err(Ended);
        }
        match command {
            Command::Echo => return Ok(Ok(Done::Now(Answer::done()))),
            Command::Logoff => return Ok(tree::log_off(&self.connection, session).await),
            Command::TreeConnect => return Ok(tree::connect(session, message)),
            Command::Negotiate | Command::SessionSetup | Command::Cancel => {
                return Ok(Err(Status::INVALID_PARAMETER));
            }
            Command::TreeDisconnect => {
                return Ok(tree::disconnect(site, session, related.tree).await);
            }
            _ => {}
        }
        let tree = match session.tree(related.tree) {
            Ok(tree) => tree,
            Err(status) => return Ok(Err(status)),
        };
        let is_related = header.has(header::FLAG_RELATED);
        let open = match open_of(command, message, (session, related, is_related)) {
            Ok(open) => open,
            Err(status) => return Ok(Err(status)),
        };
        let mut call = Call {
            connection: Arc::clone(&self.connection),
            session: Arc::clone(session),
            tree,
            open,
            header: *header,
            message: message.clone(),
            notes: None,
        };
        if let Err(status) = call.check_charge() {
            return Ok(Err(status));
        }
        let row = RequestRow::begin(command, &mut call);
        let visit = match gates_and_faults::arrive(command, &call).await {
            Ok(Arrival::Goes(visit)) => visit,
            Ok(Arrival::Refused(status)) => return Ok(row.settle(Err(status))),
            Err(Ended) => {
                row.dropped();
                return Err(Ended);
            }
        };
        answers.room.extend(operations::room_for(&call, command).await);
        let done = operations::carry_out(command, call).await;
        if site.accounts.halted().is_some() {
            return Err(Ended);
        }
        let status = match &done {
            Ok(Done::Now(answer)) => answer.status,
            // Its interim answer: an exploration's client may be the one that it waits for.
            Ok(Done::Waits(_)) => Status::PENDING,
            Err(status) => *status,
        };
        if gates_and_faults::leave(site, visit, status).await.is_err() {
            row.dropped();
            return Err(Ended);
        }
        Ok(row.settle(done))
    }

    /// Sends the interim answer together with the answers before it, since clients cancel by the
    /// asynchronous ID as soon as they have those; waits for the end, and sends the answer.
    async fn wait(
        self,
        header: &Header,
        wait: Wait,
        session: Arc<Session>,
        answers: Answers,
    ) -> Result<(), Ended> {
        let connection = Arc::clone(&self.connection);
        let id = connection.site.next_id();
        let Some(mut place) = connection.waiting.enter(id, header.message_id) else {
            (wait.cancel)();
            wait.answer.await;
            let answer = Answer::refused(Status::INSUFFICIENT_RESOURCES);
            return self.send_after(answers, header, 0, answer, session).await;
        };
        let interim = Answer::refused(Status::PENDING);
        self.send_after(answers, header, id, interim, Arc::clone(&session)).await?;
        let Wait { mut answer, cancel } = wait;
        let answered = tokio::select! {
            answered = &mut answer => answered,
            _ = &mut place.cancelled => {
                cancel();
                answer.await
            }
        };
        drop(place);
        let mut last = *header;
        // The interim answer has granted the credits.
        last.credits = 0;
        self.send_after(Answers::default(), &last, id, answered, session).await
    }

    async fn send_after(
        &self,
        mut answers: Answers,
        header: &Header,
        async_id: u64,
        answer: Answer,
        session: Arc<Session>,
    ) -> Result<(), Ended> {
        let related = Related { session: session.id, tree: header.tree_id, ..Related::default() };
        let mut header = *header;
        header.async_id = async_id;
        self.add(&mut answers, &header, related, answer, Some(session));
        self.flush(&mut answers).await
    }

    /// Adds an answer to those that are sent next.
    fn add(
        &self,
        answers: &mut Answers,
        request: &Header,
        related: Related,
        answer: Answer,
        session: Option<Arc<Session>>,
    ) {
        if answer.status.is_failure() {
            self.connection.site.refused(answer.status);
        }
        let is_async = request.async_id != 0;
        let credits = if is_async && request.credits == 0 {
            0
        } else {
            let credits = self.connection.credits.lock();
            credits.unwrap_or_else(PoisonError::into_inner).grant(request.credits)
        };
        let mut flags = header::FLAG_ANSWER | request.flags & header::FLAG_RELATED;
        if is_async {
            flags |= header::FLAG_ASYNC;
        }
        // Without a session there is no key. Clients that sign look for the flag before they look
        // at the status, as they do with Samba.
        if session.is_none() {
            flags |= request.flags & header::FLAG_SIGNED;
        }
        let head = Header {
            credit_charge: request.credit_charge,
            status: answer.status.0,
            command: request.command,
            credits,
            flags,
            message_id: request.message_id,
            async_id: request.async_id,
            tree_id: answer.tree.unwrap_or(related.tree),
            session_id: if related.session == 0 { request.session_id } else { related.session },
            ..Header::default()
        };
        let mut message = answer.body;
        head.fill(&mut message);
        // An answer goes signed if its request came so.
        let signs = request.has(header::FLAG_SIGNED) || self.connection.site.options.signing;
        answers.messages.push((message, session.filter(|_| signs)));
    }

    /// Sends the answers so far as one frame.
    async fn flush(&self, answers: &mut Answers) -> Result<(), Ended> {
        let Answers { messages, room } = std::mem::take(answers);
        if messages.is_empty() {
            return Ok(());
        }
        let sealed = self.sealed.clone();
        let length = messages.iter().map(|(message, _)| message.len()).sum();
        let is_sealed = sealed.is_some();
        let frame = heavy(length, move || {
            let frame = joined(messages, is_sealed);
            match sealed.as_ref().and_then(|session| Some((session, session.keys.seal()?))) {
                Some((session, seal)) => seal.encrypt(session.id, &frame),
                None => frame,
            }
        });
        let frame = frame.await.map_err(|_| Ended)?;
        self.connection.send(frame, room);
        Ok(())
    }
}

/// Splits a frame into its requests and takes their message IDs. A CANCEL is carried out at once.
fn split(
    connection: &Connection,
    message: &Bytes,
    sealed: Option<&Arc<Session>>,
) -> Result<Vec<(Header, Bytes)>, Ended> {
    let mut requests = Vec::new();
    let mut rest = message.clone();
    loop {
        let head = Header::parse(&rest).map_err(|_| Ended)?;
        let (one, behind) = head.split(&rest).map_err(|_| Ended)?;
        let one = rest.slice_ref(one);
        let behind = behind.map(|behind| rest.slice_ref(behind));
        if head.has(header::FLAG_ANSWER) || requests.len() == CHAIN_MAX {
            return Err(Ended);
        }
        if Command::of(head.command) == Some(Command::Cancel) {
            cancel(connection, &head, &one, sealed)?;
        } else {
            let credits = connection.credits.lock();
            if !credits
                .unwrap_or_else(PoisonError::into_inner)
                .take(head.message_id, head.credit_charge)
            {
                return Err(Ended);
            }
            requests.push((head, one));
        }
        match behind {
            Some(behind) => rest = behind,
            None => return Ok(requests),
        }
    }
}

fn cancel(
    connection: &Connection,
    head: &Header,
    message: &[u8],
    sealed: Option<&Arc<Session>>,
) -> Result<(), Ended> {
    if sealed.is_none()
        && head.has(header::FLAG_SIGNED)
        && let Some(session) = connection.session(head.session_id)
        && !session.keys.verifies(message)
    {
        return Err(Ended);
    }
    let async_id = head.has(header::FLAG_ASYNC).then_some(head.async_id);
    connection.waiting.cancel(async_id, head.message_id);
    Ok(())
}

/// The answers as one frame: each but the last padded, with the length to the next one, and signed.
fn joined(messages: Vec<(Vec<u8>, Option<Arc<Session>>)>, is_sealed: bool) -> Vec<u8> {
    const NEXT_AT: usize = 20;
    let last = messages.len() - 1;
    let mut frame = Vec::new();
    for (number, (mut message, session)) in messages.into_iter().enumerate() {
        if number < last {
            message.resize(message.len().next_multiple_of(8), 0);
            let next = u32::try_from(message.len()).expect("answers are bounded");
            message[NEXT_AT..NEXT_AT + 4].copy_from_slice(&next.to_le_bytes());
        }
        if let Some(session) = session.filter(|_| !is_sealed) {
            session.keys.sign(&mut message);
        }
        if frame.is_empty() {
            frame = message;
        } else {
            frame.append(&mut message);
        }
    }
    frame
}

/// Where a request names the file that it is about.
pub fn file_id_at(command: Command) -> Option<usize> {
    let at = match command {
        Command::Close
        | Command::Flush
        | Command::Lock
        | Command::Ioctl
        | Command::QueryDirectory
        | Command::ChangeNotify => 8,
        Command::Read | Command::Write | Command::SetInfo => 16,
        Command::QueryInfo => 24,
        _ => return None,
    };
    Some(wire::header::SIZE + at)
}

/// The open that a request is about, if it is about one.
fn open_of(
    command: Command,
    message: &Bytes,
    (session, related, is_related): (&Session, &Related, bool),
) -> Result<Option<Arc<super::session::Open>>, Status> {
    let Some(at) = file_id_at(command) else { return Ok(None) };
    let mut fields = Reader::new(message);
    let mut id = fields.skip(at).and_then(|()| fields.file_id())?;
    if id == FileId::OF_THE_CHAIN {
        match (related.file, related.refused) {
            (Some(file), _) => id = file,
            (None, Some(status)) => return Err(status),
            // Of control codes some are about no file.
            (None, None) if command == Command::Ioctl && !is_related => return Ok(None),
            (None, None) => return Err(Status::FILE_CLOSED),
        }
    }
    session.open(related.tree, id).map(Some)
}
