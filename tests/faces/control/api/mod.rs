//! The HTTP API: what it asks of a server, who may call it, and how much of it there is.

mod bench;
mod clients;
mod document;
mod events;
mod explorations;
mod explored;
mod fixture;
mod held;
mod holds;
mod limits;
mod looks;
mod report;
mod rows;
mod schema;
mod security;
mod states;
