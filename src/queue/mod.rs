//! The Queue service.

pub mod rest;
pub mod rules;
pub mod service;
pub mod store;
