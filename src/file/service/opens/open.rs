//! Opening and closing: the check and the grant are one step under the file's own lock.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::super::error::{FileError, Result};
use super::super::share::{Attempt, ChangeNotice, Missed, Share, Target, TryResult, retry};
use super::posix::{Creation, PosixOpen};
use super::table::{FileCell, Latched};
use crate::disk::StoreError;
use crate::file::rules::create::{CreateAction, ExistingFile, OpenRequest};
use crate::file::rules::file::{Closed, Ending, OpenGrant};
use crate::file::rules::opens::OpenSlot;
use crate::file::rules::ranges::Ticket;
use crate::file::rules::{Access, Attributes, Denial, ShareMode, SharePath};
use crate::file::store::share::{FileKind, FoundFile, OpenFor, Record, Stat, data};
use crate::journal::Happening;
use crate::rules::{Context, FileId, HandleId, Owner};

/// An open that was granted. It lasts until it is given to [`Share::close`], or force-closed.
#[derive(Debug)]
pub struct Handle {
    id: HandleId,
    slot: OpenSlot,
    cell: Arc<FileCell>,
}

impl Handle {
    pub(super) fn new(id: HandleId, slot: OpenSlot, cell: &Arc<FileCell>) -> Self {
        Self { id, slot, cell: Arc::clone(cell) }
    }

    pub fn id(&self) -> HandleId {
        self.id
    }

    /// The file it is open on.
    pub fn file(&self) -> FileId {
        self.cell.id
    }

    pub(crate) fn slot(&self) -> OpenSlot {
        self.slot
    }

    pub(crate) fn cell(&self) -> &Arc<FileCell> {
        &self.cell
    }
}

#[derive(Debug)]
pub struct OpenedFile {
    pub handle: Handle,
    /// Whether the file was opened, created or overwritten.
    pub action: CreateAction,
    /// The file's path as spelled on disk.
    pub path: SharePath,
    /// The file as it is now.
    pub stat: Stat,
    /// The descriptor with which this open created or cut the file, opened for at least the open's
    /// access. A front end that uses it needs no further call that could fail.
    pub made: Option<OwnedFd>,
}

impl Share {
    /// Opens, creates or overwrites as an SMB client can ask for it.
    pub fn open(
        &self,
        cx: &Context,
        path: &SharePath,
        request: &OpenRequest,
    ) -> Result<OpenedFile> {
        self.open_posix(cx, path, request, PosixOpen::default())
    }

    /// Opens a file with the options that the mount adds.
    pub fn open_posix(
        &self,
        cx: &Context,
        path: &SharePath,
        request: &OpenRequest,
        posix: PosixOpen,
    ) -> Result<OpenedFile> {
        let answer = self.open_unnoted(cx, path, request, posix);
        self.note_refusal("open", path, cx.owner(), answer)
    }

    /// `open(2)`. The refusal of an open by a name that the kernel may look up again is not noted
    /// if there is no such file.
    pub fn mount_open(
        &self,
        attempt: Attempt,
        cx: &Context,
        path: &SharePath,
        request: &OpenRequest,
        posix: PosixOpen,
    ) -> Option<Result<OpenedFile>> {
        let answer = self.open_unnoted(cx, path, request, posix);
        if posix.by_lost_name && matches!(answer, Err(FileError::Denied(Denial::NotFound))) {
            return Some(answer);
        }
        let wants = (request.rights.access(), request.share);
        let told = ("open", path, cx.owner());
        self.final_answer(attempt, told, (Target::Names(&[path]), wants), answer)
    }

