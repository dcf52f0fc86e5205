//! Who may read and write: B56, B150, B165 to B167.

use std::time::Duration;

use latchfs::blob::service::BlobOptions;
use latchfs::clock::TimeSource as _;
use latchfs::http::auth::{Admission, Authorizer, Credential, Credentials, OauthMode};

use super::fixture::{ACCOUNT, Blobs};
use crate::service::account_token;

const VERIFY: &str = "CannotVerifyCopySource";
const ACL: &str = "/con?restype=container&comp=acl";

pub fn sas(permissions: &str) -> String {
    account_token("b", "sco", permissions)
}

/// A service SAS that reads one blob, `CONTAINER/NAME`.
fn blob_sas(resource: &str) -> String {
    state_sas(resource, "b", "", [""; 5])
}

/// A service SAS that reads a resource of a kind (`sr`), at a moment if it is an older state, with
/// content headers of the answers (`rscc`, `rscd`, `rsce`, `rscl`, `rsct`).
pub fn state_sas(resource: &str, kind: &str, moment: &str, overrides: [&str; 5]) -> String {
    let (expiry, version) = ("2099-01-01T00:00:00Z", "2024-11-04");
    let resource = format!("/blob/{ACCOUNT}/{resource}");
    let fields = ["r", "", expiry, &resource, "", "", "", version, kind, moment, ""];
    let text = [&fields[..], &overrides].concat().join("\n");
    let escaped = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    let names = ["rscc", "rscd", "rsce", "rscl", "rsct"];
    let overrides = names.into_iter().zip(overrides).filter(|(_, value)| !value.is_empty());
    let overrides = overrides.map(|(name, value)| format!("&{name}={}", escaped(value)));
    let signature = escaped(&Credential::development().key().sign(&text));
    let overrides = overrides.collect::<String>();
    format!("sp=r&se={expiry}&sv={version}&sr={kind}{overrides}&sig={signature}")
}

pub fn signed(options: BlobOptions) -> Blobs {
    let accounts = Credentials::new([Credential::development()]).unwrap();
    let authorizer = Authorizer { accounts, oauth: OauthMode::Basic };
    let blobs = Blobs::empty(options, Admission::Signed(authorizer));
    let all = sas("racwdlxyltfi");
    blobs.put(&format!("/con?restype=container&{all}"), &[]).is(201);
    let target = format!("/con/b?{all}");
    blobs.ask("PUT", &target, &[("x-ms-blob-type", "BlockBlob")], b"public").is(201);
    blobs
}

pub fn open_to(blobs: &Blobs, level: Option<&str>) {
    let headers: Vec<_> =
        level.map(|level| ("x-ms-blob-public-access", level)).into_iter().collect();
    blobs.put(&format!("{ACL}&{}", sas("racwdl")), &headers).is(200);
}

#[test]
fn b165_anonymous_requests_read_what_is_public() {
    let blobs = signed(BlobOptions::default());
    let list = "/con?restype=container&comp=list";
    blobs.get("/con/b", &[]).is(401);
    blobs.get(list, &[]).is(401);
    open_to(&blobs, Some("blob"));
    assert_eq!(blobs.get("/con/b", &[]).is(200).text(), "public");
    blobs.get(list, &[]).is(401);
    blobs.delete("/con/b", &[]).is(401);
    open_to(&blobs, Some("container"));
    blobs.get(list, &[]).is(200);
    blobs.get("/con/b?sig=bad&sv=2024-11-04&sr=b&se=2099-01-01T00:00:00Z&sp=r", &[]).is(403);
    open_to(&blobs, None);
    blobs.get("/con/b", &[]).is(401);
}

/// The text of Set Container ACL with one policy.
fn policy(letters: &str) -> String {
    format!(
        "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy>\
         <Expiry>2099-01-01T00:00:00Z</Expiry><Permission>{letters}</Permission></AccessPolicy>\
         </SignedIdentifier></SignedIdentifiers>"
    )
}

/// A SAS of the blob `b` by the stored policy `p`.
fn by_policy() -> String {
    let version = "2020-12-06";
    let resource = format!("/blob/{ACCOUNT}/con/b");
    let text = format!("\n\n\n{resource}\np\n\n\n{version}\nb\n\n\n\n\n\n\n");
    let signature = Credential::development().key().sign(&text);
    format!("sv={version}&sr=b&si=p&sig={}", encoded(&signature))
}

