//! Copies between the File and the Blob service of one server, which asks no other server.

use std::sync::Arc;

use latchfs::disk::DataRoot;
use latchfs::file::service::shares::NewShare;
use latchfs::http::auth::{Admission, Authorizer, OauthMode};
use latchfs::http::frame::Service;
use latchfs::http::server::{RestOptions, RestServer};
use latchfs::server::{AccountOptions, Accounts};

use crate::common::http::{self, ACCOUNT, Got};
use crate::service::{account_token, ask_by_key, signed, token_of};

/// The two services of one server, with the share `docs` and the container `con`.
struct Both {
    file: RestServer,
    blob: RestServer,
    _folder: tempfile::TempDir,
}

fn sas(letters: &str) -> String {
    account_token("bf", "sco", letters)
}

impl Both {
    fn start() -> Self {
        Self::admitting(signed())
    }

    fn admitting(admission: Admission) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        let accounts =
            Accounts::open(&root, ACCOUNT, ["second"], &AccountOptions::default()).unwrap();
        accounts.first().file().create_share("docs", NewShare::default()).unwrap();
        let accounts = Arc::new(accounts);
        // Clones of one value know each other as siblings.
        let options = RestOptions::new(admission);
        let start = |service: &'static Service| {
            RestServer::start(Arc::clone(&accounts), service, options.clone()).unwrap()
        };
        let both = Self {
            file: start(&latchfs::file::rest::operations::SERVICE_TABLE),
            blob: start(&latchfs::blob::rest::operations::SERVICE_TABLE),
            _folder: folder,
        };
        ask(&both.blob, "PUT", "/con?restype=container&", &[], b"").is(201);
        let create = [("x-ms-type", "file"), ("x-ms-content-length", "9")];
        let create = [&create[..], &[("x-ms-meta-who", "me")]].concat();
        ask(&both.file, "PUT", "/docs/f.txt?", &create, b"").is(201);
        let range = [("x-ms-range", "bytes=0-8"), ("x-ms-write", "update")];
        ask(&both.file, "PUT", "/docs/f.txt?comp=range&", &range, b"from file").is(201);
        let put = [("x-ms-blob-type", "BlockBlob")];
        ask(&both.blob, "PUT", "/con/b?", &put, b"from blob").is(201);
        both
    }
}

