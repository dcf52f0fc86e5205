//! Stored access policies as XML, both ways: the same document in every service.
//!
//! Decides its form alone. Services differ in whether they keep times as they were sent; what a
//! policy grants is decided in [`crate::rest::auth`].

use super::xml::{Element, Xml, invalid};
use crate::core::Timestamp;
use crate::core::policy::StoredPolicy;
use crate::core::time::{iso, parse_short_iso};
use crate::rest::refusal::Refusal;

/// A policy as it is written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PolicyText {
    /// `Id`.
    pub id: String,
    /// `Start`.
    pub start: Option<String>,
    /// `Expiry`.
    pub expiry: Option<String>,
    /// `Permission`.
    pub permission: Option<String>,
}

/// The written form of a policy that has only an ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bare {
    /// An empty `AccessPolicy`.
    Written,
    /// None.
    LeftOut,
}

impl From<&StoredPolicy> for PolicyText {
    fn from(policy: &StoredPolicy) -> Self {
        Self {
            id: policy.id.clone(),
            start: policy.start.map(iso),
            expiry: policy.expiry.map(iso),
            permission: policy.permission.clone(),
        }
    }
}

impl TryFrom<PolicyText> for StoredPolicy {
    type Error = Refusal;

    fn try_from(text: PolicyText) -> Result<Self, Refusal> {
        let PolicyText { id, start, expiry, permission } = text;
        Ok(Self { id, start: time("Start", start)?, expiry: time("Expiry", expiry)?, permission })
    }
}

fn time(name: &str, text: Option<String>) -> Result<Option<Timestamp>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let parsed = parse_short_iso(&text);
    parsed.map(Some).ok_or_else(|| invalid(&format!("{name} is not an ISO 8601 time")))
}

/// Reads the document. No body at all removes all policies, as an empty list does.
pub fn read_policies(body: &[u8]) -> Result<Vec<PolicyText>, Refusal> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let root = Element::read(body, "SignedIdentifiers")?;
    root.children.iter().map(read_policy).collect()
}

/// Reads the document, with times parsed.
pub fn read_stored_policies(body: &[u8]) -> Result<Vec<StoredPolicy>, Refusal> {
    read_policies(body)?.into_iter().map(StoredPolicy::try_from).collect()
}

fn read_policy(element: &Element) -> Result<PolicyText, Refusal> {
    if element.name != "SignedIdentifier" {
        return Err(invalid(&format!("the element {} is not known", element.name)));
    }
    let access = element.child("AccessPolicy");
    let field = |name: &str| {
        let text = access?.child(name)?.text.clone();
        (!text.is_empty()).then_some(text)
    };
    Ok(PolicyText {
        id: element.child("Id").map(|id| id.text.clone()).unwrap_or_default(),
        start: field("Start"),
        expiry: field("Expiry"),
        permission: field("Permission"),
    })
}

/// Writes the document.
pub fn write_policies(policies: impl IntoIterator<Item = PolicyText>, bare: Bare) -> Xml {
    let mut xml = Xml::new();
    xml.open("SignedIdentifiers");
    for policy in policies {
        xml.open("SignedIdentifier");
        xml.text("Id", &policy.id);
        let fields =
            [("Start", policy.start), ("Expiry", policy.expiry), ("Permission", policy.permission)];
        if bare == Bare::Written || fields.iter().any(|(_, value)| value.is_some()) {
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
