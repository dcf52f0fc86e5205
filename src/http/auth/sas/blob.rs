//! The texts that shared access signatures of the Blob service sign.
//!
//! Decides which fields are signed in which version, and what a SAS reaches: a container, a blob, a
//! snapshot or a version; of a delegated one also which headers and parameters a request must have.

use super::super::delegation::KEY_FIELDS;
use super::super::error::AuthError;
use super::super::grant::SasScope;
use super::super::permission::ResourceLevel;
use super::super::request::{AuthTarget, RequestView, SignedQuery};
use super::super::signatures::SasText;
use super::{OVERRIDES, SCOPE_SINCE, push_fields, push_line};

/// From this `sv` on the resource type and the snapshot are signed.
const SNAPSHOT_SINCE: &str = "2018-11-09";
/// From these on a delegated SAS signs users, the users of the key, and request headers.
const USERS_SINCE: &str = "2020-02-10";
const KEY_USERS_SINCE: &str = "2025-07-05";
const REQUEST_SINCE: &str = "2026-04-06";

/// The text that a service SAS of the Blob service signs, and the resources that the SAS covers.
pub(in crate::http::auth) fn blob_sas(target: &AuthTarget<'_>, query: &SignedQuery) -> SasText {
    let (scope, resource) = blob_scope(target, query)?;
    let version = query.get("sv").unwrap_or_default();
    let mut text = String::new();
    push_fields(&mut text, query, ["sp", "st", "se"]);
    push_line(&mut text, Some(&resource));
    push_fields(&mut text, query, ["si", "sip", "spr", "sv"]);
    push_resource(&mut text, query, version);
    push_fields(&mut text, query, OVERRIDES);
    text.pop();
    Ok((scope, text))
}

/// As [`blob_sas`], for a SAS that is made with a user delegation key.
pub(in crate::http::auth) fn blob_delegation_sas(
    request: &RequestView<'_>,
    target: &AuthTarget<'_>,
    query: &SignedQuery,
) -> SasText {
    let (scope, resource) = blob_scope(target, query)?;
    let version = query.get("sv").unwrap_or_default();
    let mut text = String::new();
    push_fields(&mut text, query, ["sp", "st", "se"]);
    push_line(&mut text, Some(&resource));
    push_fields(&mut text, query, KEY_FIELDS);
    if version >= USERS_SINCE {
        push_fields(&mut text, query, ["saoid", "suoid", "scid"]);
    }
    if version >= KEY_USERS_SINCE {
        push_fields(&mut text, query, ["skdutid", "sduoid"]);
    }
    push_fields(&mut text, query, ["sip", "spr", "sv"]);
    push_resource(&mut text, query, version);
    if version >= REQUEST_SINCE {
        push_request(&mut text, request, query)?;
    }
    push_fields(&mut text, query, OVERRIDES);
    text.pop();
    Ok((scope, text))
}

/// The type of resource, the snapshot or version that the URL names, and the encryption scope, as
/// far as a version signs them.
fn push_resource(text: &mut String, query: &SignedQuery, version: &str) {
    if version < SNAPSHOT_SINCE {
        return;
    }
    push_line(text, query.get("sr"));
    push_line(text, query.get("sr").and_then(state_parameter).and_then(|name| query.get(name)));
    if version >= SCOPE_SINCE {
        push_line(text, query.get("ses"));
    }
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
    request: &RequestView<'_>,
    query: &SignedQuery,
) -> Result<(), AuthError> {
    let differs = |name: &str| AuthError::SasRequestDiffers(name.to_owned());
    let names = |list| query.get(list).unwrap_or_default().split(',').filter(|it| !it.is_empty());
    for name in names("srh") {
        let value = request.header(name).ok_or_else(|| differs(name))?;
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
    text.push('\n');
    Ok(())
}

fn blob_scope(
    target: &AuthTarget<'_>,
    query: &SignedQuery,
) -> Result<(SasScope, String), AuthError> {
    let kind = query.get("sr").ok_or(AuthError::SasIncomplete("sr"))?;
    let beyond = |level| AuthError::ResourceTypeMismatch { level };
    let container = target.container.ok_or_else(|| beyond(ResourceLevel::Service))?;
    let resource = format!("/blob/{}/{container}", target.account);
    // A SAS for an older state of a blob says nothing of the blob.
    if let Some(name) = state_parameter(kind).filter(|name| query.get(name).is_none()) {
        return Err(AuthError::SasRequestDiffers(name.to_owned()));
    }
    match kind {
        "c" => Ok((SasScope::Container, resource)),
        "b" | "bs" | "bv" if target.path.is_empty() => Err(beyond(ResourceLevel::Container)),
        "b" | "bs" | "bv" => Ok((SasScope::Object, format!("{resource}/{}", target.path))),
        other => Err(AuthError::SasUnreadable { field: "sr", value: other.to_owned() }),
    }
}
