//! The Table service.

pub mod rules;
pub mod store;
