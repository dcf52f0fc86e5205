//! The properties of one service of an account (CORS rules, metrics and the like), kept on disk.
//!
//! Decides that a set leaves alone the parts it does not name, and that no reader sees a change
//! before it is on disk. The front end decides the names, the spelling and the meaning of the
//! parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk::{Drawer, Durability, StateDir, StoreError};
use crate::rules::service::ServiceKind;
use crate::sync::{Mutex, MutexGuard, RwLock};

const POISON: &str = "nothing panics while service properties are held";

/// Parts by name.
pub type PropertyParts = BTreeMap<String, String>;

/// The properties of a service, in memory and on disk.
pub struct ServiceProperties {
    state: Arc<StateDir>,
    service: ServiceKind,
    /// Every request looks here on its event loop: held to look or to swap, never over I/O.
    parts: RwLock<Arc<PropertyParts>>,
    /// Held by the caller that sets them, while they are written to disk.
    setting: Mutex<()>,
}

impl ServiceProperties {
    /// Opens the properties of `service` kept in `state`. A damaged file counts as never set: it
    /// must not keep the data from its owner.
    pub fn open(state: Arc<StateDir>, service: ServiceKind) -> Result<Self, StoreError> {
        let parts = RwLock::new(Arc::new(load(&state, service)?));
        Ok(Self { state, service, parts, setting: Mutex::new(()) })
    }

    /// Keeps the properties from being set until the value is dropped.
    pub(crate) fn hold(&self) -> HeldProperties<'_> {
        HeldProperties { properties: self, _setting: self.setting.lock().expect(POISON) }
    }

    /// The properties that were set, by part.
    pub fn get(&self) -> Arc<PropertyParts> {
        Arc::clone(&self.parts.read().expect(POISON))
    }

    /// Sets parts of them; the others stay.
    pub fn set(&self, changes: PropertyParts) -> Result<(), StoreError> {
        self.set_then(changes, || ())
    }

    /// As [`ServiceProperties::set`]; `apply` runs when the parts are on disk, and before the next
    /// set: what it puts in force is of the set that was kept last.
    pub fn set_then(&self, changes: PropertyParts, apply: impl FnOnce()) -> Result<(), StoreError> {
        let _setting = self.setting.lock().expect(POISON);
        let mut all = PropertyParts::clone(&self.get());
        all.extend(changes);
        self.state.put(Drawer::Service, self.service.label(), &all, Durability::Synced)?;
        *self.parts.write().expect(POISON) = Arc::new(all);
        apply();
        Ok(())
    }
}

fn load(state: &StateDir, service: ServiceKind) -> Result<PropertyParts, StoreError> {
    match state.get(Drawer::Service, service.label()) {
        Err(StoreError::Damaged { what, why }) => {
            log::error!("the properties of the {service} service: {what} is damaged: {why}");
            Ok(PropertyParts::default())
        }
        loaded => Ok(loaded?.unwrap_or_default()),
    }
}

/// A guard that keeps properties from being set, while their file may be replaced.
pub(crate) struct HeldProperties<'a> {
    properties: &'a ServiceProperties,
    _setting: MutexGuard<'a, ()>,
}

impl HeldProperties<'_> {
    /// The file was replaced, or removed: its parts are in force from now on.
    pub(crate) fn reload(&self) -> Result<(), StoreError> {
        let parts = load(&self.properties.state, self.properties.service)?;
        *self.properties.parts.write().expect(POISON) = Arc::new(parts);
        Ok(())
    }
}
