//! Opening and closing: check and insert in one step, under the file's own lock.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::changes::Change;
use super::error::{Error, Result};
use super::events::Happening;
use super::posix::{Creation, PosixOpen};
use super::share::{Attempt, Share};
use super::table::{FileCell, Latched};
use super::waiting::Nudge;
use crate::core::create::{Action, OpenRequest, Target};
use crate::core::file::{Closed, Ending, Grant};
use crate::core::opens::Slot;
use crate::core::ranges::Ticket;
use crate::core::{Attributes, Denial, FileId, HandleId, Owner, SharePath};
use crate::store::{Found, Kind, OpenFor, Record, Stat, StoreError, data};

/// An open that was granted. It lasts until it is given to [`Share::close`], or force-closed.
#[derive(Debug)]
pub struct Handle {
    id: HandleId,
    slot: Slot,
    cell: Arc<FileCell>,
}

impl Handle {
    /// Its identity.
    pub fn id(&self) -> HandleId {
        self.id
    }

    /// The file it is open on.
    pub fn file(&self) -> FileId {
        self.cell.id
    }

    pub(super) fn slot(&self) -> Slot {
        self.slot
    }

    pub(super) fn cell(&self) -> &Arc<FileCell> {
        &self.cell
    }
}

/// A granted open and what became of the name.
#[derive(Debug)]
pub struct Opened {
    /// The open.
    pub handle: Handle,
    /// What became of the name.
    pub action: Action,
    /// The file's path as spelled on disk.
    pub path: SharePath,
    /// The file as it is now.
    pub stat: Stat,
    /// The descriptor by which the file was made just now, open for reading and writing.
    pub made: Option<OwnedFd>,
}

impl Share {
    /// Opens, creates or overwrites as an SMB client can ask for it.
    pub fn open(&self, who: &Owner, path: &SharePath, request: &OpenRequest) -> Result<Opened> {
        self.open_posix(who, path, request, PosixOpen::default())
    }

    /// The same, with what POSIX adds.
    pub fn open_posix(
        &self,
        who: &Owner,
        path: &SharePath,
        request: &OpenRequest,
        posix: PosixOpen,
    ) -> Result<Opened> {
        let answer = self.open_unnoted(who, path, request, posix);
        self.note_open(who, path, answer)
    }

    /// Notes the refusal of an open, and passes the answer on.
    pub fn note_open(
        &self,
        who: &Owner,
        path: &SharePath,
        answer: Result<Opened>,
    ) -> Result<Opened> {
        self.note_refusal("open", path, who, answer)
    }

    /// Opens without noting a refusal: for a caller that may ask again, and notes the answer that
    /// stands with [`Share::note_open`]. A grant stands, and is noted here.
    pub fn open_unnoted(
        &self,
        who: &Owner,
        path: &SharePath,
        request: &OpenRequest,
        posix: PosixOpen,
    ) -> Result<Opened> {
        request.check_options()?;
        let _names = self.names()?;
        // The mount creates what its kernel has just not found: made without looking first, and
        // looked at if it is there after all, or may be.
        if posix.creation.is_some() && request.on_absent().is_ok() {
            match self.open_absent(who, path, request, posix) {
                Attempt::Again
                | Attempt::Done(Err(Error::Denied(Denial::ParentDeletePending { .. }))) => {}
                Attempt::Done(made) => return made,
            }
        }
        self.with_name(path, |found, generation| match found {
            Ok(found) => self.open_existing(who, &found, generation, (request, posix)),
            Err(StoreError::NotFound) => self.open_absent(who, path, request, posix),
            Err(error) => Attempt::Done(Err(error.into())),
        })
    }

    fn open_existing(
        &self,
        who: &Owner,
        found: &Found,
        generation: u64,
        ask: (&OpenRequest, PosixOpen),
    ) -> Attempt<Opened> {
        let Found { path, stat } = found;
        self.table.with(stat.id, |cell, latched| {
            if !self.is_still(path, stat.id, generation) {
                return Attempt::Again;
            }
            Attempt::Done(self.open_latched(who, found, ask, cell, latched))
        })
    }

