//! The Table service.

pub mod rules;
