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
        if options.smb.wanted().is_some() {
            let why = "this latchfs was built without SMB (feature smb): leave --smb out";
            return Err(StartError::Options(why.to_owned()));
        }
        Ok(Self)
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
