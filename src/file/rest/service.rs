//! The shares of an account, page by page.

use super::FileCall;
use super::share::Provisioned;
use crate::file::service::shares::{LIST_MAX, ListOptions, ShareInfo};
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::xml::Xml;
use crate::rules::Timestamp;
use crate::rules::time::rfc1123;

impl FileCall<'_> {
    pub(super) fn list_shares(&self) -> Answer {
        let query = &self.request.query;
        let include = query.words("include");
        let has = |what| include.iter().any(|word| word == what);
        let limit = self.request.page_size(LIST_MAX)?;
        let options = ListOptions {
            prefix: query.get("prefix").unwrap_or_default(),
            marker: query.get("marker"),
            limit: Some(limit),
            snapshots: has("snapshots"),
            deleted: has("deleted"),
            metadata: has("metadata"),
        };
        let page = self.engine()?.list_shares(&options)?;
        let mut xml = Xml::default();
        let endpoint = self.request.address.endpoint.as_str();
        xml.open_with("EnumerationResults", &[("ServiceEndpoint", endpoint)]);
        xml.maybe("Prefix", query.get("prefix"));
        xml.maybe("Marker", options.marker);
        if query.get("maxresults").is_some() {
            xml.text("MaxResults", &limit.to_string());
        }
        xml.open("Shares");
        for share in &page.shares {
            write_share(&mut xml, share, options.metadata, self.request.now);
        }
        xml.close("Shares");
        xml.text("NextMarker", page.next.as_deref().unwrap_or_default());
        xml.close("EnumerationResults");
        Ok(Reply::ok().xml(xml))
    }
}

/// Settings that are shown as they were sent, and the element of each.
const SETTINGS: [(&str, &str); 6] = [
    ("x-ms-root-squash", "RootSquash"),
    ("x-ms-enable-snapshot-virtual-directory-access", "EnableSnapshotVirtualDirectoryAccess"),
    ("x-ms-share-paid-bursting-enabled", "PaidBurstingEnabled"),
    ("x-ms-share-paid-bursting-max-iops", "PaidBurstingMaxIops"),
    ("x-ms-share-paid-bursting-max-bandwidth-mibps", "PaidBurstingMaxBandwidthMibps"),
    ("x-ms-enable-smb-directory-lease", "EnableSmbDirectoryLease"),
];

fn write_share(xml: &mut Xml, share: &ShareInfo, metadata: bool, now: Timestamp) {
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
    xml.maybe("AccessTierTransitionState", properties.tier_transition(now));
    xml.text("LeaseStatus", &share.lease.status.to_string());
    xml.text("LeaseState", &share.lease.state.to_string());
    if let Some(duration) = share.lease.duration {
        xml.text("LeaseDuration", &duration.to_string());
    }
    xml.text("EnabledProtocols", &properties.protocol.to_string());
    for (setting, element) in SETTINGS {
        xml.maybe(element, properties.settings.get(setting).map(String::as_str));
    }
    for (_, element, value) in Provisioned::of(properties).iter().flat_map(Provisioned::figures) {
        xml.text(element, &value.to_string());
    }
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
