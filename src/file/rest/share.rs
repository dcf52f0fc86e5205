//! A share as a whole: create, delete, restore, properties, metadata, statistics, snapshots, access
//! policies, permissions (security descriptors, JSON both ways), and the provisioned figures, which
//! are kept and shown and make nothing here any faster or slower.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::FileCall;
use crate::file::service::FileServiceError;
use crate::file::service::shares::{
    AccessTier, Control, DeleteShareSnapshots, NewShare, PermissionFormat, SecurityDescriptor,
    ShareChanges, ShareDenial, ShareInfo, ShareProperties, ShareRef, ShareVersion,
};
use crate::http::auth::Permission::Delete;
use crate::http::auth::{AuthError, GrantedBy, SasScope};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::policies::{read_timed_policies, write_policies};
use crate::http::reply::Reply;
use crate::http::xml::Xml;
use crate::rules::policy::SentPolicy;
use crate::rules::time::rfc1123;

/// Headers that are kept and given back, and mean nothing here.
const SETTINGS: [&str; 8] = [
    "x-ms-root-squash",
    "x-ms-enable-snapshot-virtual-directory-access",
    "x-ms-enable-smb-directory-lease",
    "x-ms-share-paid-bursting-enabled",
    "x-ms-share-paid-bursting-max-bandwidth-mibps",
    "x-ms-share-paid-bursting-max-iops",
    "x-ms-share-provisioned-iops",
    "x-ms-share-provisioned-bandwidth-mibps",
];

