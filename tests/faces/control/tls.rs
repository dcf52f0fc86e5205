//! `--tls`, `--oauth` and `--copy-sources`: what a start makes, keeps, tells and refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use latchfs::http::tls::Authority;
use serde_json::Value;

use crate::common::http;

use super::fixture::{Folder, Server, error_text, wait_for};

const SHARES: &str = "/devstoreaccount1?comp=list";

fn told(folder: &Folder) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("ready")).unwrap()).unwrap()
}

/// The start screen, as soon as all of it is there.
fn screen(server: &Server) -> String {
    wait_for("the start screen", || Some(server.log()).filter(|log| log.contains("Ctrl-C")))
}

#[test]
fn an_authority_of_its_own_is_kept_for_the_next_start_with_its_key_for_the_owner_alone() {
    let folder = Folder::new();
    let serve = || folder.start(&["serve", "--no-mount", "--tls", "self", "--oauth", "basic"]);
    let mut server = serve();
    let ready = told(&folder);
    assert!(ready["endpoint"].as_str().unwrap().starts_with("https://127.0.0.1:"), "{ready}");
    let connection = ready["connection_string"].as_str().unwrap();
    assert!(connection.starts_with("DefaultEndpointsProtocol=https;"), "{connection}");
    let ca_file = ready["ca_file"].as_str().unwrap();
    let ca = fs::read_to_string(ca_file).unwrap();
    let key = fs::metadata(folder.join("data/.latchfs/tls/ca-key.pem")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    let log = screen(&server);
    assert!(log.contains(ca_file) && log.contains("--oauth basic"), "{log}");
    assert!(!log.contains("add --tls self"), "{log}");
    assert!(log.contains(&format!("curl --cacert {ca_file} \"$(")), "{log}");
    server.stop();
    let _server = serve();
    assert_eq!(fs::read_to_string(ca_file).unwrap(), ca);
}

#[test]
fn a_certificate_of_the_users_is_served_and_one_that_will_not_do_is_refused_in_a_line() {
    let folder = Folder::new();
    let (one, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    fs::write(folder.join("cert.pem"), one.certificate_pem().unwrap()).unwrap();
    fs::write(folder.join("key.pem"), one.key_pem()).unwrap();
    fs::write(folder.join("other.pem"), other.key_pem()).unwrap();
    fs::write(folder.join("empty.pem"), "").unwrap();
    let mut server = folder.start(&["serve", "--no-mount", "--tls", "cert.pem,key.pem"]);
    assert!(told(&folder)["endpoint"].as_str().unwrap().starts_with("https://"));
    assert!(told(&folder).get("ca_file").is_none());
    server.stop();
    for (value, part) in [
        ("cert.pem,other.pem", "give the pair that was made together"),
        ("cert.pem,empty.pem", "empty.pem: it holds no private key"),
        ("empty.pem,key.pem", "empty.pem: it holds no certificate"),
        ("none.pem,key.pem", "reading none.pem"),
    ] {
        let output = folder.run(&["serve", "--data", "other", "--no-mount", "--tls", value]);
        let text = error_text(&output);
        assert_eq!(output.status.code(), Some(2), "{value}: {text}");
        assert!(text.contains(part) && text.lines().count() == 1, "{value}: {text}");
    }
    for options in [["--tls", "yes"], ["--oauth", "full"], ["--copy-sources", "none"]] {
        let output = folder.run(&["serve", "--data", "other", options[0], options[1]]);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn a_damaged_key_of_the_authority_says_what_to_remove() {
    let folder = Folder::new();
    folder.start(&["serve", "--no-mount", "--tls", "self"]).stop();
    fs::write(folder.join("data/.latchfs/tls/ca-key.pem"), "nonsense").unwrap();
    let output = folder.run(&["serve", "--data", "data", "--no-mount", "--tls", "self"]);
    let text = error_text(&output);
    assert!(
        text.contains("is damaged") && text.contains("; remove ") && text.lines().count() == 1,
        "{text}"
    );
}

#[test]
fn tokens_without_tls_are_warned_about_and_not_taken_beyond_this_machine_unasked() {
    let folder = Folder::new();
    let mut server = folder.start(&["serve", "--no-mount", "--oauth", "basic"]);
    assert!(screen(&server).contains("SDKs send tokens over https only; add --tls self"));
    server.stop();
    let key = "demo:a2V5";
    let open = ["serve", "--data", "other", "--no-mount", "--listen", "0.0.0.0:0"];
    let more = ["--account", key, "--oauth", "basic"];
    let output = folder.run(&[&open[..], &more].concat());
    let text = error_text(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("tokens that anybody can write"), "{text}");
}

#[test]
fn a_server_answers_to_further_names_that_it_was_given() {
    let folder = Folder::new();
    let server = folder.start(&["serve", "--no-mount", "--no-auth", "--host", "files.test"]);
    let addr = told(&folder)["endpoint"].as_str().unwrap().split('/').nth(2).unwrap().to_owned();
    let addr = addr.parse().unwrap();
    let asked = |host: &str| http::ask_as_it_is(addr, host, "GET", SHARES, &[], b"").status;
    assert_eq!([asked("files.test:80"), asked("localhost"), asked("other.test")], [200, 200, 400]);
    drop(server);
}
