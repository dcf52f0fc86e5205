//! NEGOTIATE and `SESSION_SETUP`: the dialect of a connection, and who logs on.
//!
//! Decides what is chosen of a client's offers, and that wrong keys are slowed down. Tokens and
//! keys are checked in [`super::auth`].

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::sleep;

use super::auth::{self, Keys, LogonError, Preauth, Proven, Step};
use super::connection::{Connection, Ended, IO_MAX, SMALL_IO, on_pool};
use super::server::{Password, Site};
use super::session::Session;
use super::status::Status;
use super::times::filetime;
use super::wire::negotiate::{
    CAPABILITY_ENCRYPTION, CAPABILITY_LARGE_MTU, CIPHER_AES_128_CCM, CIPHER_AES_128_GCM, Contexts,
    NegotiateAnswer, NegotiateRequest, SIGNING_ENABLED, SIGNING_REQUIRED, SMB_2_0_2, SMB_2_1,
    SMB_2_WILDCARD, SMB_3_0, SMB_3_0_2, SMB_3_1_1, Smb1Negotiate,
};
use super::wire::session::{BINDING, SessionSetup, session_answer};
use super::wire::{self, Header, header};
use crate::clock::{SystemClock, TimeSource as _};
use crate::rules::who::{ClientBy, Identity, Who};
use crate::rules::{Client, Owner};
use crate::sync::random;

/// What is spoken, the newest first.
const DIALECTS: [u16; 5] = [SMB_3_1_1, SMB_3_0_2, SMB_3_0, SMB_2_1, SMB_2_0_2];
/// The pause after a wrong key. One follows the other, whatever connections they come from.
const WRONG_KEY_PAUSE: Duration = Duration::from_millis(250);
static WRONG_KEY: Mutex<()> = Mutex::const_new(());

/// What a connection speaks.
pub struct Negotiated {
    pub dialect: u16,
    pub capabilities: u32,
    /// The most bytes of a read, a write and any other exchange.
    pub max_bytes: u32,
    /// What the client had offered.
    pub offer: NegotiateRequest,
    cipher: u16,
    preauth: Preauth,
}

/// A logon that waits for its next message.
pub struct Logon {
    steps: auth::Logon,
    preauth: Preauth,
    /// The session that proves itself once more.
    again: Option<Arc<Session>>,
}

/// What is told of signatures.
pub fn security_mode(site: &Site) -> u16 {
    if site.options.signing { SIGNING_ENABLED | SIGNING_REQUIRED } else { SIGNING_ENABLED }
}

/// The first message of old clients: the dialect is chosen in a second one, if they can do that.
pub fn negotiate_from_smb1(connection: &Connection, frame: &[u8]) -> Result<(), Ended> {
    let asked = Smb1Negotiate::parse(frame).map_err(|_| Ended)?;
    if connection.negotiated.get().is_some() || !take_credit(connection, 0) {
        return Err(Ended);
    }
    if asked.knows_later {
        let body = answer_body(connection, SMB_2_WILDCARD, None);
        answer(connection, &Header::default(), (0, Status::SUCCESS), body, None);
        return Ok(());
    }
    if !asked.knows_2_0_2 {
        return Err(Ended);
    }
    let offer = NegotiateRequest { dialects: vec![SMB_2_0_2], ..NegotiateRequest::default() };
    choose(connection, SMB_2_0_2, 0, offer, Preauth::default());
    let body = answer_body(connection, SMB_2_0_2, None);
    answer(connection, &Header::default(), (0, Status::SUCCESS), body, None);
    Ok(())
}

/// Chooses the dialect. A second NEGOTIATE ends the connection.
pub fn negotiate(connection: &Connection, head: &Header, message: &[u8]) -> Result<(), Ended> {
    if connection.negotiated.get().is_some() {
        return Err(Ended);
    }
    let refuse = |status| {
        answer(connection, head, (0, status), wire::error(&[]), None);
        Ok(())
    };
    let Ok(offer) = NegotiateRequest::parse(message) else {
        return refuse(Status::INVALID_PARAMETER);
    };
    if offer.dialects.is_empty() {
        return refuse(Status::INVALID_PARAMETER);
    }
    let Some(dialect) = DIALECTS.into_iter().find(|one| offer.dialects.contains(one)) else {
        return refuse(Status::NOT_SUPPORTED);
    };
    if dialect == SMB_3_1_1 && !offer.has_sha_512 {
        return refuse(Status::INVALID_PARAMETER);
    }
    let ciphers = [CIPHER_AES_128_GCM, CIPHER_AES_128_CCM];
    let cipher = ciphers.into_iter().find(|one| offer.ciphers.contains(one)).unwrap_or(0);
    let contexts = (dialect == SMB_3_1_1).then(|| Contexts {
        salt: random::bytes(),
        cipher: (!offer.ciphers.is_empty()).then_some(cipher),
        signature: !offer.signatures.is_empty(),
    });
    let body = answer_body(connection, dialect, contexts);
    let mut preauth = Preauth::default();
    preauth.update(message);
    let sent = answer(connection, head, (0, Status::SUCCESS), body, None);
    preauth.update(&sent);
    choose(connection, dialect, cipher, offer, preauth);
    Ok(())
}

