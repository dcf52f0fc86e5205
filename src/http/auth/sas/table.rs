//! The texts of Shared Key and Shared Key Lite that requests to the Table service sign, which
//! differ from those of the other services, and the keys that a table SAS reaches.
//!
//! How keys compare is decided by the service.

use crate::http::auth::error::AuthError;
use crate::http::auth::grant::{SasScope, TableScope};
use crate::http::auth::request::{AuthTarget, RequestView, SignedQuery};
use crate::http::auth::shared_key::{IsSigned, Scheme};
use crate::http::auth::signatures::Reach;

/// A table SAS covers the table that it names, at any of its addresses, and transactions, whose
/// operations are checked one by one.
pub(in crate::http::auth) fn reach(target: &AuthTarget<'_>, query: &SignedQuery) -> Reach {
    let named = query.get("tn").ok_or(AuthError::SasIncomplete("tn"))?;
    let segment = target.container.unwrap_or_default();
    let addressed = segment.split_once('(').map_or(segment, |(name, _)| name);
    if addressed.is_empty() || addressed.eq_ignore_ascii_case("tables") {
        return Err(AuthError::ResourceTypeMismatch { level: target.level });
    }
    if !addressed.eq_ignore_ascii_case("$batch") && !addressed.eq_ignore_ascii_case(named) {
        return Err(AuthError::unreadable("tn", named));
    }
    let resource = format!("/table/{}/{}", target.account, named.to_ascii_lowercase());
    let keys = |names: [&str; 2]| names.map(|name| query.get(name).map(str::to_owned));
    let (first, last) = (keys(["spk", "srk"]), keys(["epk", "erk"]));
    Ok((SasScope::Table(TableScope { table: named.to_owned(), first, last }), resource))
}

/// The texts that clients sign. The path is signed as it is sent; a request to the secondary
/// location may be signed as one to the primary, and the Python client puts the account into such
/// a path twice.
pub(in crate::http::auth) fn texts(
    request: &RequestView<'_>,
    account: &str,
    scheme: Scheme,
    is_signed: IsSigned<'_>,
) -> bool {
    let sent = if request.raw_path.is_empty() { "/" } else { request.raw_path };
    let mut paths = vec![sent.to_owned()];
    if let Some(rest) = sent.strip_prefix(&format!("/{account}-secondary")) {
        paths.push(format!("/{account}{rest}"));
        if rest.starts_with(&format!("/{account}")) {
            paths.push(rest.to_owned());
        }
    }
    let comp = SignedQuery::of(request.raw_query).get("comp").map(|comp| format!("?comp={comp}"));
    let comp = comp.unwrap_or_default();
    paths
        .into_iter()
        .any(|path| is_signed(text(request, scheme, &format!("/{account}{path}{comp}"))))
}

fn text(request: &RequestView<'_>, scheme: Scheme, resource: &str) -> String {
    let header = |name| request.header(name).unwrap_or_default();
    let date = request.header("x-ms-date").or_else(|| request.header("date")).unwrap_or_default();
    match scheme {
        Scheme::SharedKey => format!(
            "{}\n{}\n{}\n{date}\n{resource}",
            request.method.to_ascii_uppercase(),
            header("content-md5"),
            header("content-type"),
        ),
        Scheme::SharedKeyLite => format!("{date}\n{resource}"),
    }
}
