//! What requests of SMB clients read and write: which files a request names. What that comprises is
//! decided in [`crate::file::rules::footprint`].

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::chain::file_id_at;
use super::names;
use super::operations::Call;
use super::wire::set_info::{SetFile, SetInfo};
use super::wire::{Command, header};
use crate::file::rules::footprint::{file, listed, read, written};
use crate::rules::footprint::Footprint;

/// The footprint of a request on a share; `place` is share and path.
pub fn of(command: Command, call: &Call, place: &str) -> Footprint {
    let account = &call.session.account;
    let (share, path) = place.split_once('/').unwrap_or((place, ""));
    let named = file(account, share, path);
    match command {
        // An open and its end change what others may do.
        Command::Create | Command::Close | Command::Lock | Command::Write => written(named),
        Command::SetInfo => {
            let mut found = written(named);
            if let Some(to) = new_name(&call.message) {
                found.writes.push(file(account, share, &to));
            }
            found
        }
        Command::QueryDirectory => listed(named, ""),
        _ => read(named),
    }
}

/// The new name that a rename or a link gives.
fn new_name(message: &[u8]) -> Option<String> {
    let request = SetInfo::parse(message).ok()?;
    match SetFile::parse(request.class, request.data).ok()?? {
        SetFile::Rename { name, .. } | SetFile::Link { name, .. } => {
            Some(names::path(&name).ok()?.as_str().to_owned())
        }
        _ => None,
    }
}

/// Equal for the same request, however often it is sent: the ID of the file is another one with
/// each open.
pub fn fingerprint(command: Command, call: &Call, place: &str) -> u64 {
    const ID: usize = 16;
    let mut hasher = DefaultHasher::new();
    (command as u16, place).hash(&mut hasher);
    let body = call.message.get(header::SIZE..).unwrap_or_default();
    match file_id_at(command).map(|at| at - header::SIZE) {
        Some(at) if body.len() >= at + ID => {
            (&body[..at], &body[at + ID..]).hash(&mut hasher);
        }
        _ => body.hash(&mut hasher),
    }
    hasher.finish()
}