fn choose(
    connection: &Connection,
    dialect: u16,
    cipher: u16,
    offer: NegotiateRequest,
    preauth: Preauth,
) {
    let (capabilities, max_bytes) = (capabilities(dialect), max_bytes(dialect));
    let negotiated = Negotiated { dialect, capabilities, max_bytes, offer, cipher, preauth };
    // The caller has seen that there is none, and no other message is taken meanwhile.
    let _ = connection.negotiated.set(negotiated);
}

fn capabilities(dialect: u16) -> u32 {
    match dialect {
        SMB_2_0_2 => 0,
        SMB_3_0 | SMB_3_0_2 => CAPABILITY_LARGE_MTU | CAPABILITY_ENCRYPTION,
        // 3.1.1 says by its contexts that it encrypts.
        _ => CAPABILITY_LARGE_MTU,
    }
}

fn max_bytes(dialect: u16) -> u32 {
    if dialect == SMB_2_0_2 { SMALL_IO } else { IO_MAX }
}

fn answer_body(connection: &Connection, dialect: u16, contexts: Option<Contexts>) -> Vec<u8> {
    let answer = NegotiateAnswer {
        security_mode: security_mode(&connection.site),
        dialect,
        server_guid: connection.site.guid,
        capabilities: capabilities(dialect),
        max_bytes: max_bytes(dialect),
        now: filetime(SystemClock.now()),
        token: &auth::offer(),
        contexts,
    };
    answer.write()
}

/// One message of a logon. Of a session that is there, it proves once more who the client is.
pub async fn session_setup(
    connection: &Arc<Connection>,
    head: &Header,
    message: &[u8],
    sealed: Option<&Session>,
) -> Result<(), Ended> {
    let negotiated = connection.negotiated.get().ok_or(Ended)?;
    let refuse = |id, status| {
        connection.site.refused(status);
        answer(connection, head, (id, status), wire::error(&[]), sealed);
        Ok(())
    };
    let Ok(setup) = SessionSetup::parse(message) else {
        return refuse(head.session_id, Status::INVALID_PARAMETER);
    };
    if setup.flags & BINDING != 0 {
        return refuse(head.session_id, Status::REQUEST_NOT_ACCEPTED);
    }
    let (id, mut logon) = match begin(connection, negotiated, head, message)? {
        Ok(begun) => begun,
        Err(status) => return refuse(head.session_id, status),
    };
    logon.preauth.update(message);
    let mut passwords = Vec::new();
    let step = logon.steps.step(setup.token, filetime(SystemClock.now()), |user| {
        passwords = connection.site.accounts.passwords(user);
        passwords.iter().map(|one| one.text.clone()).collect()
    });
    match step {
        Ok(Step::Continue(token)) => {
            let status = Status::MORE_PROCESSING_REQUIRED;
            let body = session_answer(0, &token);
            let sent = answer(connection, head, (id, status), body, sealed);
            logon.preauth.update(&sent);
            if connection.keep_logon(id, logon) { Ok(()) } else { Err(Ended) }
        }
        Ok(Step::Done(proven)) => {
            let of = (passwords, setup.previous_session);
            match complete(connection, (id, logon), &proven, of).await {
                Ok(session) => {
                    let body = session_answer(0, &proven.token);
                    let status = Status::SUCCESS;
                    answer_signed(connection, head, (id, status), body, &session, sealed);
                    Ok(())
                }
                Err(status) => refuse(id, status),
            }
        }
        Err(LogonError::Malformed) => refuse(id, Status::INVALID_PARAMETER),
        Err(why) => {
            log::info!("a logon of {} was refused: {why}", connection.peer);
            let _one_by_one = WRONG_KEY.lock().await;
            sleep(WRONG_KEY_PAUSE).await;
            refuse(id, Status::LOGON_FAILURE)
        }
    }
}