    /// Opens without noting a refusal in the journal: for a caller that may ask again, and notes
    /// the final answer. A grant is final and is noted here.
    pub(crate) fn open_unnoted(
        &self,
        cx: &Context,
        path: &SharePath,
        request: &OpenRequest,
        posix: PosixOpen,
    ) -> Result<OpenedFile> {
        request.check_options()?;
        let _names = self.names()?;
        // The mount creates what its kernel has just not found: made without looking first, and
        // looked at if it is there after all, or may be.
        if posix.creation.is_some() && request.on_absent().is_ok() {
            match self.open_absent(cx, path, request, posix) {
                Err(
                    Missed::Moved
                    | Missed::Failed(FileError::Denied(Denial::ParentDeletePending { .. })),
                ) => {}
                Err(Missed::Failed(error)) => return Err(error),
                Ok(made) => return Ok(made),
            }
        }
        retry(|| match self.see(path) {
            Ok(seen) => self.lock_seen(&seen, |cell, latched| {
                Ok(self.open_latched(cx, &seen.found, (request, posix), cell, latched)?)
            }),
            Err(StoreError::NotFound) => self.open_absent(cx, path, request, posix),
            Err(error) => Err(error.into()),
        })
    }

    fn open_latched(
        &self,
        cx: &Context,
        found: &FoundFile,
        (request, posix): (&OpenRequest, PosixOpen),
        cell: &Arc<FileCell>,
        latched: &mut Latched,
    ) -> Result<OpenedFile> {
        let FoundFile { path, stat } = found.clone();
        let mut target = ExistingFile {
            directory: stat.kind == FileKind::Directory,
            attributes: Attributes::default(),
        };
        let action = request.on_existing(&target)?;
        if request.wants_attributes(action) {
            target = self.target(&path, &stat)?;
        }
        let empties = matches!(action, CreateAction::Overwritten | CreateAction::Superseded);
        let cuts =
            posix.truncate && posix.cuts_only.is_none_or(|file| file == stat.id) && stat.size > 0;
        let grant = self.grant(cx);
        let id = grant.id;
        let slot = latched.state.open(request, action, &target, &path, grant)?;
        let etag = || self.etag_at(&path).ok();
        let before = cx.noted.as_ref().filter(|_| empties).and_then(|_| etag());
        let on_disk = if empties {
            self.empty(&path, stat, request.attributes).map(|now| (None, now))
        } else if cuts {
            let access = request.rights.access();
            self.cut(&path, stat, access, posix).map(|(fd, now)| (Some(fd), now))
        } else {
            Ok((None, stat))
        };
        let (made, stat) = on_disk.inspect_err(|_| take_back(latched, slot, id))?;
        if posix.without_flush {
            latched.state.set_flushed(slot, id, cx.now)?;
        }
        if before.is_some() {
            self.note_change(cx, &path, (before, etag()));
        }
        self.note_grant(cx, (stat.id, &path), id, request);
        let handle = Handle { id, slot, cell: Arc::clone(cell) };
        Ok(OpenedFile { handle, action, path, stat, made })
    }

    /// Notes a grant, if grants are noted; the file's lock is held.
    pub(super) fn note_grant(
        &self,
        cx: &Context,
        (file, path): (FileId, &SharePath),
        handle: HandleId,
        request: &OpenRequest,
    ) {
        if self.notes_all() {
            let (access, share) = (request.rights.access(), request.share);
            self.note(Some(file), path, cx.owner(), Happening::Granted { handle, access, share });
        }
    }

    /// Overwrites a file: sets its length to 0 and replaces its attributes.
    fn empty(&self, path: &SharePath, stat: Stat, attributes: Attributes) -> Result<Stat> {
        let fd = self.disk().open_file(path, OpenFor::Write)?;
        let mut record = self.load_record(&fd, stat.id)?;
        let mut attributes = (attributes != Attributes::default()).then_some(attributes);
        let changes = record.attributes != attributes;
        if changes {
            std::mem::swap(&mut record.attributes, &mut attributes);
            self.save_record(&fd, stat.id, &mut record)?;
        }
        // The bytes last: they cannot be had back.
        if let Err(error) = data::set_len(&fd, 0) {
            if changes {
                record.attributes = attributes;
                // The first error is the one to tell.
                drop(self.save_record(&fd, stat.id, &mut record));
            }
            return Err(error.into());
        }
        Ok(emptied(&fd, stat))
    }

