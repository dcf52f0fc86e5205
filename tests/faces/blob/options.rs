//! The options of `latchfs serve` about blobs, with the program itself.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use super::access::sas;
use crate::common::http::{self, Got};
use crate::common::served::{LATCHFS, Served};

const BARE: [&str; 6] = ["--no-mount", "--no-auth", "--queue", "off", "--table", "off"];

fn serve(args: &[&str]) -> Served {
    Served::start(&[&BARE[..], &["--blob", "127.0.0.1:0"], args].concat())
}

fn blob_addr(served: &Served) -> SocketAddr {
    let text = fs::read_to_string(served.ready_file()).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&text).unwrap();
    let url = ready["endpoints"]["blob"].as_str().unwrap_or_else(|| panic!("{ready}"));
    url.split('/').nth(2).unwrap().parse().unwrap()
}

fn ask(served: &Served, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Got {
    http::ask(blob_addr(served), method, target, headers, body.as_bytes())
}

fn upload(served: &Served, target: &str, body: &str) -> Got {
    ask(served, "PUT", target, &[("x-ms-blob-type", "BlockBlob")], body).is(201)
}

fn container(served: &Served) {
    ask(served, "PUT", "/con?restype=container", &[], "").is(201);
}

#[test]
fn blob_versioning_keeps_what_is_overwritten() {
    let served = serve(&["--blob-versioning"]);
    container(&served);
    let first = upload(&served, "/con/b", "one").header("x-ms-version-id").to_owned();
    upload(&served, "/con/b", "two");
    let old = ask(&served, "GET", &format!("/con/b?versionid={first}"), &[], "").is(200);
    assert_eq!(old.text(), "one");
}

#[test]
fn copy_delay_keeps_copies_pending() {
    let served = serve(&["--copy-delay", "3600"]);
    container(&served);
    upload(&served, "/con/b", "one");
    let url = format!("http://{}/{}/con/b", blob_addr(&served), http::ACCOUNT);
    let copied = ask(&served, "PUT", "/con/to", &[("x-ms-copy-source", &url)], "").is(202);
    assert_eq!(copied.header("x-ms-copy-status"), "pending");
    let target = format!("/con/to?comp=copy&copyid={}", copied.header("x-ms-copy-id"));
    ask(&served, "PUT", &target, &[("x-ms-copy-action", "abort")], "").is(204);
}

#[test]
fn acl_delay_lets_public_access_take_effect_later() {
    let signed = ["--no-mount", "--queue", "off", "--table", "off", "--blob", "127.0.0.1:0"];
    for (delay, status) in [("3600", 401), ("0", 200)] {
        let served = Served::start(&[&signed[..], &["--acl-delay", delay]].concat());
        let all = sas("racwdl");
        ask(&served, "PUT", &format!("/con?restype=container&{all}"), &[], "").is(201);
        upload(&served, &format!("/con/b?{all}"), "one");
        let acl = format!("/con?restype=container&comp=acl&{all}");
        ask(&served, "PUT", &acl, &[("x-ms-blob-public-access", "blob")], "").is(200);
        let shown = ask(&served, "GET", &acl, &[], "").is(200);
        assert_eq!(shown.header("x-ms-blob-public-access"), "blob");
        ask(&served, "GET", "/con/b", &[], "").is(status);
    }
}

#[test]
fn blobs_in_memory_go_with_the_server() {
    let served = serve(&["--in-memory"]);
    container(&served);
    upload(&served, "/con/b", "one");
    assert_eq!(ask(&served, "GET", "/con/b", &[], "").is(200).text(), "one");
    assert!(!served.folder().join("latchfs-data").exists());
}

#[test]
fn reset_removes_blobs_and_sync_always_serves_them() {
    let mut served = serve(&["--sync", "always"]);
    container(&served);
    upload(&served, "/con/small", "one");
    upload(&served, "/con/large", &"x".repeat(2 << 20));
    let args = [&BARE[..], &["--blob", "127.0.0.1:0"]].concat();
    served.crash_and_restart(&args);
    assert_eq!(ask(&served, "GET", "/con/small", &[], "").is(200).text(), "one");
    assert_eq!(ask(&served, "GET", "/con/large", &[], "").is(200).body.len(), 2 << 20);
    served.crash_and_restart(&[&args[..], &["--reset"]].concat());
    ask(&served, "GET", "/con/small", &[], "").refused(404, "ContainerNotFound");
}

#[test]
fn delays_that_are_no_seconds_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for option in ["--copy-delay", "--acl-delay"] {
        let mut command = Command::new(LATCHFS);
        let refused = command.current_dir(folder.path()).args(["serve", option, "soon"]).output();
        assert!(!refused.unwrap().status.success());
    }
}

#[test]
fn a_seed_fills_an_empty_container_once() {
    let source = tempfile::tempdir().unwrap();
    fs::create_dir_all(source.path().join("a/b")).unwrap();
    fs::write(source.path().join("top.txt"), "top").unwrap();
    fs::write(source.path().join("a/b/deep.bin"), vec![7; 3 << 20]).unwrap();
    fs::write(source.path().join("win\\name"), "slash").unwrap();
    std::os::unix::fs::symlink("top.txt", source.path().join("link")).unwrap();
    let seed = format!("blob:photos={}", source.path().display());
    let mut served = serve(&["--seed", &seed]);
    assert_eq!(ask(&served, "GET", "/photos/top.txt", &[], "").is(200).text(), "top");
    assert_eq!(ask(&served, "GET", "/photos/win/name", &[], "").is(200).text(), "slash");
    let deep = ask(&served, "GET", "/photos/a/b/deep.bin", &[], "").is(200);
    assert_eq!(deep.body, vec![7; 3 << 20]);
    assert_ne!(deep.header("content-md5"), "");
    ask(&served, "GET", "/photos/link", &[], "").is(404);
    let listed = ask(&served, "GET", "/?comp=list", &[], "").is(200).text();
    assert_eq!(listed.matches("<Name>").count(), 1, "{listed}");
    ask(&served, "DELETE", "/photos/top.txt", &[], "").is(202);
    let args = [&BARE[..], &["--blob", "127.0.0.1:0", "--seed", &seed]].concat();
    served.crash_and_restart(&args);
    ask(&served, "GET", "/photos/top.txt", &[], "").is(404);
    served.crash_and_restart(&[&args[..], &["--reset"]].concat());
    assert_eq!(ask(&served, "GET", "/photos/top.txt", &[], "").is(200).text(), "top");
}

#[test]
fn a_seed_that_cannot_be_copied_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (seed, why) in [("blob:photos=missing", "not a directory"), ("blob:No=.", "that name")] {
        let args = ["serve", "--no-mount", "--file", "127.0.0.1:0", "--seed", seed];
        let refused = Command::new(LATCHFS).current_dir(folder.path()).args(args).output();
        let refused = refused.unwrap();
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && told.contains(why), "{told}");
    }
}