/// The logon that a message begins or goes on with.
fn begin(
    connection: &Connection,
    negotiated: &Negotiated,
    head: &Header,
    message: &[u8],
) -> Result<Result<(u64, Logon), Status>, Ended> {
    let id = head.session_id;
    let new =
        |again| Logon { steps: auth::Logon::default(), preauth: negotiated.preauth.clone(), again };
    if id == 0 {
        return Ok(Ok((connection.site.next_id(), new(None))));
    }
    if let Some(logon) = connection.take_logon(id) {
        return Ok(Ok((id, logon)));
    }
    let Some(session) = connection.session(id) else {
        return Ok(Err(Status::USER_SESSION_DELETED));
    };
    if head.has(header::FLAG_SIGNED) && !session.keys.verifies(message) {
        return Err(Ended);
    }
    Ok(Ok((id, new(Some(session)))))
}

/// Makes the session of a client that proved to have a key.
async fn complete(
    connection: &Arc<Connection>,
    (id, logon): (u64, Logon),
    proven: &Proven,
    (passwords, previous): (Vec<Password>, u64),
) -> Result<Arc<Session>, Status> {
    let site = &connection.site;
    let user = proven.user.to_lowercase();
    if let Some(session) = logon.again {
        // The keys of a session stay.
        return if *session.account == *user { Ok(session) } else { Err(Status::ACCESS_DENIED) };
    }
    let files = site.accounts.files(&user).ok_or(Status::LOGON_FAILURE)?;
    let negotiated = connection.negotiated.get().ok_or(Status::INVALID_PARAMETER)?;
    let (dialect, cipher) = (negotiated.dialect, negotiated.cipher);
    let keys = Keys::new(dialect, cipher, &proven.session_key, &logon.preauth);
    let client = passwords.get(proven.matched).and_then(|password| password.client.clone());
    let caller = caller(connection, id, client);
    let session = Session::new(id, (user.as_str().into(), files), caller, keys, connection);
    if let Some(old) = site.session(previous).filter(|old| old.account == session.account) {
        end(&old).await?;
    }
    let session = Arc::new(session);
    if connection.add_session(&session) { Ok(session) } else { Err(Status::USER_SESSION_DELETED) }
}

/// Ends a session that its client has given up: it logs on again after its connection broke.
async fn end(session: &Arc<Session>) -> Result<(), Status> {
    let Some(connection) = session.connection() else { return Ok(()) };
    connection.remove_session(session.id);
    let (site, session) = (Arc::clone(&connection.site), Arc::clone(session));
    on_pool(move || session.end(&site)).await
}

/// The client, as the journal and the table of opens name it: by the key that it logged on with, or
/// by its address.
fn caller(connection: &Connection, session: u64, client: Option<Arc<str>>) -> (Who, Owner) {
    let name = format!("SMB {}", connection.peer);
    let named = client.clone().map(|name| Identity { name, by: ClientBy::Key });
    let who = Who { connection: name.as_str().into(), named, thread: None };
    let client_of_opens = Arc::new(Client { session, name });
    (who, Owner { client: client_of_opens, pid: 0, program: client })
}

fn take_credit(connection: &Connection, id: u64) -> bool {
    connection.credits.lock().unwrap_or_else(PoisonError::into_inner).take(id, 1)
}

/// Sends an answer, and returns it as it was sent.
fn answer(
    connection: &Connection,
    request: &Header,
    (session_id, status): (u64, Status),
    mut message: Vec<u8>,
    sealed: Option<&Session>,
) -> Vec<u8> {
    head_of(connection, request, session_id, status).fill(&mut message);
    send(connection, message.clone(), sealed);
    message
}

fn answer_signed(
    connection: &Connection,
    request: &Header,
    (session_id, status): (u64, Status),
    mut message: Vec<u8>,
    session: &Session,
    sealed: Option<&Session>,
) {
    head_of(connection, request, session_id, status).fill(&mut message);
    if sealed.is_none() {
        session.keys.sign(&mut message);
    }
    send(connection, message, sealed);
}

fn send(connection: &Connection, mut message: Vec<u8>, sealed: Option<&Session>) {
    if let Some((session, seal)) = sealed.and_then(|one| Some((one, one.keys.seal()?))) {
        message = seal.encrypt(session.id, &message);
    }
    connection.send(message, Vec::new());
}

fn head_of(connection: &Connection, request: &Header, session_id: u64, status: Status) -> Header {
    let credits = connection.credits.lock().unwrap_or_else(PoisonError::into_inner);
    let credits = { credits }.grant(request.credits);
    Header {
        credit_charge: request.credit_charge,
        status: status.0,
        command: request.command,
        credits,
        flags: header::FLAG_ANSWER,
        message_id: request.message_id,
        session_id,
        ..Header::default()
    }
}
