//! The Table service over HTTP: the numbered behaviours T1 to T84, each a test by its number or
//! rows of a table.

mod access;
mod bad_input;
mod entities;
pub mod fixture;
mod numbers;
mod page;
mod queries;
mod races;
mod transactions;
mod values;
