//! What the head of a request and the head of its answer say for the journal: the same headers in
//! all services.
//!
//! Decides which part of an object an operation concerns, and that secrets are kept as fingerprints
//! alone. What only the operation knows, such as the `ETag` before a change, the services note
//! ([`crate::rules::given`]).

use hyper::header::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;
use sha2::{Digest as _, Sha256};

use super::source::{COPY_SOURCE, RENAME_SOURCE};
use crate::http::auth::without_signature;
use crate::http::request::{Request, byte_range};
use crate::rules::asked::{Asked, Fingerprint, Parts};
use crate::rules::given::Given;
use crate::rules::service::ServiceKind;

/// The parameters that name a snapshot or version of an object.
const VERSIONS: [&str; 3] = ["snapshot", "versionid", "sharesnapshot"];

/// The longest value of a header that is kept, in bytes.
const VALUE_MAX: usize = 256;

/// The fingerprint of a lease ID or a receipt, in any case.
pub fn fingerprint(secret: &str) -> Fingerprint {
    let hash = Sha256::digest(secret.trim().to_ascii_lowercase());
    Fingerprint(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]))
}

/// What the head of a request asks for; `operation` is as the documentation names it.
pub fn asked(service: ServiceKind, operation: &str, request: &Request) -> Asked {
    let mut asked = Asked {
        version: VERSIONS
            .into_iter()
            .find_map(|name| request.query.get(name))
            .map(|it| cut(it).into()),
        prefix: request.query.get("prefix").map(|prefix| cut(prefix).to_owned()),
        parts: parts(operation, request),
        message: message(service, request),
        // A plus stands for itself in a receipt.
        receipt_used: request.query.get("popreceipt").map(|it| fingerprint(&it.replace(' ', "+"))),
        ..Asked::default()
    };
    // One pass: a look for each name would cost more than all that a usual request has.
    for (name, value) in &request.headers {
        let Some(value) = shown(value) else { continue };
        let field = match name.as_str() {
            COPY_SOURCE | RENAME_SOURCE => {
                let source = || source_of(service, &request.address.account, value);
                asked.source.get_or_insert_with(source);
                continue;
            }
            "x-ms-source-range" => &mut asked.source_range,
            "if-match" => &mut asked.if_match,
            "if-none-match" => &mut asked.if_none_match,
            "if-modified-since" => &mut asked.if_modified_since,
            "if-unmodified-since" => &mut asked.if_unmodified_since,
            "x-ms-if-tags" => &mut asked.if_tags,
            "x-ms-lease-action" => {
                asked.lease_action.get_or_insert_with(|| value.to_ascii_lowercase());
                continue;
            }
            "x-ms-lease-id" => {
                asked.lease_sent.get_or_insert_with(|| fingerprint(value));
                continue;
            }
            "x-ms-blob-condition-appendpos" => {
                asked.append_position = asked.append_position.or(value.parse().ok());
                continue;
            }
            "content-length" => {
                asked.length = asked.length.or(value.parse().ok());
                continue;
            }
            "traceparent" => {
                asked.trace = asked.trace.or_else(|| trace_id(value).map(str::to_owned));
                continue;
            }
            _ => continue,
        };
        field.get_or_insert_with(|| value.to_owned());
    }
    asked
}

/// Adds what the head of an answer tells. `changes` is true for operations that change something.
pub fn note_answer(given: &mut Given, changes: bool, headers: &HeaderMap) {
    if !changes && given.etag_read.is_none() {
        given.etag_read = text(headers, "etag").map(str::to_owned);
    }
    if changes
        && let (Some(changed), Some(etag)) = (given.changed.last_mut(), text(headers, "etag"))
    {
        changed.etag_after.get_or_insert_with(|| etag.to_owned());
    }
    if changes && let Some(lease) = text(headers, "x-ms-lease-id") {
        given.lease_given = Some(fingerprint(lease));
    }
}

/// The trace ID of a header `traceparent`: `00-TRACE-SPAN-FLAGS`.
fn trace_id(header: &str) -> Option<&str> {
    let id = header.split('-').nth(1)?;
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && id.bytes().any(|byte| byte != b'0')).then_some(id)
}

/// The value of a header that is text, if it is not empty.
pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    shown(headers.get(name)?)
}

fn shown(value: &HeaderValue) -> Option<&str> {
    let value = value.to_str().ok()?.trim();
    (!value.is_empty()).then(|| cut(value))
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(VALUE_MAX)]
}

fn parts(operation: &str, request: &Request) -> Option<Parts> {
    let sets = operation.starts_with("Set ");
    match operation {
        "Put Block" | "Put Block From URL" => return Some(Parts::Blocks),
        _ if operation.starts_with("Lease ") => return Some(Parts::Lease),
        _ if operation.ends_with(" Metadata") => return Some(Parts::Metadata),
        _ if operation.ends_with(" Tags") => return Some(Parts::Tags),
        _ if sets && !resizes(request) => return Some(Parts::Headers),
        _ => {}
    }
    if let Some(names) = request.query.get("$select") {
        return Parts::properties(names.split(',').map(str::trim));
    }
    let range = ["x-ms-range", "range"].into_iter().find_map(|name| text(&request.headers, name));
    byte_range(range?).map(|range| Parts::Range(range.start, range.end))
}

/// Whether new properties of a file or a page blob change its length.
fn resizes(request: &Request) -> bool {
    let names = ["x-ms-content-length", "x-ms-blob-content-length"];
    names.into_iter().any(|name| request.headers.contains_key(name))
}

/// The object that a URL names, if it is one of this account in path style, or else the URL without
/// a signature.
fn source_of(service: ServiceKind, account: &str, url: &str) -> String {
    let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    let path = path.map_or(url, |(_, path)| path);
    let path = path.split('?').next().unwrap_or_default().trim_start_matches('/');
    match path.split_once('/') {
        Some((first, object)) if first == account => {
            format!("{service}:{}", percent_decode_str(object).decode_utf8_lossy())
        }
        _ => without_signature(url),
    }
}

/// The message of a queue that a path names: `QUEUE/messages/ID`.
fn message(service: ServiceKind, request: &Request) -> Option<String> {
    if service != ServiceKind::Queue {
        return None;
    }
    let id = request.address.rest.strip_prefix("messages/")?;
    (!id.is_empty()).then(|| cut(id).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_an_object_of_the_account_or_a_url_without_its_signature() {
        for (url, source) in [
            ("http://127.0.0.1:1/acc/box/a%20b?sig=x", "blob:box/a b"),
            ("/acc/box/a", "blob:box/a"),
            ("http://other/box/a?sv=1&sig=x", "http://other/box/a?sv=1"),
        ] {
            assert_eq!(source_of(ServiceKind::Blob, "acc", url), source);
        }
    }

    #[test]
    fn a_trace_has_an_id_of_32_digits_that_are_not_all_zero() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(trace_id(&format!("00-{id}-00f067aa0ba902b7-01")), Some(id));
        let none = "0".repeat(32);
        for bad in ["", "00", &format!("00-{none}-00f067aa0ba902b7-01"), "00-4bf9-00-01"] {
            assert_eq!(trace_id(bad), None, "{bad}");
        }
    }

    #[test]
    fn equal_secrets_have_equal_fingerprints_in_any_case() {
        let id = "0F3B2C1D-0000-4000-8000-000000000000";
        assert_eq!(fingerprint(id), fingerprint(&id.to_ascii_lowercase()));
        assert_ne!(fingerprint(id), fingerprint("1F3B2C1D-0000-4000-8000-000000000000"));
        assert_eq!(fingerprint(id).to_string().len(), 8);
    }
}
