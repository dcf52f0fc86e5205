//! Shares: create, properties, metadata, policies, permissions, leases, delete, restore.

use crate::rest::fixture::Fixture;

#[test]
fn a_share_is_made_shown_set_deleted_and_restored() {
    let fixture = Fixture::new();
    let target = "/new?restype=share";
    let headers = [("x-ms-share-quota", "7"), ("x-ms-access-tier", "hot"), ("x-ms-meta-a", "1")];
    fixture.put(target, &headers).is(201);
    fixture.put(target, &[]).refused(409, "ShareAlreadyExists");
    for (name, code) in [
        ("New", "InvalidResourceName"),
        ("n--w", "InvalidResourceName"),
        ("ab", "OutOfRangeInput"),
        ("A", "OutOfRangeInput"),
        (&"a".repeat(64), "OutOfRangeInput"),
    ] {
        fixture.put(&format!("/{name}?restype=share"), &[]).refused(400, code);
        fixture.get(&format!("/{name}?restype=share")).refused(400, code);
    }
    let got = fixture.put("/s1?restype=share", &[]).text();
    assert!(got.contains("limits. [latchfs: 's1' has 2 letters, 3 to 63 are allowed]"), "{got}");
    let got = fixture.put("/docs/a%3Fb", &[("x-ms-type", "file"), ("x-ms-content-length", "0")]);
    let got = got.text();
    assert!(got.contains("[latchfs: 'a?b' holds the forbidden character '?']"), "{got}");
    let got = fixture.get(target).is(200);
    assert_eq!((got.header("x-ms-share-quota"), got.header("x-ms-access-tier")), ("7", "Hot"));
    assert_eq!((got.header("x-ms-meta-a"), got.header("x-ms-lease-state")), ("1", "available"));
    let set = [("x-ms-share-quota", "9"), ("x-ms-root-squash", "RootSquash")];
    let got = fixture.put("/new?restype=share&comp=properties", &set).is(200);
    assert_eq!(got.header("x-ms-share-quota"), "9");
    assert_eq!(fixture.head(target).is(200).header("x-ms-root-squash"), "RootSquash");
    let bad = [("x-ms-share-quota", "0")];
    fixture.put("/new?restype=share&comp=properties", &bad).refused(400, "InvalidHeaderValue");
    fixture.put("/new?restype=share&comp=metadata", &[("x-ms-meta-b", "2")]).is(200);
    let got = fixture.get("/new?restype=share&comp=metadata").is(200);
    assert!(got.header("x-ms-meta-b") == "2" && !got.headers.contains_key("x-ms-meta-a"));
    let stats = fixture.get("/new?restype=share&comp=stats").is(200).text();
    assert!(stats.contains("<ShareUsageBytes>"), "{stats}");
    fixture.delete(target).is(202);
    fixture.get(target).refused(404, "ShareNotFound");
    let list = fixture.get("/?comp=list&include=deleted").is(200).text();
    let version = list.split("<Version>").nth(1).unwrap().split('<').next().unwrap();
    let restore = [("x-ms-deleted-share-name", "new"), ("x-ms-deleted-share-version", version)];
    let got = fixture.put("/new?restype=share&comp=undelete", &restore).is(201);
    assert_eq!(got.header("x-ms-share-quota"), "9");
    fixture.get(target).is(200);
}

