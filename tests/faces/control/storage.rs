//! `ls`, `mk`, `put`, `get`, `rm` and `sas`: what the services hold, at the shell. The server takes
//! signed requests only, as by default.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};

use super::fixture::{Folder, Holding, Server, error_text, json, latchfs, text, wait_for};
use crate::common::http::ask_as_it_is;
use crate::common::need;

const LEASE: &str = "11111111-2222-3333-4444-555555555555";

fn serve() -> (Folder, Server) {
    let folder = Folder::new();
    let server = folder.start(&["serve", "--no-mount", "--share", "docs"]);
    (folder, server)
}

#[track_caller]
fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", error_text(output));
    text(output)
}

/// The first column of a listing.
#[track_caller]
fn listed(folder: &Folder, arguments: &[&str]) -> Vec<String> {
    let all = done(&folder.ask(&[&["ls"], arguments].concat()));
    all.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// `latchfs put` of a text on standard input.
fn put(folder: &Folder, text: &str, arguments: &[&str]) -> Output {
    let socket = folder.socket();
    let mut child = latchfs(folder.path())
        .arg("put")
        .args(arguments)
        .args(["--control", socket.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// GET of a URL that `latchfs sas` printed.
fn fetch(method: &str, url: &str) -> (u16, String) {
    let rest = url.trim().strip_prefix("http://").unwrap();
    let (host, target) = rest.split_once('/').unwrap();
    let target = format!("/{target}");
    let got = ask_as_it_is(host.parse().unwrap(), host, method, &target, &[], b"");
    (got.status, got.text())
}

#[test]
fn one_vocabulary_makes_lists_and_deletes_in_every_service() {
    let (folder, _server) = serve();
    assert_eq!(listed(&folder, &[]), ["file:docs"]);
    for object in ["blob:bin", "queue:jobs", "table:Rows", "file:more"] {
        assert_eq!(json(&folder.ask(&["mk", object, "--json"]))["created"], object);
    }
    let all = ["file:docs", "file:more", "blob:bin", "queue:jobs", "table:Rows"];
    assert_eq!(listed(&folder, &[]), all);
    let again = folder.ask(&["mk", "blob:bin", "--json"]);
    assert_eq!(again.status.code(), Some(2));
    let error: serde_json::Value = serde_json::from_slice(&again.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "ContainerAlreadyExists");
    for object in ["blob:bin", "queue:jobs", "table:Rows", "file:more"] {
        let kept = folder.ask(&["rm", object]);
        assert_eq!(kept.status.code(), Some(2), "{object}");
        assert!(error_text(&kept).contains("--recursive"), "{}", error_text(&kept));
        done(&folder.ask(&["rm", "-r", object]));
    }
    assert_eq!(listed(&folder, &[]), ["file:docs"]);
    let gone = folder.ask(&["ls", "blob:bin"]);
    assert_eq!(gone.status.code(), Some(2));
    assert!(error_text(&gone).contains("(404 ContainerNotFound)"), "{}", error_text(&gone));
}

#[test]
fn blobs_are_uploaded_downloaded_and_changed_under_conditions_and_leases() {
    let (folder, _server) = serve();
    done(&folder.ask(&["mk", "blob:bin"]));
    // Long enough to go up in blocks.
    let long: Vec<u8> = (0..9_u32 << 20).map(|at| (at % 251) as u8).collect();
    fs::write(folder.join("long"), &long).unwrap();
    done(&folder.ask(&["put", "blob:bin/dir/a b", folder.join("long").to_str().unwrap()]));
    let back = folder.join("back");
    let got = folder.ask(&["get", "blob:bin/dir/a b", back.to_str().unwrap(), "--json"]);
    assert_eq!(json(&got)["length"], 9 << 20);
    assert_eq!(fs::read(&back).unwrap(), long);
    let first = json(&put(&folder, "one", &["blob:bin/note", "--json"]));
    let etag = first["etag"].as_str().unwrap();
    assert_eq!(done(&folder.ask(&["get", "blob:bin/note"])), "one");
    assert_eq!(listed(&folder, &["blob:bin"]), ["blob:bin/dir/", "blob:bin/note"]);
    assert_eq!(listed(&folder, &["blob:bin/dir/"]), ["blob:bin/dir/a b"]);
    assert_eq!(listed(&folder, &["-r", "blob:bin"]), ["blob:bin/dir/a b", "blob:bin/note"]);
    // A stale ETag is answered no, with the last writer.
    done(&put(&folder, "two", &["blob:bin/note", "--if-match", etag]));
    let stale = put(&folder, "three", &["blob:bin/note", "--if-match", etag]);
    assert_eq!(stale.status.code(), Some(1), "{}", error_text(&stale));
    assert!(error_text(&stale).contains("ago by Put Blob"), "{}", error_text(&stale));
    assert_eq!(folder.ask(&["rm", "blob:bin/note", "--if-match", etag]).status.code(), Some(1));
    // A lease is somebody else's.
    let url = done(&folder.ask(&["sas", "blob:bin/note", "--permissions", "rw"]));
    let rest = url.trim().strip_prefix("http://").unwrap();
    let (host, target) = rest.split_once('/').unwrap();
    let headers = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        ("x-ms-proposed-lease-id", LEASE),
    ];
    let target = format!("/{target}&comp=lease");
    ask_as_it_is(host.parse().unwrap(), host, "PUT", &target, &headers, b"").is(201);
    let held = folder.ask(&["rm", "blob:bin/note"]);
    assert_eq!(held.status.code(), Some(16), "{}", error_text(&held));
    done(&put(&folder, "mine", &["blob:bin/note", "--lease", LEASE]));
    done(&folder.ask(&["rm", "blob:bin/note", "--lease", LEASE]));
    // A lease that nobody has is not somebody else's.
    done(&put(&folder, "free", &["blob:bin/free"]));
    let free = folder.ask(&["rm", "blob:bin/free", "--lease", LEASE]);
    assert_eq!(free.status.code(), Some(1), "{}", error_text(&free));
    assert_eq!(folder.ask(&["get", "blob:bin/note"]).status.code(), Some(2));
}

#[test]
fn messages_are_put_taken_once_and_deleted_with_their_receipt() {
    let (folder, _server) = serve();
    done(&folder.ask(&["mk", "queue:jobs"]));
    let sent = json(&put(&folder, "a <job> & more", &["queue:jobs", "--json"]));
    let object = sent["object"].as_str().unwrap();
    assert_eq!(listed(&folder, &["queue:jobs"]), [object]);
    let got = json(&folder.ask(&["get", "queue:jobs", "--hide", "600", "--json"]));
    assert_eq!((&got["object"], &got["text"]), (&sent["object"], &"a <job> & more".into()));
    assert_eq!(got["dequeue_count"], 1);
    let visible = got["visible"].as_str().unwrap();
    assert!(latchfs::rules::time::parse_iso(visible).is_some(), "{visible}");
    let none = folder.ask(&["get", "queue:jobs"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(error_text(&none).contains("no visible message"), "{}", error_text(&none));
    assert_eq!(listed(&folder, &["queue:jobs"]), [""; 0]);
    assert_eq!(folder.ask(&["why", object]).status.code(), Some(1));
    assert_eq!(folder.ask(&["rm", object]).status.code(), Some(2));
    let old = sent["pop_receipt"].as_str().unwrap();
    let stale = folder.ask(&["rm", object, "--receipt", old]);
    assert!(error_text(&stale).contains("PopReceiptMismatch"), "{}", error_text(&stale));
    let receipt = got["pop_receipt"].as_str().unwrap();
    done(&folder.ask(&["rm", object, "--receipt", receipt]));
    assert_eq!(folder.ask(&["why", object]).status.code(), Some(2));
}

#[test]
fn entities_are_written_read_and_deleted_under_conditions() {
    let (folder, _server) = serve();
    done(&folder.ask(&["mk", "table:Rows"]));
    let object = "table:Rows/it's/r 1";
    let first = json(&put(&folder, r#"{"n":1}"#, &[object, "--json"]));
    let etag = first["etag"].as_str().unwrap();
    let read = json(&folder.ask(&["get", object]));
    assert_eq!((&read["PartitionKey"], &read["n"]), (&"it's".into(), &1.into()));
    done(&put(&folder, r#"{"n":2}"#, &[object, "--if-match", etag]));
    let stale = put(&folder, r#"{"n":3}"#, &[object, "--if-match", etag]);
    assert_eq!(stale.status.code(), Some(1), "{}", error_text(&stale));
    assert!(error_text(&stale).contains("UpdateConditionNotSatisfied"), "{}", error_text(&stale));
    done(&put(&folder, "{}", &["table:Rows/other/r"]));
    assert_eq!(listed(&folder, &["table:Rows"]), [object, "table:Rows/other/r"]);
    assert_eq!(listed(&folder, &["table:Rows/it's"]), [object]);
    assert_eq!(folder.ask(&["rm", object, "--if-match", etag]).status.code(), Some(1));
    done(&folder.ask(&["rm", object]));
    assert_eq!(folder.ask(&["get", object]).status.code(), Some(2));
}

#[test]
fn files_are_reached_by_the_same_words() {
    let (folder, _server) = serve();
    done(&folder.ask(&["mk", "file:docs/dir"]));
    done(&put(&folder, "hello", &["file:docs/dir/a.txt"]));
    assert_eq!(done(&folder.ask(&["get", "file:docs/dir/a.txt"])), "hello");
    assert_eq!(listed(&folder, &["file:docs"]), ["file:docs/dir"]);
    assert_eq!(listed(&folder, &["file:docs/dir"]), ["file:docs/dir/a.txt"]);
    let why = done(&folder.ask(&["why", "file:docs/dir/a.txt"]));
    assert!(why.contains("nothing stands in the way"), "{why}");
    let no = put(&folder, "x", &["file:docs/dir/a.txt", "--if-match", "*"]);
    assert!(error_text(&no).contains("no conditions"), "{}", error_text(&no));
    done(&folder.ask(&["rm", "file:docs/dir/a.txt"]));
    done(&folder.ask(&["rm", "file:docs/dir"]));
    assert_eq!(listed(&folder, &["file:docs"]), [""; 0]);
}

#[test]
fn a_sas_of_any_service_permits_what_its_letters_say_and_no_more() {
    let (folder, _server) = serve();
    for object in ["blob:bin", "queue:jobs", "table:Rows"] {
        done(&folder.ask(&["mk", object]));
    }
    done(&put(&folder, "one", &["blob:bin/a b"]));
    done(&put(&folder, "{}", &["table:Rows/p/r"]));
    let sas = |arguments: &[&str]| done(&folder.ask(&[&["sas"], arguments].concat()));
    let blob = sas(&["blob:bin/a b"]);
    assert_eq!(fetch("GET", &blob), (200, "one".to_owned()));
    assert_eq!(fetch("DELETE", &blob).0, 403);
    let list = sas(&["blob:bin"]).trim().to_owned() + "&restype=container&comp=list";
    assert!(fetch("GET", &list).1.contains("<Name>a b</Name>"));
    let peek = sas(&["queue:jobs"]).replace("/jobs?", "/jobs/messages?peekonly=true&");
    assert_eq!(fetch("GET", &peek).0, 200);
    let take = peek.replace("peekonly=true&", "");
    assert_eq!(fetch("GET", &take).0, 403);
    let row = sas(&["table:Rows/p/r"]);
    let entity = |keys: &str| row.replace("/Rows?", &format!("/Rows({keys})?"));
    assert_eq!(fetch("GET", &entity("PartitionKey='p',RowKey='r'")).0, 200);
    assert_eq!(fetch("GET", &entity("PartitionKey='q',RowKey='r'")).0, 403);
    // For all of a service, and for all services in one connection string.
    let service = sas(&["blob:"]).trim().to_owned();
    assert!(fetch("GET", &(service.clone() + "&comp=list")).1.contains("<Name>bin</Name>"));
    let into = |url: &str| url.replace("/devstoreaccount1/?", "/devstoreaccount1/bin/a%20b?");
    assert_eq!(fetch("GET", &into(&service)).0, 200);
    assert_eq!(fetch("DELETE", &into(&service)).0, 403);
    assert_eq!(fetch("DELETE", &into(&sas(&["blob:", "--permissions", "d"]))).0, 202);
    let string = sas(&["account:"]);
    let (endpoints, token) = string.trim().split_once("SharedAccessSignature=").unwrap();
    assert_eq!(endpoints.matches("Endpoint=http://127.0.0.1:").count(), 4, "{endpoints}");
    let table = endpoints.split(';').find_map(|one| one.strip_prefix("TableEndpoint=")).unwrap();
    assert_eq!(fetch("GET", &format!("{table}/Tables?{token}")).0, 200);
    let wrong = folder.ask(&["sas", "queue:jobs", "--permissions", "w"]);
    assert!(error_text(&wrong).contains("letters of raup"), "{}", error_text(&wrong));
    // No server is asked where the key is given.
    let account = "second:a2V5";
    let alone = folder.run(&["sas", "table:Rows", "--account", account]);
    assert!(done(&alone).starts_with("http://127.0.0.1:10002/second/Rows?"), "{}", text(&alone));
}

#[test]
fn a_download_replaces_files_alone_and_keeps_their_permissions() {
    let (folder, _server) = serve();
    done(&folder.ask(&["mk", "blob:docs"]));
    done(&put(&folder, "text", &["blob:docs/a"]));
    let (file, link, pipe) = (folder.join("file"), folder.join("link"), folder.join("pipe"));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("file", &link).unwrap();
    for target in [&file, &link] {
        done(&folder.ask(&["get", "blob:docs/a", target.to_str().unwrap()]));
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    // Of both sides, so that nobody waits for the other.
    let fifo = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo.0, fifo.1, 0).unwrap();
    let mut both = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    done(&folder.ask(&["get", "blob:docs/a", pipe.to_str().unwrap()]));
    let mut told = [0; 4];
    both.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"text");
    assert_eq!(done(&folder.ask(&["get", "blob:docs/a", "-"])), "text");
}

#[test]
fn a_condition_that_means_nothing_is_refused_and_not_passed_over() {
    let (folder, _server) = serve();
    done(&folder.ask(&["mk", "queue:jobs"]));
    let refused = folder.ask(&["rm", "-r", "queue:jobs", "--if-match", "\"x\""]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(error_text(&refused).contains("has no ETag"), "{}", error_text(&refused));
    assert_eq!(put(&folder, "job", &["queue:jobs", "--if-match", "\"x\""]).status.code(), Some(2));
    done(&put(&folder, "job", &["queue:jobs"]));
}

#[test]
fn what_is_no_address_and_a_service_that_is_off_are_told() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--table", "off"]);
    let off = folder.ask(&["ls", "table:"]);
    assert_eq!(off.status.code(), Some(2));
    assert!(error_text(&off).contains("does not offer the Table"), "{}", error_text(&off));
    for arguments in [["get", "docs"], ["rm", "a.txt"], ["get", "blob:docs"], ["mk", "blob:a/b"]] {
        let output = folder.ask(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(error_text(&output).contains("expected"), "{}", error_text(&output));
    }
}

#[cfg(feature = "tls")]
#[test]
fn commands_trust_the_certificate_that_the_server_made() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--tls", "self"]);
    done(&folder.ask(&["mk", "blob:bin"]));
    done(&put(&folder, "one", &["blob:bin/a"]));
    assert_eq!(done(&folder.ask(&["get", "blob:bin/a"])), "one");
}

#[test]
fn a_message_is_got_as_it_was_put_or_refused() {
    let (folder, _server) = serve();
    done(&folder.ask(&["mk", "queue:jobs"]));
    for text in ["no line end", "a\tb\n\n", " spaces "] {
        done(&put(&folder, text, &["queue:jobs"]));
        assert_eq!(done(&folder.ask(&["get", "queue:jobs"])), text);
    }
    let refused = put(&folder, "a\u{1}b", &["queue:jobs"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(error_text(&refused).contains("character \\u{1}"), "{}", error_text(&refused));
    assert!(listed(&folder, &["queue:jobs"]).is_empty(), "nothing was put");
    done(&put(&folder, "to a file", &["queue:jobs"]));
    done(&folder.ask(&["get", "queue:jobs", "taken"]));
    assert_eq!(fs::read_to_string(folder.join("taken")).unwrap(), "to a file");
}

#[test]
fn a_directory_is_deleted_with_all_that_it_holds_and_what_is_held_is_named() {
    let (folder, _server) = serve();
    for directory in ["d", "d/e"] {
        done(&folder.ask(&["mk", &format!("file:docs/{directory}")]));
    }
    for file in ["d/a", "d/e/b"] {
        done(&put(&folder, "x", &[&format!("file:docs/{file}")]));
    }
    let kept = folder.ask(&["rm", "file:docs/d"]);
    assert!(error_text(&kept).contains("DirectoryNotEmpty"), "{}", error_text(&kept));
    let told = "not deleted: file:docs/d has 2 entries; --recursive deletes them too";
    assert!(error_text(&kept).contains(told), "{}", error_text(&kept));
    let read = error_text(&folder.ask(&["get", "file:docs/d"]));
    assert!(read.contains("is a directory"), "{read}");
    let socket = folder.socket();
    let hold = Holding::start(
        &folder,
        &["docs:/d/e/b", "--share", "none", "--control", socket.to_str().unwrap()],
    );
    let busy = folder.ask(&["rm", "-r", "file:docs/d"]);
    assert_eq!(busy.status.code(), Some(16));
    assert!(error_text(&busy).contains("file:docs/d/e/b"), "{}", error_text(&busy));
    drop(hold);
    wait_for("the end of the hold", || {
        folder.ask(&["rm", "-r", "file:docs/d"]).status.success().then_some(())
    });
    assert!(listed(&folder, &["file:docs"]).is_empty());
}

#[test]
fn times_have_one_form_and_an_etag_of_a_listing_is_a_condition() {
    let (folder, _server) = serve();
    done(&folder.ask(&["mk", "blob:bin"]));
    done(&folder.ask(&["mk", "table:Rows"]));
    done(&put(&folder, "1", &["blob:bin/a"]));
    done(&put(&folder, "{}", &["table:Rows/p/r"]));
    for object in ["blob:bin", "table:Rows"] {
        let rows = json(&folder.ask(&["ls", object, "--json"]));
        let modified = rows[0]["modified"].as_str().unwrap();
        assert!(latchfs::rules::time::parse_iso(modified).is_some(), "{object}: {modified}");
        let (name, etag) = (rows[0]["object"].as_str().unwrap(), rows[0]["etag"].as_str().unwrap());
        assert!(etag.ends_with('"'), "{object}: {etag}");
        done(&put(&folder, "{}", &[name, "--if-match", etag]));
        let late = put(&folder, "{}", &[name, "--if-match", etag]);
        assert_eq!(late.status.code(), Some(1), "{object}");
    }
}

#[test]
fn commands_reach_the_services_where_the_system_has_no_certificates() {
    let (folder, _server) = serve();
    let socket = folder.socket();
    let none = folder.join("none.pem");
    fs::write(&none, "").unwrap();
    let output = latchfs(folder.path())
        .args(["ls", "blob:", "--control", socket.to_str().unwrap()])
        .env("SSL_CERT_FILE", &none)
        .env("SSL_CERT_DIR", folder.join("mnt"))
        .output()
        .unwrap();
    done(&output);
}

#[test]
fn a_path_on_a_mount_names_its_file_and_its_server() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    folder.file("a.txt", "hello");
    fs::write(folder.join("local"), "new").unwrap();
    assert_eq!(done(&folder.run(&["get", "mnt/a.txt"])), "hello");
    done(&folder.run(&["mk", "mnt/dir"]));
    done(&folder.run(&["put", "mnt/dir/b.txt", "local"]));
    assert_eq!(fs::read_to_string(folder.join("mnt/dir/b.txt")).unwrap(), "new");
    let all = done(&folder.run(&["ls", "mnt"]));
    assert!(all.starts_with("file:docs/a.txt\t"), "{all}");
    // The path leads to the server: nothing else must name it.
    done(&folder.run(&["rm", "-r", "mnt/dir"]));
    assert!(!folder.join("mnt/dir").exists());
}

#[test]
fn a_file_is_listed_as_one_row_and_commands_leave_no_refusals_of_their_own() {
    let (folder, _server) = serve();
    done(&folder.ask(&["mk", "file:docs/d"]));
    for name in ["file:docs/d/a.txt", "file:docs/d/a.txt.old"] {
        done(&put(&folder, "x", &[name]));
    }
    for name in ["docs:/d/a.txt", "file:docs/d/a.txt", "docs:/D/A.TXT"] {
        assert_eq!(listed(&folder, &[name]).len(), 1, "{name}");
    }
    assert_eq!(listed(&folder, &["docs:/d/a.txt"]), ["file:docs/d/a.txt"]);
    assert_eq!(listed(&folder, &["docs:/d"]).len(), 2);
    done(&folder.ask(&["rm", "docs:/d/a.txt"]));
    done(&folder.ask(&["rm", "docs:/d/a.txt.old"]));
    done(&folder.ask(&["rm", "docs:/d"]));
    assert!(!text(&folder.ask(&["events"])).contains("refused"));
    let missing = folder.ask(&["ls", "docs:/none/a.txt"]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing));
}

#[test]
fn what_is_made_twice_or_misnamed_is_told() {
    let (folder, _server) = serve();
    for object in ["queue:jobs", "blob:bin", "table:Rows", "file:more"] {
        done(&folder.ask(&["mk", object]));
        let again = folder.ask(&["mk", object]);
        assert_eq!(again.status.code(), Some(2), "{object}");
        assert!(error_text(&again).contains("exists"), "{}", error_text(&again));
    }
    let short = error_text(&folder.ask(&["mk", "table:T1"]));
    assert!(short.contains("has 2 letters, 3 to 63 are allowed"), "{short}");
    done(&folder.ask(&["fault", "add", "List Containers", "--answer", "503:ServerBusy"]));
    let busy = error_text(&folder.ask(&["ls", "blob:"]));
    assert!(busy.contains("latchfs: the Blob service: "), "{busy}");
}

#[test]
fn what_is_not_deleted_without_recursive_is_told_with_what_it_holds() {
    let (folder, _server) = serve();
    for object in ["queue:jobs", "blob:bin", "table:Rows", "file:more", "file:more/dir"] {
        done(&folder.ask(&["mk", object]));
    }
    for object in ["blob:bin/a", "blob:bin/b", "blob:bin/d/c", "file:more/dir/x", "queue:jobs"] {
        done(&put(&folder, "x", &[object]));
    }
    done(&put(&folder, "{}", &["table:Rows/p/r"]));
    for (object, holds) in [
        ("blob:bin", "3 blobs; --recursive deletes them too"),
        ("queue:jobs", "1 message; --recursive deletes it too"),
        ("table:Rows", "1 entity; --recursive deletes it too"),
        ("file:more", "1 entry; --recursive deletes it too"),
        ("file:more/dir", "1 entry; --recursive deletes it too"),
    ] {
        let kept = folder.ask(&["rm", object]);
        assert_eq!(kept.status.code(), Some(2), "{object}");
        let told = format!("not deleted: {object} has {holds}");
        assert!(error_text(&kept).contains(&told), "{}", error_text(&kept));
        assert!(!listed(&folder, &[object]).is_empty(), "{object}");
    }
    let missing = folder.ask(&["rm", "blob:none"]);
    assert!(error_text(&missing).contains("ContainerNotFound"), "{}", error_text(&missing));
    done(&folder.ask(&["rm", "-r", "file:more/dir"]));
    for object in ["queue:jobs", "blob:bin", "table:Rows", "file:more"] {
        done(&folder.ask(&["rm", "-r", object]));
    }
}
