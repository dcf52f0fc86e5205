//! `--tls`: whose certificate the listener shows, and where keys are kept.
//!
//! Decides that an authority made here is kept in the state folder, its key for its owner alone,
//! so that who trusts its file once need not do so again; and for which names it signs. What a
//! certificate says is the listener's.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod load;

use std::path::PathBuf;
use std::str::FromStr;

/// Whose certificate is shown.
#[derive(Debug, Clone)]
pub enum Certificate {
    /// One that is made on the spot.
    Own,
    /// The user's: certificates, and the key of the first.
    Files(PathBuf, PathBuf),
}

impl FromStr for Certificate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(',') {
            None if text == "self" => Ok(Self::Own),
            Some((chain, key)) if !chain.is_empty() && !key.is_empty() => {
                Ok(Self::Files(chain.into(), key.into()))
            }
            _ => Err("self, or a certificate and its key, as in cert.pem,key.pem".into()),
        }
    }
}
