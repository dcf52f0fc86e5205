//! Who may do what: the seam between the listener and the ways to sign a request.
//!
//! Decides nothing itself but [`Loose`], which lets everybody through: for tests, and for people
//! who ask for it. Names of accounts are the authoriser's.

use super::auth::Overrides;
use super::refusal::Refusal;
use super::request::Request;
use super::route::Operation;

/// Decides whether a request is carried out.
pub trait Authorise: Send + Sync {
    /// The accounts there are.
    fn accounts(&self) -> &[String];

    /// Lets a request through, or says why not. `peer`, target, headers and body are as they
    /// came.
    /// What it lets through may override headers of a download's answer.
    fn authorise(&self, request: &Request, operation: Operation) -> Result<Overrides, Refusal>;
}

/// Lets everybody through.
#[derive(Clone, Debug)]
pub struct Loose {
    accounts: Vec<String>,
}

impl Loose {
    /// For these accounts.
    pub fn new(accounts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { accounts: accounts.into_iter().map(Into::into).collect() }
    }
}

impl Authorise for Loose {
    fn accounts(&self) -> &[String] {
        &self.accounts
    }

    fn authorise(&self, _: &Request, _: Operation) -> Result<Overrides, Refusal> {
        Ok(Overrides::default())
    }
}
