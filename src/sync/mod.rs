//! The swap point for synchronisation: the standard library's, or shuttle's under
//! the feature `shuttle`, which then runs the engine's races through many schedules.
//!
//! Which threads must not wait is in [`front_end`].

pub(crate) mod bell;
pub mod front_end;
pub mod random;

#[cfg(not(feature = "shuttle"))]
pub use std::sync::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicU64, Ordering},
};

#[cfg(feature = "shuttle")]
pub use shuttle::sync::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicU64, Ordering},
};
