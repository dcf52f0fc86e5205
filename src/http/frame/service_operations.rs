//! Operations that every service has in the same form: preflight, service properties, statistics.
//! The Blob service takes the bodies of some of them as streams and has its own entries for those.
//!
//! Service properties are kept as they were sent, part by part: a set without a part leaves that
//! part alone. Only CORS rules have an effect.

use std::time::Duration;

use hyper::StatusCode;

use super::call::Call;
use super::host::PropertyParts;
use super::refusal::Refusal;
use super::service::{Answer, Service};
use super::site::CORS;
use super::version::VERSION;
use crate::http::auth::delegation::key_value;
use crate::http::auth::{CLOCK_SKEW_MAX, GrantedBy};
use crate::http::cors::Cors;
use crate::http::reply::Reply;
use crate::http::xml::{Element, Xml, invalid};
use crate::rules::Timestamp;
use crate::rules::time::{iso_seconds, parse_iso, rfc1123};

/// The longest life of a user delegation key.
const KEY_LIFE_MAX: Duration = Duration::from_hours(7 * 24);

/// Days of a retention policy.
const RETENTION_DAYS_MAX: u32 = 365;
const ROOT: &str = "StorageServiceProperties";

/// The question of a browser before it sends a request from another origin.
pub fn preflight(call: &Call<'_>) -> Answer {
    let origin = cors_header(call, "origin")?;
    let method = cors_header(call, "access-control-request-method")?;
    let headers = call.header("access-control-request-headers")?.unwrap_or_default();
    call.site.cors(&**call.account).preflight(origin, method, headers).ok_or_else(|| {
        let message = "CORS not enabled or no matching rule found for this request.";
        Refusal::new(StatusCode::FORBIDDEN, "CorsPreflightFailure", message)
    })
}

/// A header without which a request is no preflight.
fn cors_header<'a>(call: &'a Call<'_>, name: &str) -> Result<&'a str, Refusal> {
    call.header(name)?.ok_or_else(|| {
        let message =
            format!("A required CORS header is not present. [latchfs: {name} is required]");
        Refusal::bad("InvalidHeaderValue", message).with("HeaderName", name.to_owned())
    })
}

pub fn set_service_properties(call: &Call<'_>) -> Answer {
    let given = Element::read(&call.body, ROOT)?;
    let parts = checked_parts(call.site.service, &given)?;
    call.account.set_properties(call.site.service.kind, parts, &|| ())?;
    Ok(Reply::accepted())
}

/// The parts of service properties as they are kept, by name: each part once, and within it only
/// elements that are known.
pub fn checked_parts(service: &Service, given: &Element) -> Result<PropertyParts, Refusal> {
    let mut parts = PropertyParts::new();
    for part in &given.children {
        if !service.properties.contains(&part.name.as_str()) {
            return Err(invalid(&format!("the element {} is not known", part.name)));
        }
        if part.name == CORS {
            Cors::read(part)?;
        }
        let part = known(part);
        check_booleans(&part)?;
        if let Some(policy) = part.child("RetentionPolicy") {
            check_retention(policy)?;
        }
        // Only one of two would be kept, and it might not be the one that was looked at.
        if parts.insert(part.name.clone(), part.document()).is_some() {
            return Err(invalid(&format!("the element {} is there twice", part.name)));
        }
    }
    Ok(parts)
}

/// What is on or off says so.
fn check_booleans(part: &Element) -> Result<(), Refusal> {
    let is_boolean = matches!(part.text.as_str(), "true" | "false");
    if BOOLEANS.contains(&part.name.as_str()) && !is_boolean {
        let why = format!("{} must be true or false", part.name);
        return Err(Refusal::bad_because("InvalidXmlNodeValue", why));
    }
    part.children.iter().try_for_each(check_booleans)
}

/// A retention policy that is on says for how many days.
fn check_retention(policy: &Element) -> Result<(), Refusal> {
    let text = |name| policy.child(name).map_or("", |child| child.text.as_str());
    let days = text("Days").parse::<u32>();
    let is_right = days.is_ok_and(|days| (1..=RETENTION_DAYS_MAX).contains(&days));
    if is_right || text("Enabled") != "true" {
        return Ok(());
    }
    Err(invalid(&format!("Days of a retention policy are 1 to {RETENTION_DAYS_MAX}")))
}

#[expect(clippy::unnecessary_wraps, reason = "the form of every operation")]
pub fn service_properties(call: &Call<'_>) -> Answer {
    let parts = call.account.properties(call.site.service.kind);
    let mut xml = Xml::default();
    xml.open(ROOT);
    for name in call.site.service.properties {
        let kept = parts.get(*name).and_then(|part| Element::read(part.as_bytes(), name).ok());
        match kept {
            Some(part) => part.write(&mut xml),
            // No version is the default one until one is set.
            None if *name == "DefaultServiceVersion" => {}
            None => default_part(&mut xml, name),
        }
    }
    xml.close(ROOT);
    Ok(Reply::ok().xml(xml))
}