impl FileCall<'_> {
    /// `ETag`, `Last-Modified`, quota and provisioned figures: the answer to Create, Set and
    /// Restore Share.
    fn share_set(&self, reply: Reply) -> Answer {
        let info = self.engine()?.properties(&ShareRef::new(self.share()?))?;
        let properties = &info.properties;
        let reply = reply
            .version(properties.tag, properties.modified)
            .header("x-ms-share-quota", properties.quota_gib);
        Ok(with_provisioned(reply, properties))
    }

    pub(super) fn create_share(&self) -> Answer {
        let new = NewShare {
            metadata: self.request.metadata()?,
            protocols: self.request.header("x-ms-enabled-protocols")?.map(str::to_owned),
            changes: self.share_changes()?,
        };
        self.engine()?.create_share(self.share()?, new)?;
        self.share_set(Reply::created())
    }

    fn share_changes(&self) -> Result<ShareChanges, Refusal> {
        let mut settings = BTreeMap::new();
        for name in SETTINGS {
            if let Some(value) = self.request.header(name)? {
                settings.insert(name.to_owned(), value.to_owned());
            }
        }
        let tier = self.request.header("x-ms-access-tier")?;
        Ok(ShareChanges {
            quota_gib: self.request.parsed("x-ms-share-quota", "it must be a number")?,
            access_tier: tier.map(str::parse).transpose()?,
            settings,
        })
    }

    pub(super) fn share_properties(&self) -> Answer {
        let snapshot = self.snapshot()?;
        let info = self.engine()?.properties(&self.share_ref(snapshot.as_ref())?)?;
        let properties = &info.properties;
        let mut reply = of_share(&info)
            .header("x-ms-share-quota", properties.quota_gib)
            .header("x-ms-access-tier", properties.access_tier)
            .maybe("x-ms-access-tier-change-time", properties.tier_changed.map(rfc1123))
            .maybe(
                "x-ms-access-tier-transition-state",
                properties.tier_transition(self.request.now),
            )
            .header("x-ms-enabled-protocols", properties.protocol)
            .header("x-ms-lease-status", info.lease.status)
            .header("x-ms-lease-state", info.lease.state)
            .maybe("x-ms-lease-duration", info.lease.duration);
        for (name, value) in &properties.settings {
            reply.set_named(name, value);
        }
        Ok(with_provisioned(reply, properties))
    }

    pub(super) fn share_metadata(&self) -> Answer {
        let snapshot = self.snapshot()?;
        Ok(of_share(&self.engine()?.properties(&self.share_ref(snapshot.as_ref())?)?))
    }

    pub(super) fn set_share_properties(&self) -> Answer {
        let snapshot = self.snapshot()?;
        let changes = self.share_changes()?;
        let set = self.engine()?.set_properties(&self.share_ref(snapshot.as_ref())?, changes)?;
        let reply = Reply::ok().version(set.tag, set.modified);
        Ok(with_provisioned(reply.header("x-ms-share-quota", set.quota_gib), &set))
    }

    pub(super) fn set_share_metadata(&self) -> Answer {
        let snapshot = self.snapshot()?;
        let metadata = self.request.metadata()?;
        let at = self.share_ref(snapshot.as_ref())?;
        Ok(share_version(Reply::ok(), self.engine()?.set_metadata(&at, metadata)?))
    }

    pub(super) fn share_statistics(&self) -> Answer {
        let (bytes, version) = self.engine()?.usage_bytes(&self.share_ref(None)?)?;
        let mut xml = Xml::default();
        xml.open("ShareStats");
        xml.text("ShareUsageBytes", &bytes.to_string());
        xml.close("ShareStats");
        Ok(share_version(Reply::ok().xml(xml), version))
    }

    pub(super) fn delete_share(&self) -> Answer {
        const NAME: &str = "x-ms-delete-snapshots";
        let snapshot = self.snapshot()?;
        let at = self.share_ref(snapshot.as_ref())?;
        let snapshots = match self.request.header(NAME)? {
            None => DeleteShareSnapshots::None,
            Some("include") => DeleteShareSnapshots::Include,
            Some("include-leased") => DeleteShareSnapshots::IncludeLeased,
            Some(other) => {
                return Err(Refusal::header(NAME, other, "it must be include or include-leased"));
            }
        };
        if snapshot.is_some() {
            self.engine()?.delete_snapshot(&at)?;
            return Ok(Reply::accepted());
        }
        let used = self.engine()?.usage_bytes(&at).map(|(bytes, _)| bytes);
        match self.engine()?.delete_share(self.cx(), &at, snapshots) {
            Ok(_) => Ok(Reply::accepted().maybe("x-ms-file-share-usage-bytes", used.ok())),
            // The service deletes in the background, and accepts the same request meanwhile.
            Err(FileServiceError::Denied(ShareDenial::ShareNotFound))
                if self.engine()?.was_deleted_lately(at.name) =>
            {
                Ok(Reply::accepted())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn restore_share(&self) -> Answer {
        let named = self.request.header("x-ms-deleted-share-name")?;
        let name = named.map_or_else(|| self.share(), Ok)?;
        if name != self.share()? {
            let why = "a share is restored under its own name";
            return Err(Refusal::header("x-ms-deleted-share-name", name, why));
        }
        let version = self.request.required("x-ms-deleted-share-version")?;
        self.engine()?.restore_share(name, version)?;
        self.share_set(Reply::created())
    }

    pub(super) fn create_snapshot(&self) -> Answer {
        let snapshot = self.snapshot()?;
        let at = self.share_ref(snapshot.as_ref())?;
        // Without metadata of its own a snapshot has the share's.
        let metadata = Some(self.request.metadata()?).filter(|metadata| !metadata.is_empty());
        let stopping = &self.site.stopping;
        let (taken, version) = self.engine()?.create_snapshot(&at, metadata, &mut |_| {
            if stopping.load(Ordering::Acquire) { Control::Cancel } else { Control::Continue }
        })?;
        Ok(share_version(Reply::created(), version).header("x-ms-snapshot", taken))
    }
}

/// With the provisioned figures, of a share that has them.
fn with_provisioned(mut reply: Reply, properties: &ShareProperties) -> Reply {
    if let Some(provisioned) = Provisioned::of(properties) {
        for (name, _, value) in provisioned.figures() {
            reply.set_named(name, value);
        }
    }
    reply
}

fn of_share(info: &ShareInfo) -> Reply {
    let properties = &info.properties;
    Reply::ok().version(properties.tag, properties.modified).metadata(&properties.metadata)
}

/// `ETag` and `Last-Modified` of a share.
pub(super) fn share_version(reply: Reply, version: ShareVersion) -> Reply {
    reply.version(version.tag, version.modified)
}

impl FileCall<'_> {
    pub(super) fn access_policy(&self) -> Answer {
        let info = self.engine()?.properties(&self.share_ref(None)?)?;
        let policies = info.properties.policies.iter().map(SentPolicy::from);
        let xml = write_policies(policies);
        let properties = &info.properties;
        Ok(Reply::ok().xml(xml).version(properties.tag, properties.modified))
    }

    pub(super) fn set_access_policy(&self) -> Answer {
        let snapshot = self.snapshot()?;
        let at = self.share_ref(snapshot.as_ref())?;
        let policies = read_timed_policies(&self.request.body)?;
        Ok(share_version(Reply::ok(), self.engine()?.set_policies(&at, policies)?))
    }
}

/// A permission as a body.
#[derive(Serialize, Deserialize)]
struct Document {
    permission: String,
    #[serde(default)]
    format: Option<String>,
}

impl FileCall<'_> {
    pub(super) fn create_permission(&self) -> Answer {
        self.check_may_delete_too()?;
        let snapshot = self.snapshot()?;
        let document: Document = serde_json::from_slice(&self.request.body).map_err(|error| {
            Refusal::bad("InvalidInput", format!("The body is not a permission: {error}."))
        })?;
        let permission = match format(document.format.as_deref())? {
            None | Some(PermissionFormat::Sddl) => SecurityDescriptor::Sddl(document.permission),
            Some(PermissionFormat::Binary) => SecurityDescriptor::Binary(document.permission),
        };
        let at = self.share_ref(snapshot.as_ref())?;
        let key = self.engine()?.create_permission(&at, &permission)?;
        Ok(Reply::created().header("x-ms-file-permission-key", key))
    }

    /// A SAS of the share needs write and delete to create a permission; the table asks for write.
    fn check_may_delete_too(&self) -> Result<(), Refusal> {
        match &self.grant.by {
            GrantedBy::Sas { scope: SasScope::Container | SasScope::Object, permissions }
                if !permissions.contains(Delete) =>
            {
                let (granted, needed) = (permissions.letters(), vec![Delete]);
                Err(AuthError::PermissionMismatch { granted, needed }.into())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn permission(&self) -> Answer {
        let key = self.request.required("x-ms-file-permission-key")?;
        let wanted = format(self.request.header("x-ms-file-permission-format")?)?;
        let found = self.engine()?.permission(&self.share_ref(None)?, key, wanted)?;
        let format = match found.format() {
            PermissionFormat::Sddl => "Sddl",
            PermissionFormat::Binary => "Binary",
        };
        let document =
            Document { permission: found.text().to_owned(), format: Some(format.to_owned()) };
        let json = serde_json::to_vec(&document).expect("two texts are always JSON");
        Ok(Reply::ok().bytes("application/json", json))
    }
}

fn format(text: Option<&str>) -> Result<Option<PermissionFormat>, Refusal> {
    match text {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("sddl") => Ok(Some(PermissionFormat::Sddl)),
        Some(text) if text.eq_ignore_ascii_case("binary") => Ok(Some(PermissionFormat::Binary)),
        Some(text) => {
            Err(Refusal::header("x-ms-file-permission-format", text, "it must be Sddl or Binary"))
        }
    }
}

const IOPS: &str = "x-ms-share-provisioned-iops";
const BANDWIDTH: &str = "x-ms-share-provisioned-bandwidth-mibps";
/// The least that a share may burst to.
const BURST_IOPS_MIN: u64 = 10_000;
/// Seconds of a full burst that can be saved up.
const BURST_SECONDS: u64 = 3_600;

/// The figures of one share.
pub struct Provisioned {
    iops: u64,
    bandwidth_mibps: u64,
}

impl Provisioned {
    /// Those of a share that was given some, or that is of the premium tier, which derives them
    /// from the quota; none for others.
    pub fn of(share: &ShareProperties) -> Option<Self> {
        let asked = |name: &str| share.settings.get(name)?.parse().ok();
        let (iops, bandwidth) = (asked(IOPS), asked(BANDWIDTH));
        if iops.is_none() && bandwidth.is_none() && share.access_tier != AccessTier::Premium {
            return None;
        }
        let quota = u64::from(share.quota_gib);
        Some(Self {
            iops: iops.unwrap_or(3_000 + quota),
            bandwidth_mibps: bandwidth.unwrap_or(100 + quota.div_ceil(10)),
        })
    }

    /// Header, element of List Shares, and value of each figure.
    pub fn figures(&self) -> [(&'static str, &'static str, u64); 4] {
        let burst = self.iops.saturating_mul(3).max(BURST_IOPS_MIN);
        let credits = (burst - self.iops.min(burst)).saturating_mul(BURST_SECONDS);
        [
            (IOPS, "ProvisionedIops", self.iops),
            (BANDWIDTH, "ProvisionedBandwidthMiBps", self.bandwidth_mibps),
            ("x-ms-share-included-burst-iops", "IncludedBurstIops", burst),
            ("x-ms-share-max-burst-credits-for-iops", "MaxBurstCreditsForIops", credits),
        ]
    }
}
