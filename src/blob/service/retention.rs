//! The retention of deleted blobs and containers.
//!
//! Decides how long deleted states are kept. The server keeps it with the service's properties.

use std::sync::RwLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::BlobService;
use crate::blob::store::Retained;
use crate::rules::Timestamp;

const DAY: Duration = Duration::from_hours(24);
const POISON: &str = "nothing panics while the retention is held";

/// How deleted blobs and containers are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Retention {
    /// For how many days, 1 to 365; `None` if they go at once.
    pub days: Option<u16>,
    /// Whether what is kept may be deleted for good before its time.
    #[serde(default)]
    pub permanent_delete: bool,
}

impl Retention {
    /// The part of the service's properties that keeps the retention as JSON, beside the documents
    /// that were sent.
    pub const PART: &str = "retention";
}

/// The retention that operations go by.
pub(super) struct Settings(RwLock<Retention>);

impl Settings {
    pub fn new(retention: Retention) -> Self {
        Self(RwLock::new(retention))
    }

    fn get(&self) -> Retention {
        *self.0.read().expect(POISON)
    }

    /// Whether what is kept may be deleted for good before its time.
    pub fn allows_permanent_delete(&self) -> bool {
        self.get().permanent_delete
    }

    /// How long a state deleted now is kept.
    pub fn retained(&self, now: Timestamp) -> Option<Retained> {
        let days = self.get().days?;
        Some(Retained { deleted: now, until: now.after(DAY * u32::from(days)) })
    }
}

impl BlobService {
    /// How deleted states are kept.
    pub fn retention(&self) -> Retention {
        self.memory.settings.get()
    }

    /// Sets how states that are deleted from now on are kept. Does not outlive the service: what
    /// the next start goes by is kept with the other properties of the service.
    pub fn set_retention(&self, retention: Retention) {
        *self.memory.settings.0.write().expect(POISON) = retention;
    }
}