#[test]
fn access_policies_are_replaced_as_a_whole() {
    let fixture = Fixture::new();
    let target = "/docs?restype=share&comp=acl";
    let body = b"<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier>\
        <Id>p1</Id><AccessPolicy><Start>2026-01-01T00:00:00Z</Start><Permission>rw</Permission>\
        </AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    fixture.ask("PUT", target, &[], body).is(200);
    let got = fixture.get(target).is(200).text();
    assert!(got.contains("<Id>p1</Id>") && got.contains("<Permission>rw</Permission>"), "{got}");
    assert!(got.contains("<Start>2026-01-01T00:00:00.0000000Z</Start>"), "{got}");
    fixture.ask("PUT", target, &[], b"<SignedIdentifiers>").refused(400, "InvalidXmlDocument");
    let lettered = |letters: &str| {
        let body = String::from_utf8_lossy(body).replace(">rw<", &format!(">{letters}<"));
        fixture.ask("PUT", target, &[], body.as_bytes())
    };
    for letters in ["xyz", "raup", "R"] {
        lettered(letters).refused(400, "InvalidXmlDocument");
    }
    assert!(fixture.get(target).text().contains("<Permission>rw</Permission>"));
    lettered("rcwdl").is(200);
    fixture.put(target, &[]).is(200);
    assert!(!fixture.get(target).text().contains("p1"));
}

#[test]
fn a_permission_has_a_key_that_files_can_be_given() {
    let fixture = Fixture::new();
    let target = "/docs?restype=share&comp=filepermission";
    let body = br#"{"permission":"O:SYG:SYD:(A;;FA;;;SY)"}"#;
    let key =
        fixture.ask("PUT", target, &[], body).is(201).header("x-ms-file-permission-key").to_owned();
    let asked = [("x-ms-file-permission-key", key.as_str())];
    let got = fixture.ask("GET", target, &asked, b"").is(200);
    assert!(got.text().contains("O:SYG:SYD:(A;;FA;;;SY)"), "{}", got.text());
    assert_eq!(got.header("content-type"), "application/json");
    let create = [("x-ms-type", "file"), ("x-ms-content-length", "0"), asked[0]];
    assert_eq!(fixture.put("/docs/a", &create).is(201).header("x-ms-file-permission-key"), key);
    let sddl = ("x-ms-file-permission", "O:SYG:SYD:(A;;FA;;;SY)");
    let create = [create[0], create[1], sddl];
    assert_eq!(fixture.put("/docs/b", &create).is(201).header("x-ms-file-permission-key"), key);
    let both = [create[0], create[1], sddl, asked[0]];
    fixture.put("/docs/c", &both).refused(400, "InvalidHeaderValue");
    fixture.ask("PUT", target, &[], br#"{"permission":"x"}"#).refused(400, "FileInvalidPermission");
    fixture.ask("PUT", target, &[], b"{}").refused(400, "InvalidInput");
    let unknown = [("x-ms-file-permission-key", "1*2")];
    fixture.ask("GET", target, &unknown, b"").refused(400, "FileInvalidPermissionKey");
    fixture.get(target).refused(400, "MissingRequiredHeader");
}

#[test]
fn a_file_or_directory_that_was_given_no_permission_has_the_key_of_one_too() {
    const KEY: &str = "x-ms-file-permission-key";
    let fixture = Fixture::new();
    fixture.upload("a", b"");
    let key = fixture.head("/docs/a").is(200).header(KEY).to_owned();
    let made = fixture.put("/docs/d?restype=directory", &[]).is(201);
    assert_eq!(made.header(KEY), key);
    let list = fixture.get("/docs?restype=directory&comp=list&include=PermissionKey").is(200);
    let shown = format!("<PermissionKey>{key}</PermissionKey>");
    assert_eq!(list.text().matches(&shown).count(), 2, "{}", list.text());
    let target = "/docs?restype=share&comp=filepermission";
    let got = fixture.ask("GET", target, &[(KEY, &key)], b"").is(200);
    let document: serde_json::Value = serde_json::from_str(&got.text()).unwrap();
    // It is one as any other: it can be set, and kept again under the same key.
    let sddl = document["permission"].as_str().unwrap();
    let body = serde_json::json!({ "permission": sddl }).to_string();
    let kept = fixture.ask("PUT", target, &[], body.as_bytes()).is(201);
    assert_eq!(kept.header(KEY), key);
    let set = fixture.put("/docs/a?comp=properties", &[(KEY, &key)]).is(200);
    assert_eq!(set.header(KEY), key);
}