/// Base64 in a query.
pub fn encoded(text: &str) -> String {
    text.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

fn set_policy(blobs: &Blobs, text: &str) {
    blobs.ask("PUT", &format!("{ACL}&{}", sas("racwdl")), &[], text.as_bytes()).is(200);
}

#[test]
fn b056_a_policy_is_in_force_at_once_or_after_the_delay() {
    let blobs = signed(BlobOptions::default());
    let target = format!("/con/b?{}", by_policy());
    blobs.get(&target, &[]).refused(403, "AuthenticationFailed");
    set_policy(&blobs, &policy("r"));
    blobs.get(&target, &[]).is(200);

    let acl_delay = Duration::from_secs(2);
    let blobs = signed(BlobOptions { acl_delay, ..BlobOptions::default() });
    set_policy(&blobs, &policy("r"));
    let shown = blobs.get(&format!("{ACL}&{}", sas("r")), &[]).is(200).text();
    assert!(shown.contains("<Id>p</Id>"), "{shown}");
    blobs.get(&target, &[]).is(403);
    blobs.pass(2);
    blobs.get(&target, &[]).is(200);
    open_to(&blobs, Some("blob"));
    blobs.get("/con/b", &[]).is(401);
    blobs.pass(2);
    blobs.get("/con/b", &[]).is(200);
}

#[test]
fn b150_put_blob_from_url_has_conditions_on_its_source_and_needs_a_right_to_it() {
    let blobs = signed(BlobOptions::default());
    let all = sas("racwdlxyltfi");
    let head = blobs.head(&format!("/con/b?{all}"), &[]).is(200);
    let (etag, date) = (head.header("etag").to_owned(), head.header("last-modified").to_owned());
    let put = |source: &str, headers: &[(&str, &str)]| {
        let mut sent = vec![("x-ms-copy-source", source), ("x-ms-blob-type", "BlockBlob")];
        sent.extend(headers);
        blobs.put(&format!("/con/to?{all}"), &sent)
    };
    let source = format!("{}?{all}", blobs.url("b"));
    put(&source, &[("x-ms-source-if-match", "\"0x1\"")]).refused(412, "SourceConditionNotMet");
    let unchanged = put(&source, &[("x-ms-source-if-modified-since", &date)]).is(304);
    assert_eq!(unchanged.code(), VERIFY);
    let refused = put(&blobs.url("b"), &[]).refused(401, VERIFY);
    assert_eq!(refused.header("x-ms-copy-source-status-code"), "401");
    put(&format!("{}?{}", blobs.url("b"), sas("w")), &[]).refused(403, VERIFY);
    let refused = put(&format!("{}?{all}", blobs.url("none")), &[]).refused(404, VERIFY);
    assert_eq!(refused.header("x-ms-copy-source-status-code"), "404");
    assert_eq!(refused.header("x-ms-copy-source-error-code"), "BlobNotFound");
    let missing = blobs.url("none").replace("/con/", "/none/");
    let refused = put(&format!("{missing}?{all}"), &[]).refused(404, VERIFY);
    assert_eq!(refused.header("x-ms-copy-source-error-code"), "ContainerNotFound");
    put(&source, &[("x-ms-source-if-match", &etag)]).is(201);
    assert_eq!(blobs.get(&format!("/con/to?{all}"), &[]).is(200).text(), "public");
}

#[test]
fn b166_letters_of_a_sas_and_policies_that_are_revoked() {
    let blobs = signed(BlobOptions::default());
    let with = |letters: &str, comp: &str| format!("/con/b?{}{comp}", sas(letters));
    let mismatch = "AuthorizationPermissionMismatch";
    blobs.get(&with("r", ""), &[]).is(200);
    blobs.get(&with("w", ""), &[]).refused(403, mismatch);
    let block = [("x-ms-blob-type", "BlockBlob")];
    let created = blobs.ask("PUT", &with("c", ""), &block, b"x");
    created.refused(403, "UnauthorizedBlobOverwrite");
    blobs.ask("PUT", &format!("/con/new?{}", sas("c")), &block, b"x").is(201);
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")];
    blobs.put(&with("d", "&comp=lease"), &acquire).refused(403, mismatch);
    blobs.put(&with("w", "&comp=lease"), &acquire).is(201);
    blobs.put(&with("d", "&comp=lease"), &[("x-ms-lease-action", "break")]).is(202);
    blobs.delete(&with("x", ""), &[]).refused(403, mismatch);
    let tags = [("x-ms-if-tags", "\"k\" <> 'v'")];
    blobs.get(&with("r", ""), &tags).refused(403, mismatch);
    blobs.get(&with("rt", ""), &tags).refused(412, "ConditionNotMet");
    set_policy(&blobs, &policy("r"));
    let target = format!("/con/b?{}", by_policy());
    assert_eq!(blobs.get(&target, &[]).is(200).text(), "public");
    blobs.delete(&target, &[]).refused(403, mismatch);
    set_policy(&blobs, "<SignedIdentifiers/>");
    blobs.get(&target, &[]).refused(403, "AuthenticationFailed");
}

#[test]
fn b167_a_sas_of_a_user_delegation_key_reads_what_it_names() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let blobs = signed(BlobOptions::default());
    let claims = serde_json::json!({
        "iss": "https://sts.windows.net/00000000-0000-0000-0000-000000000001/",
        "aud": "https://storage.azure.com",
        "nbf": 0,
        "iat": 0,
        "exp": 4_070_908_800_u64,
        "oid": "somebody",
        "tid": "somewhere",
    });
    let bearer =
        format!("Bearer eyJhbGciOiJub25lIn0.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let day = Duration::from_hours(24);
    let [start, expiry] = [blobs.clock.now(), blobs.clock.now().after(day)]
        .map(|moment| latchfs::rules::time::iso(moment)[..19].to_owned() + "Z");
    let info = format!("<KeyInfo><Start>{start}</Start><Expiry>{expiry}</Expiry></KeyInfo>");
    let target = "/?restype=service&comp=userdelegationkey";
    let headers = [("authorization", bearer.as_str())];
    let key = blobs.ask("POST", target, &headers, info.as_bytes()).is(200).text();
    let of = |name: &str| {
        let rest = key.split(&format!("<{name}>")).nth(1).unwrap_or_default();
        rest.split('<').next().unwrap_or_default().to_owned()
    };
    let named = ["SignedOid", "SignedTid", "SignedStart", "SignedExpiry"].map(of);
    let (service, version) = (of("SignedService"), of("SignedVersion"));
    assert_eq!((service.as_str(), named[0].as_str()), ("b", "somebody"), "{key}");
    let signed = |path: &str| {
        let [oid, tid, from, until] = &named;
        let text = format!(
            "r\n\n{until}\n/blob/{ACCOUNT}/con/{path}\n{oid}\n{tid}\n{from}\n{until}\n\
             {service}\n{version}\n\n\n\n\n\n2020-12-06\nb\n\n\n\n\n\n\n"
        );
        let user: Credential = format!("somebody:{}", of("Value")).parse().unwrap();
        let signature = user.key().sign(&text);
        format!(
            "sv=2020-12-06&sr=b&sp=r&se={until}&skoid={oid}&sktid={tid}&skt={from}&ske={until}\
             &sks={service}&skv={version}&sig={}",
            encoded(&signature)
        )
    };
    assert_eq!(blobs.get(&format!("/con/b?{}", signed("b")), &[]).is(200).text(), "public");
    blobs.delete(&format!("/con/b?{}", signed("b")), &[]).is(403);
    blobs.get(&format!("/con/b?{}", signed("other")), &[]).refused(403, "AuthenticationFailed");
    blobs.ask("POST", target, &[], info.as_bytes()).is(401);
}

#[test]
fn a_sas_that_may_create_never_overwrites() {
    let blobs = signed(BlobOptions::default());
    let (create, write, all) = (sas("c"), sas("w"), sas("racwdl"));
    let target = |name: &str, token: &str| format!("/con/{name}?{token}");
    let block = [("x-ms-blob-type", "BlockBlob")];
    let refused = "UnauthorizedBlobOverwrite";
    let put = |name: &str, token: &str| blobs.ask("PUT", &target(name, token), &block, b"new");
    put("b", &create).refused(403, refused);
    blobs.put(&target("b", &create), &[("x-ms-blob-type", "AppendBlob")]).refused(403, refused);
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    blobs.put(&target("b", &create), &page).refused(403, refused);
    let source = format!("{}?{all}", blobs.url("b"));
    for more in [("x-ms-requires-sync", "false"), ("x-ms-requires-sync", "true"), block[0]] {
        let headers = [("x-ms-copy-source", &*source), more];
        blobs.put(&target("b", &create), &headers).refused(403, refused);
    }
    let commit = |token: &str| {
        let list = b"<BlockList></BlockList>";
        blobs.ask("PUT", &format!("{}&comp=blocklist", target("b", token)), &[], list)
    };
    commit(&create).refused(403, refused);
    assert_eq!(blobs.get(&target("b", &all), &[]).is(200).text(), "public");
    let stage = |name: &str, more: &[(&str, &str)], body: &[u8]| {
        let target = format!("{}&comp=block&blockid=AAAA", target(name, &create));
        blobs.ask("PUT", &target, more, body)
    };
    stage("b", &[], b"block").refused(403, refused);
    stage("b", &[("x-ms-copy-source", &*source)], b"").refused(403, refused);
    let blocks = format!("{}&comp=blocklist&blocklisttype=all", target("b", &all));
    assert!(!blobs.get(&blocks, &[]).is(200).text().contains("AAAA"));
    stage("staged", &[], b"block").is(201);
    stage("staged", &[], b"again").is(201);
    blobs.put(&format!("{}&comp=snapshot", target("b", &create)), &[]).is(201);
    put("new", &create).is(201);
    put("new", &create).refused(403, refused);
    put("b", &write).is(201);
}

/// A path of one segment is a blob of the root container, for signatures and public access too.
#[test]
fn the_root_container_is_meant_by_a_path_of_one_segment() {
    let blobs = signed(BlobOptions::default());
    let all = sas("racwdl");
    blobs.put(&format!("/$root?restype=container&{all}"), &[]).is(201);
    let block = [("x-ms-blob-type", "BlockBlob")];
    blobs.ask("PUT", &format!("/con?{all}"), &block, b"in the root").is(201);
    // The container `con` is public, the root container is not.
    open_to(&blobs, Some("blob"));
    blobs.get("/con", &[]).is(401);
    blobs.get("/con/b", &[]).is(200);
    let token = blob_sas("$root/con");
    assert_eq!(blobs.get(&format!("/con?{token}"), &[]).is(200).text(), "in the root");
    assert_eq!(blobs.get(&format!("/$root/con?{token}"), &[]).is(200).text(), "in the root");
    blobs.get(&format!("/con/b?{token}"), &[]).is(403);
    blobs
        .put(
            &format!("/$root?restype=container&comp=acl&{all}"),
            &[("x-ms-blob-public-access", "blob")],
        )
        .is(200);
    assert_eq!(blobs.get("/con", &[]).is(200).text(), "in the root");
}

/// Slashes at the ends of a name belong to it: a SAS for `b` does not open `b/`.
#[test]
fn a_sas_opens_the_name_it_was_made_for() {
    let blobs = signed(BlobOptions::default());
    let block = [("x-ms-blob-type", "BlockBlob")];
    blobs.ask("PUT", &format!("/con/b/?{}", sas("racwdl")), &block, b"other").is(201);
    let of_blob = |name: &str| blob_sas(&format!("con/{name}"));
    assert_eq!(blobs.get(&format!("/con/b?{}", of_blob("b")), &[]).is(200).text(), "public");
    blobs.get(&format!("/con/b/?{}", of_blob("b")), &[]).is(403);
    assert_eq!(blobs.get(&format!("/con/b/?{}", of_blob("b/")), &[]).is(200).text(), "other");
    blobs.get(&format!("/con/b?{}", of_blob("b/")), &[]).is(403);
}

#[test]
fn a_write_that_sets_tags_takes_the_letter_of_tags() {
    let blobs = signed(BlobOptions::default());
    let source = format!("{}?{}", blobs.url("b"), sas("r"));
    let tags = ("x-ms-tags", "k=v");
    let block = ("x-ms-blob-type", "BlockBlob");
    let from = ("x-ms-copy-source", source.as_str());
    let list = b"<BlockList></BlockList>";
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512"), tags];
    let writes = [
        ("/con/put?", vec![block, tags], &b"x"[..]),
        ("/con/log?", vec![("x-ms-blob-type", "AppendBlob"), tags], b""),
        ("/con/page?", page.to_vec(), b""),
        ("/con/list?comp=blocklist&", vec![tags], list),
        ("/con/copy?", vec![from, tags], b""),
        ("/con/sync?", vec![from, tags, ("x-ms-requires-sync", "true")], b""),
        ("/con/url?", vec![from, tags, block], b""),
    ];
    for (target, headers, body) in writes {
        let put =
            |letters: &str| blobs.ask("PUT", &format!("{target}{}", sas(letters)), &headers, body);
        put("cw").refused(403, "AuthorizationPermissionMismatch");
        let got = put("cwt");
        assert!(got.status < 300, "{target}: {}", got.text());
    }
}

/// A service SAS of the container `con`.
pub fn container_sas(letters: &str) -> String {
    scoped_sas(letters, "", "")
}

/// The same for some protocols, and for an encryption scope.
pub fn scoped_sas(letters: &str, protocols: &str, scope: &str) -> String {
    let (expiry, version) = ("2099-01-01T00:00:00Z", "2024-11-04");
    let resource = format!("/blob/{ACCOUNT}/con");
    let fields = [
        letters, "", expiry, &resource, "", "", protocols, version, "c", "", scope, "", "", "", "",
        "",
    ];
    let signature = encoded(&Credential::development().key().sign(&fields.join("\n")));
    format!(
        "sp={letters}&se={expiry}&sv={version}&sr=c&spr={protocols}&ses={scope}&sig={signature}"
    )
}

#[test]
fn no_service_sas_reaches_a_container_as_a_whole() {
    let blobs = signed(BlobOptions::default());
    let sas = container_sas("racwdl");
    let container = format!("/con?restype=container&{sas}");
    blobs.get(&format!("{container}&comp=list"), &[]).is(200);
    let beyond = "AuthorizationFailure";
    blobs.get(&container, &[]).refused(403, beyond);
    blobs.put(&container, &[]).refused(403, beyond);
    blobs.delete(&container, &[]).refused(403, beyond);
    blobs.get(&format!("{container}&comp=acl"), &[]).refused(403, beyond);
    blobs.get(&format!("/?comp=list&{sas}"), &[]).is(403);
}

#[test]
fn policies_have_ids_that_differ() {
    let blobs = Blobs::new();
    let set = |ids: &[&str]| {
        let policies: Vec<_> = ids
            .iter()
            .map(|id| format!("<SignedIdentifier>{id}<AccessPolicy /></SignedIdentifier>"))
            .collect();
        let text = format!("<SignedIdentifiers>{}</SignedIdentifiers>", policies.concat());
        blobs.ask("PUT", ACL, &[], text.as_bytes())
    };
    set(&["<Id>a</Id>", "<Id>b</Id>"]).is(200);
    for bad in [&[""][..], &["<Id></Id>"], &["<Id>c</Id>", "<Id>c</Id>"]] {
        set(bad).is(400);
    }
    let shown = blobs.get(ACL, &[]).is(200).text();
    assert!(shown.contains("<Id>a</Id>") && shown.contains("<Id>b</Id>"), "{shown}");
}

/// A SAS for one snapshot or version says which by the URL that it is used with: without one it
/// reads nothing, and not the blob.
#[test]
fn a_sas_of_a_snapshot_or_version_does_not_read_the_blob() {
    let blobs = signed(BlobOptions { versioning: true, ..BlobOptions::default() });
    let all = sas("racwdl");
    let taken = blobs.put(&format!("/con/b?comp=snapshot&{all}"), &[]).is(201);
    let (snapshot, version) = (taken.header("x-ms-snapshot"), taken.header("x-ms-version-id"));
    for (kind, name, moment) in [("bs", "snapshot", snapshot), ("bv", "versionid", version)] {
        let unnamed = state_sas("con/b", kind, "", [""; 5]);
        let named = state_sas("con/b", kind, moment, [""; 5]);
        for query in [unnamed.clone(), format!("{unnamed}&{name}="), named.clone()] {
            let got = blobs.get(&format!("/con/b?{query}"), &[]);
            let got = got.refused(403, "AuthenticationFailed");
            assert!(got.text().contains(&format!("'{name}'")), "{}", got.text());
            blobs.head(&format!("/con/b?{query}"), &[]).is(403);
        }
        let read = format!("/con/b?{name}={moment}&{named}");
        assert_eq!(blobs.get(&read, &[]).is(200).text(), "public", "{kind}");
        // The source of a copy is no way around.
        let source = format!("{}?{unnamed}", blobs.url("b"));
        let copy = [("x-ms-copy-source", &*source), ("x-ms-requires-sync", "true")];
        blobs.put(&format!("/con/to?{all}"), &copy).refused(403, VERIFY);
    }
}