    fn open_latched(
        &self,
        who: &Owner,
        found: &Found,
        (request, posix): (&OpenRequest, PosixOpen),
        cell: &Arc<FileCell>,
        latched: &mut Latched,
    ) -> Result<Opened> {
        let Found { path, mut stat } = found.clone();
        let mut target =
            Target { directory: stat.kind == Kind::Directory, attributes: Attributes::default() };
        let action = request.on_existing(&target)?;
        if request.wants_attributes(action) {
            target = self.target(&path, &stat)?;
        }
        let grant = self.grant(who);
        let id = grant.id;
        let slot = latched.state.open(request, action, &target, &path, grant)?;
        if matches!(action, Action::Overwritten | Action::Superseded) {
            match self.empty(&path, stat.id, request.attributes) {
                Ok(now) => stat = now,
                Err(error) => {
                    take_back(latched, slot, id);
                    return Err(error);
                }
            }
        }
        if posix.truncate && stat.size > 0 {
            match self.cut(&path) {
                Ok(now) => stat = now,
                Err(error) => {
                    take_back(latched, slot, id);
                    return Err(error);
                }
            }
        }
        self.note_grant(who, (stat.id, &path), id, request);
        let handle = Handle { id, slot, cell: Arc::clone(cell) };
        Ok(Opened { handle, action, path, stat, made: None })
    }

    /// Notes a grant, if grants are noted; the file's lock is held.
    fn note_grant(
        &self,
        who: &Owner,
        (file, path): (FileId, &SharePath),
        handle: HandleId,
        request: &OpenRequest,
    ) {
        if self.events.keeps_all() {
            let (access, share) = (request.rights.access(), request.share);
            self.note_of(file, path, who, Happening::Granted { handle, access, share });
        }
    }

    /// Cuts a file to nothing and replaces its attributes: what overwriting means.
    fn empty(&self, path: &SharePath, id: FileId, attributes: Attributes) -> Result<Stat> {
        let fd = self.dir.open_file(path, OpenFor::Write)?;
        data::set_len(&fd, 0)?;
        let mut record = self.records.load(&fd, id)?;
        let attributes = (attributes != Attributes::default()).then_some(attributes);
        if record.attributes != attributes {
            record.attributes = attributes;
            self.records.save(&fd, id, &mut record)?;
        }
        Ok(Stat::of(&fd)?)
    }

    fn cut(&self, path: &SharePath) -> Result<Stat> {
        let fd = self.dir.open_file(path, OpenFor::Write)?;
        data::set_len(&fd, 0)?;
        Ok(Stat::of(&fd)?)
    }

    fn open_absent(
        &self,
        who: &Owner,
        path: &SharePath,
        request: &OpenRequest,
        posix: PosixOpen,
    ) -> Attempt<Opened> {
        let made = request.on_absent().map_err(Error::from).and_then(|action| {
            let make = |path: &SharePath| self.make(path, request, posix.creation);
            self.make_entry(path, make, |path, (made, stat)| {
                self.table.with(stat.id, |cell, latched| {
                    let target = Target {
                        directory: stat.kind == Kind::Directory,
                        attributes: request.attributes,
                    };
                    let grant = self.grant(who);
                    let id = grant.id;
                    let slot = latched.state.open(request, action, &target, path, grant)?;
                    self.note_grant(who, (stat.id, path), id, request);
                    let handle = Handle { id, slot, cell: Arc::clone(cell) };
                    Ok(Opened { handle, action, path: path.clone(), stat, made })
                })
            })
        });
        match made {
            // Somebody else made it in between: it exists now.
            Err(Error::Denied(Denial::NameTaken)) => Attempt::Again,
            made => Attempt::Done(made),
        }
    }

    fn make(
        &self,
        path: &SharePath,
        request: &OpenRequest,
        creation: Option<Creation>,
    ) -> Result<(Option<OwnedFd>, Stat)> {
        let (made, stat) = if request.options.directory {
            let stat =
                self.dir.create_dir(path, creation.map_or(self.options.dir_mode, |c| c.mode))?;
            (None, stat)
        } else {
            let (fd, stat) =
                self.dir.create_file(path, creation.map_or(self.options.file_mode, |c| c.mode))?;
            (Some(fd), stat)
        };
        if request.attributes != Attributes::default() {
            let mut record = Record { attributes: Some(request.attributes), ..Record::default() };
            if let Some(fd) = &made {
                self.records.save(fd, stat.id, &mut record)?;
            } else {
                let fd = self.dir.open_file(path, OpenFor::Read)?;
                self.records.save(fd, stat.id, &mut record)?;
            }
        }
        let stat = match creation {
            Some(creation) => self.own(path, stat, creation)?,
            None => stat,
        };
        Ok((made, stat))
    }

