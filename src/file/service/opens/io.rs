//! Reads and writes through a handle: the rules are checked under the file's lock, right before the
//! bytes are read or written.

use std::borrow::Borrow;
use std::os::fd::{AsFd, OwnedFd};

use super::super::error::Result;
use super::super::requests::SmbProperties;
use super::super::share::Share;
use super::open::{Handle, OpenedFile};
use super::table::Latched;
use crate::file::rules::ranges::ByteRange;
use crate::file::rules::{Access, Attributes, Denial, Rights, SharePath};
use crate::file::store::share::{ETag, FoundFile, OpenFor, Stat, data};
use crate::rules::{Context, Timestamp};

/// The most bytes one call reads or writes.
pub const IO_MAX: usize = 4 << 20;

/// A step on a file right before its length is set, under the file's lock, when no rule refuses
/// the change any more. If the step fails, the length stays.
pub type BeforeResize<'a> = &'a dyn Fn(&OwnedFd) -> Result<()>;

/// Times to set; what is not given stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BasicTimes {
    pub created: Option<Timestamp>,
    pub accessed: Option<Timestamp>,
    pub written: Option<Timestamp>,
    pub changed: Option<Timestamp>,
}

/// All that an SMB client is told about an open file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandleInfo {
    /// The name that it was opened by, as it is now.
    pub path: SharePath,
    pub stat: Stat,
    pub smb: SmbProperties,
    pub standard: Standard,
    /// The rights that the open has.
    pub rights: Rights,
}

/// The information that an SMB client gets about an open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standard {
    /// Length in bytes; 0 for a directory.
    pub size: u64,
    /// Number of names, less the one that is pending (dp36).
    pub links: u32,
    /// The name it was opened by is delete pending.
    pub delete_pending: bool,
    /// It is a directory.
    pub directory: bool,
}

