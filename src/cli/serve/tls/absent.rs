//! `--tls` in a latchfs that was built without it.

use std::path::Path;

use anyhow::{Result, bail};

use super::Certificate;
use crate::cli::serve::listen::{Listen, Secured};
use crate::rest::auth::Account;

impl Certificate {
    /// Says how to have it.
    pub fn load(&self, _: &Path, _: &[Account], _: &Listen) -> Result<Secured> {
        let wanted = match self {
            Self::Own => "self".to_owned(),
            Self::Files(chain, key) => format!("{},{}", chain.display(), key.display()),
        };
        bail!("--tls {wanted}: this latchfs was built without TLS; build it with --features tls")
    }
}
