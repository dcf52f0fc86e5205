//! Requests about the state of the server as a whole.
//!
//! Decides how they are written as JSON. What happens is decided in [`crate::bench::states`].

use serde::{Deserialize, Serialize};

use super::connection::{ControlConnection, RequestFailure};
use super::protocol::ControlAnswer;
use super::refusal::RefusalKind;
use crate::bench::{DamagedState, SavedState, StateError};
use crate::rules::time::iso;

/// An action on the state of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", deny_unknown_fields)]
pub enum StateRequest {
    /// The states are listed.
    List {},
    Save {
        /// Under this name, in place of a state that has it.
        name: String,
    },
    Restore {
        /// By the state of this name.
        name: String,
    },
    /// A state is deleted.
    Delete {
        /// The one of this name.
        name: String,
    },
    Reset {},
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl From<StateError> for RequestFailure {
    fn from(error: StateError) -> Self {
        let kind = match error {
            StateError::NotFound(_) => RefusalKind::NotFound,
            StateError::Name(_) => RefusalKind::Invalid,
            StateError::ExistingDirectory | StateError::NoAccount { .. } => RefusalKind::Denied,
            StateError::TooMany => return Self::busy(error.to_string()),
            error if error.is_full() => return Self::full(error.to_string()),
            error => return Self::system(error.to_string()),
        };
        Self::object(kind, error.to_string())
    }
}

impl ControlConnection {
    /// Carries a request out. May wait.
    pub(super) fn state(&self, request: &StateRequest) -> Result<ControlAnswer, RequestFailure> {
        let states = self.serving.states().ok_or(StateError::ExistingDirectory)?;
        let done = match request {
            StateRequest::List {} => {
                let entry = |listed: Result<SavedState, DamagedState>| {
                    listed.map_or_else(StateEntry::from, StateEntry::from)
                };
                return Ok(ControlAnswer::States {
                    states: states.list()?.into_iter().map(entry).collect(),
                });
            }
            StateRequest::Save { name } => {
                let saved = StateEntry::from(states.save(name)?);
                self.tell("state", None, format!("saved as {name}"));
                return Ok(ControlAnswer::States { states: vec![saved] });
            }
            StateRequest::Restore { name } => {
                states.restore(name)?;
                format!("restored {name}")
            }
            StateRequest::Delete { name } => {
                states.delete(name)?;
                format!("deleted {name}")
            }
            StateRequest::Reset {} => {
                states.reset()?;
                "reset".to_owned()
            }
        };
        self.tell("state", None, done);
        Ok(ControlAnswer::Done {})
    }
}
