//! The rules that services share, and the values that a refusal names.
//!
//! Pure: no I/O, no clock, no threads, no async, no logging. Time and facts about the disk are
//! arguments; answers are values. What one service alone decides is in its own `rules` folder.
//!
//! ```text
//!   access       access and share modes
//!   address      objects of the services, as people type and read them
//!   asked        what the head of a request asks for: conditions, lease, parts
//!   cause        why a request was refused: the rule, the open in the way
//!   comparison   the operators of filters and of expressions over tags
//!   conflict     what a request was refused for because of another client
//!   copy_status  the status of a copy, of blobs and files
//!   conditions   If-Match and its like: whether a request's conditions hold
//!   etag         versions of blobs and containers
//!   footprint    what a step of an exploration reads and writes
//!   gate         what a gate says of a request
//!   given        what a request read and changed
//!   glob         patterns over paths; pattern: which requests a gate or fault matches
//!   lease        leases of files, shares, containers and blobs
//!   metadata     user metadata: legal names, the limit
//!   name         names of containers, queues and shares; what is said of a wrong name
//!   named        enums whose variants have a name each
//!   time         points in time and how the services write them
//!   context      the circumstances of an operation: its time and its caller
//!   id           identities: files, handles, clients
//!   policy       stored access policies
//!   service      the four services, and what each is called
//!   who          the name of a client, and how it is known
//!   writer       the request that changed an object last
//! ```

pub mod access;
pub mod address;
pub mod asked;
pub mod cause;
pub mod comparison;
pub mod conditions;
pub mod conflict;
pub(crate) mod context;
pub mod copy_status;
pub mod etag;
pub mod footprint;
pub mod gate;
pub mod given;
pub mod glob;
pub mod id;
pub mod lease;
pub mod metadata;
pub mod name;
pub(crate) mod named;
pub mod pattern;
pub mod policy;
pub mod service;
pub mod time;
pub mod who;
pub mod writer;

pub use access::{Access, ShareMode};
pub use cause::{Cause, Holder, RefusalKind, Rule, Spelled};
pub use context::{Caller, Context};
pub use etag::Etag;
pub use given::Noted;
pub use id::{Client, FileId, HandleId, Owner, Timestamp};
pub use lease::{FileLease, LeaseDenial, LeaseId, ShareLease};
pub use metadata::{Metadata, MetadataError, check_metadata};
pub use name::NameError;
pub use writer::Writer;
