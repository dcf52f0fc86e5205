//! `QUERY_DIRECTORY`: the listing of a directory, a buffer at a time.
//!
//! Decides where a listing goes on. Which names there are is decided by the service, which lists
//! them in a fixed order: a name that is there all the time comes exactly once.

use std::sync::PoisonError;

use super::create::facts;
use super::{Answer, Call};
use crate::file::rules::SharePath;
use crate::file::service::{HandleInfo, PageOptions};
use crate::file::smb::names::matches;
use crate::file::smb::session::OpenFile;
use crate::file::smb::status::Status;
use crate::file::smb::wire::directory::{
    DirectoryClass, DirectoryRequest, Entry, Listing, REOPEN, RESTART_SCANS, RETURN_SINGLE_ENTRY,
    buffer_answer,
};

/// The most entries that are read at a time.
const PAGE: usize = 512;
/// The fewest bytes of an entry that has a name.
const ENTRY_MIN: usize = 64;

/// How far the listing of an open directory is.
#[derive(Debug, Default)]
pub struct Search {
    /// None before the first request.
    pattern: Option<String>,
    /// How many of the directory itself and its parent were looked at.
    dots: usize,
    after: Option<String>,
    ended: bool,
}

pub fn list(call: &Call) -> Result<Answer, Status> {
    let request = DirectoryRequest::parse(&call.message)?;
    let class = DirectoryClass::of(request.class).ok_or(Status::INVALID_INFO_CLASS)?;
    let file = call.file()?;
    if !file.directory {
        return Err(Status::INVALID_PARAMETER);
    }
    let info = file.share.handle_info(&file.handle)?;
    let mut search = file.search.lock().unwrap_or_else(PoisonError::into_inner);
    if request.flags & (REOPEN | RESTART_SCANS) != 0 {
        *search = Search::default();
    }
    let is_first = search.pattern.is_none();
    let pattern = search.pattern.get_or_insert(request.pattern).clone();
    let room = usize::try_from(request.room).unwrap_or(usize::MAX);
    let mut listing = Listing::new(class, room);
    let single = request.flags & RETURN_SINGLE_ENTRY != 0;
    let is_full = fill(file, &info, &mut search, &pattern, (&mut listing, room, single))?;
    if listing.is_empty() {
        return Err(match (is_full, is_first) {
            (true, _) => Status::INFO_LENGTH_MISMATCH,
            (false, true) => Status::NO_SUCH_FILE,
            (false, false) => Status::NO_MORE_FILES,
        });
    }
    Ok(Answer::of(buffer_answer(&listing.done())))
}

/// Adds entries until the buffer is full, or holds the only one that is wanted. True if an entry
/// did not fit.
fn fill(
    file: &OpenFile,
    info: &HandleInfo,
    search: &mut Search,
    pattern: &str,
    (listing, room, single): (&mut Listing, usize, bool),
) -> Result<bool, Status> {
    let own = [(".", info.path.clone()), ("..", info.path.parent().unwrap_or_default())];
    while let Some((name, path)) = own.get(search.dots) {
        if matches(pattern, name) {
            let entry = dot(file, info, name, path);
            if !listing.push(&entry) {
                return Ok(true);
            }
        }
        search.dots += 1;
        if single && !listing.is_empty() {
            return Ok(false);
        }
    }
    let literal = pattern.split(['*', '?', '<', '>', '"']).next().unwrap_or_default();
    let limit = if single { 1 } else { (room / ENTRY_MIN).clamp(1, PAGE) };
    while !search.ended {
        let page = file.share.list_page(
            &info.path,
            PageOptions {
                prefix: literal,
                after: search.after.as_deref(),
                limit,
                smb: true,
                pending: true,
            },
        )?;
        for one in page.entries {
            let facts = one.smb.as_ref().map(|smb| facts(&one.stat, smb)).unwrap_or_default();
            let entry = Entry { name: one.name, facts, file_id: one.stat.id.ino };
            if matches(pattern, &entry.name) {
                if !listing.push(&entry) {
                    return Ok(true);
                }
                if single {
                    search.after = Some(entry.name);
                    return Ok(false);
                }
            }
            search.after = Some(entry.name);
        }
        search.ended = page.next.is_none();
        search.after = page.next.or(search.after.take());
    }
    Ok(false)
}

/// The entry of the directory itself, or of the one above it. The root is its own parent.
fn dot(file: &OpenFile, info: &HandleInfo, name: &str, path: &SharePath) -> Entry {
    let mut entry = Entry {
        name: name.to_owned(),
        facts: facts(&info.stat, &info.smb),
        file_id: info.stat.id.ino,
    };
    if *path != info.path
        && let Ok(stat) = file.share.stat(path)
    {
        entry.file_id = stat.id.ino;
    }
    entry
}