/// Asks with a SAS that permits everything; `target` ends where the SAS goes.
fn ask(
    server: &RestServer,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Got {
    let target = format!("{target}{}", sas("rwdlac"));
    http::ask(server.addr(), method, &target, headers, body)
}

#[test]
fn a_blob_is_copied_from_a_file_of_the_same_server() {
    let both = Both::start();
    let (port, read) = (both.file.addr().port(), sas("r"));
    let sources = [
        format!("http://127.0.0.1:{port}/{ACCOUNT}/docs/f.txt?{read}"),
        format!("http://localhost:{port}/{ACCOUNT}/docs/f.txt?{read}"),
        format!("https://{ACCOUNT}.file.core.windows.net/docs/f.txt?{read}"),
    ];
    for source in &sources {
        let from = ("x-ms-copy-source", source.as_str());
        let kind = ("x-ms-blob-type", "BlockBlob");
        for (headers, status) in [
            (vec![from], 202),
            (vec![from, ("x-ms-requires-sync", "true")], 202),
            (vec![from, kind], 201),
        ] {
            ask(&both.blob, "PUT", "/con/to?", &headers, b"").is(status);
            let got = ask(&both.blob, "GET", "/con/to?", &[], b"").is(200);
            assert_eq!((&*got.text(), got.header("x-ms-meta-who")), ("from file", "me"));
            ask(&both.blob, "DELETE", "/con/to?", &[], b"").is(202);
        }
        let block = [from, ("x-ms-source-range", "bytes=5-8")];
        let target = "/con/parts?comp=block&blockid=AAAA&";
        ask(&both.blob, "PUT", target, &block, b"").is(201);
    }
}

#[test]
fn a_file_is_copied_from_a_blob_of_the_same_server() {
    let both = Both::start();
    let source = format!("http://{}/{ACCOUNT}/con/b?{}", both.blob.addr(), sas("r"));
    let from = ("x-ms-copy-source", source.as_str());
    ask(&both.file, "PUT", "/docs/to?", &[from], b"").is(202);
    assert_eq!(ask(&both.file, "GET", "/docs/to?", &[], b"").is(200).text(), "from blob");
    let range = [from, ("x-ms-range", "bytes=0-3"), ("x-ms-source-range", "bytes=5-8")];
    let range = [&range[..], &[("x-ms-write", "update")]].concat();
    ask(&both.file, "PUT", "/docs/to?comp=range&", &range, b"").is(201);
    assert_eq!(ask(&both.file, "GET", "/docs/to?", &[], b"").is(200).text(), "blob blob");
}

#[test]
fn a_source_beside_needs_a_right_of_its_own_and_other_servers_are_not_asked() {
    let (both, other) = (Both::start(), Both::start());
    let copy = |server: &RestServer, query: &str| {
        let source = format!("http://{}/{ACCOUNT}/docs/{query}", server.addr());
        ask(&both.blob, "PUT", "/con/to?", &[("x-ms-copy-source", &source)], b"")
    };
    let code = "CannotVerifyCopySource";
    let got = copy(&both.file, "f.txt").refused(401, code);
    assert_eq!(got.header("x-ms-copy-source-status-code"), "401");
    let got = copy(&both.file, &format!("none?{}", sas("r"))).refused(404, code);
    assert_eq!(got.header("x-ms-copy-source-error-code"), "ResourceNotFound");
    let read = format!("f.txt?{}", sas("r"));
    copy(&other.file, &read).refused(403, code);
    ask(&both.blob, "HEAD", "/con/to?", &[], b"").is(404);
    copy(&both.file, &read).is(202);
}

/// A token for a file is good together with the intent to pass by the file's ACL.
#[test]
fn a_token_and_its_intent_are_passed_on_to_a_file() {
    let Admission::Signed(authorizer) = signed() else { unreachable!("as it was made") };
    let both =
        Both::admitting(Admission::Signed(Authorizer { oauth: OauthMode::Basic, ..authorizer }));
    let url = format!("http://{}/{ACCOUNT}/docs/f.txt", both.file.addr());
    let token = token_of("me");
    let from = [("x-ms-copy-source", &*url), ("x-ms-copy-source-authorization", &*token)];
    let intent = ("x-ms-file-request-intent", "backup");
    let append = [("x-ms-blob-type", "AppendBlob")];
    ask(&both.blob, "PUT", "/con/log?", &append, b"").is(201);
    let requests = [
        ("/con/to?", vec![("x-ms-blob-type", "BlockBlob")], 201),
        ("/con/to?", vec![("x-ms-requires-sync", "true")], 202),
        ("/con/to?", vec![], 202),
        ("/con/parts?comp=block&blockid=AAAA&", vec![], 201),
        ("/con/log?comp=appendblock&", vec![("x-ms-source-range", "bytes=0-8")], 201),
    ];
    for (target, more, status) in requests {
        let send = |more: &[(&str, &str)]| {
            ask(&both.blob, "PUT", target, &[&from[..], more].concat(), b"")
        };
        let got = send(&more).refused(400, "CannotVerifyCopySource");
        assert_eq!(got.header("x-ms-copy-source-error-code"), "MissingRequiredHeader");
        send(&[&more[..], &[intent]].concat()).is(status);
    }
    assert_eq!(ask(&both.blob, "GET", "/con/log?", &[], b"").is(200).text(), "from file");
}

/// The message of a source on another listener is the one that it answered with.
#[test]
fn the_message_of_a_source_beside_is_told() {
    let both = Both::start();
    let copy = |server: &RestServer, target: &str, source: &str| {
        let source = format!("http://{}/{ACCOUNT}{source}", server.addr());
        let got = match target {
            "/con/to?" => ask(&both.blob, "PUT", target, &[("x-ms-copy-source", &source)], b""),
            _ => ask(&both.file, "PUT", target, &[("x-ms-copy-source", &source)], b""),
        };
        got.text()
    };
    let told = "<CopySourceErrorMessage>The specified resource does not exist.";
    let missing = copy(&both.file, "/con/to?", &format!("/docs/none?{}", sas("r")));
    assert!(missing.contains(told), "{missing}");
    let told = "<CopySourceErrorMessage>The specified blob does not exist.";
    let missing = copy(&both.blob, "/docs/to?", &format!("/con/none?{}", sas("r")));
    assert!(missing.contains(told), "{missing}");
}

/// The account's key covers the source of Copy File, unless its URL has a SAS; Put Range From URL
/// takes a right in the URL alone.
#[test]
fn a_file_is_read_with_the_rights_of_its_url() {
    let both = Both::start();
    let addr = both.file.addr();
    let send = |target: &str, source: &str, more: &[(&str, &str)]| {
        let source = format!("http://{addr}/{ACCOUNT}/docs/f.txt{source}");
        let headers = [&[("x-ms-copy-source", &*source)], more].concat();
        ask_by_key(addr, "PUT", target, &headers, b"")
    };
    let code = "CannotVerifyCopySource";
    send("/docs/to", "", &[]).is(202);
    let got = send("/docs/to", &format!("?{}", sas("w")), &[]).refused(403, code);
    assert_eq!(got.header("x-ms-copy-source-error-code"), "AuthorizationPermissionMismatch");
    let range = [("x-ms-range", "bytes=0-3"), ("x-ms-write", "update")];
    let range = [&range[..], &[("x-ms-source-range", "bytes=5-8")]].concat();
    let got = send("/docs/to?comp=range", "", &range).refused(401, code);
    assert_eq!(got.header("x-ms-copy-source-error-code"), "NoAuthenticationInformation");
    assert!(got.text().contains("<CopySourceErrorMessage>Server failed to authenticate"));
    ask(&both.file, "GET", "/docs/to?", &[], b"").is(200);
    send("/docs/to?comp=range", &format!("?{}", sas("r")), &range).is(201);
    assert_eq!(ask(&both.file, "GET", "/docs/to?", &[], b"").is(200).text(), "file file");
}

#[test]
fn a_source_of_this_server_is_a_file_or_a_blob_and_nothing_else_that_a_get_gives() {
    let both = Both::start();
    let read = sas("rl");
    let refused = |to: &RestServer, target: &str, from: &RestServer, path: &str| {
        let source = format!("http://{}/{ACCOUNT}{path}&{read}", from.addr());
        let headers = [("x-ms-copy-source", source.as_str()), ("x-ms-blob-type", "BlockBlob")];
        ask(to, "PUT", target, &headers, b"").refused(400, "InvalidHeaderValue");
        ask(to, "HEAD", target, &[], b"").is(404);
    };
    let (file, blob) = (&both.file, &both.blob);
    for (to, target) in [(file, "/docs/to?"), (blob, "/con/to?")] {
        refused(to, target, file, "/docs?restype=directory&comp=list");
        refused(to, target, file, "/docs?restype=share");
        refused(to, target, file, "/docs/f.txt?comp=rangelist");
        refused(to, target, file, "/docs/f.txt?%43omp=metadata");
        refused(to, target, blob, "/con?restype=container&comp=list");
        refused(to, target, blob, "/con/b?comp=tags");
        refused(to, target, blob, "/?comp=list");
    }
}

#[test]
fn a_source_beside_is_named_by_the_scheme_that_its_port_speaks() {
    let both = Both::start();
    let place = format!("{}/{ACCOUNT}/docs/f.txt?{}", both.file.addr(), sas("r"));
    let copy = |scheme: &str| {
        let source = format!("{scheme}://{place}");
        ask(&both.blob, "PUT", "/con/to?", &[("x-ms-copy-source", source.as_str())], b"")
    };
    let got = copy("https").refused(400, "InvalidHeaderValue");
    assert!(got.text().contains("the listener on that port speaks http"), "{}", got.text());
    copy("http").is(202);
}
