//! The test bench: the clock, gates, faults and saved states of a server.

pub mod saved;
