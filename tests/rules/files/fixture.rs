//! A share in a temporary directory, and short names for what tests do with it.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use latchfs::clock::ManualClock;
use latchfs::file::rules::create::OpenRequest;
use latchfs::file::rules::{Access, Denial, ShareMode, SharePath};
use latchfs::file::service::{
    Asking, FileChanges, FileError, FileProperties, Handle, Metadata, NewProperties, Result, Share,
    ShareOptions, TimeChange,
};
use latchfs::journal::AccountJournal;
use latchfs::rules::lease::LeaseDenial;
use latchfs::rules::{Client, Context, LeaseId, MetadataError, Owner, Timestamp};
use tempfile::TempDir;

use crate::common::calls::acquire;

/// Where the share's clock stands.
pub const START: Timestamp = Timestamp(1_800_000_000_000_000_000);

/// What is in a file that [`Fixture::file`] makes.
pub const BYTES: &[u8] = b"0123456789";

pub struct Fixture {
    pub share: Arc<Share>,
    pub events: AccountJournal,
    pub root: PathBuf,
    rest: Context,
    mount: Context,
    made: Cell<u32>,
    folder: TempDir,
}

/// REST's operations, in a form that a table can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Create,
    Get,
    ListRanges,
    Put,
    Clear,
    SetProperties,
    Resize,
    SetMetadata,
    Delete,
    Acquire,
    Head,
}

impl Call {
    pub const ALL: [Self; 11] = [
        Self::Create,
        Self::Get,
        Self::ListRanges,
        Self::Put,
        Self::Clear,
        Self::SetProperties,
        Self::Resize,
        Self::SetMetadata,
        Self::Delete,
        Self::Acquire,
        Self::Head,
    ];
    /// Those that change a file and so need the ID of its lease.
    pub const WRITES: [Self; 7] = [
        Self::Create,
        Self::Put,
        Self::Clear,
        Self::SetProperties,
        Self::Resize,
        Self::SetMetadata,
        Self::Delete,
    ];
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(ShareOptions::default())
    }

    pub fn with(options: ShareOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("share")).unwrap();
        Self::serve(folder, options)
    }

    /// Ends the share and serves its directory anew, as after a restart.
    pub fn restarted(self) -> Self {
        let Self { share, folder, .. } = self;
        let options = *share.options();
        drop(Arc::into_inner(share).expect("nothing of the old share is in use"));
        Self::serve(folder, options)
    }

    fn serve(folder: TempDir, options: ShareOptions) -> Self {
        let root = folder.path().join("share");
        let events = AccountJournal::default();
        let clock = Arc::new(ManualClock::new(START));
        let state = folder.path().join("state");
        let log = events.clone();
        let share = Share::open_directory("test", &root, &state, options, clock, log).unwrap();
        let (rest, mount) = (caller(1, "rest"), caller(2, "mount"));
        Self { share: Arc::new(share), events, root, rest, mount, made: Cell::new(0), folder }
    }

    /// Makes a file of ten bytes, directly in the directory, under a name not used yet.
    pub fn file(&self) -> SharePath {
        let number = self.made.get() + 1;
        self.made.set(number);
        let name = format!("file-{number}");
        fs::write(self.root.join(&name), BYTES).unwrap();
        path(&name)
    }

    /// A request without a lease ID.
    pub fn rest(&self) -> Asking<'_> {
        Asking { cx: &self.rest, lease_id: None }
    }

    /// A request with one.
    pub fn rest_with(&self, id: LeaseId) -> Asking<'_> {
        Asking { cx: &self.rest, lease_id: Some(id) }
    }

    pub fn mount(&self) -> &Context {
        &self.mount
    }

    pub fn try_open(&self, path: &SharePath, access: &str, share: &str) -> Result<Handle> {
        let access = Access::parse(access).unwrap();
        let share = ShareMode::parse(share).unwrap();
        let request = OpenRequest::plain(access, share);
        self.share.open(&self.mount, path, &request).map(|opened| opened.handle)
    }

    /// A mount-side open that must be granted.
    pub fn open(&self, path: &SharePath, access: &str, share: &str) -> Handle {
        self.try_open(path, access, share).unwrap()
    }

    pub fn head(&self, path: &SharePath) -> Result<FileProperties> {
        self.share.file_properties(self.rest(), path)
    }

    pub fn put(&self, path: &SharePath, offset: u64, bytes: &[u8]) -> Result<FileProperties> {
        self.share.put_range(self.rest(), path, offset, bytes, TimeChange::Now)
    }

    pub fn create(&self, path: &SharePath, size: u64) -> Result<FileProperties> {
        self.share.create_file(self.rest(), path, size, &NewProperties::default(), None)
    }

    /// All that a Get File of the range gives.
    pub fn get(&self, path: &SharePath, range: Option<std::ops::Range<u64>>) -> Result<Vec<u8>> {
        self.get_as(self.rest(), path, range)
    }

    fn get_as(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        range: Option<std::ops::Range<u64>>,
    ) -> Result<Vec<u8>> {
        let reader = self.share.open_reader(asking, path, range)?;
        let range = reader.range();
        let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap()];
        let got = reader.read_at(range.start, &mut bytes)?;
        assert_eq!(got, bytes.len());
        Ok(bytes)
    }

    fn acquire(&self, path: &SharePath, proposed: Option<LeaseId>) -> Result<LeaseId> {
        let ((id, _), _) = self.share.lease_file(self.rest(), path, acquire(-1, proposed))?;
        Ok(id.unwrap())
    }

    /// A file of its own with a lease of its own.
    pub fn leased_file(&self) -> (SharePath, LeaseId) {
        let path = self.file();
        let id = self.acquire(&path, None).unwrap();
        (path, id)
    }

    /// Makes the call, on the file as [`Fixture::file`] makes it.
    pub fn call(&self, asking: Asking<'_>, path: &SharePath, call: Call) -> Result<()> {
        let share = &self.share;
        let now = TimeChange::Now;
        match call {
            Call::Create => {
                share.create_file(asking, path, 3, &NewProperties::default(), None).map(drop)
            }
            Call::Get => self.get_as(asking, path, None).map(drop),
            Call::ListRanges => share.range_list(asking, path, None).map(drop),
            Call::Put => share.put_range(asking, path, 0, b"new", now).map(drop),
            Call::Clear => share.clear_range(asking, path, 0..3, now).map(drop),
            Call::SetProperties => {
                let changes = FileChanges::default();
                share.set_file_properties(asking, path, &changes).map(drop)
            }
            Call::Resize => {
                let changes = FileChanges { size: Some(5), ..FileChanges::default() };
                share.set_file_properties(asking, path, &changes).map(drop)
            }
            Call::SetMetadata => {
                let metadata: Metadata = [("name", "value")].into_iter().collect();
                share.set_file_metadata(asking, path, &metadata).map(drop)
            }
            Call::Delete => share.delete_file(asking, path),
            Call::Acquire => share.lease_file(asking, path, acquire(-1, None)).map(drop),
            Call::Head => share.file_properties(asking, path).map(drop),
        }
    }
}