    /// Sets the length of a file to 0, through a descriptor that the open then uses.
    fn cut(
        &self,
        path: &SharePath,
        stat: Stat,
        access: Access,
        posix: PosixOpen,
    ) -> Result<(OwnedFd, Stat)> {
        let how = if access.contains(Access::R) { OpenFor::Write } else { OpenFor::WriteOnly };
        let fd = self.disk().open_file(path, how)?;
        if let Some(before) = posix.before_cut {
            before(&fd)?;
        }
        data::set_len(&fd, 0)?;
        let now = emptied(&fd, stat);
        Ok((fd, now))
    }

    fn open_absent(
        &self,
        cx: &Context,
        path: &SharePath,
        request: &OpenRequest,
        posix: PosixOpen,
    ) -> TryResult<OpenedFile> {
        let made = request.on_absent().map_err(FileError::from).and_then(|action| {
            let make = |path: &SharePath| self.make(path, request, posix.creation);
            self.make_entry(path, make, |path, (made, stat)| {
                self.table().with(stat.id, |cell, latched| {
                    let target = ExistingFile {
                        directory: stat.kind == FileKind::Directory,
                        attributes: request.attributes,
                    };
                    let grant = self.grant(cx);
                    let id = grant.id;
                    let slot = latched.state.open(request, action, &target, path, grant)?;
                    if cx.noted.is_some() {
                        self.note_change(cx, path, (None, self.etag_at(path).ok()));
                    }
                    self.note_grant(cx, (stat.id, path), id, request);
                    let handle = Handle { id, slot, cell: Arc::clone(cell) };
                    Ok(OpenedFile { handle, action, path: path.clone(), stat, made })
                })
            })
        });
        match made {
            // Somebody else made it in between: it exists now.
            Err(FileError::Denied(Denial::NameTaken)) => Err(Missed::Moved),
            made => Ok(made?),
        }
    }

    fn make(
        &self,
        path: &SharePath,
        request: &OpenRequest,
        creation: Option<Creation>,
    ) -> Result<(Option<OwnedFd>, Stat)> {
        let mode = |default| creation.map_or(default, |creation| creation.mode);
        let (made, stat) = if request.options.directory {
            (None, self.disk().create_dir(path, mode(self.options().dir_mode))?)
        } else {
            let (fd, stat) = self.disk().create_file(path, mode(self.options().file_mode))?;
            (Some(fd), stat)
        };
        let finished = self.finish_made(path, request, creation, made.as_ref(), stat);
        let stat = finished.inspect_err(|_| self.unmake(path, stat))?;
        if request.attributes == Attributes::default() {
            self.note_without_record(&stat);
        }
        Ok((made, stat))
    }

    /// Gives a new file its attributes and its owner.
    fn finish_made(
        &self,
        path: &SharePath,
        request: &OpenRequest,
        creation: Option<Creation>,
        made: Option<&OwnedFd>,
        stat: Stat,
    ) -> Result<Stat> {
        if request.attributes != Attributes::default() {
            let mut record = Record { attributes: Some(request.attributes), ..Record::default() };
            let directory = match made {
                Some(_) => None,
                None => Some(self.disk().open_file(path, OpenFor::Read)?),
            };
            let fd = made.or(directory.as_ref()).expect("one of them is open");
            self.save_record(fd, stat.id, &mut record)?;
        }
        creation.map_or(Ok(stat), |creation| self.own(path, stat, creation))
    }

