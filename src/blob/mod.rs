//! The Blob service.

pub mod rules;
