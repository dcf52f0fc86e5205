//! Storage accounts: names, keys, and the texts that tell a client where to find them.
//!
//! Decides which names and keys are taken, and how a connection string is written. Which account a
//! request addresses is decided in `http/frame/address`; where options come from is the command
//! line's.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::clients::NamedClients;
use crate::rules::service::ServiceKind;

/// The account that every emulator serves.
pub const DEVELOPMENT_NAME: &str = "devstoreaccount1";
/// Its key. Everybody knows it: a server that has it listens on loopback unless told otherwise.
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
pub const NAME_MIN: usize = 3;
pub const NAME_MAX: usize = 24;
/// How keys are read: as SDKs read them, which do not insist on padding.
const KEYS: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);
/// Most keys of an account: the old one and the new one, while they are being changed.
pub const KEYS_MAX: usize = 2;

/// Why an account was not taken. None of these shows a key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CredentialError {
    /// No `:` between name and key.
    #[error("an account is given as NAME:KEY")]
    NoKey,
    /// A name that no account can have.
    #[error(
        "an account name has {NAME_MIN} to {NAME_MAX} lower-case letters and digits, and stands \
         before its key: NAME:KEY"
    )]
    BadName,
    /// A key that is empty or no base64.
    #[error("a key of account '{0}' is not base64")]
    BadKey(String),
    /// More than [`KEYS_MAX`] keys.
    #[error("account '{0}' has more than {KEYS_MAX} keys")]
    TooManyKeys(String),
    /// Two accounts have this name.
    #[error("account '{0}' is given twice: write NAME:KEY1:KEY2 for two keys")]
    GivenTwice(String),
}

/// A key of an account: signs, and checks signatures. Never shown by `Debug`.
#[derive(Clone)]
pub struct AccountKey {
    hmac: Hmac<Sha256>,
    text: String,
}

impl AccountKey {
    /// The key in base64, as it was given: for connection strings.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// From base64, as clients are given it.
    pub(super) fn from_base64(text: &str) -> Option<Self> {
        let bytes = KEYS.decode(text).ok().filter(|bytes| !bytes.is_empty())?;
        let hmac = Hmac::new_from_slice(&bytes).ok()?;
        Some(Self { hmac, text: text.to_owned() })
    }

    /// The signature of `text`, in base64.
    pub fn sign(&self, text: &str) -> String {
        STANDARD.encode(self.mac(text))
    }

    /// Whether `signature`, in base64, is that of `text`. Takes as long for a near miss as for
    /// a far one.
    pub fn verifies(&self, text: &str, signature: &str) -> bool {
        let given = STANDARD.decode(signature).unwrap_or_default();
        self.mac(text).ct_eq(&given).into()
    }

    fn mac(&self, text: &str) -> Vec<u8> {
        self.hmac.clone().chain_update(text).finalize().into_bytes().to_vec()
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[derive(Clone, Debug)]
pub struct Credential {
    name: String,
    keys: Vec<AccountKey>,
    /// Shared by all copies.
    clients: Arc<NamedClients>,
}

/// Whose key made a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Signer {
    /// None if it is a key of the account itself.
    pub client: Option<Arc<str>>,
}

impl Credential {
    /// The well-known account of emulators.
    pub fn development() -> Self {
        format!("{DEVELOPMENT_NAME}:{DEVELOPMENT_KEY}")
            .parse()
            .expect("the well-known name and key are legal")
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its keys, at least one.
    pub fn keys(&self) -> &[AccountKey] {
        &self.keys
    }

    /// The key to sign with: the first.
    pub fn key(&self) -> &AccountKey {
        self.keys.first().expect("an account is made with a key")
    }

    /// Its clients, each with a further key.
    pub fn clients(&self) -> &Arc<NamedClients> {
        &self.clients
    }

    /// Whose key made a signature of `text`; `None` if it is no key of this account.
    pub(super) fn signer(&self, text: &str, signature: &str) -> Option<Signer> {
        if self.keys.iter().any(|key| key.verifies(text, signature)) {
            return Some(Signer { client: None });
        }
        let client = self.clients.signer(text, signature)?;
        Some(Signer { client: Some(client) })
    }

    /// Whether one of its keys is the published one.
    pub fn has_development_key(&self) -> bool {
        self.keys.iter().any(|key| key.text == DEVELOPMENT_KEY)
    }

    /// Where a client finds a service in path style, such as
    /// `http://127.0.0.1:10004/devstoreaccount1`; `origin` is `http://127.0.0.1:10004`.
    pub fn endpoint(&self, origin: &str) -> String {
        format!("{}/{}", origin.trim_end_matches('/'), self.name)
    }

    /// The connection string, which contains the key. It names every endpoint: clients know no
    /// emulator of the File service.
    pub fn connection_string(&self, endpoints: &[(ServiceKind, String)]) -> String {
        let https = endpoints.iter().any(|(_, endpoint)| endpoint.starts_with("https:"));
        let protocol = if https { "https" } else { "http" };
        let (name, key) = (&self.name, &self.key().text);
        let endpoints: String = endpoints
            .iter()
            .flat_map(|(kind, endpoint)| [kind.endpoint_key(), "=", endpoint, ";"])
            .collect();
        format!(
            "DefaultEndpointsProtocol={protocol};AccountName={name};AccountKey={key};{endpoints}"
        )
    }
}

impl FromStr for Credential {
    type Err = CredentialError;

    /// `NAME:KEY`, or `NAME:KEY1:KEY2` while keys are being changed.
    fn from_str(text: &str) -> Result<Self, CredentialError> {
        let (name, keys) = text.split_once(':').ok_or(CredentialError::NoKey)?;
        let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !(NAME_MIN..=NAME_MAX).contains(&name.len()) || !name.bytes().all(letters) {
            return Err(CredentialError::BadName);
        }
        let keys: Option<Vec<AccountKey>> = keys.split(':').map(AccountKey::from_base64).collect();
        let keys = keys.ok_or_else(|| CredentialError::BadKey(name.to_owned()))?;
        if keys.len() > KEYS_MAX {
            return Err(CredentialError::TooManyKeys(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), keys, clients: Arc::default() })
    }
}

/// The accounts that are served, by name.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    by_name: BTreeMap<String, Credential>,
}

impl Credentials {
    /// Of these; no name may come twice.
    pub fn new(accounts: impl IntoIterator<Item = Credential>) -> Result<Self, CredentialError> {
        let mut by_name = BTreeMap::new();
        for account in accounts {
            if let Some(before) = by_name.insert(account.name.clone(), account) {
                return Err(CredentialError::GivenTwice(before.name));
            }
        }
        Ok(Self { by_name })
    }

    /// The account of that name.
    pub fn get(&self, name: &str) -> Option<&Credential> {
        self.by_name.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Credential> {
        self.by_name.values()
    }
}
