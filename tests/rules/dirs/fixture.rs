//! A share in a temporary directory, with the few words the tests are written in.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use latchfs::clock::{SystemClock, TimeSource};
use latchfs::disk::{Drawer, Durability, StateDir};
use latchfs::file::rules::create::{Disposition, OpenRequest, Options};
use latchfs::file::rules::{Access, Attributes, Denial, Rights, ShareMode, SharePath};
use latchfs::file::service::{
    Asking, BasicTimes, Control, CopyOptions, FileProperties, Handle, PropertyChanges, Result,
    Share, ShareOptions, Started,
};
use latchfs::journal::AccountJournal;
use latchfs::rules::lease::{FileLease, LeaseId};
use latchfs::rules::{Client, Context, Owner};
use serde_json::json;

/// A share of its own.
pub struct Fixture {
    share: Option<Share>,
    folder: tempfile::TempDir,
}

/// A path within the share.
pub fn path(text: &str) -> SharePath {
    SharePath::new(text).unwrap()
}

/// An operation that a client of that name asks for.
pub fn caller(name: &str) -> Context {
    let client = Arc::new(Client { session: 7, name: name.to_owned() });
    let owner = Owner { client, pid: 4711, program: Some("excel".into()) };
    Context::local(SystemClock.now(), owner, "test")
}

/// A request without a lease ID.
pub fn asking(cx: &Context) -> Asking<'_> {
    Asking { cx, lease_id: None }
}

/// A lease ID that ends in that number.
pub fn lease_id(number: u32) -> LeaseId {
    format!("00000000-0000-4000-8000-{number:012}").parse().unwrap()
}

pub fn denial<T: std::fmt::Debug>(answer: Result<T>) -> Denial {
    answer.unwrap_err().denial().expect("a rule refuses, not the disk").clone()
}

/// Copies a file of this or another share, and comes back when that is done, refused or aborted.
pub fn copy_file(
    share: &Share,
    asking: Asking<'_>,
    source: (&Share, &SharePath),
    to: &SharePath,
    options: &CopyOptions,
) -> Result<FileProperties> {
    let Started { copied, rest } = share.start_copy(asking, source, to, options)?;
    match rest {
        Some(copying) => share.finish_copy(Some(source.0), copying, &mut |_| Control::Continue),
        None => Ok(copied),
    }
}

impl Fixture {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("share")).unwrap();
        let mut fixture = Self { share: None, folder };
        fixture.start();
        fixture
    }

    fn start(&mut self) {
        let share = Share::open_directory(
            "demo",
            &self.root(),
            &self.folder.path().join("state"),
            ShareOptions::default(),
            Arc::new(SystemClock),
            AccountJournal::default(),
        );
        self.share = Some(share.unwrap());
    }

    pub fn share(&self) -> &Share {
        self.share.as_ref().unwrap()
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("share")
    }

    /// Where a file lies on disk.
    pub fn on_disk(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// A file, directly in the directory.
    pub fn file(&self, name: &str, bytes: &[u8]) {
        fs::write(self.on_disk(name), bytes).unwrap();
    }

    /// The same where others make and remove names too.
    pub fn file_if_possible(&self, name: &str) {
        drop(fs::write(self.on_disk(name), name));
    }

    /// A directory, directly in the directory.
    pub fn folder(&self, name: &str) {
        fs::create_dir_all(self.on_disk(name)).unwrap();
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.on_disk(name)).unwrap()
    }

    pub fn exists(&self, name: &str) -> bool {
        Path::exists(&self.on_disk(name))
    }

    /// Opens a file or directory as an SMB client would; access and share as `rwd` or `none`.
    pub fn open(&self, name: &str, access: &str, share: &str) -> Handle {
        self.open_with(name, access, share, Options::default())
    }

    pub fn open_with(&self, name: &str, access: &str, share: &str, options: Options) -> Handle {
        let request = OpenRequest {
            options,
            ..OpenRequest::plain(Access::parse(access).unwrap(), ShareMode::parse(share).unwrap())
        };
        self.share().open(&caller("mount"), &path(name), &request).unwrap().handle
    }

    /// Marks a file or directory for deletion and keeps it alive by the handle returned.
    pub fn pending(&self, name: &str) -> Handle {
        let keeper = self.open(name, "r", "rwd");
        let deleter = self.open(name, "d", "rwd");
        self.share().set_disposition(&deleter, true).unwrap();
        self.share().close(&deleter).unwrap();
        keeper
    }

    /// Gives a file the read-only attribute.
    pub fn read_only(&self, name: &str) {
        let request = OpenRequest {
            rights: Rights::WRITE_ATTRIBUTES,
            share: ShareMode::RWD,
            disposition: Disposition::Open,
            options: Options::default(),
            attributes: Attributes::default(),
        };
        let opened = self.share().open(&caller("mount"), &path(name), &request).unwrap();
        let read_only = Some(Attributes::READ_ONLY);
        let set = self.share().set_basic(
            &caller("mount"),
            &opened.handle,
            read_only,
            BasicTimes::default(),
        );
        set.unwrap();
        self.share().close(&opened.handle).unwrap();
    }

    /// Starts the share anew with the file leased, as if it had been leased before.
    pub fn leased(&mut self, name: &str, id: LeaseId) {
        let file = self.share().stat(&path(name)).unwrap().id;
        self.restart_after(|state| {
            let entry = json!({"id": file, "lease": FileLease::Leased(id)});
            let key = format!("{}-{}", file.ino, file.born);
            state.put(Drawer::Leases, &key, &entry, Durability::Cached).unwrap();
        });
    }

    /// From now on no record can be kept in a sidecar.
    pub fn break_records(&self) {
        fs::write(self.folder.path().join("state/records"), "no folder").unwrap();
    }

    /// Starts the share anew, as after the process died.
    pub fn restart(&mut self) {
        self.restart_after(|_| {});
    }

    fn restart_after(&mut self, step: impl FnOnce(&StateDir)) {
        self.share = None;
        let state = StateDir::open(&self.folder.path().join("state")).unwrap();
        step(&state);
        drop(state);
        self.start();
    }

    pub fn create_directory(&self, name: &str) -> Result<()> {
        let (properties, metadata) =
            (PropertyChanges::default(), latchfs::file::service::Metadata::default());
        self.share()
            .create_directory(&caller("rest"), &path(name), &properties, &metadata)
            .map(drop)
    }
}
