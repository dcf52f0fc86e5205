//! Shared access signatures: the text that is signed, for making and for checking one.
//!
//! Decides the text of the account SAS, and those of the File service. [`check`] holds a request
//! against them, [`make`] writes new ones.

mod blob;
mod check;
mod make;
mod queue;
mod table;

pub(super) use blob::{blob_delegation_sas, blob_sas};
pub use check::Policies;
pub(super) use check::verify;
pub use make::{AccountSas, SAS_VERSION, ServiceSas, service_token};
pub use queue::QUEUE;
pub use table::TABLE;

use super::delegation::KEY_FIELDS;
use super::error::AuthError;
use super::grant::SasScope;
use super::permission::ResourceLevel;
use super::request::{AuthTarget, RequestView, SignedQuery};
use super::signatures::SasText;

/// From this `sv` on an account SAS signs its encryption scope.
const SCOPE_SINCE: &str = "2020-12-06";

/// The parameters of a service SAS that replace response headers.
const OVERRIDES: [&str; 5] = ["rscc", "rscd", "rsce", "rscl", "rsct"];

/// The text that an account SAS signs: each field followed by a line feed.
fn account_text(account: &str, query: &SignedQuery) -> String {
    let mut text = format!("{account}\n");
    push_fields(&mut text, query, ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]);
    if query.get("sv").is_some_and(|version| version >= SCOPE_SINCE) {
        push_line(&mut text, query.get("ses"));
    }
    text
}

/// The text that a service SAS signs, without a line feed at its end. `resource` names a share or a
/// file.
fn service_text(resource: &str, query: &SignedQuery) -> String {
    let mut text = String::new();
    push_fields(&mut text, query, ["sp", "st", "se"]);
    push_line(&mut text, Some(resource));
    push_fields(&mut text, query, ["si", "sip", "spr", "sv"].into_iter().chain(OVERRIDES));
    text.pop();
    text
}

/// The text that a service SAS of the File service signs, and the resources that the SAS covers.
/// The signature of another share or file does not match; no service SAS reaches resources above a
/// share.
pub(super) fn file_sas(target: &AuthTarget<'_>, query: &SignedQuery) -> SasText {
    let (scope, resource) = file_scope(target, query)?;
    Ok((scope, service_text(&resource, query)))
}

/// As [`file_sas`], for a SAS that is made with a user delegation key.
pub(super) fn file_delegation_sas(
    _: &RequestView<'_>,
    target: &AuthTarget<'_>,
    query: &SignedQuery,
) -> SasText {
    let (scope, resource) = file_scope(target, query)?;
    let mut text = String::new();
    push_fields(&mut text, query, ["sp", "st", "se"]);
    push_line(&mut text, Some(&resource));
    let users = ["skdutid", "sduoid", "sip", "spr", "sv"];
    push_fields(&mut text, query, KEY_FIELDS.into_iter().chain(users).chain(OVERRIDES));
    text.pop();
    Ok((scope, text))
}

fn file_scope(
    target: &AuthTarget<'_>,
    query: &SignedQuery,
) -> Result<(SasScope, String), AuthError> {
    let kind = query.get("sr").ok_or(AuthError::SasIncomplete("sr"))?;
    let beyond = |level| AuthError::ResourceTypeMismatch { level };
    let share = target.container.ok_or_else(|| beyond(ResourceLevel::Service))?;
    match kind {
        "s" => Ok((SasScope::Container, share_resource(target.account, share))),
        "f" if target.path.is_empty() => Err(beyond(ResourceLevel::Container)),
        "f" => Ok((SasScope::Object, file_resource(target.account, share, target.path))),
        other => Err(AuthError::SasUnreadable { field: "sr", value: other.to_owned() }),
    }
}

/// The share, with the account once, in path style too.
fn share_resource(account: &str, share: &str) -> String {
    format!("/file/{account}/{share}")
}

/// The file, as the client spelled it.
fn file_resource(account: &str, share: &str, path: &str) -> String {
    format!("{}/{path}", share_resource(account, share))
}

/// A line for each of these parameters of the query.
fn push_fields<'a>(
    text: &mut String,
    query: &SignedQuery,
    names: impl IntoIterator<Item = &'a str>,
) {
    for name in names {
        push_line(text, query.get(name));
    }
}

pub(crate) fn push_line(text: &mut String, value: Option<&str>) {
    text.push_str(value.unwrap_or_default());
    text.push('\n');
}