    /// Makes a new entry under the lock of the directory that gets it, which must not be delete
    /// pending (dp58), and goes on with it before that lock is let go. Until then nobody who asks
    /// by name gets to it.
    pub(super) fn make_entry<M, T>(
        &self,
        path: &SharePath,
        make: impl FnOnce(&SharePath) -> Result<M>,
        then: impl FnOnce(&SharePath, M) -> Result<T>,
    ) -> Result<T> {
        let (parent, name) = path.split().ok_or(Denial::NameTaken)?;
        let mut steps = Some((make, then));
        self.with_name(&SharePath::new(parent)?, |found, generation| match found {
            Ok(Found { stat, .. }) if stat.kind == Kind::File => {
                Attempt::Done(Err(Denial::PathNotFound.into()))
            }
            Ok(Found { path: parent, stat }) => self.table.with(stat.id, |_, latched| {
                if !self.is_still(&parent, stat.id, generation) {
                    return Attempt::Again;
                }
                if let Some(holder) = latched.state.pending_holder(&parent) {
                    let holder = Box::new(holder);
                    let denial = Denial::ParentDeletePending { holder, renaming: false };
                    return Attempt::Done(Err(denial.into()));
                }
                let (make, then) = steps.take().expect("an entry is made once");
                let _making = self.making();
                // Whether the name is free is found out by making it, under the store's own lock.
                let place = parent.join(name).map_err(Error::from);
                Attempt::Done(place.and_then(|path| {
                    let entry = make(&path)?;
                    then(&path, entry)
                }))
            }),
            Err(StoreError::NotFound) => Attempt::Done(Err(Denial::PathNotFound.into())),
            Err(error) => Attempt::Done(Err(error.into())),
        })
    }

    fn grant(&self, who: &Owner) -> Grant {
        Grant { id: self.next_handle(), owner: who.clone(), now: self.clock.now() }
    }

    /// Ends an open: its share mode and locks are gone, and a name that was waiting for this to
    /// be deleted is removed.
    pub fn close(&self, handle: &Handle) -> Result<()> {
        self.release(handle).map(drop)
    }

    /// Ends an open and says which name was removed with it, if one was.
    pub fn release(&self, handle: &Handle) -> Result<Option<SharePath>> {
        let closed = self.end(&handle.cell, handle.slot, handle.id, None)?;
        Ok(closed.remove.then_some(closed.path))
    }

    /// Ends the open of that identity wherever it is, and those that end with it; says how many.
    pub fn force_close(&self, who: &Owner, id: HandleId) -> Result<u64> {
        for cell in self.table.cells() {
            let slot = cell.latch().state.find(id);
            if let Some(slot) = slot {
                return self.force_close_at(who, &cell, slot, id);
            }
        }
        Ok(0)
    }

    /// Ends an open; `by` is who does so by force.
    pub(super) fn end(
        &self,
        cell: &Arc<FileCell>,
        slot: Slot,
        id: HandleId,
        by: Option<&Owner>,
    ) -> Result<Closed> {
        let (closed, wake) = self.table.with_cell(cell, |latched| {
            let closed = self.end_latched(cell.id, latched, slot, id, by);
            // Whatever the disk says, the open is over: its locks go, and others get theirs.
            (closed, Wake::after_close(latched, id))
        });
        wake.call();
        let closed = closed?;
        let owner = &closed.open.owner;
        if closed.marked {
            self.note(&closed.path, owner, Happening::MarkedForDeletion);
        }
        if closed.remove {
            self.note(&closed.path, owner, Happening::Removed);
            self.tell(Change::Name(&closed.path));
        }
        Ok(closed)
    }

