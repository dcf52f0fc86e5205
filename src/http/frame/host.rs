//! The accounts of a server, as its listeners see them. `server/` implements both traits; a copy
//! reaches another account by [`Host::account`].
//!
//! A listener knows its service by the table of operations alone. The service itself is handed on
//! without its type, which only the operations name ([`service`], [`open_service`]).

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::handle::on_pool;
use super::refusal::Refusal;
use crate::bench::Controls;
use crate::clock::TimeSource;
use crate::http::limits::Limits;
use crate::journal::AccountJournal;
use crate::rules::service::ServiceKind;

/// The parts of service properties, by name.
pub type PropertyParts = BTreeMap<String, String>;

/// The accounts of a server.
pub trait Host: Send + Sync {
    fn names(&self) -> Vec<String>;

    fn account(&self, name: &str) -> Option<Arc<dyn HostedAccount>>;

    /// The clock that operations are decided by.
    fn clock(&self) -> Arc<dyn TimeSource>;

    /// Gates, faults and the journal.
    fn controls(&self) -> &Arc<Controls>;

    /// Why no request may be acknowledged any more. Asked before a request is carried out, and
    /// again before it is answered.
    fn halted(&self) -> Option<&str>;
}

/// An account of a server.
pub trait HostedAccount: Send + Sync {
    fn name(&self) -> &Arc<str>;

    fn clock(&self) -> &Arc<dyn TimeSource>;

    fn journal(&self) -> &AccountJournal;

    /// The service of that kind, if it is open.
    fn open_service(&self, kind: ServiceKind) -> Option<&dyn Any>;

    /// The service of that kind, opened if it is not open yet. May wait.
    fn service(&self, kind: ServiceKind) -> Result<&dyn Any, Refusal>;

    /// The properties of a service that were set: CORS rules and the like.
    fn properties(&self, kind: ServiceKind) -> Arc<PropertyParts>;

    /// Sets parts of the properties; the others stay. `apply` runs when they are on disk, before
    /// the next set. May wait.
    fn set_properties(
        &self,
        kind: ServiceKind,
        parts: PropertyParts,
        apply: &dyn Fn(),
    ) -> Result<(), Refusal>;
}

const OF_KIND: &str = "each kind of service has one type";

/// The service of that kind, which has the type `S`, opened if it is not open yet. May wait.
pub fn service<S: Any>(account: &dyn HostedAccount, kind: ServiceKind) -> Result<&S, Refusal> {
    Ok(account.service(kind)?.downcast_ref().expect(OF_KIND))
}

/// The service of that kind, which has the type `S`. [`open`] has opened it before.
pub fn open_service<S: Any>(account: &dyn HostedAccount, kind: ServiceKind) -> Result<&S, Refusal> {
    let closed = || Refusal::busy("the service is being closed");
    Ok(account.open_service(kind).ok_or_else(closed)?.downcast_ref().expect(OF_KIND))
}

/// Opens the service of an account if it is not open yet, on a thread that may block: no event loop
/// waits for a database.
pub async fn open(
    kind: ServiceKind,
    account: &Arc<dyn HostedAccount>,
    limits: &Limits,
) -> Result<(), Refusal> {
    if account.open_service(kind).is_some() {
        return Ok(());
    }
    let account = Arc::clone(account);
    on_pool(limits, move || account.service(kind).map(drop)).await?
}
