//! The service as a whole: containers, blobs by tags, account information, retention.

use super::BlobCall;
use super::container::shown_access;
use super::list::LIST_MAX;
use super::read::write_tags;
use crate::blob::rules::tags::query::{TagLanguage, TagQuery};
use crate::blob::service::{Container, Retention};
use crate::http::frame::call::Call;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::frame::service_operations;
use crate::http::reply::Reply;
use crate::http::xml::{Element, Xml, invalid};
use crate::rules::service::ServiceKind;
use crate::rules::time::rfc1123;

const RETENTION: &str = "DeleteRetentionPolicy";
const ROOT: &str = "StorageServiceProperties";

impl BlobCall<'_> {
    pub(super) fn list_containers(self) -> Answer {
        let include = self.include(&["metadata", "deleted", "system"])?;
        let has = |word: &str| include.iter().any(|given| given == word);
        let max = self.page_size(LIST_MAX)?;
        let prefix = self.query.get("prefix").unwrap_or_default();
        let marker = self.query.get("marker");
        let engine = self.engine()?;
        let page = engine.list_containers(self.cx(), prefix, marker, max, has("deleted"));
        let page = self.told(page)?;
        let mut xml = Xml::default();
        let endpoint = self.address.endpoint.as_str();
        xml.open_with("EnumerationResults", &[("ServiceEndpoint", endpoint)]);
        xml.maybe("Prefix", self.query.get("prefix"));
        xml.maybe("Marker", marker);
        if self.query.get("maxresults").is_some() {
            xml.text("MaxResults", &max.to_string());
        }
        xml.open("Containers");
        for container in &page.containers {
            self.write_container(&mut xml, container, has("metadata"));
        }
        xml.close("Containers");
        xml.text("NextMarker", page.next.as_deref().unwrap_or_default());
        xml.close("EnumerationResults");
        Ok(Reply::ok().xml(xml))
    }

    fn write_container(&self, xml: &mut Xml, container: &Container, metadata: bool) {
        let (state, now) = (&container.record, self.now);
        xml.open("Container");
        xml.text("Name", &container.name);
        if let Some((version, _)) = &container.retained {
            xml.text("Deleted", "true");
            xml.text("Version", version);
        }
        xml.open("Properties");
        xml.text("Last-Modified", &rfc1123(state.modified));
        xml.text("Etag", &state.etag.quoted());
        xml.text("LeaseStatus", &state.lease.status(now).to_string());
        xml.text("LeaseState", &state.lease.state(now).to_string());
        xml.maybe("LeaseDuration", state.lease.duration(now).map(|it| it.to_string()).as_deref());
        let access = shown_access(state.access).map(|access| access.to_string());
        xml.maybe("PublicAccess", access.as_deref());
        let scope = state.encryption_scope.as_deref().unwrap_or("$account-encryption-key");
        xml.text("DefaultEncryptionScope", scope);
        xml.text("DenyEncryptionScopeOverride", &state.deny_scope_override.to_string());
        xml.text("HasImmutabilityPolicy", "false");
        xml.text("HasLegalHold", "false");
        xml.text("ImmutableStorageWithVersioningEnabled", "false");
        if let Some((_, kept)) = &container.retained {
            xml.text("DeletedTime", &rfc1123(kept.deleted));
            let days = kept.until.since(now).as_secs().div_ceil(86_400);
            xml.text("RemainingRetentionDays", &days.to_string());
        }
        xml.close("Properties");
        if metadata {
            xml.open("Metadata");
            for (name, value) in &state.metadata {
                xml.text(name, value);
            }
            xml.close("Metadata");
        }
        xml.close("Container");
    }

    pub(super) fn find_blobs(self) -> Answer {
        let missing = || {
            Refusal::bad("MissingRequiredQueryParameter", "The query parameter where is required.")
        };
        let text = self.query.get("where").ok_or_else(missing)?;
        let query = TagQuery::parse(text, TagLanguage::Find)
            .map_err(|error| Refusal::query("where", text, &error.to_string()))?;
        let within = self.address.container.as_deref();
        let max = self.page_size(LIST_MAX)?;
        let from = match self.query.get("marker") {
            None => None,
            Some(marker) => {
                let bad = || {
                    Refusal::query("marker", marker, "it is not a marker that this server issued")
                };
                let (container, name) = marker.split_once('/').ok_or_else(bad)?;
                Some((container.to_owned(), name.to_owned()))
            }
        };
        let found = self.engine()?.find_blobs(self.cx(), within, &query, from.as_ref(), max);
        let (found, next) = self.told(found)?;
        let mut xml = Xml::default();
        let endpoint = self.address.endpoint.as_str();
        xml.open_with("EnumerationResults", &[("ServiceEndpoint", endpoint)]);
        xml.text("Where", text);
        if self.query.get("maxresults").is_some() {
            xml.text("MaxResults", &max.to_string());
        }
        xml.open("Blobs");
        for blob in &found {
            xml.open("Blob");
            xml.file_name("Name", &blob.name);
            xml.text("ContainerName", &blob.container);
            xml.open("Tags");
            write_tags(&mut xml, &blob.tags);
            xml.close("Tags");
            xml.close("Blob");
        }
        xml.close("Blobs");
        let next = next.map(|(container, name)| format!("{container}/{name}"));
        xml.text("NextMarker", next.as_deref().unwrap_or_default());
        xml.close("EnumerationResults");
        Ok(Reply::ok().xml(xml))
    }

    /// Set Blob Service Properties: the documents are kept as for every service; the retention also
    /// takes effect.
    pub(super) fn set_service_properties(self) -> Answer {
        let given = Element::read(&self.body, ROOT)?;
        let mut parts = service_operations::checked_parts(self.site.service, &given)?;
        let retention = given.child(RETENTION).map(read_retention).transpose()?;
        let engine = self.engine()?;
        if let Some(retention) = &retention {
            let text = serde_json::to_string(retention).map_err(Refusal::internal)?;
            parts.insert(Retention::PART.to_owned(), text);
        }
        self.account.set_properties(ServiceKind::Blob, parts, &|| {
            if let Some(retention) = retention {
                engine.set_retention(retention);
            }
        })?;
        Ok(Reply::accepted())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the form of every operation")]
pub(super) fn account_info(_: &Call<'_>) -> Answer {
    Ok(Reply::ok()
        .header("x-ms-sku-name", "Standard_RAGRS")
        .header("x-ms-account-kind", "StorageV2")
        .header("x-ms-is-hns-enabled", "false"))
}

/// An operation that this server does not have.
pub(super) fn not_done(_: &Call<'_>) -> Answer {
    Err(Refusal::not_implemented("This operation"))
}

fn read_retention(policy: &Element) -> Result<Retention, Refusal> {
    let text = |name: &str| policy.child(name).map(|child| child.text.as_str());
    let is = |name: &str| text(name).is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let permanent_delete = is("AllowPermanentDelete");
    if !is("Enabled") {
        return Ok(Retention { days: None, permanent_delete });
    }
    let days = text("Days").and_then(|text| text.parse().ok());
    let days = days.filter(|days| (1..=365).contains(days));
    match days {
        None => Err(invalid("Days must be 1 to 365")),
        days => Ok(Retention { days, permanent_delete }),
    }
}