/// The elements that parts of the service properties have, at any depth.
const KNOWN: [&str; 34] = [
    "AllowPermanentDelete",
    "AllowedHeaders",
    "AllowedMethods",
    "AllowedOrigins",
    "AuthenticationMethods",
    "ChannelEncryption",
    "CorsRule",
    "Days",
    "DefaultIndexDocumentPath",
    "Delete",
    "Enabled",
    "EncryptionInTransit",
    "ErrorDocument404Path",
    "ExposedHeaders",
    "IncludeAPIs",
    "IndexDocument",
    "KerberosTicketEncryption",
    "LastSyncTime",
    "MaxAgeInSeconds",
    "Multichannel",
    "NFS",
    "Read",
    "Required",
    "RetentionPolicy",
    "SMB",
    "Status",
    "Version",
    "Versions",
    "Write",
    // Parts themselves, where a part is one value.
    "Cors",
    "DefaultServiceVersion",
    "HourMetrics",
    "Logging",
    "MinuteMetrics",
];

/// Those of them that are true or false.
const BOOLEANS: [&str; 7] =
    ["AllowPermanentDelete", "Delete", "Enabled", "IncludeAPIs", "Read", "Required", "Write"];

/// A part without its unknown elements, which are not kept. Some clients write `True`, and some
/// read nothing but `true`.
fn known(part: &Element) -> Element {
    let children = part.children.iter();
    let children = children.filter(|child| KNOWN.contains(&child.name.as_str())).map(known);
    let is_boolean = BOOLEANS.contains(&part.name.as_str());
    let text = if is_boolean { part.text.to_ascii_lowercase() } else { part.text.clone() };
    Element { name: part.name.clone(), text, children: children.collect() }
}

fn default_part(xml: &mut Xml, name: &str) {
    xml.open(name);
    match name {
        "HourMetrics" | "MinuteMetrics" => {
            xml.text("Version", "1.0");
            xml.text("Enabled", "false");
            no_retention(xml);
        }
        "Logging" => {
            xml.text("Version", "1.0");
            for operation in ["Delete", "Read", "Write"] {
                xml.text(operation, "false");
            }
            no_retention(xml);
        }
        "ProtocolSettings" => {
            xml.open("SMB");
            xml.open("Multichannel");
            xml.text("Enabled", "false");
            xml.close("Multichannel");
            xml.close("SMB");
        }
        "DeleteRetentionPolicy" | "StaticWebsite" => xml.text("Enabled", "false"),
        _ => {}
    }
    xml.close(name);
}

fn no_retention(xml: &mut Xml) {
    xml.open("RetentionPolicy");
    xml.text("Enabled", "false");
    xml.close("RetentionPolicy");
}

/// Get User Delegation Key: for a bearer, who signs shared access signatures with it.
pub fn user_delegation_key(call: &Call<'_>) -> Answer {
    let GrantedBy::Bearer { subject, tenant } = &call.grant.by else {
        let detail = "Only authentication scheme Bearer is supported";
        return Err(Refusal::explained(StatusCode::FORBIDDEN, "AuthenticationFailed", detail)
            .with("AuthenticationErrorDetail", detail.to_owned()));
    };
    let given = Element::read(&call.body, "KeyInfo")?;
    let expiry = moment(&given, "Expiry")?;
    let expiry = expiry.ok_or_else(|| invalid("the element Expiry is missing"))?;
    let start = moment(&given, "Start")?.unwrap_or(call.context.now);
    // Seven days from now, not from the start: a key made today must not sign next year. The
    // client counts them by its own clock.
    let longest = call.context.now.after(KEY_LIFE_MAX).after(CLOCK_SKEW_MAX);
    if expiry <= start || expiry > start.after(KEY_LIFE_MAX) || expiry > longest {
        return Err(invalid("the key must end after it starts, and within seven days from now"));
    }
    let (start, expiry) = (iso_seconds(start), iso_seconds(expiry));
    let service = call.site.service.kind.letter().to_string();
    let version = call.header(VERSION)?.unwrap_or_default();
    let fields = [subject, tenant, &start, &expiry, &service, version];
    let credential = call.site.options.admission.credential(call.account.name());
    let key = credential.ok_or_else(|| Refusal::not_implemented("A key without an account key"))?;
    let mut xml = Xml::default();
    xml.open("UserDelegationKey");
    let names =
        ["SignedOid", "SignedTid", "SignedStart", "SignedExpiry", "SignedService", "SignedVersion"];
    for (name, value) in names.into_iter().zip(fields) {
        xml.text(name, value);
    }
    if let Some(user) = given.child("DelegatedUserTid") {
        xml.text("SignedDelegatedUserTid", &user.text);
    }
    xml.text("Value", &key_value(key.key(), fields));
    xml.close("UserDelegationKey");
    Ok(Reply::ok().xml(xml))
}

fn moment(given: &Element, name: &str) -> Result<Option<Timestamp>, Refusal> {
    let Some(element) = given.child(name).filter(|element| !element.text.is_empty()) else {
        return Ok(None);
    };
    let bad = || invalid(&format!("{name} is not a time"));
    parse_iso(&element.text).map(Some).ok_or_else(bad)
}

/// Get Service Stats, which the secondary location alone answers.
pub fn service_stats(call: &Call<'_>) -> Answer {
    if !call.address.secondary {
        let why = "statistics are read from the secondary location";
        return Err(Refusal::query("comp", "stats", why));
    }
    let mut xml = Xml::default();
    xml.open("StorageServiceStats");
    xml.open("GeoReplication");
    xml.text("Status", "live");
    xml.text("LastSyncTime", &rfc1123(call.context.now));
    xml.close("GeoReplication");
    xml.close("StorageServiceStats");
    Ok(Reply::ok().xml(xml))
}
