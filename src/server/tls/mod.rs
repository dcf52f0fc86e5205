//! The certificate that listeners show, and where its keys are kept.
//!
//! Decides that an authority made here is kept in the state folder, its key readable by its owner
//! alone, so that clients need to trust its file only once; and for which names it signs. What a
//! certificate says is decided in `http/tls`.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod load;

use std::path::PathBuf;
use std::str::FromStr;

use crate::http::tls::Tls;

/// Whose certificate is shown.
#[derive(Debug, Clone)]
pub enum Certificate {
    /// One that is made on the spot.
    Own,
    /// The user's: certificates, and the key of the first.
    Files(PathBuf, PathBuf),
}

/// The certificate of a listener over https.
pub struct Secured {
    /// The certificate and key, as the listener uses them.
    pub tls: Tls,
    /// The file that clients must trust, if the certificate was made here.
    pub ca_file: Option<PathBuf>,
}

impl FromStr for Certificate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(',') {
            None if text == "self" => Ok(Self::Own),
            Some((chain, key)) if !chain.is_empty() && !key.is_empty() => {
                Ok(Self::Files(chain.into(), key.into()))
            }
            _ => Err("expected 'self', or a certificate and its key: cert.pem,key.pem".into()),
        }
    }
}
