//! Named pipes: calls come in as writes, answers go out as reads. What a call means is decided in
//! [`super::srvsvc`].

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::srvsvc::Server;
use super::{Answer, Call};
use crate::file::smb::status::Status;
use crate::file::smb::wire::data::read_answer;

#[derive(Debug, Default)]
pub struct Pipe {
    server: Server,
    /// The answer that is not read yet.
    output: Vec<u8>,
}

/// Takes a call in. A client that reads no answers may make no more calls.
pub fn write(pipe: &Mutex<Pipe>, call: &Call, bytes: &[u8]) -> Result<(), Status> {
    let mut pipe = lock(pipe);
    if !pipe.output.is_empty() {
        return Err(Status::INVALID_PARAMETER);
    }
    pipe.output = pipe.server.answer(bytes, &call.session.files)?;
    Ok(())
}

/// Takes up to `most` bytes of the answer out: with a warning, if there are more.
pub fn take(pipe: &Mutex<Pipe>, most: u32) -> Result<(Vec<u8>, Status), Status> {
    let mut pipe = lock(pipe);
    if pipe.output.is_empty() {
        return Err(Status::END_OF_FILE);
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(pipe.output.len());
    let taken = pipe.output.drain(..most).collect();
    let is_all = pipe.output.is_empty();
    Ok((taken, if is_all { Status::SUCCESS } else { Status::BUFFER_OVERFLOW }))
}

pub fn read(pipe: &Mutex<Pipe>, most: u32) -> Result<Answer, Status> {
    let (bytes, status) = take(pipe, most)?;
    Ok(Answer { status, ..Answer::of(read_answer(&bytes)) })
}

fn lock(pipe: &Mutex<Pipe>) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}
