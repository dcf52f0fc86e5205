//! The operations of the Blob service: one file a resource.
//!
//! ```text
//!   operations   the table: shape, permissions and function of each operation
//!   service      list containers, find by tags, account information; batch: many in one request
//!   container    create, delete, properties, access policies, lease; list: what is in one
//!   read         Get Blob and its properties; download: bytes on their way out
//!   put          Put Blob; blocks, append, pages; body: bytes on their way in
//!   settings     properties, metadata, tags, tier, immutability, lease; delete, snapshot
//!   copy         copies and the From URL forms; remote: sources on other servers
//!   request      conditions, lease ID and address of a request; headers: properties of a blob;
//!                customer_key: the key of a customer
//!   footprint    what an operation reads and writes, for explorations
//!   error        how refusals are spelled
//! ```
//!
//! Each operation reads its headers, calls the engine, and spells the answer.

mod append;
mod batch;
pub(crate) mod blocks;
mod body;
mod container;
mod copy;
#[cfg(test)]
mod coverage;
mod customer_key;
mod download;
mod error;
mod footprint;
mod headers;
mod list;
pub mod operations;
mod pages;
mod put;
mod read;
mod remote;
mod request;
mod service;
pub(crate) mod settings;

#[cfg(test)]
pub(crate) use coverage::coverage;
pub(crate) use error::refusal_of_opening;

use std::ops::Deref;
use std::sync::Arc;

use crate::blob::service::BlobService;
use crate::http::frame::call::Call;
use crate::http::frame::refusal::Refusal;
use crate::rules::Context;

/// A request to the Blob service that was authorised.
pub struct BlobCall<'a>(pub &'a Call<'a>);

impl<'a> Deref for BlobCall<'a> {
    type Target = Call<'a>;

    fn deref(&self) -> &Call<'a> {
        self.0
    }
}

impl<'a> BlobCall<'a> {
    fn engine(&self) -> Result<Arc<BlobService>, Refusal> {
        self.0.service().cloned()
    }

    fn cx(&self) -> &'a Context {
        self.0.context
    }

    /// The context at the present moment: a body may take minutes to arrive, and conditions that
    /// held when it began may not hold any more.
    fn cx_now(&self) -> Context {
        Context { now: self.0.site.now(), ..self.0.context.clone() }
    }
}
