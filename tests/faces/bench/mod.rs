//! The test bench: gates and faults that requests to every service meet. Those of calls on a mount
//! are in `mount/controlled.rs`.

mod any_order;
mod every_operation;
mod latches;
mod lines;
mod models;
mod order;
mod pairs;
mod pruned;
mod races;
mod released;