impl Share {
    /// A descriptor of the handle's file, for what the handle may do: for front ends that keep it
    /// with the open, for [`Share::read_through`] and [`Share::write_through`].
    pub fn descriptor(&self, handle: &Handle) -> Result<OwnedFd> {
        self.on_disk(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            let writes = open.access().contains(Access::W);
            let how = if writes { OpenFor::Write } else { OpenFor::Read };
            Ok(self.disk().open_file(path, how)?)
        })
    }

    /// Reads up to `length` bytes; fewer at the end of the file.
    pub fn read(&self, handle: &Handle, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.read_by(
            handle,
            (offset, length),
            |latched, path| {
                check_named(latched, handle)?;
                Ok(self.disk().open_file(path, OpenFor::Read)?)
            },
            |_| Ok(()),
        )
    }

    /// As [`Share::read`], through a descriptor of the handle's file. Notes the `ETag` that was
    /// read.
    pub fn read_through(
        &self,
        cx: &Context,
        (handle, fd): (&Handle, &OwnedFd),
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>> {
        self.read_by(
            handle,
            (offset, length),
            |_, _| Ok(fd),
            |fd| {
                if cx.noted.is_some() {
                    let etag = self.etag_of(fd)?.to_string();
                    cx.note(|given| given.etag_read = Some(etag));
                }
                Ok(())
            },
        )
    }

    fn read_by<F: AsFd>(
        &self,
        handle: &Handle,
        (offset, length): (u64, usize),
        fd: impl FnOnce(&Latched, &SharePath) -> Result<F>,
        then: impl FnOnce(&F) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let length = length.min(IO_MAX);
        let range = byte_range(offset, length)?;
        let (fd, _reading) = self.latched(handle, |latched, path| {
            // A locked range past the end refuses before the end is noticed (br39).
            latched.state.check_read(handle.slot(), handle.id(), range)?;
            Ok((fd(latched, path)?, self.table().lock_to_read(handle.file())))
        })?;
        let bytes = data::read_bytes(&fd, offset, length)?;
        if bytes.is_empty() && length > 0 {
            return Err(Denial::EndOfFile.into());
        }
        then(&fd)?;
        Ok(bytes)
    }

    /// Writes all bytes at `offset`. A handle that may only append writes at the end of the file,
    /// whatever the offset.
    pub fn write(&self, handle: &Handle, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_by(None, handle, (offset, bytes), |latched, path| {
            check_named(latched, handle)?;
            Ok(self.disk().open_file(path, OpenFor::Write)?)
        })
    }

    /// As [`Share::write`], through a descriptor of the handle's file that may write. Notes the
    /// change.
    pub fn write_through(
        &self,
        cx: &Context,
        (handle, fd): (&Handle, &OwnedFd),
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        self.write_by(Some(cx), handle, (offset, bytes), |_, _| Ok(fd))
    }

    fn write_by<F: Borrow<OwnedFd>>(
        &self,
        cx: Option<&Context>,
        handle: &Handle,
        (offset, bytes): (u64, &[u8]),
        fd: impl FnOnce(&Latched, &SharePath) -> Result<F>,
    ) -> Result<()> {
        if bytes.len() > IO_MAX {
            return Err(Denial::InvalidParameter("more than 4 MiB in one write").into());
        }
        self.latched(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            let append_only = !open.rights.contains(Rights::WRITE_DATA);
            let offset = if append_only { self.disk().stat(path)?.size } else { offset };
            let range = byte_range(offset, bytes.len())?;
            latched.state.check_write(handle.slot(), handle.id(), range)?;
            let fd = fd(latched, path)?;
            let write = || {
                self.count_change(fd.borrow(), handle.file())?;
                let _writing = self.table().lock_to_write(handle.file());
                Ok(data::write_at(fd.borrow(), bytes, offset)?)
            };
            self.noting(cx, path, &|| self.etag_of(fd.borrow()), write)
        })
    }

    /// Sets the file's length, and notes the change.
    pub fn set_size(&self, cx: &Context, handle: &Handle, size: u64) -> Result<()> {
        self.resize(Some(cx), (handle, None), size, &|_| Ok(()))
    }

    /// Sets the file's length after the step `before`: through a descriptor of the handle's file
    /// that may write, which works whatever happened to the file's name and permission bits, or by
    /// its name. Notes the change for `cx`.
    pub fn resize(
        &self,
        cx: Option<&Context>,
        (handle, fd): (&Handle, Option<&OwnedFd>),
        size: u64,
        before: BeforeResize<'_>,
    ) -> Result<()> {
        self.latched(handle, |latched, path| {
            if fd.is_none() {
                check_named(latched, handle)?;
            }
            latched.state.check_resize(handle.slot(), handle.id())?;
            let by_name = match fd {
                Some(_) => None,
                None => Some(self.disk().open_file(path, OpenFor::Write)?),
            };
            let fd = fd.or(by_name.as_ref()).expect("one of them is open");
            let cut = || {
                let _writing = self.table().lock_to_write(handle.file());
                self.count_change(fd, handle.file())?;
                before(fd)?;
                Ok(data::set_len(fd, size)?)
            };
            self.noting(cx, path, &|| self.etag_of(fd), cut)
        })
    }

    /// Counts a write that a front end is about to make through a descriptor of its own. May wait
    /// for the disk.
    pub fn count_write(&self, handle: &Handle, fd: &OwnedFd) -> Result<()> {
        self.latched(handle, |_, _| self.count_change(fd, handle.file()))
    }

    /// Sets the allocation: cuts the file if it is longer, and reserves nothing (di37, br45).
    pub fn set_allocation(&self, cx: &Context, handle: &Handle, size: u64) -> Result<()> {
        let keeps = self.on_disk(handle, |latched, path| {
            Ok(latched.state.is_directory() || size >= self.disk().stat(path)?.size)
        })?;
        if keeps { Ok(()) } else { self.set_size(cx, handle, size) }
    }

    /// Replaces the attributes and times that are given; the others stay. Notes the change.
    pub fn set_basic(
        &self,
        cx: &Context,
        handle: &Handle,
        attributes: Option<Attributes>,
        times: BasicTimes,
    ) -> Result<()> {
        self.on_disk(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            if !open.rights.contains(Rights::WRITE_ATTRIBUTES) {
                return Err(Denial::AccessDenied.into());
            }
            let fd = self.disk().open_file(path, OpenFor::Read)?;
            let set = || {
                let mut record = self.load_record(&fd, handle.file())?;
                record.attributes = attributes.or(record.attributes);
                record.created = times.created.or(record.created);
                record.changed = times.changed.or(record.changed);
                self.save_record(&fd, handle.file(), &mut record)?;
                Ok(data::set_times(&fd, times.accessed, times.written)?)
            };
            self.noting(Some(cx), path, &|| self.etag_of(&fd), set)
        })
    }

    /// Carries out a change of a file whose lock the caller holds, and notes the `ETags` before and
    /// after it, if somebody records them.
    fn noting(
        &self,
        cx: Option<&Context>,
        path: &SharePath,
        etag: &dyn Fn() -> Result<ETag>,
        change: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(cx) = cx.filter(|cx| cx.noted.is_some()) else { return change() };
        let before = etag()?;
        change()?;
        // The change is done, whatever its row tells.
        self.note_change(cx, path, (Some(before), etag().ok()));
        Ok(())
    }

    /// The information about the handle's file.
    pub fn standard(&self, handle: &Handle) -> Result<Standard> {
        self.on_disk(handle, |latched, path| standard(latched, handle, &self.disk().stat(path)?))
    }

    /// All that an SMB client is told about the handle's file.
    pub fn handle_info(&self, handle: &Handle) -> Result<HandleInfo> {
        self.on_disk(handle, |latched, path| {
            let stat = self.disk().stat(path)?;
            let smb = SmbProperties::of(&stat, &self.record_of(path, &stat)?);
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            let (rights, standard) = (open.rights, standard(latched, handle, &stat)?);
            Ok(HandleInfo { path: path.clone(), stat, smb, standard, rights })
        })
    }

    /// The properties of a file as it was when it was opened.
    pub fn opened_properties(&self, opened: &OpenedFile) -> SmbProperties {
        // A file that lost its name meanwhile has no record to show.
        let record = self.record_of(&opened.path, &opened.stat).unwrap_or_default();
        SmbProperties::of(&opened.stat, &record)
    }

    /// The attributes of the handle's file on the disk.
    pub fn stat_handle(&self, handle: &Handle) -> Result<Stat> {
        self.on_disk(handle, |_, path| Ok(self.disk().stat(path)?))
    }

    /// The handle's file under the name it was opened by.
    pub(crate) fn found_by(&self, handle: &Handle) -> Result<FoundFile> {
        self.on_disk(handle, |_, path| {
            Ok(FoundFile { path: path.clone(), stat: self.disk().stat(path)? })
        })
    }

    /// Runs `step` under the lock of the handle's file, for steps that use the name on the disk.
    /// Refused if the handle has lost its name, since another file may have it.
    fn on_disk<T>(
        &self,
        handle: &Handle,
        step: impl FnOnce(&mut Latched, &SharePath) -> Result<T>,
    ) -> Result<T> {
        self.latched(handle, |latched, path| {
            check_named(latched, handle)?;
            step(latched, path)
        })
    }
}

/// Refuses a handle that has lost its name, since another file may have it.
fn check_named(latched: &Latched, handle: &Handle) -> Result<()> {
    let (open, _) = latched.state.get(handle.slot(), handle.id())?;
    if latched.state.has_lost_its_name(open) { Err(Denial::NotFound.into()) } else { Ok(()) }
}

fn standard(latched: &Latched, handle: &Handle, stat: &Stat) -> Result<Standard> {
    let (open, _) = latched.state.get(handle.slot(), handle.id())?;
    let delete_pending = latched.state.is_pending(open);
    let directory = latched.state.is_directory();
    let links = if directory { 1 } else { stat.links };
    Ok(Standard {
        size: if directory { 0 } else { stat.size },
        links: links.saturating_sub(u32::from(delete_pending)),
        delete_pending,
        directory,
    })
}

fn byte_range(offset: u64, length: usize) -> Result<ByteRange> {
    ByteRange::new(offset, length as u64)
        .map_err(|_| Denial::InvalidParameter("the range runs past the largest offset").into())
}
