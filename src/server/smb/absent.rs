//! A server without an SMB listener.

use std::sync::Arc;

use crate::api::{KnownOperation, Metrics};
use crate::server::error::StartError;
use crate::server::{Accounts, ListenOptions};

/// No listener.
#[derive(Default)]
pub struct Smb;

impl Smb {
    /// Refuses an address.
    pub fn start(options: &ListenOptions, _: &Arc<Accounts>) -> Result<Self, StartError> {
        match options.smb.wanted() {
            None => Ok(Self),
            Some(_) => {
                let why = "this latchfs was built without SMB (feature smb): leave --smb out";
                Err(StartError::Options(why.to_owned()))
            }
        }
    }

    pub fn begin_stop(&mut self) {}

    pub fn watch(&self, _: &Metrics) {}

    pub fn operations(&self) -> Vec<KnownOperation> {
        Vec::new()
    }

    pub fn origin(&self) -> Option<&str> {
        None
    }
}
