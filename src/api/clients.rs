//! Names of clients, and marks between tests: what tells the rows of the journal apart.
//!
//! Which names are taken is decided in `http/auth`; here, how a client connects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::ApiFailure;
use super::routes::{GetClients, RemoveClient};
use super::serving::Reached;
use super::session::Session;
use crate::http::auth::{ClientError, NamedClient};
use crate::rules::RefusalKind;

/// Adds a client: a further key of the account, which names its requests in the journal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(example = serde_json::json!({ "name": "A" }))]
pub struct AddClient {
    /// 1 to 64 letters, digits, dots, hyphens and underscores
    pub name: String,
}

/// A client, and how it connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientEntry {
    pub name: String,
    pub key: String,
    pub connection_string: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientList {
    /// In the order they were added.
    pub clients: Vec<ClientEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientRemoved {
    pub removed: String,
}

/// Sets a mark: a test begins.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(example = serde_json::json!({ "test": "test_two_writers" }))]
pub struct SetMark {
    /// The name of the test
    pub test: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MarkSet {
    /// The number of the mark's event: the events of the test come after it.
    pub mark: u64,
}

impl From<ClientError> for ApiFailure {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error {
            ClientError::BadName(_) => Self::bad(message),
            ClientError::Taken(_) => Self::rule(RefusalKind::Exists, message),
            ClientError::TooMany => Self::busy(message),
            ClientError::Unknown(_) => Self::not_found(message),
        }
    }
}

impl Session {
    pub fn clients(&self, _: GetClients) -> Result<ClientList, ApiFailure> {
        let reached = self.reached()?;
        let clients = reached.clients.list();
        Ok(ClientList { clients: clients.iter().map(|client| entry(&reached, client)).collect() })
    }

    pub fn add_client(&self, AddClient { name }: AddClient) -> Result<ClientEntry, ApiFailure> {
        let reached = self.reached()?;
        Ok(entry(&reached, &reached.clients.add(&name)?))
    }

    pub fn remove_client(&self, client: RemoveClient) -> Result<ClientRemoved, ApiFailure> {
        let RemoveClient { name } = client;
        self.reached()?.clients.remove(&name)?;
        Ok(ClientRemoved { removed: name })
    }

    pub fn set_mark(&self, SetMark { test }: SetMark) -> Result<MarkSet, ApiFailure> {
        if test.trim().is_empty() {
            return Err(ApiFailure::bad("'test' is empty: give the name of the test"));
        }
        Ok(MarkSet { mark: self.tell_barrier("mark", test) })
    }
}

/// A client connects as the account does, with its own key.
fn entry(Reached { info, .. }: &Reached, NamedClient { name, key }: &NamedClient) -> ClientEntry {
    let (of_account, own) = (format!("AccountKey={};", info.key), key.text());
    ClientEntry {
        name: name.to_string(),
        key: own.to_owned(),
        connection_string: info
            .connection_string
            .replace(&of_account, &format!("AccountKey={own};")),
    }
}