/// A path of the share.
pub fn path(text: &str) -> SharePath {
    SharePath::new(text).unwrap()
}

fn caller(session: u64, name: &str) -> Context {
    let client = Arc::new(Client { session, name: name.into() });
    Context::local(START, Owner { client, pid: 0, program: None }, "test")
}

/// The code of an answer, as REST spells it; `ok` for one that is no refusal.
pub fn code<T>(answer: &Result<T>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(FileError::Denied(denial)) => denial_code(denial),
        Err(FileError::Store(error)) => panic!("the disk failed: {error}"),
    }
}

fn denial_code(denial: &Denial) -> &'static str {
    match denial {
        Denial::SharingViolation { .. } | Denial::Open(_) | Denial::Leased => "SharingViolation",
        Denial::DeletePending(_) | Denial::ParentDeletePending { .. } => "DeletePending",
        Denial::RangeLocked { .. } => "FileLockConflict",
        Denial::ReadOnly => "ReadOnlyAttribute",
        Denial::NotFound => "ResourceNotFound",
        Denial::PathNotFound => "ParentNotFound",
        Denial::IsDirectory => "ResourceTypeMismatch",
        Denial::NameTaken => "ResourceAlreadyExists",
        Denial::InvalidRange { .. } => "InvalidRange",
        Denial::BodyTooLarge { .. } => "RequestBodyTooLarge",
        Denial::FileTooLarge { .. } => "OutOfRangeInput",
        Denial::InvalidParameter(_) => "InvalidHeaderValue",
        Denial::Metadata(MetadataError::TooLarge(_)) => "MetadataTooLarge",
        Denial::Metadata(MetadataError::EmptyName) => "EmptyMetadataKey",
        Denial::Metadata(MetadataError::InvalidName(_) | MetadataError::InvalidValue(_)) => {
            "InvalidMetadata"
        }
        Denial::Lease(denial) => lease_code(*denial),
        other => panic!("a refusal that no test here expects: {other}"),
    }
}

fn lease_code(denial: LeaseDenial) -> &'static str {
    match denial {
        LeaseDenial::LeaseIdMissing(_) => "LeaseIdMissing",
        LeaseDenial::LeaseIdMismatchWithOperation(_) => "LeaseIdMismatchWithFileOperation",
        LeaseDenial::LeaseNotPresentWithOperation(_) => "LeaseNotPresentWithFileOperation",
        LeaseDenial::LeaseLost(_) => "LeaseLost",
        LeaseDenial::LeaseAlreadyPresent => "LeaseAlreadyPresent",
        LeaseDenial::LeaseIdMismatchWithLeaseOperation(_) => "LeaseIdMismatchWithLeaseOperation",
        LeaseDenial::LeaseNotPresentWithLeaseOperation(_) => "LeaseNotPresentWithLeaseOperation",
        LeaseDenial::InvalidDuration(_) | LeaseDenial::MissingDuration => "bad request",
        other => panic!("a refusal that no file lease makes: {other}"),
    }
}
