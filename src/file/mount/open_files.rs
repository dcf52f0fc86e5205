//! The table of a mount's open files and directories, found by handle number and by file.
//!
//! A lookup costs the same however many files are open.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, RwLock};

use fuser::{BackingId, FileHandle};

use crate::file::rules::{Access, ShareMode};
use crate::file::service::{Handle, ListedName, OpenDirectory};
use crate::rules::FileId;

/// An open file of the mount.
#[derive(Debug)]
pub struct OpenFile {
    pub handle: Handle,
    /// The node that the kernel opened.
    pub node: u64,
    pub access: Access,
    /// The descriptor for reads and writes without passthrough and under mandatory locks.
    pub fd: Option<OwnedFd>,
    /// Kept while the file is open: the kernel reads and writes through it.
    pub backing: Option<Arc<BackingId>>,
    /// The kernel was answered with the name and the open file at once.
    pub by_create: bool,
    /// The share mode it had before `flock` changed it.
    pub before_flock: Mutex<Option<ShareMode>>,
}

impl OpenFile {
    /// True if the kernel writes for it without asking latchfs.
    pub fn can_write_unseen(&self) -> bool {
        self.backing.is_some() && self.access.contains(Access::W)
    }

    /// True if a mapping made through it can store without the kernel taking note: such a mapping
    /// needs a descriptor that reads and writes.
    pub fn may_store_by_mapping(&self) -> bool {
        self.can_write_unseen() && self.access.contains(Access::R)
    }
}

/// An open directory of the mount.
#[derive(Debug)]
pub struct OpenDir {
    pub handle: Handle,
    /// The directory itself, whatever becomes of its name and its permission bits.
    pub dir: OpenDirectory,
    /// The entries as they were when the directory was read from the start.
    pub entries: Mutex<Arc<Vec<ListedName>>>,
}

/// An open file or directory.
pub trait NumberedOpen {
    fn handle(&self) -> &Handle;

    /// The number by which the kernel names it: the handle's, which is never reused.
    fn number(&self) -> FileHandle {
        FileHandle(self.handle().id().0)
    }

    /// Where it is among the opens of its file.
    fn place(&self) -> Place;
}

/// The opens of a file are ordered by this, so that those of one kind are found without a look at
/// the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    /// The node that the kernel opened.
    pub node: u64,
    /// The kernel reads and writes without latchfs.
    pub passes: bool,
}

impl NumberedOpen for OpenFile {
    fn handle(&self) -> &Handle {
        &self.handle
    }

    fn place(&self) -> Place {
        Place { node: self.node, passes: self.backing.is_some() }
    }
}

impl NumberedOpen for OpenDir {
    fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Directories are found by number and by file alone.
    fn place(&self) -> Place {
        Place::default()
    }
}

/// Opens of one kind.
#[derive(Debug)]
pub struct Opens<T>(RwLock<Inside<T>>);

#[derive(Debug)]
struct Inside<T> {
    by_number: HashMap<u64, Arc<T>>,
    by_file: BTreeMap<(FileId, Place, u64), Arc<T>>,
    closed: bool,
}

/// The opens of a file from one place on, in their order.
fn from<T>(
    by_file: &BTreeMap<(FileId, Place, u64), Arc<T>>,
    file: FileId,
    place: Place,
) -> impl Iterator<Item = (Place, &Arc<T>)> {
    let opens = by_file.range((file, place, 0)..).take_while(move |((id, ..), _)| *id == file);
    opens.map(|((_, place, _), open)| (*place, open))
}

impl<T> Default for Inside<T> {
    fn default() -> Self {
        Self { by_number: HashMap::new(), by_file: BTreeMap::new(), closed: false }
    }
}

impl<T> Default for Opens<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

const POISON: &str = "tables of open files are only looked up and changed";

