//! The Table service.

pub mod rules;
pub mod service;
pub mod store;
