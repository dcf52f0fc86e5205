//! A latchfs within this process, for what needs its clock turned or a copy held back. Mount and
//! HTTP are real all the same.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use latchfs::clock::ManualClock;
use latchfs::file::mount::{Mount, MountOptions};
use latchfs::file::service::shares::NewShare;
use latchfs::file::service::{FileOptions, FileService, Share};
use latchfs::http::auth::Admission;
use latchfs::http::server::{RestOptions, RestServer};
use latchfs::journal::AccountJournal;
use latchfs::rules::Timestamp;
use latchfs::server::{Account, Accounts};

use crate::common::http::ACCOUNT;
use crate::common::need;
use crate::common::rest::Rest;

/// A moment in 2026.
const NOW: Timestamp = Timestamp(1_790_000_000_000_000_000);

/// The share `share`, mounted and listened for. Unmounted when dropped.
pub struct Inside {
    pub clock: Arc<ManualClock>,
    engine: Arc<FileService>,
    rest: Rest,
    mnt: PathBuf,
    // In this order: the mount goes before what it serves.
    _mount: Mount,
    _server: RestServer,
    _folder: tempfile::TempDir,
}

impl Inside {
    /// None if nothing can be mounted here.
    #[track_caller]
    pub fn start() -> Option<Self> {
        if !need::fuse() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let (data, mnt) = (folder.path().join("data"), folder.path().join("mnt"));
        std::fs::create_dir(&mnt).unwrap();
        let clock = Arc::new(ManualClock::new(NOW));
        let turned: Arc<ManualClock> = Arc::clone(&clock);
        let (options, journal) = (FileOptions::default(), AccountJournal::default());
        let engine = FileService::open(&data, options, turned, journal).unwrap();
        let accounts = Accounts::new(Account::with_file(ACCOUNT, engine).unwrap(), []);
        let engine = Arc::clone(accounts.first().file());
        engine.create_share("share", NewShare::default()).unwrap();
        let share = engine.share("share").unwrap();
        let mount = Mount::start(share, &mnt, MountOptions::default()).unwrap();
        let options = RestOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            ..RestOptions::new(Admission::Everyone)
        };
        let server = RestServer::start(
            Arc::new(accounts),
            &latchfs::file::rest::operations::SERVICE_TABLE,
            options,
        )
        .unwrap();
        let rest = Rest::new(server.addr(), "share");
        Some(Self { clock, engine, rest, mnt, _mount: mount, _server: server, _folder: folder })
    }

    /// A path on the mount.
    pub fn path(&self, name: &str) -> PathBuf {
        self.mnt.join(name)
    }

    /// The share behind both.
    pub fn share(&self) -> Arc<Share> {
        self.engine.share("share").unwrap()
    }
}

impl Deref for Inside {
    type Target = Rest;

    fn deref(&self) -> &Rest {
        &self.rest
    }
}