    /// Makes a new entry under the lock of its directory, which must not be delete pending (dp58),
    /// and runs `then` before that lock is released. Until then no other caller reaches the entry
    /// by its name.
    pub(crate) fn make_entry<M, T>(
        &self,
        path: &SharePath,
        make: impl FnOnce(&SharePath) -> Result<M>,
        then: impl FnOnce(&SharePath, M) -> Result<T>,
    ) -> Result<T> {
        let (parent, name) = path.split().ok_or(Denial::NameTaken)?;
        let mut steps = Some((make, then));
        let parent = SharePath::new(parent)?;
        let mut make_in = |parent: &SharePath, latched: &Latched| -> TryResult<T> {
            check_gets_entries(latched, parent, false)?;
            let (make, then) = steps.take().expect("an entry is made once");
            let _making = self.making();
            // Whether the name is free is found out by making it, under the store's own lock.
            let path = parent.join(name)?;
            let entry = make(&path)?;
            Ok(then(&path, entry)?)
        };
        // Mostly the kernel or this operation has looked at the directory just now.
        let known = self.lock_known_dir(&parent, |latched| make_in(&parent, latched));
        match known {
            Some(Err(Missed::Failed(error))) => return Err(error),
            Some(Ok(made)) => return Ok(made),
            Some(Err(Missed::Moved)) | None => {}
        }
        retry(|| {
            let seen = match self.see(&parent) {
                Ok(seen) if seen.found.stat.kind != FileKind::File => seen,
                Ok(_) | Err(StoreError::NotFound) => return Err(Denial::PathNotFound.into()),
                Err(error) => return Err(error.into()),
            };
            self.lock_seen(&seen, |_, latched| make_in(&seen.found.path, latched))
        })
    }

    pub(super) fn grant(&self, cx: &Context) -> OpenGrant {
        OpenGrant { id: self.next_handle(), owner: cx.owner().clone(), now: cx.now }
    }

    /// Ends an open: its share mode and locks are gone, and a name that was waiting for this to
    /// be deleted is removed.
    pub fn close(&self, handle: &Handle) -> Result<()> {
        self.end(handle, None).map(drop)
    }

    /// Ends an open and says which name was removed with it, if one was.
    pub fn release(&self, handle: &Handle) -> Result<Option<SharePath>> {
        let closed = self.end(handle, None)?;
        Ok(closed.remove.then_some(closed.path))
    }

    /// Ends the open of that identity, and the opens that end with it; returns how many ended.
    pub fn force_close(&self, cx: &Context, id: HandleId) -> Result<u64> {
        for cell in self.table().cells() {
            let slot = cell.latch().state.find(id);
            if let Some(slot) = slot {
                return self.force_close_at(cx.owner(), &Handle { id, slot, cell }, false);
            }
        }
        Ok(0)
    }

    /// Ends an open; `by` is the caller of a forced close.
    pub(super) fn end(&self, handle: &Handle, by: Option<&Owner>) -> Result<Closed> {
        // No directory above is renamed meanwhile: a name that goes with this open is removed
        // where it is, and the table follows such a rename a moment after the disk.
        let names = self.names_in_any_phase()?;
        let (closed, wake) = self.table().with_cell(&handle.cell, |latched| {
            let closed = self.end_latched(handle, latched, by);
            // Whatever the disk says, the open is over: its locks go, and others get theirs.
            (closed, Wake::after_close(latched, handle.id, by.is_some()))
        });
        drop(names);
        if let Ok(closed) = &closed
            && closed.remove
        {
            // Before others are woken: one of them may make a file of that name.
            self.tell(ChangeNotice::Name(&closed.path));
        }
        self.wake(wake);
        let closed = closed?;
        let owner = &closed.open.owner;
        if closed.marked {
            self.note(None, &closed.path, owner, Happening::MarkedForDeletion);
        }
        if closed.remove {
            self.note(None, &closed.path, owner, Happening::Removed);
        }
        Ok(closed)
    }

    fn end_latched(
        &self,
        handle: &Handle,
        latched: &mut Latched,
        by: Option<&Owner>,
    ) -> Result<Closed> {
        let &Handle { id, slot, .. } = handle;
        let (open, path) = latched.state.get(slot, id)?;
        let directory = open.directory;
        let forced = by.is_some();
        let how = if forced {
            Ending::Forced
        } else {
            let may_mark = open.delete_on_close && directory;
            let not_empty = may_mark && !self.disk().is_empty(path).unwrap_or(true);
            Ending::Closed { not_empty }
        };
        let closed = latched.state.close(slot, id, how)?;
        // Whatever the disk says to the rest of it: the open is over.
        if forced || self.notes_all() {
            let who = by.unwrap_or(&closed.open.owner);
            let what = Happening::Closed { handle: id, forced };
            self.note(Some(handle.file()), &closed.path, who, what);
        }
        self.carry_out_end(handle.file(), latched, &closed, directory)?;
        Ok(closed)
    }

