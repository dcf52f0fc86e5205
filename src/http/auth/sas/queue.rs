//! The text that a service SAS of the Queue service signs, and the resources that the SAS covers:
//! one queue and its messages. There is no `sr`, because no other resource can be meant.

use super::super::delegation::KEY_FIELDS;
use super::super::error::AuthError;
use super::super::grant::SasScope;
use super::super::permission::ResourceLevel;
use super::super::request::{AuthTarget, RequestView, SignedQuery};
use super::super::shared_key::{self, IsSigned, Scheme};
use super::super::signatures::{SasText, Signatures};
use super::{push_fields, push_line};
use crate::rules::service::ServiceKind;

/// The texts of the Queue service.
pub static QUEUE: Signatures = Signatures {
    kind: ServiceKind::Queue,
    service_sas,
    delegation_sas,
    shared_key: shared_key_texts,
    needs_intent: |_| false,
};

/// The end of an account's name in addresses of its secondary location.
const SECONDARY: &str = "-secondary";

fn service_sas(target: &AuthTarget<'_>, query: &SignedQuery) -> SasText {
    text(target, query, &["si", "sip", "spr", "sv"])
}

fn delegation_sas(_: &RequestView<'_>, target: &AuthTarget<'_>, query: &SignedQuery) -> SasText {
    let users = ["skdutid", "sduoid", "sip", "spr", "sv"];
    let fields: Vec<_> = KEY_FIELDS.into_iter().chain(users).collect();
    text(target, query, &fields)
}

/// The text with these fields behind the queue; no line feed at its end.
fn text(target: &AuthTarget<'_>, query: &SignedQuery, fields: &[&str]) -> SasText {
    let beyond = || AuthError::ResourceTypeMismatch { level: ResourceLevel::Service };
    let queue = target.container.ok_or_else(beyond)?;
    let mut text = String::new();
    push_fields(&mut text, query, ["sp", "st", "se"]);
    // The account once, in path style too.
    push_line(&mut text, Some(&format!("/queue/{}/{queue}", target.account)));
    push_fields(&mut text, query, fields.iter().copied());
    text.pop();
    Ok((SasScope::Container, text))
}

/// Some clients sign a request to the secondary location as if it went to the primary; the Python
/// client puts the account into such a path twice, and signs it once.
fn shared_key_texts(
    request: &RequestView<'_>,
    account: &str,
    scheme: Scheme,
    is_signed: IsSigned<'_>,
) -> bool {
    if shared_key::texts(request, account, scheme, is_signed) {
        return true;
    }
    let secondary = format!("/{account}{SECONDARY}");
    let Some(rest) = request.raw_path.strip_prefix(&secondary) else { return false };
    [&format!("/{account}{rest}"), rest].into_iter().any(|raw_path| {
        let primary = RequestView { raw_path, ..*request };
        shared_key::texts(&primary, account, scheme, is_signed)
    })
}
