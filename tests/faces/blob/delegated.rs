//! Shared access signatures that are made with a user delegation key: users, requests, times.

use std::time::Duration;

use latchfs::blob::service::BlobOptions;
use latchfs::clock::TimeSource as _;
use latchfs::http::auth::Credential;
use latchfs::rules::Timestamp;

use super::access::{encoded, signed};
use super::fixture::{ACCOUNT, Blobs, Got};
use crate::service::{ask_by_key, token_of};

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

const KEY: &str = "/?restype=service&comp=userdelegationkey";

/// Asks for a key of the user `me` that holds for this many hours from that many on.
fn ask_key(blobs: &Blobs, from: i64, hours: i64) -> Got {
    let hour = |count: i64| {
        let moment = Timestamp(blobs.clock.now().0 + count * 3_600_000_000_000);
        latchfs::rules::time::iso_seconds(moment)
    };
    let info = format!(
        "<KeyInfo><Start>{}</Start><Expiry>{}</Expiry></KeyInfo>",
        hour(from),
        hour(from + hours)
    );
    let token = token_of("me");
    blobs.ask("POST", KEY, &[("authorization", &token)], info.as_bytes())
}

#[test]
fn a_key_is_given_to_a_bearer_alone() {
    let blobs = signed(BlobOptions::default());
    let got = ask_by_key(blobs.addr(), "POST", KEY, &[], b"<KeyInfo></KeyInfo>");
    let got = got.refused(403, "AuthenticationFailed");
    let detail = "<AuthenticationErrorDetail>Only authentication scheme Bearer is supported<";
    assert!(got.text().contains(detail), "{}", got.text());
    assert!(got.text().contains("<Message>Server failed to authenticate"), "{}", got.text());
}

/// A SAS of the container `con` with the letters `r`, made with a key of the user `me`.
struct Delegated<'a> {
    key: String,
    user: &'a str,
    /// `srh` and `srq`, and their lines in the text.
    request: [&'a str; 2],
    lines: [&'a str; 2],
}

impl Delegated<'_> {
    fn by(blobs: &Blobs) -> Self {
        let key = ask_key(blobs, 0, 24).is(200).text();
        Self { key, user: "", request: [""; 2], lines: [""; 2] }
    }

    fn field(&self, name: &str) -> String {
        let rest = self.key.split(&format!("<{name}>")).nth(1).unwrap();
        rest.split('<').next().unwrap().to_owned()
    }

    fn token(&self) -> String {
        let (expiry, version) = ("2099-01-01T00:00:00Z", "2026-04-06");
        let key = ["Oid", "Tid", "Start", "Expiry", "Service", "Version"]
            .map(|name| self.field(&format!("Signed{name}")));
        let resource = format!("/blob/{ACCOUNT}/con");
        let tenant = if self.user.is_empty() { "" } else { "here" };
        let mut text = vec!["r", "", expiry, &resource];
        text.extend(key.iter().map(String::as_str));
        text.extend(["", "", "", tenant, self.user, "", "", version, "c", "", ""]);
        text.extend(self.lines);
        text.extend([""; 5]);
        let signer: Credential = format!("somebody:{}", self.field("Value")).parse().unwrap();
        let signature = encoded(&signer.key().sign(&text.join("\n")));
        let names = ["skoid", "sktid", "skt", "ske", "sks", "skv"];
        let key: Vec<_> =
            names.iter().zip(&key).map(|(name, value)| format!("{name}={value}")).collect();
        let key = key.join("&");
        let [srh, srq] = self.request;
        format!(
            "sv={version}&sr=c&sp=r&se={expiry}&{key}&skdutid={tenant}&sduoid={}&srh={srh}\
             &srq={srq}&sig={signature}",
            self.user
        )
    }
}

#[test]
fn a_delegated_sas_for_one_user_needs_a_token_of_that_user() {
    let blobs = signed(BlobOptions::default());
    let sas = Delegated { user: "friend", ..Delegated::by(&blobs) }.token();
    let target = format!("/con/b?{sas}");
    blobs.get(&target, &[]).refused(403, "AuthenticationFailed");
    let token = token_of("stranger");
    blobs.get(&target, &[("authorization", &token)]).refused(403, "AuthenticationFailed");
    let token = token_of("friend");
    let friend = ("authorization", token.as_str());
    blobs.get(&target, &[friend]).is(200);
    // The token does not widen the SAS.
    let put = blobs.ask("PUT", &format!("/con/new?{sas}"), &[BLOCK, friend], b"x");
    put.refused(403, "AuthorizationPermissionMismatch");
    let spoilt = target.replace("sp=r", "sp=rw");
    blobs.get(&spoilt, &[friend]).refused(403, "AuthenticationFailed");
    blobs.ask("PUT", "/con/new", &[BLOCK, friend], b"x").is(201);
}

#[test]
fn a_delegated_sas_is_held_to_the_headers_and_parameters_it_was_signed_with() {
    let blobs = signed(BlobOptions::default());
    // As the clients for Python and JavaScript sign.
    let request = ["x-foo,X-Bar", "one,two"];
    let lines = ["x-foo:1\nX-Bar:a b\n", "\none:1\ntwo:2 3"];
    let sas = Delegated { request, lines, ..Delegated::by(&blobs) }.token();
    let target = |query: &str| format!("/con/b?{query}&{sas}");
    let headers = [("x-foo", "1"), ("x-bar", "a b")];
    blobs.get(&target("one=1&two=2%203"), &headers).is(200);
    let failed = "AuthenticationFailed";
    blobs.get(&target("one=1&two=2%203"), &headers[..1]).refused(403, failed);
    blobs.get(&target("one=1&two=2%203"), &[headers[0], ("x-bar", "c")]).refused(403, failed);
    blobs.get(&target("one=1"), &headers).refused(403, failed);
    blobs.get(&target("one=1&two=4"), &headers).refused(403, failed);
    // One value must not pass for two parameters.
    let merged = target("one=1%0Atwo:2%203").replace("srq=one,two", "srq=one");
    blobs.get(&merged, &headers).refused(403, failed);
    // The names alone are not what clients sign.
    let names = Delegated { request, lines: request, ..Delegated::by(&blobs) }.token();
    blobs.get(&format!("/con/b?one=1&two=2%203&{names}"), &headers).refused(403, failed);
    blobs.get(&format!("/con/b?{}", Delegated::by(&blobs).token()), &[]).is(200);
}

#[test]
fn a_delegation_key_ends_within_seven_days_from_now() {
    let blobs = signed(BlobOptions::default());
    ask_key(&blobs, 0, 7 * 24).is(200);
    ask_key(&blobs, 6 * 24, 24).is(200);
    ask_key(&blobs, -24, 8 * 24).refused(400, "InvalidXmlDocument");
    ask_key(&blobs, 7 * 24, 24).refused(400, "InvalidXmlDocument");
    ask_key(&blobs, 50 * 365 * 24, 24).refused(400, "InvalidXmlDocument");
    let sas = Delegated::by(&blobs).token();
    blobs.get(&format!("/con/b?{sas}"), &[]).is(200);
    blobs.clock.advance(Duration::from_hours(24));
    blobs.get(&format!("/con/b?{sas}"), &[]).refused(403, "AuthenticationFailed");
}
