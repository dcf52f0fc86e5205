//! The door: one method per operation, for every front end.
//!
//! Ties rules and bytes together and holds the only shared mutable state. Each operation looks
//! its name up, takes the file's own lock, asks the rules and carries out what they allow, all in
//! one step.
//!
//! ```text
//!   share     a share, its names and what they stand for
//!   table     files in use, each with its lock
//!   open      opening and closing
//!   delete    delete pending, unlink, rmdir, undelete
//!   rename    rename; link, exchange
//!   names     looking names up, listing
//!   io        reading and writing through a handle
//!   locks     byte-range locks, waiting with a bound
//!   posix     what the mount adds
//!   releases  handles that are being released, and what else the mount asks
//!   haste     callers who cannot wait
//!   momentary REST's door: operations as momentary opens
//!   files     REST's operations on files
//!   random    identities that nobody can guess
//!   programs  who a process is, for those who are told of it
//!   shown     what REST shows of a file, and sets
//!   directories, listing, rest_rename, copy, handles
//!             REST's operations on them
//!   recover   what a start finds
//!   changes   what is told to those who keep copies
//!   events    the log that observers follow
//!   tally     how much is held, for those who watch
//!   account   all shares: created, deleted, restored, and what each is as a whole
//! ```

pub mod account;
mod changes;
pub mod clock;
mod copy;
mod delete;
mod directories;
mod error;
pub mod events;
mod exchange;
mod files;
mod force_close;
mod handles;
mod haste;
mod io;
mod link;
mod listing;
mod locks;
mod momentary;
mod names;
mod open;
mod posix;
pub mod programs;
mod random;
mod recover;
mod releases;
mod rename;
mod rest_rename;
mod share;
mod shown;
mod table;
mod tally;
mod waiting;
mod why;

pub use account::{AccountError, Engine, EngineOptions, ShareDenial};
pub use changes::Change;
pub use clock::{Clock, ManualClock, SystemClock};
pub use copy::{
    Awaiting, Copied, CopyOptions, Copying, Elsewhere, Started, StartedElsewhere, Taken,
};
pub use delete::Unlinked;
pub use directories::DirectoryProperties;
pub use error::{Error, Result};
pub use events::EventLog;
pub use files::{
    DiffOptions, FILE_SIZE_MAX, FileChanges, FileProperties, FileReader, LastWrite, Leased,
    NewProperties, RangeChanges, RangeList, Semantics, TimeChange,
};
pub use force_close::{ClosedHandle, ForceClosed, LISTENERS_MAX, WhichHandles};
pub use handles::{HandleInfo, HandlePage};
pub use haste::without_waiting;
pub use io::{IO_MAX, Standard};
pub use listing::{DirectoryEntry, DirectoryPage, ListOptions, PAGE_MAX};
pub use locks::LOCK_WAIT_MAX;
pub use momentary::Asking;
pub use open::{Handle, Opened};
pub use posix::{Creation, PosixOpen};
pub use releases::{Described, RELEASE_WAIT_MAX, Space};
pub use rest_rename::{Renamed, RestRename};
pub use share::{Share, ShareOptions};
pub use shown::{PropertyChanges, Shown};
pub use tally::Tally;
pub use why::Standing;

// What the disk says, as front ends see it.
pub use crate::store::data::{read_at, set_len, write_at};
pub use crate::store::difference::Changed;
pub use crate::store::{
    Case, Control, CopyProgress, CopyState, CopyStatus, ETag, Found, HttpHeaders, Kind, Listed,
    Metadata, OpenFor, Record, Records, Stat, StoreError, proc_path,
};
