//! A session: who has logged on, its trees and its opens.
//!
//! Decides that a tree and a file belong to one session, and how many there may be of each. Who may
//! log on is decided in [`super::logon`]; what an open may do by the service.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use std::os::fd::OwnedFd;
use tokio::sync::{OwnedSemaphorePermit, RwLock};

use super::auth::Keys;
use super::connection::Connection;
use super::operations::directory::Search;
use super::operations::pipe::Pipe;
use super::server::Site;
use super::status::Status;
use super::wire::FileId;
use crate::file::rules::ShareMode;
use crate::file::service::{FileError, FileService, Handle, Share};
use crate::rules::Owner;
use crate::rules::who::Who;

/// The most trees of a session.
const TREES_MAX: usize = 1_024;
/// The most opens of a session, as Windows has it.
const OPENS_MAX: usize = 16_384;

/// A client that has logged on.
pub struct Session {
    pub id: u64,
    pub account: Arc<str>,
    pub files: Arc<FileService>,
    /// The client as the journal names it.
    pub who: Who,
    /// The client as the table of opens names it.
    pub owner: Arc<Owner>,
    pub keys: Keys,
    /// An encrypted request came: plain ones are refused from then on.
    sealed: AtomicBool,
    table: Mutex<SessionTable>,
    connection: Weak<Connection>,
}

#[derive(Default)]
struct SessionTable {
    ended: bool,
    last_tree: u32,
    trees: HashMap<u32, Arc<Tree>>,
    opens: HashMap<u64, Arc<Open>>,
}

/// A share that a session is connected to.
pub struct Tree {
    pub id: u32,
    /// Its name; none for `IPC$`.
    pub share: Option<Arc<str>>,
    /// Held shared by requests under way; alone by the one that ends the tree.
    pub turn: Arc<RwLock<()>>,
}

/// An open file, directory or pipe.
pub struct Open {
    pub id: FileId,
    pub tree: u32,
    pub kind: OpenKind,
    /// Held shared by requests under way; alone by the one that closes it.
    pub turn: Arc<RwLock<()>>,
}

pub enum OpenKind {
    File(Box<OpenFile>),
    Pipe(Mutex<Pipe>),
}

pub struct OpenFile {
    pub share: Arc<Share>,
    pub handle: Handle,
    pub share_mode: ShareMode,
    /// A row of the journal says what was read through it.
    pub has_read: AtomicBool,
    pub directory: bool,
    /// Share and path, as gates and faults name them; another one after a rename through it.
    pub place: Mutex<String>,
    pub search: Mutex<Search>,
    /// The position and the mode that a client sets and is told, and nothing else uses.
    pub position: AtomicU64,
    pub mode: AtomicU32,
    pub descriptor: OnceLock<(OwnedFd, OwnedSemaphorePermit)>,
}

impl Session {
    pub fn new(
        id: u64,
        (account, files): (Arc<str>, Arc<FileService>),
        (who, owner): (Who, Owner),
        keys: Keys,
        connection: &Arc<Connection>,
    ) -> Self {
        Self {
            id,
            account,
            files,
            who,
            owner: Arc::new(owner),
            keys,
            sealed: AtomicBool::new(false),
            table: Mutex::default(),
            connection: Arc::downgrade(connection),
        }
    }

    /// Whether a request that came plain, or sealed, may go on. One sealed request forbids plain
    /// ones for good.
    pub fn admits(&self, sealed: bool) -> bool {
        if sealed {
            self.sealed.store(true, Ordering::Relaxed);
        }
        sealed || !self.sealed.load(Ordering::Relaxed)
    }

    pub fn connection(&self) -> Option<Arc<Connection>> {
        self.connection.upgrade()
    }

