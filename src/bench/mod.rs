//! The test bench: the clock, gates, faults and saved states of a server, and the report on its
//! clients.

pub mod controls;
pub mod explore;
pub mod report;
pub mod states;

pub use controls::Controls;
pub use states::{DamagedState, SavedState, ServerData, StateError, States};
