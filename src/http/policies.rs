//! Stored access policies as XML, both ways: the same document in every service.
//!
//! Decides its form alone. [`crate::rules::policy`] decides which policies are legal;
//! [`crate::http::auth`] decides what a policy grants.

use super::xml::{Element, Xml, invalid};
use crate::http::frame::refusal::Refusal;
use crate::rules::policy::{SentPolicy, StoredPolicy};
use crate::rules::time::parse_short_iso;

/// Reads the document. No body at all removes all policies, as an empty list does.
pub fn read_policies(body: &[u8]) -> Result<Vec<SentPolicy>, Refusal> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let root = Element::read(body, "SignedIdentifiers")?;
    root.children.iter().map(read_policy).collect()
}

/// Reads the document, with its times as moments.
pub fn read_timed_policies(body: &[u8]) -> Result<Vec<StoredPolicy>, Refusal> {
    let timed = |sent: SentPolicy| sent.timed(parse_short_iso);
    let policies: Result<_, _> = read_policies(body)?.into_iter().map(timed).collect();
    policies.map_err(|fault| invalid(&fault.to_string()))
}

fn read_policy(element: &Element) -> Result<SentPolicy, Refusal> {
    if element.name != "SignedIdentifier" {
        return Err(invalid(&format!("the element {} is not known", element.name)));
    }
    let access = element.child("AccessPolicy");
    let field = |name: &str| {
        let text = access?.child(name)?.text.clone();
        (!text.is_empty()).then_some(text)
    };
    Ok(SentPolicy {
        id: element.child("Id").map(|id| id.text.clone()).unwrap_or_default(),
        start: field("Start"),
        expiry: field("Expiry"),
        permission: field("Permission"),
    })
}

/// Writes the document. A policy that has only an ID has no `AccessPolicy`: clients would take an
/// empty one for a policy.
pub fn write_policies(policies: impl IntoIterator<Item = SentPolicy>) -> Xml {
    let mut xml = Xml::default();
    xml.open("SignedIdentifiers");
    for policy in policies {
        xml.open("SignedIdentifier");
        xml.text("Id", &policy.id);
        let fields =
            [("Start", policy.start), ("Expiry", policy.expiry), ("Permission", policy.permission)];
        if fields.iter().any(|(_, value)| value.is_some()) {
            xml.open("AccessPolicy");
            for (name, value) in &fields {
                xml.maybe(name, value.as_deref());
            }
            xml.close("AccessPolicy");
        }
        xml.close("SignedIdentifier");
    }
    xml.close("SignedIdentifiers");
    xml
}
