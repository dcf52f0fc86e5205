//! The service as a whole: its properties, and its shares, page by page.
//!
//! Service properties are kept as they were sent, part by part: a set without a part leaves that
//! part alone (FILEREST section 6). Only CORS rules have an effect here. They last as long as the
//! server.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::{Answer, Call};
use crate::core::stamp::rfc1123;
use crate::engine::account::{LIST_MAX, ListOptions, ShareInfo};
use crate::rest::refusal::Refusal;
use crate::rest::reply::Reply;
use crate::rest::xml::{Element, Xml, invalid};

/// The parts of the service properties, in the order they are shown.
const PARTS: [&str; 4] = ["HourMetrics", "MinuteMetrics", "Cors", "ProtocolSettings"];
/// The most CORS rules (the service's limit).
const CORS_RULES_MAX: usize = 5;

const POISON: &str = "nothing panics while service properties are held";

/// The service properties that were set.
#[derive(Debug, Default)]
pub struct Service(Mutex<BTreeMap<String, Element>>);

impl Service {
    /// The CORS rules.
    pub fn cors_rules(&self) -> Vec<Element> {
        let parts = self.0.lock().expect(POISON);
        parts.get("Cors").map(|cors| cors.children.clone()).unwrap_or_default()
    }
}

impl Call<'_> {
    pub(super) fn set_service_properties(&self) -> Answer {
        let given = Element::read(&self.request.body, "StorageServiceProperties")?;
        for part in &given.children {
            if !PARTS.contains(&part.name.as_str()) {
                return Err(invalid(&format!("the element {} is not known", part.name)));
            }
            if part.name == "Cors" && part.children.len() > CORS_RULES_MAX {
                return Err(invalid(&format!("there are at most {CORS_RULES_MAX} CORS rules")));
            }
        }
        let mut parts = self.site.service.0.lock().expect(POISON);
        parts.extend(given.children.into_iter().map(|part| (part.name.clone(), part)));
        Ok(Reply::accepted())
    }

    pub(super) fn service_properties(&self) -> Reply {
        let parts = self.site.service.0.lock().expect(POISON);
        let mut xml = Xml::new();
        xml.open("StorageServiceProperties");
        for name in PARTS {
            match parts.get(name) {
                Some(part) => part.write(&mut xml),
                None => default_part(&mut xml, name),
            }
        }
        xml.close("StorageServiceProperties");
        Reply::ok().xml(xml)
    }

    pub(super) fn list_shares(&self) -> Answer {
        let query = &self.request.query;
        let include = query.get("include").unwrap_or_default().to_ascii_lowercase();
        let has = |what| include.split(',').any(|word| word.trim() == what);
        let limit = self.request.page_size(LIST_MAX)?;
        let options = ListOptions {
            prefix: query.get("prefix").unwrap_or_default(),
            marker: query.get("marker"),
            limit: Some(limit),
            snapshots: has("snapshots"),
            deleted: has("deleted"),
            metadata: has("metadata"),
        };
        let page = self.engine().list_shares(&options)?;
        let mut xml = Xml::new();
        let endpoint = self.request.address.endpoint.as_str();
        xml.open_with("EnumerationResults", &[("ServiceEndpoint", endpoint)]);
        xml.maybe("Prefix", query.get("prefix"));
        xml.maybe("Marker", options.marker);
        if query.get("maxresults").is_some() {
            xml.text("MaxResults", &limit.to_string());
        }
        xml.open("Shares");
        for share in &page.shares {
            write_share(&mut xml, share, options.metadata);
        }
        xml.close("Shares");
        xml.text("NextMarker", page.next.as_deref().unwrap_or_default());
        xml.close("EnumerationResults");
        Ok(Reply::ok().xml(xml))
    }
}

fn write_share(xml: &mut Xml, share: &ShareInfo, metadata: bool) {
    xml.open("Share");
    xml.text("Name", &share.name);
    if let Some(snapshot) = &share.snapshot {
        xml.text("Snapshot", snapshot.as_str());
    }
    if let Some(deleted) = &share.deleted {
        xml.text("Deleted", "true");
        xml.text("Version", &deleted.version);
    }
    xml.open("Properties");
    let properties = &share.properties;
    xml.text("Last-Modified", &rfc1123(properties.modified));
    xml.text("Etag", &properties.tag.to_string());
    xml.text("Quota", &properties.quota_gib.to_string());
    if let Some(deleted) = &share.deleted {
        xml.text("DeletedTime", &rfc1123(deleted.when));
        xml.text("RemainingRetentionDays", &deleted.remaining_days.to_string());
    }
    xml.text("AccessTier", &properties.access_tier.to_string());
    if let Some(changed) = properties.tier_changed {
        xml.text("AccessTierChangeTime", &rfc1123(changed));
    }
    xml.text("LeaseStatus", &share.lease.status.to_string());
    xml.text("LeaseState", &share.lease.state.to_string());
    if let Some(duration) = share.lease.duration {
        xml.text("LeaseDuration", &duration.to_string());
    }
    xml.text("EnabledProtocols", "SMB");
    xml.close("Properties");
    if metadata {
        xml.open("Metadata");
        for (name, value) in properties.metadata.iter() {
            xml.text(name, value);
        }
        xml.close("Metadata");
    }
    xml.close("Share");
}

fn default_part(xml: &mut Xml, name: &str) {
    xml.open(name);
    match name {
        "HourMetrics" | "MinuteMetrics" => {
            xml.text("Version", "1.0");
            xml.text("Enabled", "false");
            xml.open("RetentionPolicy");
            xml.text("Enabled", "false");
            xml.close("RetentionPolicy");
        }
        "ProtocolSettings" => {
            xml.open("SMB");
            xml.open("Multichannel");
            xml.text("Enabled", "false");
            xml.close("Multichannel");
            xml.close("SMB");
        }
        _ => {}
    }
    xml.close(name);
}

/// The lists of a CORS rule are joined by commas.
pub(super) fn listed(rule: &Element, name: &str) -> Vec<String> {
    let text = rule.child(name).map(|list| list.text.as_str()).unwrap_or_default();
    text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// What a browser is told that may not.
pub(super) fn cors_refused(why: &str) -> Refusal {
    Refusal::new(
        hyper::StatusCode::FORBIDDEN,
        "CorsPreflightFailure",
        format!("The CORS preflight was refused: {why}."),
    )
}
