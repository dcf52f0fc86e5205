//! The test bench: the clock, gates, faults and saved states of a server.

pub mod controls;
pub mod states;

pub use controls::Controls;
pub use states::{DamagedState, SavedState, ServerData, StateError, States};
