//! The Queue service.

pub mod rules;
pub mod store;
