//! Shared access signatures: the text that is signed, for making and for checking one.
//!
//! Decides the text of each kind of SAS: a table of fields for each service ([`super::signatures`])
//! and one function that reads it. [`check`] holds a request against the text, [`make`] writes new
//! signatures.

mod check;
mod make;
pub(super) mod table;

pub use check::Policies;
pub(super) use check::verify;
pub use make::{AccountSas, SAS_VERSION, ServiceSas, service_token};

use super::error::AuthError;
use super::grant::SasScope;
use super::permission::ResourceLevel;
use super::request::{AuthTarget, RequestView, SignedQuery};
use super::signatures::{Reach, SCOPE_SINCE, SasFields};

/// The field of a text that is the resource itself.
pub(super) const RESOURCE: &str = "@resource";
/// The field that is the snapshot or version which the URL names.
pub(super) const STATE: &str = "@state";
/// The field that is the headers and parameters which the request must have.
pub(super) const REQUEST: &str = "@request";

const ACCOUNT_FIELDS: SasFields =
    &[("", &["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]), (SCOPE_SINCE, &["ses"])];

/// The text that an account SAS signs: each field followed by a line feed.
fn account_text(account: &str, query: &SignedQuery) -> String {
    let fields = signed_text(ACCOUNT_FIELDS, "", None, query);
    format!("{account}\n{}\n", fields.expect("a text without a request"))
}

/// The fields that the version of a SAS signs, a line each, without a line feed at the end. Fails
/// only if the SAS is for requests with a header or parameter that `request` does not have.
fn signed_text(
    fields: SasFields,
    resource: &str,
    request: Option<&RequestView<'_>>,
    query: &SignedQuery,
) -> Result<String, AuthError> {
    let version = query.get("sv").unwrap_or_default();
    let mut text = String::new();
    let signed = fields.iter().filter(|(since, _)| version >= *since);
    for field in signed.flat_map(|(_, fields)| *fields) {
        match *field {
            RESOURCE => text.push_str(resource),
            STATE => {
                let name = query.get("sr").and_then(state_parameter);
                text.push_str(name.and_then(|name| query.get(name)).unwrap_or_default());
            }
            REQUEST => push_request(&mut text, request, query)?,
            field => text.push_str(query.get(field).unwrap_or_default()),
        }
        text.push('\n');
    }
    text.pop();
    Ok(text)
}

/// The parameter of the URL that names the older state which a SAS of that type (`sr`) is for.
fn state_parameter(kind: &str) -> Option<&'static str> {
    match kind {
        "bs" => Some("snapshot"),
        "bv" => Some("versionid"),
        _ => None,
    }
}

/// The headers (`srh`) and parameters (`srq`) that the request must have, with the values that it
/// has: a line `NAME:VALUE` for each. A header is followed by a line feed, a parameter preceded by
/// one, as clients do.
fn push_request(
    text: &mut String,
    request: Option<&RequestView<'_>>,
    query: &SignedQuery,
) -> Result<(), AuthError> {
    let differs = |name: &str| AuthError::SasRequestDiffers(name.to_owned());
    let names = |list| query.get(list).unwrap_or_default().split(',').filter(|it| !it.is_empty());
    for name in names("srh") {
        let value =
            request.and_then(|request| request.header(name)).ok_or_else(|| differs(name))?;
        text.extend([name, ":", value, "\n"]);
    }
    text.push('\n');
    for name in names("srq") {
        let lower = name.to_ascii_lowercase();
        let sent = query.pairs().iter().find(|(sent, _)| *sent == lower);
        // With a line feed one value could pass for two parameters.
        let value = sent.map(|(_, value)| value).filter(|value| !value.contains(char::is_control));
        text.extend(["\n", name, ":", value.ok_or_else(|| differs(name))?]);
    }
    Ok(())
}

/// A share, container or queue, with the account once, in path style too. No service SAS reaches
/// resources above it.
pub(super) fn whole(target: &AuthTarget<'_>) -> Reach {
    let beyond = || AuthError::ResourceTypeMismatch { level: ResourceLevel::Service };
    let name = target.container.ok_or_else(beyond)?;
    let resource = format!("/{}/{}/{name}", target.signatures.kind.label(), target.account);
    Ok((SasScope::Container, resource))
}

/// What a SAS with `sr` reaches: all of a container for the type `all`, the object that the request
/// names, as the client spelled it, for one of the types `one`.
pub(super) fn by_type(
    target: &AuthTarget<'_>,
    query: &SignedQuery,
    all: &str,
    one: &[&str],
) -> Reach {
    let kind = query.get("sr").ok_or(AuthError::SasIncomplete("sr"))?;
    let (scope, resource) = whole(target)?;
    if kind == all {
        return Ok((scope, resource));
    }
    if !one.contains(&kind) {
        return Err(AuthError::unreadable("sr", kind));
    }
    // A SAS for an older state of a blob says nothing of the blob.
    if let Some(name) = state_parameter(kind).filter(|name| query.get(name).is_none()) {
        return Err(AuthError::SasRequestDiffers(name.to_owned()));
    }
    if target.path.is_empty() {
        return Err(AuthError::ResourceTypeMismatch { level: ResourceLevel::Container });
    }
    Ok((SasScope::Object, format!("{resource}/{}", target.path)))
}
