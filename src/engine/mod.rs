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
//!   rename    rename and link
//!   names     looking names up, listing
//!   io        reading and writing through a handle
//!   locks     byte-range locks, waiting with a bound
//!   momentary REST's door: operations as momentary opens
//!   files     REST's operations on files
//!   random    identities that nobody can guess
//!   recover   what a start finds
//!   events    the log that observers follow
//!   account   all shares: created, deleted, restored, and what each is as a whole
//! ```

pub mod account;
pub mod clock;
mod delete;
mod error;
pub mod events;
mod files;
mod io;
mod locks;
mod momentary;
mod names;
mod open;
mod random;
mod recover;
mod rename;
mod share;
mod table;
mod waiting;

pub use account::{AccountError, Engine, EngineOptions, ShareDenial};
pub use clock::{Clock, ManualClock, SystemClock};
pub use delete::Unlinked;
pub use error::{Error, Result};
pub use events::EventLog;
pub use files::{
    FILE_SIZE_MAX, FileProperties, FileReader, LastWrite, Leased, NewProperties, PropertyChanges,
    RangeList, Semantics, TimeChange,
};
pub use io::{IO_MAX, Standard};
pub use locks::LOCK_WAIT_MAX;
pub use momentary::Asking;
pub use open::{Handle, Opened};
pub use share::{Share, ShareOptions};

// What the disk says, as front ends see it.
pub use crate::store::{
    Case, CopyProgress, CopyState, CopyStatus, ETag, Found, HttpHeaders, Kind, Listed, Metadata,
    Record, Stat, StoreError,
};
