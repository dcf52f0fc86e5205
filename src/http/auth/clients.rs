//! Names of clients: each has a key of its own to the account, and the key that verifies a
//! signature names the client in the journal.
//!
//! Decides which names are taken, and how many there may be. The keys live as long as the server:
//! they are in no file, and neither a reset nor a restore touches them.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::credential::AccountKey;
use crate::sync::random;

/// The most clients of an account. A signature that is none of the account's own is tried with the
/// key of each.
pub const CLIENTS_MAX: usize = 128;

/// The longest name of a client, in bytes.
pub const CLIENT_NAME_MAX: usize = 64;

/// Why a client was not added or removed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClientError {
    #[error(
        "'{0}' is not the name of a client: it has 1 to {CLIENT_NAME_MAX} letters, digits, dots, \
         hyphens and underscores"
    )]
    BadName(String),
    #[error("there is a client {0} already: remove it, or take another name")]
    Taken(String),
    #[error("an account has at most {CLIENTS_MAX} clients: remove one")]
    TooMany,
    #[error("there is no client {0}")]
    Unknown(String),
}

/// A client of an account.
#[derive(Clone, Debug)]
pub struct NamedClient {
    pub name: Arc<str>,
    pub key: AccountKey,
}

/// The clients of an account, in the order they were added.
#[derive(Debug, Default)]
pub struct NamedClients(RwLock<Vec<NamedClient>>);

impl NamedClients {
    /// Adds a client with a new key.
    pub fn add(&self, name: &str) -> Result<NamedClient, ClientError> {
        if !is_client_name(name) {
            return Err(ClientError::BadName(name.chars().take(CLIENT_NAME_MAX).collect()));
        }
        let mut clients = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if clients.iter().any(|client| &*client.name == name) {
            return Err(ClientError::Taken(name.to_owned()));
        }
        if clients.len() >= CLIENTS_MAX {
            return Err(ClientError::TooMany);
        }
        let bytes: [u8; 64] = random::bytes();
        let key = AccountKey::from_base64(&STANDARD.encode(bytes)).expect("64 bytes are a key");
        let client = NamedClient { name: name.into(), key };
        clients.push(client.clone());
        Ok(client)
    }

    /// Removes a client; its key verifies nothing any more.
    pub fn remove(&self, name: &str) -> Result<(), ClientError> {
        let mut clients = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let found = clients.iter().position(|client| &*client.name == name);
        let found = found.ok_or_else(|| ClientError::Unknown(name.to_owned()))?;
        clients.remove(found);
        Ok(())
    }

    pub fn list(&self) -> Vec<NamedClient> {
        self.clients().clone()
    }

    /// The client whose key made a signature.
    pub(super) fn signer(&self, text: &str, signature: &str) -> Option<Arc<str>> {
        let clients = self.clients();
        let found = clients.iter().find(|client| client.key.verifies(text, signature))?;
        Some(Arc::clone(&found.name))
    }

    fn clients(&self) -> RwLockReadGuard<'_, Vec<NamedClient>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a client can have this name.
pub fn is_client_name(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=CLIENT_NAME_MAX).contains(&name.len()) && name.bytes().all(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_once_and_the_key_names_the_client() {
        let clients = NamedClients::default();
        let [one, other] = ["A", "B"].map(|name| clients.add(name).unwrap());
        assert_eq!(clients.add("A").unwrap_err(), ClientError::Taken("A".into()));
        assert_eq!(clients.signer("text", &other.key.sign("text")).as_deref(), Some("B"));
        assert_eq!(clients.signer("text", &one.key.sign("another")), None);
        clients.remove("A").unwrap();
        assert_eq!(clients.remove("A").unwrap_err(), ClientError::Unknown("A".into()));
        assert_eq!(clients.signer("text", &one.key.sign("text")), None);
    }

    #[test]
    fn a_name_has_a_form_and_the_number_of_clients_a_bound() {
        let clients = NamedClients::default();
        let longest = "x".repeat(CLIENT_NAME_MAX);
        for bad in ["", "a b", "a/b", "\u{e9}", &format!("{longest}x")] {
            assert!(matches!(clients.add(bad), Err(ClientError::BadName(_))), "{bad}");
        }
        clients.add(&longest).unwrap();
        for number in 1..CLIENTS_MAX {
            clients.add(&format!("worker-{number}")).unwrap();
        }
        assert_eq!(clients.add("one-more").unwrap_err(), ClientError::TooMany);
        assert_eq!(clients.list().len(), CLIENTS_MAX);
        clients.remove(&longest).unwrap();
        clients.add("one-more").unwrap();
    }
}
