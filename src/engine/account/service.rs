//! What the service as a whole was told, kept beyond this process.
//!
//! Decides that a set leaves alone what it does not name (FILEREST section 6), and that nobody is
//! told before it is on disk. What the parts are called, how they are spelled and what they mean
//! is the front end's.

use std::collections::BTreeMap;
use std::path::Path;

use super::Engine;
use super::error::AccountResult;
use crate::store::{Drawer, Durability, StateDir, StoreError};
use crate::sync::Mutex;

const PROPERTIES: &str = "properties";
const POISON: &str = "nothing panics while service properties are held";

/// Parts by name.
type Parts = BTreeMap<String, String>;

/// The properties of the service, in memory and on disk.
pub(super) struct Service {
    state: StateDir,
    parts: Mutex<Parts>,
}

impl Service {
    /// Opens what is kept in `folder`. What cannot be understood counts as never set: it must not
    /// keep the shares from their owner.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let state = StateDir::open(folder)?;
        let parts = match state.get(Drawer::Service, PROPERTIES) {
            Err(StoreError::Damaged { what, why }) => {
                log::error!("the service properties: {what} is damaged: {why}");
                None
            }
            loaded => loaded?,
        };
        Ok(Self { state, parts: Mutex::new(parts.unwrap_or_default()) })
    }
}

impl Engine {
    /// The properties of the service that were set, by part.
    pub fn service_properties(&self) -> BTreeMap<String, String> {
        self.service.parts.lock().expect(POISON).clone()
    }

    /// Sets parts of them; the others stay.
    pub fn set_service_properties(&self, changes: BTreeMap<String, String>) -> AccountResult<()> {
        let Service { state, parts } = &self.service;
        let mut parts = parts.lock().expect(POISON);
        let mut all = parts.clone();
        all.extend(changes);
        state.put(Drawer::Service, PROPERTIES, &all, Durability::Synced)?;
        *parts = all;
        Ok(())
    }
}
