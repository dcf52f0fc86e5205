//! Stored access policies of a share (FILEREST section 6, ACL).

use super::share::share_version;
use super::{Answer, Call};
use crate::core::Timestamp;
use crate::core::stamp::{iso, parse_iso};
use crate::engine::account::StoredPolicy;
use crate::rest::refusal::Refusal;
use crate::rest::reply::Reply;
use crate::rest::xml::{Element, Xml, invalid};

impl Call<'_> {
    pub(super) fn access_policy(&self) -> Answer {
        let info = self.engine().properties(&self.share_ref(None)?)?;
        let mut xml = Xml::new();
        xml.open("SignedIdentifiers");
        for policy in &info.properties.policies {
            xml.open("SignedIdentifier");
            xml.text("Id", &policy.id);
            xml.open("AccessPolicy");
            xml.maybe("Start", policy.start.map(iso).as_deref());
            xml.maybe("Expiry", policy.expiry.map(iso).as_deref());
            xml.maybe("Permission", policy.permission.as_deref());
            xml.close("AccessPolicy");
            xml.close("SignedIdentifier");
        }
        xml.close("SignedIdentifiers");
        let properties = &info.properties;
        Ok(Reply::ok().xml(xml).version(properties.tag, properties.modified))
    }

    pub(super) fn set_access_policy(&self) -> Answer {
        let snapshot = self.request.snapshot()?;
        let at = self.share_ref(snapshot.as_ref())?;
        let policies = read_policies(&self.request.body)?;
        Ok(share_version(Reply::ok(), self.engine().set_policies(&at, policies)?))
    }
}

/// No body at all removes all policies, as an empty list does.
fn read_policies(body: &[u8]) -> Result<Vec<StoredPolicy>, Refusal> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let root = Element::read(body, "SignedIdentifiers")?;
    root.children.iter().map(read_policy).collect()
}

fn read_policy(element: &Element) -> Result<StoredPolicy, Refusal> {
    if element.name != "SignedIdentifier" {
        return Err(invalid(&format!("the element {} is not known", element.name)));
    }
    let id = element.child("Id").map(|id| id.text.clone()).unwrap_or_default();
    let mut policy = StoredPolicy { id, ..StoredPolicy::default() };
    if let Some(access) = element.child("AccessPolicy") {
        policy.start = time(access, "Start")?;
        policy.expiry = time(access, "Expiry")?;
        policy.permission = text(access, "Permission").map(str::to_owned);
    }
    Ok(policy)
}

fn text<'a>(access: &'a Element, name: &str) -> Option<&'a str> {
    access.child(name).map(|child| child.text.as_str()).filter(|text| !text.is_empty())
}

fn time(access: &Element, name: &str) -> Result<Option<Timestamp>, Refusal> {
    let Some(text) = text(access, name) else { return Ok(None) };
    let parsed = parse_iso(text);
    parsed.map(Some).ok_or_else(|| invalid(&format!("{name} is no ISO 8601 time")))
}
