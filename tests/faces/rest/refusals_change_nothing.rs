//! A refused request leaves nothing behind, and a SAS that only creates never overwrites.

use std::path::PathBuf;

use crate::rest::fixture::{Fixture, sas};

const SDDL: (&str, &str) = ("x-ms-file-permission", "O:SYG:SYD:(A;;FA;;;SY)");
const CREATE: [(&str, &str); 2] = [("x-ms-type", "file"), ("x-ms-content-length", "3")];

/// The files below a folder.
fn files(folder: PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_refused_request_leaves_no_permission_behind() {
    let fixture = Fixture::new();
    fixture.upload("open", b"abc");
    fixture.put("/docs/d?restype=directory", &[]).is(201);
    let _open = fixture.open("open", "rw", "none");
    let root = fixture.on_disk("").parent().unwrap().to_owned();
    let before = files(root.clone());
    let url = fixture.url("open");
    let with = |more: &[(&'static str, &str)]| {
        let headers = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let sddl = (SDDL.0, SDDL.1.to_owned());
        headers.chain([sddl]).collect::<Vec<_>>()
    };
    let requests = [
        ("/docs/open", with(&CREATE)),
        ("/docs/none/new", with(&CREATE)),
        ("/docs/open?comp=properties", with(&[])),
        ("/docs/none?comp=properties", with(&[])),
        ("/docs/d?restype=directory", with(&[])),
        ("/docs/none?restype=directory&comp=properties", with(&[])),
        ("/docs/to?comp=rename", with(&[("x-ms-file-rename-source", &url)])),
        ("/docs/to", with(&[("x-ms-copy-source", &url)])),
        ("/docs/new", with(&[("x-ms-type", "file"), ("x-ms-content-length", "-1")])),
        ("/docs/new", with(&[CREATE[0], CREATE[1], ("x-ms-file-creation-time", "soon")])),
    ];
    for (target, headers) in requests {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
        let got = fixture.put(target, &headers);
        assert!((400..500).contains(&got.status), "{target}: {got:?}");
        assert_eq!(files(root.clone()), before, "{target}");
    }
    let made = fixture.put("/docs/new", &[CREATE[0], CREATE[1], SDDL]).is(201);
    let key = made.header("x-ms-file-permission-key").to_owned();
    fixture.put("/docs/open?comp=properties", &[SDDL]).refused(409, "SharingViolation");
    let target = "/docs?restype=share&comp=filepermission";
    fixture.ask("GET", target, &[("x-ms-file-permission-key", &key)], b"").is(200);
}

#[test]
fn a_sas_that_only_creates_never_overwrites() {
    let fixture = Fixture::signed(|_| {});
    let at = |name: &str, letters: &str| format!("/docs/{name}?{}", sas(letters, false));
    let source = format!("{}?{}", fixture.url("source"), sas("r", false));
    let copy = [("x-ms-copy-source", &*source)];
    fixture.put(&at("source", "c"), &CREATE).is(201);
    fixture.put(&at("a", "c"), &CREATE).is(201);
    fixture.put(&at("b", "c"), &copy).is(202);
    let before =
        ["a", "b"].map(|name| fixture.head(&at(name, "r")).is(200).header("etag").to_owned());
    for name in ["a", "b"] {
        fixture.put(&at(name, "c"), &CREATE).refused(403, "AuthorizationPermissionMismatch");
        let got = fixture.put(&at(name, "rcdl"), &copy);
        got.refused(403, "AuthorizationPermissionMismatch");
    }
    let after =
        ["a", "b"].map(|name| fixture.head(&at(name, "r")).is(200).header("etag").to_owned());
    assert_eq!(after, before);
    fixture.put(&at("a", "w"), &CREATE).is(201);
    fixture.put(&at("b", "cw"), &copy).is(202);
}

#[test]
fn of_many_who_only_create_one_name_one_does() {
    let fixture = Fixture::signed(|_| {});
    let target = format!("/docs/a?{}", sas("c", false));
    let made = std::thread::scope(|scope| {
        let tries: Vec<_> =
            (0..8).map(|_| scope.spawn(|| fixture.put(&target, &CREATE).status)).collect();
        tries.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(made.iter().filter(|status| **status == 201).count(), 1, "{made:?}");
    assert_eq!(made.iter().filter(|status| **status == 403).count(), 7, "{made:?}");
}
