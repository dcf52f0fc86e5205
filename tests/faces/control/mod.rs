//! The command line around a running server: `serve` and all that asks it, on real mounts.

mod accounts;
mod admin;
mod api;
mod azurite;
mod clients;
mod controls;
mod directory;
mod embedding;
mod first_day;
mod fixture;
mod full_disk;
mod health;
mod holds;
mod json_page;
mod lacking;
mod load;
mod machine;
mod objects;
mod one_server;
mod programs;
mod run;
mod serve;
mod services;
mod shares;
mod start;
mod starter;
mod stop;
mod storage;
mod testing;
#[cfg(feature = "tls")]
mod tls;
mod tokens;
mod user;
mod which_server;
