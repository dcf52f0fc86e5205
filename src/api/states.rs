//! Requests about the state of the server as a whole.
//!
//! Decides how they are written as JSON. What happens is decided in [`crate::bench::states`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::ApiFailure;
use super::routes::{DeleteState, GetStates};
use super::session::Session;
use crate::bench::{DamagedState, SavedState, StateError, States};
use crate::rules::time::iso;

/// Saves all data under a name, in place of a state that has it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveState {
    pub name: String,
}

/// Replaces all data by the state of this name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreState {
    pub name: String,
}

/// Removes all data.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reset {}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StateList {
    pub states: Vec<StateEntry>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StateDeleted {
    pub deleted: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StateRestored {
    pub restored: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResetDone {
    #[schemars(extend("const" = true))]
    pub reset: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateEntry {
    pub name: String,
    /// When it was saved, in UTC; absent if the state is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<String>,
    /// Why it cannot be restored, if its properties cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
}

impl From<SavedState> for StateEntry {
    fn from(SavedState { name, saved }: SavedState) -> Self {
        Self { name, saved: Some(iso(saved)), damaged: None }
    }
}

impl From<DamagedState> for StateEntry {
    fn from(DamagedState { name, why }: DamagedState) -> Self {
        Self { name, saved: None, damaged: Some(why) }
    }
}

impl Session {
    fn all_states(&self) -> Result<&States, ApiFailure> {
        Ok(self.serving.states().ok_or(StateError::ExistingDirectory)?)
    }

    pub fn states(&self, _: GetStates) -> Result<StateList, ApiFailure> {
        let entry = |listed: Result<SavedState, DamagedState>| {
            listed.map_or_else(StateEntry::from, StateEntry::from)
        };
        Ok(StateList { states: self.all_states()?.list()?.into_iter().map(entry).collect() })
    }

    pub fn save_state(&self, SaveState { name }: SaveState) -> Result<StateEntry, ApiFailure> {
        let saved = StateEntry::from(self.all_states()?.save(&name)?);
        self.tell("state", None, format!("saved as {name}"));
        Ok(saved)
    }

    pub fn delete_state(&self, state: DeleteState) -> Result<StateDeleted, ApiFailure> {
        let DeleteState { name } = state;
        self.all_states()?.delete(&name)?;
        self.tell("state", None, format!("deleted {name}"));
        Ok(StateDeleted { deleted: name })
    }

    pub fn restore_state(&self, state: RestoreState) -> Result<StateRestored, ApiFailure> {
        let RestoreState { name } = state;
        self.all_states()?.restore(&name)?;
        self.tell_barrier("state", format!("restored {name}"));
        Ok(StateRestored { restored: name })
    }

    pub fn reset(&self, _: Reset) -> Result<ResetDone, ApiFailure> {
        self.all_states()?.reset()?;
        self.tell_barrier("reset", "");
        Ok(ResetDone { reset: true })
    }
}
