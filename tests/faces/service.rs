//! Listeners of services in the process of a test, and who they let in.

use std::sync::Arc;

use latchfs::http::auth::{AccountSas, Admission, Authorizer, Credential, Credentials};
use latchfs::http::frame::Service;
use latchfs::http::server::{RestOptions, RestServer};
use latchfs::rules::Timestamp;
use latchfs::server::Accounts;

/// A listener that lets everyone in, with options as `choose` leaves them.
pub fn listen(
    accounts: &Arc<Accounts>,
    service: &'static Service,
    choose: impl FnOnce(&mut RestOptions),
) -> RestServer {
    let mut options = RestOptions::new(Admission::Everyone);
    choose(&mut options);
    RestServer::start(Arc::clone(accounts), service, options).unwrap()
}

/// Lets in only what is signed with the development key.
pub fn signed() -> Admission {
    let accounts = Credentials::new([Credential::development()]).unwrap();
    Admission::Signed(Authorizer { accounts, ..Authorizer::default() })
}

/// An account SAS that never expires.
pub fn account_sas(services: &str, levels: &str, permissions: &str) -> AccountSas {
    AccountSas {
        permissions: permissions.to_owned(),
        services: services.to_owned(),
        levels: levels.to_owned(),
        expiry: Timestamp(i64::MAX),
        ..AccountSas::default()
    }
}

/// The query of such a SAS of the development account.
pub fn account_token(services: &str, levels: &str, permissions: &str) -> String {
    account_sas(services, levels, permissions).token(&Credential::development())
}
