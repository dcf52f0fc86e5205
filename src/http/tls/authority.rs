//! A local certificate authority, and the certificates that it signs at the start.
//!
//! Decides the fields of the certificates. The authority's name is derived from its key, so that
//! only the key has to be stored, and a client that trusts the authority trusts it after a restart.
//! The key of the server's own certificate exists only while the server runs.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::handshake::{Tls, TlsError};

/// A certificate holds from a day ago, for clocks that are behind.
const BACKDATED: Duration = Duration::from_hours(24);
/// How long it holds: some clients refuse what holds for longer than 398 days.
const LIFETIME: Duration = Duration::from_hours(24 * 397);

pub struct Authority {
    key: KeyPair,
    params: CertificateParams,
}

impl Authority {
    pub fn new() -> Result<Self, TlsError> {
        Ok(Self::of(KeyPair::generate()?))
    }

    /// The one whose key this is, as [`Authority::key_pem`] gave it.
    pub fn from_key_pem(pem: &str) -> Result<Self, TlsError> {
        let key = KeyPair::from_pem(pem).map_err(|error| TlsError::NoKey(error.to_string()))?;
        Ok(Self::of(key))
    }

    fn of(key: KeyPair) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(&format!("latchfs {}", fingerprint(&key)));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        // It signs for one server and is trusted by hand: nothing would renew it.
        params.not_before = date_time_ymd(2024, 1, 1);
        params.not_after = date_time_ymd(2049, 12, 31);
        Self { key, params }
    }

    /// Its key, which is to be kept secret.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Its certificate, which clients are to trust.
    pub fn certificate_pem(&self) -> Result<String, TlsError> {
        Ok(self.params.self_signed(&self.key)?.pem())
    }

    /// A certificate for a server of these names and addresses.
    pub fn issue(&self, names: Vec<String>, now: SystemTime) -> Result<Tls, TlsError> {
        let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let begin = date_time_ymd(1970, 1, 1) + since_1970.saturating_sub(BACKDATED);
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = named("latchfs server");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // Python from 3.13 on refuses a certificate without it.
        params.use_authority_key_identifier_extension = true;
        params.not_before = begin;
        params.not_after = begin + LIFETIME;
        let key = KeyPair::generate()?;
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer)?;
        let key = PrivateKeyDer::try_from(key.serialize_der())
            .map_err(|why| TlsError::Refused(why.to_owned()))?;
        Tls::serving(vec![certificate.der().clone()], key)
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Tells authorities apart, to people and to programs that trust several.
fn fingerprint(key: &KeyPair) -> String {
    let digest = Sha256::digest(key.public_key_raw());
    let [a, b, c, d, ..] = digest.0;
    format!("{:08x}", u32::from_be_bytes([a, b, c, d]))
}

impl From<rcgen::Error> for TlsError {
    fn from(error: rcgen::Error) -> Self {
        Self::Refused(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_the_same_as_long_as_its_key_is_kept() {
        let first = Authority::new().unwrap();
        let again = Authority::from_key_pem(&first.key_pem()).unwrap();
        assert_eq!(again.params.distinguished_name, first.params.distinguished_name);
        assert_eq!(again.key.public_key_raw(), first.key.public_key_raw());
        let other = Authority::new().unwrap();
        assert_ne!(other.params.distinguished_name, first.params.distinguished_name);
        assert!(matches!(Authority::from_key_pem("nonsense"), Err(TlsError::NoKey(_))));
    }
}
