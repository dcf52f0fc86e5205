//! Random operations against a slow, obvious reference, on the rules and on the engine.
//!
//! ```text
//!   random     seeds, and how many steps
//!   rules      the reference of one file: plain lists and the pairwise rule
//!   demands    what REST operations ask for, written down once more
//!   file       random steps on core's FileState, compared with the rules
//!   tree       the reference of a share: a tree of names with their opens
//!   share      random steps on engine's Share, with real files, compared with the tree
//!   crowd      several threads at once; what must hold whatever the order
//!   found      what the runs and reviews found, each as a small story
//! ```
//!
//! A failure names seed and step and shows the steps that led there. `LATCHFS_TEST_SEED=n` runs
//! that seed alone, `LATCHFS_FULL=1` ten times as many steps.

mod crowd;
mod demands;
mod file;
mod found;
use crate::common::random;
mod rules;
mod share;
mod tree;