    fn end_latched(
        &self,
        file: FileId,
        latched: &mut Latched,
        slot: Slot,
        id: HandleId,
        by: Option<&Owner>,
    ) -> Result<Closed> {
        let (open, path) = latched.state.get(slot, id)?;
        let directory = latched.state.is_directory();
        let forced = by.is_some();
        let how = if forced {
            Ending::Forced
        } else {
            let may_mark = open.delete_on_close && directory;
            let not_empty = may_mark && !self.dir.is_empty(path).unwrap_or(true);
            Ending::Closed { not_empty }
        };
        let closed = latched.state.close(slot, id, how)?;
        // Whatever the disk says to the rest of it: the open is over.
        if forced || self.events.keeps_all() {
            let who = by.unwrap_or(&closed.open.owner);
            self.note_of(file, &closed.path, who, Happening::Closed { handle: id, forced });
        }
        if closed.marked {
            self.remember_pending(file, &closed.path)?;
        }
        if closed.remove {
            self.finish_delete(file, latched, &closed.path, directory)?;
        }
        Ok(closed)
    }

    /// The last open of a pending name is gone: the name goes too, and all that is kept of it.
    fn finish_delete(
        &self,
        file: FileId,
        latched: &mut Latched,
        path: &SharePath,
        directory: bool,
    ) -> Result<()> {
        let links = self.links(path, file, directory);
        match self.remove_name(path, file, directory) {
            // Filled directly in the directory meanwhile: it stays, and is ordinary again.
            Err(Error::Denied(Denial::DirectoryNotEmpty)) => {
                log::warn!("{path}: marked for deletion, but no longer empty: kept");
            }
            done => {
                done?;
                self.forget_file(latched, file, links)?;
            }
        }
        self.forget_pending(file, path)
    }

    /// Changes what an open tolerates.
    pub fn set_share_mode(
        &self,
        who: &Owner,
        handle: &Handle,
        share: crate::core::ShareMode,
    ) -> Result<()> {
        let (answer, path, wake) = self.table.with_cell(&handle.cell, |latched| {
            let (_, path) = latched.state.get(handle.slot, handle.id)?;
            let path = path.clone();
            let answer = latched.state.set_share(handle.slot, handle.id, share);
            if answer.is_ok() && self.events.keeps_all() {
                let what = Happening::Shared { handle: handle.id, share };
                self.note_of(handle.file(), &path, who, what);
            }
            Ok::<_, Error>((answer, path, Wake::changed(latched)))
        })?;
        wake.call();
        self.note_refusal("set share mode", &path, who, answer.map_err(Error::from))
    }
}

/// An open whose work on disk failed is taken back as if it had never been: no mark, no removal.
fn take_back(latched: &mut Latched, slot: Slot, id: HandleId) {
    let taken = latched.state.close(slot, id, Ending::Forced);
    debug_assert!(taken.is_ok(), "it was granted under this very lock");
}

/// Who is to be told of a change, once the file's lock is let go.
pub(super) struct Wake {
    nudges: Vec<Nudge>,
    answers: Vec<(super::waiting::Completion, std::result::Result<(), Denial>)>,
}

impl Wake {
    /// Nobody.
    pub(super) fn nobody() -> Self {
        Self { nudges: Vec::new(), answers: Vec::new() }
    }

    /// After any change that could let a refused request through.
    pub(super) fn changed(latched: &mut Latched) -> Self {
        let mut wake = Self { nudges: latched.waiting.changed(), answers: Vec::new() };
        for ticket in latched.state.grant_waiting() {
            wake.answer(latched, ticket, Ok(()));
        }
        wake
    }

    /// After the end of an open: its own waiting requests end with it (br30).
    fn after_close(latched: &mut Latched, id: HandleId) -> Self {
        let ended = latched.state.release_ranges(id);
        let mut wake = Self::changed(latched);
        for ticket in ended {
            wake.answer(latched, ticket, Err(Denial::RangeNotLocked));
        }
        wake
    }

    pub(super) fn answer(
        &mut self,
        latched: &mut Latched,
        ticket: Ticket,
        answer: std::result::Result<(), Denial>,
    ) {
        if let Some(completion) = latched.waiting.answered(ticket) {
            self.answers.push((completion, answer));
        }
    }

    /// Calls them.
    pub(super) fn call(self) {
        for (completion, answer) in self.answers {
            completion(answer);
        }
        for nudge in self.nudges {
            nudge();
        }
    }
}
