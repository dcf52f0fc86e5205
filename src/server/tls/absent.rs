//! `--tls` in a latchfs that was built without it.

use std::path::Path;

use super::{Certificate, Secured};
use crate::server::error::StartError;
use crate::server::listeners::ListenOptions;

impl Certificate {
    /// Refuses, and says how to have it.
    pub fn load(&self, _: &Path, _: &ListenOptions) -> Result<Secured, StartError> {
        let wanted = match self {
            Self::Own => "self".to_owned(),
            Self::Files(chain, key) => format!("{},{}", chain.display(), key.display()),
        };
        Err(StartError::Certificate(format!(
            "--tls {wanted}: this latchfs was built without TLS; build it with --features tls"
        )))
    }
}
