//! The Blob service.

pub mod rules;
pub mod store;
