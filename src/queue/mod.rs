//! The Queue service.

pub mod rules;
