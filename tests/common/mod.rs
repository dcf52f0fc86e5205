//! What integration tests share. Each test file takes it in with `mod common;`.
#![allow(dead_code, reason = "every test file compiles this folder anew and uses a part of it")]

pub mod asking;
pub mod bench;
pub mod calls;
pub mod ground;
pub mod http;
pub mod meeting;
pub mod names;
pub mod need;
pub mod pages;
pub mod ports;
pub mod program;
pub mod random;
pub mod rest;
pub mod served;
pub mod user;