    /// Changes the share mode of an open. Returns the one that it had.
    pub fn mount_set_share(
        &self,
        attempt: Attempt,
        cx: &Context,
        handle: &Handle,
        share: ShareMode,
    ) -> Option<Result<ShareMode>> {
        let seen = self.describe(handle).and_then(|had| Ok((had, self.path_of(handle)?)));
        let (had, path) = match seen {
            Ok(seen) => seen,
            Err(error) => return Some(Err(error)),
        };
        // A refusal lets no request through, and requests that it woke would ask again at once.
        let set = self.latched(handle, |latched, path| {
            latched.state.set_share(handle.slot, handle.id, share)?;
            if self.notes_all() {
                let what = Happening::Shared { handle: handle.id, share };
                self.note(Some(handle.file()), path, cx.owner(), what);
            }
            Ok(Wake::changed(latched))
        });
        let answer = set.map(|wake| self.wake(wake)).map(|()| had.share);
        let told = ("set share mode", &path, cx.owner());
        self.final_answer(attempt, told, (Target::Beside(handle), (had.access, share)), answer)
    }
}

/// Refuses a new entry in a directory that is delete pending (dp58).
pub(crate) fn check_gets_entries(
    latched: &Latched,
    directory: &SharePath,
    renaming: bool,
) -> Result<()> {
    match latched.state.pending_holder(directory) {
        Some(holder) => {
            Err(Denial::ParentDeletePending { holder: Box::new(holder), renaming }.into())
        }
        None => Ok(()),
    }
}

/// The attributes of a file that was just cut to 0 bytes. If they cannot be read, the old ones with
/// the new length: the cut cannot be undone.
fn emptied(fd: &OwnedFd, before: Stat) -> Stat {
    Stat::of(fd).unwrap_or(Stat { size: 0, ..before })
}

/// Removes an open whose work on the disk failed, without a mark and without a removal.
fn take_back(latched: &mut Latched, slot: OpenSlot, id: HandleId) {
    let taken = latched.state.close(slot, id, Ending::Forced);
    debug_assert!(taken.is_ok(), "it was granted under this very lock");
}

/// The waiting requests that a change answers, for [`Share::wake`] after the file's lock is
/// released.
#[must_use]
pub(crate) struct Wake {
    /// The change could let a refused request through.
    changed: bool,
    answers: Vec<(super::table::Completion, std::result::Result<(), Denial>)>,
}

impl Wake {
    pub(crate) fn nobody() -> Self {
        Self { changed: false, answers: Vec::new() }
    }

    /// After any change that could let a refused request through.
    pub(crate) fn changed(latched: &mut Latched) -> Self {
        let mut wake = Self { changed: true, answers: Vec::new() };
        for ticket in latched.state.grant_waiting() {
            wake.add(latched, ticket, Ok(()));
        }
        wake
    }

    /// After the end of an open: its own waiting requests end with it (br30). Those of an open that
    /// was closed by force get the answer that every later use of it gets.
    fn after_close(latched: &mut Latched, id: HandleId, forced: bool) -> Self {
        let ended = latched.state.release_ranges(id);
        let mut wake = Self::changed(latched);
        for ticket in ended {
            let answer = if forced { Denial::HandleClosed } else { Denial::RangeNotLocked };
            wake.add(latched, ticket, Err(answer));
        }
        wake
    }

    /// Adds the answer of a request for a lock.
    pub(crate) fn add(
        &mut self,
        latched: &mut Latched,
        ticket: Ticket,
        answer: std::result::Result<(), Denial>,
    ) {
        if let Some(completion) = latched.waiting.answered(ticket) {
            self.answers.push((completion, answer));
        }
    }

    /// Answers the requests; true if the change could let a refused request through.
    pub(crate) fn answer(self) -> bool {
        for (completion, answer) in self.answers {
            completion(answer);
        }
        self.changed
    }
}