    /// Connects to a share, or to `IPC$`.
    pub fn add_tree(&self, share: Option<Arc<str>>) -> Result<Arc<Tree>, Status> {
        let mut table = self.lock();
        if table.ended {
            return Err(Status::USER_SESSION_DELETED);
        }
        if table.trees.len() >= TREES_MAX {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        table.last_tree += 1;
        let tree = Arc::new(Tree { id: table.last_tree, share, turn: Arc::default() });
        table.trees.insert(tree.id, Arc::clone(&tree));
        Ok(tree)
    }

    pub fn tree(&self, id: u32) -> Result<Arc<Tree>, Status> {
        self.lock().trees.get(&id).cloned().ok_or(Status::NETWORK_NAME_DELETED)
    }

    pub fn trees(&self) -> Vec<Arc<Tree>> {
        self.lock().trees.values().cloned().collect()
    }

    /// Enters a new open. If the session or the tree has ended meanwhile, the open ends at once.
    pub fn add_open(&self, site: &Site, open: Open) -> Result<Arc<Open>, Status> {
        let open = Arc::new(open);
        let refused = {
            let mut table = self.lock();
            if table.ended || !table.trees.contains_key(&open.tree) {
                Status::NETWORK_NAME_DELETED
            } else if table.opens.len() >= OPENS_MAX {
                Status::TOO_MANY_OPENED_FILES
            } else {
                table.opens.insert(open.id.volatile, Arc::clone(&open));
                return Ok(open);
            }
        };
        // The client is told of the refusal above, not of this one.
        let _ = open.close(site);
        Err(refused)
    }

    pub fn open(&self, tree: u32, id: FileId) -> Result<Arc<Open>, Status> {
        let found = self.lock().opens.get(&id.volatile).cloned();
        found.filter(|open| open.id == id && open.tree == tree).ok_or(Status::FILE_CLOSED)
    }

    /// Takes an open out; requests that come later do not find it. The caller closes it.
    pub fn take_open(&self, open: &Open) -> bool {
        self.lock().opens.remove(&open.id.volatile).is_some()
    }

    /// Takes a tree and its opens out; the caller closes these.
    pub fn take_tree(&self, id: u32) -> Vec<Arc<Open>> {
        let mut table = self.lock();
        table.trees.remove(&id);
        table.opens.extract_if(|_, open| open.tree == id).map(|(_, open)| open).collect()
    }

    /// Ends the session: its opens are closed, whatever is under way on them. Blocks.
    pub fn end(&self, site: &Site) {
        site.forget_session(self.id);
        let opens = {
            let mut table = self.lock();
            table.ended = true;
            table.trees.clear();
            std::mem::take(&mut table.opens)
        };
        close_all(site, opens.into_values());
    }

    fn lock(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes opens that nobody can ask for any more. Blocks.
pub fn close_all(site: &Site, opens: impl IntoIterator<Item = Arc<Open>>) {
    for open in opens {
        if let Err(FileError::Store(error)) = open.close(site) {
            log::warn!("an open of an SMB client: {error}");
        }
    }
}

impl Open {
    /// Ends the open. Blocks.
    pub fn close(&self, site: &Site) -> Result<(), FileError> {
        let OpenKind::File(file) = &self.kind else { return Ok(()) };
        let closed = file.share.close(&file.handle);
        site.notifies.end(&file.share, file.handle.id());
        closed
    }

    /// Share and path, as gates and faults name them.
    pub fn place(&self) -> String {
        match &self.kind {
            OpenKind::File(file) => file.lock_place().clone(),
            OpenKind::Pipe(_) => "IPC$/srvsvc".to_owned(),
        }
    }

    pub fn file(&self) -> Result<&OpenFile, Status> {
        match &self.kind {
            OpenKind::File(file) => Ok(file),
            OpenKind::Pipe(_) => Err(Status::INVALID_DEVICE_REQUEST),
        }
    }
}

impl OpenFile {
    pub fn lock_place(&self) -> MutexGuard<'_, String> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work` through a descriptor that is kept with the open, or through one of its own where
    /// too many are kept.
    pub fn through<T>(
        &self,
        site: &Site,
        work: impl FnOnce(&OwnedFd) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        if let Some((fd, _)) = self.descriptor.get() {
            return work(fd);
        }
        let fd = self.share.descriptor(&self.handle)?;
        match Arc::clone(&site.descriptors).try_acquire_owned() {
            // Another request may have been faster: then this one is dropped.
            Ok(place) => work(&self.descriptor.get_or_init(|| (fd, place)).0),
            Err(_) => work(&fd),
        }
    }
}
