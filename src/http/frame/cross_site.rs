//! Requests that a web page of another site has a browser send.
//!
//! Decides which of them are refused: those that change something, while anybody can sign them.
//! The well-known key is public, so any page can make a SAS with it, and a browser sends a page's
//! form, image or plain POST without a preflight. Whether a page may see an answer is decided in
//! [`crate::http::cors`]; a CORS rule also permits the request here. Programs other than browsers
//! send neither `Origin` nor `Sec-Fetch-Site`.

use hyper::StatusCode;
use hyper::header::ORIGIN;

use super::host::HostedAccount;
use super::refusal::Refusal;
use super::service::Operation;
use super::site::Site;
use crate::http::request::Request;

/// Tells where the page is from that a request is sent for. No page can set it.
const FETCH_SITE: &str = "sec-fetch-site";

/// Refuses a request of a foreign page that changes something.
pub fn check(
    site: &Site,
    account: &dyn HostedAccount,
    request: &Request,
    operation: &Operation,
) -> Result<(), Refusal> {
    if !operation.changes || !is_foreign(site, account, request) {
        return Ok(());
    }
    if !site.options.admission.is_open_to_all(account.name()) {
        return Ok(());
    }
    let why = "a web page of another origin sent the request, and no CORS rule allows that origin \
               to use this method";
    Err(Refusal::explained(StatusCode::FORBIDDEN, "AuthorizationFailure", why))
}

/// Whether a page of another origin sent the request that no CORS rule lets in.
fn is_foreign(site: &Site, account: &dyn HostedAccount, request: &Request) -> bool {
    let Some(origin) = request.headers.get(ORIGIN) else {
        // An image or a link has no Origin. A page on another port of this host is of its site.
        let from = request.headers.get(FETCH_SITE).map(|site| site.as_bytes());
        let is = |foreign: &[u8]| from.is_some_and(|site| site.eq_ignore_ascii_case(foreign));
        return is(b"cross-site") || is(b"same-site");
    };
    let origin = origin.to_str().unwrap_or_default();
    let rest = request.address.endpoint.strip_prefix(origin);
    let own = rest.is_some_and(|rest| rest.starts_with('/'));
    !own && !site.cors(account).allows(origin, request.method.as_str())
}