impl<T: NumberedOpen> Opens<T> {
    /// Keeps an open. False once the table is closed: the caller must end the open.
    #[must_use = "an open that is not kept must be ended"]
    pub fn keep(&self, open: &Arc<T>) -> bool {
        let number = open.number().0;
        let mut inside = self.0.write().expect(POISON);
        if inside.closed {
            return false;
        }
        inside.by_file.insert((open.handle().file(), open.place(), number), Arc::clone(open));
        inside.by_number.insert(number, Arc::clone(open));
        true
    }

    /// The open of a number.
    pub fn get(&self, number: u64) -> Option<Arc<T>> {
        self.0.read().expect(POISON).by_number.get(&number).cloned()
    }

    pub fn take(&self, number: u64) -> Option<Arc<T>> {
        let mut inside = self.0.write().expect(POISON);
        let open = inside.by_number.remove(&number)?;
        inside.by_file.remove(&(open.handle().file(), open.place(), number));
        Some(open)
    }

    /// Removes all opens and closes the table, which keeps none from then on.
    pub fn close(&self) -> Vec<Arc<T>> {
        let closed = Inside { closed: true, ..Inside::default() };
        let inside = std::mem::replace(&mut *self.0.write().expect(POISON), closed);
        inside.by_number.into_values().collect()
    }

    /// Drops the opens whose handles fit.
    pub fn drop_if(&self, fits: impl Fn(&Handle) -> bool) {
        for open in self.all().into_iter().filter(|open| fits(open.handle())) {
            self.take(open.number().0);
        }
    }

    pub fn all(&self) -> Vec<Arc<T>> {
        self.0.read().expect(POISON).by_number.values().cloned().collect()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.read().expect(POISON).by_number.is_empty()
    }

    /// The opens of a file.
    pub fn of_file(&self, file: FileId) -> Vec<Arc<T>> {
        let inside = self.0.read().expect(POISON);
        from(&inside.by_file, file, Place::default()).map(|(_, open)| open.clone()).collect()
    }

    /// The first open of a file that is `wanted`.
    pub fn find(&self, file: FileId, wanted: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let inside = self.0.read().expect(POISON);
        let mut opens = from(&inside.by_file, file, Place::default());
        opens.find(|(_, open)| wanted(open)).map(|(_, open)| Arc::clone(open))
    }

    /// An open of the file through a node; if there are several, one that does not pass through.
    pub fn through(&self, file: FileId, node: u64) -> Option<Arc<T>> {
        let inside = self.0.read().expect(POISON);
        let (place, open) = from(&inside.by_file, file, Place { node, passes: false }).next()?;
        (place.node == node).then(|| Arc::clone(open))
    }

    /// True if the file is open through a node that fits. Asks once for each node.
    pub fn any_node(&self, file: FileId, fits: impl Fn(u64) -> bool) -> bool {
        let inside = self.0.read().expect(POISON);
        let mut at = Some(Place::default());
        while let Some(place) = at {
            let Some((found, _)) = from(&inside.by_file, file, place).next() else { return false };
            if fits(found.node) {
                return true;
            }
            at = found.node.checked_add(1).map(|node| Place { node, passes: false });
        }
        false
    }
}

/// A descriptor of a file that is open on the mount: it works whatever happens to the file's name
/// and permission bits.
#[derive(Debug)]
pub enum OpenDescriptor {
    /// The descriptor of an open file.
    File(Arc<OpenFile>),
    /// The descriptor of an open directory.
    Dir(Arc<OpenDir>),
    /// A descriptor that the engine kept when the file lost its name.
    Kept(Arc<OwnedFd>),
    /// A descriptor made by the file's name for one call.
    Made(OwnedFd),
}

impl OpenDescriptor {
    pub fn fd(&self) -> &OwnedFd {
        match self {
            Self::File(file) => file.fd.as_ref().expect("only an open with a descriptor is held"),
            Self::Dir(dir) => dir.dir.fd(),
            Self::Kept(fd) => fd,
            Self::Made(fd) => fd,
        }
    }
}

impl AsFd for OpenDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd().as_fd()
    }
}
