//! Replays what a real SMB server answered, and holds latchfs to it.
//!
//! The recordings are in `tests/oracle`; each is carried out by [`player`] and
//! compared answer by answer:
//!
//! - [`matrices`]: every pair of opens, every right, every disposition against every open;
//! - [`traces`]: thousands of random steps;
//! - [`scenarios`]: short stories, with what each step gave back;
//! - [`departures`]: the only places where the answer may differ, and the rule behind each;
//! - [`document`]: the same list as people read it, in `docs/semantics.md`.
//!
//! Every recording is counted too, so that one that lost its rows cannot pass.
mod departures;
mod document;
mod matrices;
mod oracle;
mod player;
mod scenarios;
mod traces;
