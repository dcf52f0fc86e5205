//! Reading and writing through a handle: the rules are asked under the file's lock, right before
//! the bytes move.

use std::sync::Arc;

use super::error::Result;
use super::open::Handle;
use super::share::Share;
use super::table::Latched;
use crate::core::ranges::ByteRange;
use crate::core::{Attributes, Denial, Rights, SharePath};
use crate::store::{Found, OpenFor, Stat, data};

/// The most bytes one call reads or writes (FILEREST section 8, Put Range).
pub const IO_MAX: usize = 4 << 20;

/// What an SMB client learns of an open file.
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
    /// Reads up to `length` bytes; fewer at the end of the file.
    pub fn read(&self, handle: &Handle, offset: u64, length: usize) -> Result<Vec<u8>> {
        let length = length.min(IO_MAX);
        let range = byte_range(offset, length)?;
        let cell = Arc::clone(handle.cell());
        let (fd, _reading) = self.on_disk(handle, |latched, path| {
            // A locked range past the end refuses before the end is noticed (br39).
            latched.state.check_read(handle.slot(), handle.id(), range)?;
            let fd = self.dir.open_file(path, OpenFor::Read)?;
            Ok((fd, cell.data.read().expect("nothing panics while bytes move")))
        })?;
        let mut bytes = vec![0; length];
        let got = data::read_at(&fd, &mut bytes, offset)?;
        if got == 0 && length > 0 {
            return Err(Denial::EndOfFile.into());
        }
        bytes.truncate(got);
        Ok(bytes)
    }

    /// Writes all bytes at `offset`. A handle that may only append writes at the end of the file,
    /// wherever it asks to (SMB-RULES "Where Samba differs", 7).
    pub fn write(&self, handle: &Handle, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.len() > IO_MAX {
            return Err(Denial::InvalidParameter("more than 4 MiB in one write").into());
        }
        self.on_disk(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            let append_only = !open.rights.contains(Rights::WRITE_DATA);
            let offset = if append_only { self.dir.stat(path)?.size } else { offset };
            let range = byte_range(offset, bytes.len())?;
            latched.state.check_write(handle.slot(), handle.id(), range)?;
            let fd = self.dir.open_file(path, OpenFor::Write)?;
            self.count_change(&fd, handle.file())?;
            let _writing = handle.cell().data.write().expect("nothing panics while bytes move");
            Ok(data::write_at(&fd, bytes, offset)?)
        })
    }

    /// Sets the file's length.
    pub fn set_size(&self, handle: &Handle, size: u64) -> Result<()> {
        self.on_disk(handle, |latched, path| self.cut_or_grow(latched, handle, path, size))
    }

    fn cut_or_grow(
        &self,
        latched: &Latched,
        handle: &Handle,
        path: &SharePath,
        size: u64,
    ) -> Result<()> {
        latched.state.check_resize(handle.slot(), handle.id())?;
        let fd = self.dir.open_file(path, OpenFor::Write)?;
        self.count_change(&fd, handle.file())?;
        let _writing = handle.cell().data.write().expect("nothing panics while bytes move");
        Ok(data::set_len(&fd, size)?)
    }

    /// Sets the allocation: cuts the file if it is longer, and reserves nothing (di37, br45).
    pub fn set_allocation(&self, handle: &Handle, size: u64) -> Result<()> {
        self.on_disk(handle, |latched, path| {
            if latched.state.is_directory() || size >= self.dir.stat(path)?.size {
                return Ok(());
            }
            self.cut_or_grow(latched, handle, path, size)
        })
    }

    /// Replaces the file's attributes.
    pub fn set_attributes(&self, handle: &Handle, attributes: Attributes) -> Result<()> {
        self.on_disk(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            if !open.rights.contains(Rights::WRITE_ATTRIBUTES) {
                return Err(Denial::AccessDenied.into());
            }
            let fd = self.dir.open_file(path, OpenFor::Read)?;
            let mut record = self.records.load(&fd, handle.file())?;
            record.attributes = Some(attributes);
            Ok(self.records.save(&fd, handle.file(), &mut record)?)
        })
    }

    /// What the handle shows of its file.
    pub fn standard(&self, handle: &Handle) -> Result<Standard> {
        self.on_disk(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            let delete_pending = latched.state.is_pending(open);
            let stat = self.dir.stat(path)?;
            let directory = latched.state.is_directory();
            let links = if directory { 1 } else { stat.links };
            Ok(Standard {
                size: if directory { 0 } else { stat.size },
                links: links.saturating_sub(u32::from(delete_pending)),
                delete_pending,
                directory,
            })
        })
    }

    /// The attributes of the handle's file as the disk tells them.
    pub fn stat_handle(&self, handle: &Handle) -> Result<Stat> {
        self.on_disk(handle, |_, path| Ok(self.dir.stat(path)?))
    }

    /// The handle's file under the name it was opened by.
    pub(super) fn found_by(&self, handle: &Handle) -> Result<Found> {
        self.on_disk(handle, |_, path| Ok(Found { path: path.clone(), stat: self.dir.stat(path)? }))
    }

    /// Does `step` under the lock of the handle's file, where it goes to the disk by the name that
    /// it was opened by: refused where the name was taken away from under the handle, since another
    /// file may bear it.
    fn on_disk<T>(
        &self,
        handle: &Handle,
        step: impl FnOnce(&mut Latched, &SharePath) -> Result<T>,
    ) -> Result<T> {
        self.latched(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            if latched.state.has_lost_its_name(open) {
                return Err(Denial::NotFound.into());
            }
            step(latched, path)
        })
    }

    /// Does `step` under the lock of the handle's file, with the name it was opened by.
    pub(super) fn latched<T>(
        &self,
        handle: &Handle,
        step: impl FnOnce(&mut Latched, &SharePath) -> Result<T>,
    ) -> Result<T> {
        self.table.with_cell(handle.cell(), |latched| {
            let (_, path) = latched.state.get(handle.slot(), handle.id())?;
            let path = path.clone();
            step(latched, &path)
        })
    }
}

fn byte_range(offset: u64, length: usize) -> Result<ByteRange> {
    ByteRange::new(offset, length as u64)
        .map_err(|_| Denial::InvalidParameter("the range runs past the largest offset").into())
}
