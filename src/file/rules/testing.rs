//! Small makers for the tests of the rules.

use std::sync::Arc;

use super::opens::Open;
use super::{Access, Rights, ShareMode};
use crate::rules::{Client, HandleId, Owner, Timestamp};

/// An owner called `name`.
pub fn owner(name: &str) -> Owner {
    let client = Client { session: 1, name: name.into() };
    Owner { client: Arc::new(client), pid: 0, program: None }
}

/// An open that stands in no table yet.
pub fn open(id: u64, access: Access, share: ShareMode) -> Open {
    Open {
        id: HandleId(id),
        owner: owner("test"),
        rights: Rights::from(access),
        share,
        delete_on_close: false,
        flushed: 0,
        directory: false,
        link: 0,
        since: Timestamp(0),
    }
}
