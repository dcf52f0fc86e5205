//! A directory in pages, as REST and SMB show it.
//!
//! Decides what is listed: files and directories, without links and special files, and on REST
//! without names that are delete pending. The order is the store's, by folded name: a page that
//! starts after the last name of the page before neither skips nor repeats a name that exists all
//! the time.

use std::os::fd::OwnedFd;

use super::super::error::{FileError, Result};
use super::super::share::Share;
use super::file_properties::SmbProperties;
use super::momentary::check_kind;
use crate::disk::StoreError;
use crate::file::rules::{Denial, SharePath};
use crate::file::store::share::{FileKind, FoundFile, ListedName, OpenFor, Record, Stat};
use crate::rules::FileId;

/// The most entries of a page.
pub const PAGE_MAX: usize = 5_000;

/// The most names that are read for one page. A directory full of names that REST does not list
/// gives empty pages with a marker instead of a request without a bound.
const SCANNED_MAX: usize = 4 * PAGE_MAX;

/// Which part of a directory to list, and how much to tell of each entry.
#[derive(Clone, Copy, Debug)]
pub struct PageOptions<'a> {
    /// Only names that begin with this, spelled in any case.
    pub prefix: &'a str,
    /// The `next` of the page before; none for the first page.
    pub after: Option<&'a str>,
    /// The most entries wanted, at least one; more than [`PAGE_MAX`] is that many.
    pub limit: usize,
    /// List attributes, times and `ETag` too, which reads each file's record.
    pub smb: bool,
    /// List names that are delete pending too, as SMB shows them.
    pub pending: bool,
}

/// One file or directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectoryEntry {
    /// Its name as on disk.
    pub name: String,
    /// Kind, identity and size, as on disk.
    pub stat: Stat,
    /// Attributes, times and `ETag`, if asked for.
    pub smb: Option<SmbProperties>,
}

/// A page of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectoryPage {
    /// The directory's path as spelled on disk.
    pub path: SharePath,
    pub id: FileId,
    /// Files and directories, by folded name.
    pub entries: Vec<DirectoryEntry>,
    /// Where the next page starts, if there may be one.
    pub next: Option<String>,
}

impl Share {
    /// Lists a page of a directory as REST or SMB shows it.
    pub fn list_page(&self, dir: &SharePath, options: PageOptions<'_>) -> Result<DirectoryPage> {
        if options.limit == 0 {
            return Err(Denial::InvalidParameter("a page has at least one entry").into());
        }
        // A page is of one directory: it is not renamed while the page is put together.
        let _names = self.names()?;
        let found = self.disk().lookup(dir)?;
        check_kind(found.stat.kind, true)?;
        let FoundFile { path, stat } = found;
        let fd = self.disk().open_file(&path, OpenFor::Path)?;
        let mut page = DirectoryPage { path, id: stat.id, entries: Vec::new(), next: None };
        self.fill(&mut page, &fd, options)?;
        Ok(page)
    }

    fn fill(
        &self,
        page: &mut DirectoryPage,
        dir: &OwnedFd,
        options: PageOptions<'_>,
    ) -> Result<()> {
        let limit = options.limit.min(PAGE_MAX);
        let mut last = options.after.map(str::to_owned);
        let mut scanned = 0;
        loop {
            // One more than fits, to know whether anything follows.
            let wanted = limit - page.entries.len() + 1;
            let names =
                self.disk().list_prefix(&page.path, options.prefix, last.as_deref(), wanted)?;
            let ended = names.len() < wanted;
            for listed in names {
                if page.entries.len() == limit || scanned == SCANNED_MAX {
                    page.next = last;
                    return Ok(());
                }
                scanned += 1;
                last = Some(listed.name.clone());
                page.entries.extend(self.entry(&page.path, dir, listed, options)?);
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// One entry, if REST lists it.
    fn entry(
        &self,
        dir: &SharePath,
        fd: &OwnedFd,
        listed: ListedName,
        options: PageOptions<'_>,
    ) -> Result<Option<DirectoryEntry>> {
        if !matches!(listed.kind, FileKind::File | FileKind::Directory) {
            return Ok(None);
        }
        let stat = match Stat::at(fd, &listed.name) {
            Ok(stat) if matches!(stat.kind, FileKind::File | FileKind::Directory) => stat,
            // Gone, or something else, since the names were read.
            Ok(_) | Err(StoreError::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let path = dir.join(&listed.name)?;
        if !options.pending && self.is_name_pending(&path, stat.id) {
            return Ok(None);
        }
        let smb = if options.smb {
            match self.record_at(&path, stat.id)? {
                Some(record) => Some(SmbProperties::of(&stat, &record)),
                None => return Ok(None),
            }
        } else {
            None
        };
        Ok(Some(DirectoryEntry { name: listed.name, stat, smb }))
    }

    /// True if the name is delete pending, which only a file in use can be.
    fn is_name_pending(&self, path: &SharePath, id: FileId) -> bool {
        self.table().get(id).is_some_and(|cell| cell.latch().state.pending_holder(path).is_some())
    }

    /// The record of an entry; none if it is gone.
    fn record_at(&self, path: &SharePath, id: FileId) -> Result<Option<Record>> {
        match self.disk().open_file(path, OpenFor::Path) {
            Ok(fd) => match self.load_record(&fd, id) {
                // One that this process may not read has none to show.
                Err(FileError::Store(StoreError::PermissionDenied)) => Ok(Some(Record::default())),
                loaded => loaded.map(Some),
            },
            Err(StoreError::NotFound | StoreError::ParentNotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
