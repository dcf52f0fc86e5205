//! What share operations answer, header by header and element by element.

use crate::rest::fixture::{Fixture, container_sas};

#[test]
fn list_shares_tells_all_that_get_share_properties_tells() {
    let fixture = Fixture::new();
    let create = [
        ("x-ms-enabled-protocols", "NFS"),
        ("x-ms-root-squash", "AllSquash"),
        ("x-ms-enable-snapshot-virtual-directory-access", "true"),
        ("x-ms-share-paid-bursting-enabled", "true"),
        ("x-ms-share-paid-bursting-max-iops", "5000"),
        ("x-ms-share-paid-bursting-max-bandwidth-mibps", "1000"),
        ("x-ms-share-provisioned-iops", "4000"),
        ("x-ms-share-provisioned-bandwidth-mibps", "200"),
    ];
    let made = fixture.put("/nfs?restype=share", &create).is(201);
    assert_eq!(made.header("x-ms-share-provisioned-iops"), "4000");
    assert_eq!(made.header("x-ms-share-provisioned-bandwidth-mibps"), "200");
    assert_eq!(made.header("x-ms-share-included-burst-iops"), "12000");
    assert_eq!(made.header("x-ms-share-max-burst-credits-for-iops"), "28800000");
    let got = fixture.get("/nfs?restype=share").is(200);
    let elements = [
        ("x-ms-enabled-protocols", "EnabledProtocols"),
        ("x-ms-root-squash", "RootSquash"),
        ("x-ms-enable-snapshot-virtual-directory-access", "EnableSnapshotVirtualDirectoryAccess"),
        ("x-ms-share-paid-bursting-enabled", "PaidBurstingEnabled"),
        ("x-ms-share-paid-bursting-max-iops", "PaidBurstingMaxIops"),
        ("x-ms-share-paid-bursting-max-bandwidth-mibps", "PaidBurstingMaxBandwidthMibps"),
        ("x-ms-share-provisioned-iops", "ProvisionedIops"),
        ("x-ms-share-provisioned-bandwidth-mibps", "ProvisionedBandwidthMiBps"),
        ("x-ms-share-included-burst-iops", "IncludedBurstIops"),
        ("x-ms-share-max-burst-credits-for-iops", "MaxBurstCreditsForIops"),
    ];
    let list = fixture.get("/?comp=list&prefix=nfs").is(200).text();
    for (header, element) in elements {
        let value = got.header(header);
        assert!(!value.is_empty(), "{header}");
        assert!(list.contains(&format!("<{element}>{value}</{element}>")), "{element}: {list}");
    }
    assert_eq!(got.header("x-ms-enabled-protocols"), "NFS");
    let set = [("x-ms-share-provisioned-iops", "5000")];
    let set = fixture.put("/nfs?restype=share&comp=properties", &set).is(200);
    assert_eq!(set.header("x-ms-share-provisioned-iops"), "5000");
    assert_eq!(set.header("x-ms-share-included-burst-iops"), "15000");
    let plain = fixture.get("/docs?restype=share").is(200);
    assert_eq!(plain.header("x-ms-share-provisioned-iops"), "");
    assert_eq!(plain.header("x-ms-enabled-protocols"), "SMB");
    let bad = [("x-ms-enabled-protocols", "AFP")];
    fixture.put("/bad?restype=share", &bad).refused(400, "InvalidHeaderValue");
}

#[test]
fn a_change_of_tier_shows_where_it_comes_from() {
    let fixture = Fixture::new();
    let shown = |fixture: &Fixture| {
        let got = fixture.get("/docs?restype=share").is(200);
        got.header("x-ms-access-tier-transition-state").to_owned()
    };
    assert_eq!(shown(&fixture), "");
    let cool = [("x-ms-access-tier", "Cool")];
    fixture.put("/docs?restype=share&comp=properties", &cool).is(200);
    assert_eq!(shown(&fixture), "pending-from-transactionOptimized");
    let list = fixture.get("/?comp=list").is(200).text();
    assert!(list.contains("<AccessTierTransitionState>pending-from-transactionOptimized<"));
}

#[test]
fn deleting_a_share_tells_its_usage_and_deleting_it_again_at_once_is_accepted() {
    let fixture = Fixture::new();
    fixture.upload("a", &[7; 1_000]);
    let got = fixture.delete("/docs?restype=share").is(202);
    assert_eq!(got.header("x-ms-file-share-usage-bytes"), "1000");
    fixture.delete("/docs?restype=share").is(202);
    fixture.get("/docs?restype=share").refused(404, "ShareNotFound");
    fixture.delete("/never?restype=share").refused(404, "ShareNotFound");
    // A new share of that name is another one: it is deleted, not taken for the old one.
    fixture.put("/docs?restype=share", &[]).is(201);
    fixture.delete("/docs?restype=share").is(202);
    let list = fixture.get("/?comp=list&include=deleted").is(200).text();
    assert_eq!(list.matches("<Deleted>true</Deleted>").count(), 2, "{list}");
}

#[test]
fn a_share_sas_reads_permissions_with_r_and_makes_them_with_w_and_d() {
    const KEY: &str = "x-ms-file-permission-key";
    let fixture = Fixture::signed(|_| {});
    let body = br#"{"permission":"O:SYG:SYD:(A;;FA;;;SY)"}"#;
    let target = |letters: &str| {
        let sas = container_sas("docs", letters);
        format!("/docs?restype=share&comp=filepermission&{sas}")
    };
    let make = |letters: &str| fixture.ask("PUT", &target(letters), &[], body);
    make("w").refused(403, "AuthorizationPermissionMismatch");
    make("d").refused(403, "AuthorizationPermissionMismatch");
    make("r").refused(403, "AuthorizationPermissionMismatch");
    let key = make("wd").is(201).header(KEY).to_owned();
    let read = |letters: &str| fixture.ask("GET", &target(letters), &[(KEY, &key)], b"");
    read("r").is(200);
    read("w").refused(403, "AuthorizationPermissionMismatch");
}

#[test]
fn the_handles_of_a_snapshot_that_does_not_exist_are_not_found() {
    let fixture = Fixture::new();
    fixture.upload("a", b"");
    let missing = "sharesnapshot=2001-01-01T00:00:00.0000000Z";
    for target in ["/docs/a?comp=listhandles", "/docs?comp=listhandles"] {
        fixture.get(&format!("{target}&{missing}")).refused(404, "ShareSnapshotNotFound");
    }
    let got = fixture.put("/docs?restype=share&comp=snapshot", &[]).is(201);
    let stamp = got.header("x-ms-snapshot").replace(':', "%3A");
    fixture.get(&format!("/docs/a?comp=listhandles&sharesnapshot={stamp}")).is(200);
    let absent = format!("/docs/b?comp=listhandles&sharesnapshot={stamp}");
    fixture.get(&absent).refused(404, "ResourceNotFound");
}

#[test]
fn a_snapshot_of_a_share_whose_data_is_gone_is_not_found() {
    let fixture = Fixture::new();
    fixture.upload("a", b"x");
    let away = fixture.on_disk("").with_file_name("away");
    std::fs::rename(fixture.on_disk(""), &away).unwrap();
    let target = "/docs?restype=share&comp=snapshot";
    fixture.put(target, &[]).refused(404, "ShareNotFound");
    std::fs::rename(&away, fixture.on_disk("")).unwrap();
    fixture.put(target, &[]).is(201);
}
