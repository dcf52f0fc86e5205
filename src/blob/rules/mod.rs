//! The rules of the Blob service: conditions and leases per operation, blocks, pages, appends,
//! tags, copies, tiers, immutability, deletion.
//!
//! Pure, like all rules. The service asks these rules before a body is received and again
//! inside the transaction that commits it.
//!
//! ```text
//!   operation      every operation: its conditions, its lease class, what it does to the ETag
//!   admit          the order of checks for one request on one blob
//!   denial         why a request was refused
//!   state          the record of one state of a blob; container: that of a container
//!   name           names of containers and blobs
//!   blocks         block IDs and block lists
//!   append, pages  append and page blobs
//!   tags           tags and expressions over them
//!   copy, tier, immutability, deletion
//! ```

pub mod admit;
pub mod append;
pub mod blocks;
pub mod container;
pub mod copy;
pub mod deletion;
pub mod denial;
pub mod immutability;
pub mod name;
pub mod operation;
pub mod pages;
pub mod state;
pub mod tags;
pub mod tier;

pub use admit::{AdmitRequest, FoundObject, admit, admit_container};
pub use container::{ContainerState, PublicAccess};
pub use denial::BlobDenial;
pub use operation::BlobOperation;
pub use state::{BlobMetadata, BlobState, BlobType, ContentProperties, Encryption};
