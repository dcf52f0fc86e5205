//! The service as a whole: its properties, and its shares, page by page.
//!
//! Service properties are kept as they were sent, part by part: a set without a part leaves that
//! part alone (FILEREST section 6). Only CORS rules have an effect here.

use std::sync::{Arc, Mutex, RwLock};

use super::{Answer, Call};
use crate::core::stamp::rfc1123;
use crate::engine::Engine;
use crate::engine::account::{LIST_MAX, ListOptions, ShareInfo};
use crate::rest::cors::Cors;
use crate::rest::reply::Reply;
use crate::rest::xml::{Element, Xml, invalid};

/// The parts of the service properties, in the order they are shown.
const PARTS: [&str; 4] = ["HourMetrics", "MinuteMetrics", CORS, "ProtocolSettings"];
const CORS: &str = "Cors";

const POISON: &str = "nothing panics while service properties are held";

/// The service properties that have an effect, as they are now.
#[derive(Debug)]
pub struct Service {
    /// Every request looks here, on its connection's own thread: held to look or swap, no longer.
    cors: RwLock<Arc<Cors>>,
    /// Held by the one who sets them, while they are written to disk.
    setting: Mutex<()>,
}

impl Service {
    /// As the engine keeps them.
    pub fn of(engine: &Engine) -> Self {
        Self { cors: RwLock::new(kept_cors(engine)), setting: Mutex::new(()) }
    }

    /// The CORS rules.
    pub fn cors(&self) -> Arc<Cors> {
        Arc::clone(&self.cors.read().expect(POISON))
    }
}

fn kept_cors(engine: &Engine) -> Arc<Cors> {
    let kept = engine.service_properties().remove(CORS);
    let rules = kept.map(|text| Element::read(text.as_bytes(), CORS).and_then(|e| Cors::read(&e)));
    Arc::new(rules.transpose().unwrap_or_default().unwrap_or_default())
}

impl Call<'_> {
    pub(super) fn set_service_properties(&self) -> Answer {
        let given = Element::read(&self.request.body, "StorageServiceProperties")?;
        for part in &given.children {
            if !PARTS.contains(&part.name.as_str()) {
                return Err(invalid(&format!("the element {} is not known", part.name)));
            }
        }
        if let Some(cors) = given.child(CORS) {
            Cors::read(cors)?;
        }
        let parts = given.children.iter().map(|part| (part.name.clone(), part.document()));
        let service = &self.site.service;
        let _setting = service.setting.lock().expect(POISON);
        self.engine().set_service_properties(parts.collect())?;
        let kept = kept_cors(self.engine());
        *service.cors.write().expect(POISON) = kept;
        Ok(Reply::accepted())
    }

    pub(super) fn service_properties(&self) -> Answer {
        let parts = self.engine().service_properties();
        let mut xml = Xml::new();
        xml.open("StorageServiceProperties");
        for name in PARTS {
            match parts.get(name) {
                Some(part) => Element::read(part.as_bytes(), name)?.write(&mut xml),
                None => default_part(&mut xml, name),
            }
        }
        xml.close("StorageServiceProperties");
        Ok(Reply::ok().xml(xml))
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
