//! The File service of one account: one method per operation, for every front end.
//!
//! Ties rules and bytes together. Each operation looks its name up, takes the file's own lock,
//! asks the rules and carries out what they grant, all in one step.
//!
//! ```text
//!   share/    a share: its fields and what keeps them in order
//!   opens/    handles: opening, closing, reading and writing, byte-range locks, forced closes
//!   names/    names: looking up, deleting, renaming, linking
//!   requests/ REST operations on files and directories, each a momentary open
//!   shares/   all shares: created, deleted, restored, and the properties of each
//!   held      what is held, and how much, for metrics
//! ```

mod error;
mod held;
mod names;
mod opens;
pub(crate) mod requests;
mod share;
pub mod shares;

pub use crate::file::service::requests::{
    Asking, Awaiting, CopyOptions, CopyProperty, DiffOptions, DirectoryEntry, DirectoryPage,
    FILE_SIZE_MAX, FileChanges, FileProperties, FileReader, NewProperties, PAGE_MAX, PageOptions,
    PendingFileCopy, PropertyChanges, RangeChanges, RangeList, RemoteSource, RestRename, Semantics,
    SmbProperties, Started, StartedRemote, TimeChange,
};
pub use error::{FileError, Result};
pub use held::{HeldLock, Obstacle, PendingName, Tally};
pub use names::{FileSystemSpace, MoveHow, NameRules, Unlinked};
pub use opens::{
    BasicTimes, ClosedHandle, Creation, Described, ForceClosed, Handle, HandleInfo, HandlePage,
    IO_MAX, ListedHandle, OpenedFile, PosixOpen, Standard, WhichHandles,
};
pub use share::{
    Attempt, ChangeNotice, LISTENERS_MAX, RELEASE_LOOK, RELEASE_WAIT, Share, ShareOptions,
};
pub use shares::{FileOptions, FileService, FileServiceError, ShareDenial};

// Types of the rules and the store that arguments and answers are made of.
pub use crate::disk::StoreError;
pub use crate::file::store::share::data::{read_at, set_len, timespec, write_at};
pub use crate::file::store::share::difference::ChangedRange;
pub use crate::file::store::share::{
    Case, Control, CopyProgress, CopyState, ETag, FileKind, FoundFile, HttpHeaders, ListedName,
    Metadata, OpenDirectory, OpenFor, Record, Records, SnapshotError, Stat, proc_path,
};
pub use crate::rules::copy_status::CopyStatus;
