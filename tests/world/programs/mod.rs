//! Programs that know nothing of latchfs, on a mount with default options: delete pending on,
//! names in any case, every open sharing everything.
//!
//! Each test runs a program as a user would and then looks at what it left, both through the
//! mount and in the directory behind it. What single system calls do is in `tests/faces/mount`.

mod build;
mod databases;
mod desk;
mod editors;
mod git;
mod not_root;
mod postgres;
mod python;
mod shell;
mod transfer;
mod trees;
