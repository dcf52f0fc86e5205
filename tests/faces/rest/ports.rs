//! What every listener does alike, as one table over every service. A new service is one row.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use latchfs::disk::DataRoot;
use latchfs::http::auth::{AccountSas, Admission, Authorizer, Credential, Credentials};
use latchfs::http::frame::Service;
use latchfs::http::server::{RestOptions, RestServer};
use latchfs::rules::Timestamp;
use latchfs::rules::service::ServiceKind;
use latchfs::server::{AccountOptions, Accounts};

use crate::common::http::{ACCOUNT, Got, Kept, ask, ask_as_it_is};
use crate::service::{account_token, listen, signed};

/// How long anything may take that is to happen.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long an idle connection is left alone where that is short.
const SHORT: Duration = Duration::from_millis(300);

const PROPERTIES: &str = "/?restype=service&comp=properties";

/// A service, and a few requests of its own.
struct Port {
    service: &'static Service,
    /// In host names and as `ss` of an account SAS.
    label: &'static str,
    letter: &'static str,
    /// Reads something that is always there.
    read: &'static str,
    /// A request that changes something, with its body.
    write: (&'static str, &'static str, &'static [u8]),
    unknown: (&'static str, u16),
}

/// One row a service.
const PORTS: &[Port] = &[
    Port {
        service: &latchfs::file::rest::operations::SERVICE_TABLE,
        label: "file",
        letter: "f",
        read: "/?comp=list",
        write: ("PUT", "/made?restype=share", b""),
        unknown: ("/made?restype=moon", 400),
    },
    Port {
        service: &latchfs::blob::rest::operations::SERVICE_TABLE,
        label: "blob",
        letter: "b",
        read: "/?comp=list",
        write: ("PUT", "/made?restype=container", b""),
        unknown: ("/made?restype=moon", 400),
    },
    Port {
        service: &latchfs::queue::rest::operations::SERVICE_TABLE,
        label: "queue",
        letter: "q",
        read: "/?comp=list",
        write: ("PUT", "/made", b""),
        unknown: ("/made?comp=moon", 400),
    },
    Port {
        service: &latchfs::table::rest::operations::SERVICE_TABLE,
        label: "table",
        letter: "t",
        read: "/Tables",
        write: ("POST", "/Tables", br#"{"TableName":"made"}"#),
        unknown: ("/?comp=moon", 400),
    },
];

/// A listener of one service on a data directory of its own.
struct Listening {
    port: &'static Port,
    server: RestServer,
    _folder: tempfile::TempDir,
}

impl Listening {
    fn start(port: &'static Port, choose: impl FnOnce(&mut RestOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        let none: [&str; 0] = [];
        let accounts = Accounts::open(&root, ACCOUNT, none, &AccountOptions::default()).unwrap();
        let server = listen(&Arc::new(accounts), port.service, choose);
        Self { port, server, _folder: folder }
    }

    /// One where only what is signed with the development key gets in.
    fn signed(port: &'static Port) -> Self {
        Self::start(port, |options| options.admission = signed())
    }

    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        ask(self.server.addr(), method, target, headers, body)
    }

    fn ask_host(&self, host: &str, target: &str) -> Got {
        ask_as_it_is(self.server.addr(), host, "GET", target, &[], b"")
    }

    fn get(&self, target: &str) -> Got {
        self.ask("GET", target, &[], b"")
    }

    fn write(&self) -> Got {
        let (method, target, body) = self.port.write;
        self.ask(method, target, &[("content-type", "application/json")], body)
    }

    /// An account SAS with these permissions, appended to a target.
    fn with_sas(&self, target: &str, permissions: &str) -> String {
        let and = if target.contains('?') { '&' } else { '?' };
        format!("{target}{and}{}", account_token(self.port.letter, "sco", permissions))
    }
}

/// Runs a check on a listener of each service.
fn on_each(check: impl Fn(&Listening)) {
    for port in PORTS {
        check(&Listening::start(port, |_| {}));
    }
}

#[test]
fn every_service_has_a_row() {
    let labels: Vec<_> = PORTS.iter().map(|port| port.label).collect();
    assert_eq!(labels, ServiceKind::ALL.map(ServiceKind::label));
}

#[test]
fn a_connection_takes_one_request_after_another() {
    on_each(|at| {
        let mut kept = Kept::connect(at.server.addr()).unwrap();
        for _ in 0..3 {
            let got = kept.ask("GET", at.port.read, &[], b"").unwrap();
            assert_eq!(got.status, 200, "{}: {}", at.port.label, got.text());
        }
        // A refusal leaves the connection usable, with or without a body.
        let refused = kept.ask("PUT", at.port.unknown.0, &[], b"a body that nobody reads").unwrap();
        assert!((400..500).contains(&refused.status), "{}", at.port.label);
        let got = kept.ask("GET", at.port.read, &[], b"").unwrap();
        assert_eq!(got.status, 200, "{}", at.port.label);
    });
}

#[test]
fn an_idle_connection_ends_after_a_while() {
    for port in PORTS {
        let at = Listening::start(port, |options| options.limits.idle_wait = SHORT);
        let mut idle = TcpStream::connect(at.server.addr()).unwrap();
        idle.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(idle.read(&mut [0]).unwrap(), 0, "{}", port.label);
    }
}

#[test]
fn host_style_and_path_style_are_the_same_and_a_foreign_host_is_refused() {
    on_each(|at| {
        let (label, port) = (at.port.label, at.server.addr().port());
        let host = format!("{ACCOUNT}.{label}.localhost:{port}");
        at.ask_host(&host, at.port.read).is(200);
        at.get(at.port.read).is(200);
        let path_style = format!("/{ACCOUNT}{}", at.port.read);
        at.ask_host(&format!("localhost:{port}"), &path_style).is(200);
        for foreign in ["evil.example", &format!("{ACCOUNT}.{label}.evil.example")] {
            let got = at.ask_host(foreign, &path_style);
            assert_eq!((got.status, got.code()), (400, "InvalidHeaderValue"), "{foreign}");
        }
        let unknown =
            at.ask_host(&format!("localhost:{port}"), &format!("/nobody{}", at.port.read));
        assert_eq!((unknown.status, unknown.code()), (400, "InvalidUri"), "{label}");
    });
}

#[test]
fn the_secondary_location_reads_and_does_not_write() {
    on_each(|at| {
        let addr = at.server.addr();
        let ask = |method: &str, target: &str, body: &[u8]| {
            let target = format!("/{ACCOUNT}-secondary{target}");
            ask_as_it_is(addr, &addr.to_string(), method, &target, &[], body)
        };
        ask("GET", at.port.read, b"").is(200);
        let (method, target, body) = at.port.write;
        let got = ask(method, target, body);
        let code = "WriteOperationNotSupportedOnSecondary";
        assert_eq!((got.status, got.code()), (403, code), "{}", at.port.label);
        let host = format!("{ACCOUNT}-secondary.{}.localhost", at.port.label);
        at.ask_host(&host, at.port.read).is(200);
    });
}

#[test]
fn the_version_comes_back_and_one_far_ahead_is_refused() {
    on_each(|at| {
        for version in ["2021-12-02", "2026-10-06", "2030-01-01"] {
            let got = at.ask("GET", at.port.read, &[("x-ms-version", version)], b"").is(200);
            assert_eq!(got.header("x-ms-version"), version, "{}", at.port.label);
        }
        for version in ["3025-01-01", "soon", "2001-01-01"] {
            let got = at.ask("GET", at.port.read, &[("x-ms-version", version)], b"");
            let expected = (400, "InvalidHeaderValue");
            assert_eq!((got.status, got.code()), expected, "{} {version}", at.port.label);
        }
    });
}

#[test]
fn a_request_that_names_no_operation_is_a_bad_request_with_a_code_and_the_request_s_id() {
    on_each(|at| {
        let (target, status) = at.port.unknown;
        let got = at.ask("GET", target, &[("x-ms-client-request-id", "abc")], b"").is(status);
        assert!(!got.code().is_empty(), "{}", at.port.label);
        assert!(got.text().contains(got.code()), "{}", got.text());
        assert_eq!(got.header("x-ms-client-request-id"), "abc");
        assert_eq!(got.header("x-ms-request-id").len(), 36);
        assert!(got.text().contains("RequestId:"), "{}", got.text());
        let head = at.ask("HEAD", target, &[], b"");
        assert!(head.status >= 400 && head.body.is_empty() && !head.code().is_empty());
    });
}

#[test]
fn nobody_gets_in_unsigned_and_a_sas_does() {
    for port in PORTS {
        let at = Listening::signed(port);
        let got = at.get(port.read);
        assert!([401, 403].contains(&got.status), "{}: {}", port.label, got.status);
        let got = at.write();
        assert!([401, 403].contains(&got.status), "{}: {}", port.label, got.status);
        at.get(&at.with_sas(port.read, "rl")).is(200);
        let got = at.get(&at.with_sas(port.read, "d"));
        let code = "AuthorizationPermissionMismatch";
        assert_eq!((got.status, got.code()), (403, code), "{}", port.label);
        let forged = at.with_sas(port.read, "rl").replace("sp=rl", "sp=rwdl");
        let got = at.get(&forged);
        assert_eq!((got.status, got.code()), (403, "AuthenticationFailed"), "{}", port.label);
    }
}

#[test]
fn a_cors_rule_lets_a_page_in_and_outlasts_nothing_else() {
    on_each(|at| {
        let ask = [("origin", "http://app.example"), ("access-control-request-method", "GET")];
        let got = at.ask("OPTIONS", at.port.read, &ask, b"");
        assert_eq!((got.status, got.code()), (403, "CorsPreflightFailure"), "{}", at.port.label);
        let rule = b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://app.example\
            </AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders>*\
            </AllowedHeaders><ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>60\
            </MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
        at.ask("PUT", PROPERTIES, &[], rule).is(202);
        let got = at.ask("OPTIONS", at.port.read, &ask, b"").is(200);
        assert_eq!(got.header("access-control-allow-origin"), "http://app.example");
        let got = at.ask("GET", at.port.read, &ask[..1], b"").is(200);
        assert_eq!(got.header("access-control-allow-origin"), "http://app.example");
        let other = at.ask("GET", at.port.read, &[("origin", "http://other.example")], b"").is(200);
        assert_eq!(other.header("access-control-allow-origin"), "");
        assert!(at.get(PROPERTIES).is(200).text().contains("http://app.example"));
        let bad = b"<StorageServiceProperties><x&y/></StorageServiceProperties>";
        let got = at.ask("PUT", PROPERTIES, &[], bad);
        assert_eq!((got.status, got.code()), (400, "InvalidXmlDocument"), "{}", at.port.label);
    });
}

#[test]
fn an_identifier_without_a_policy_comes_back_without_one() {
    on_each(|at| {
        at.write().is(201);
        let restype = match at.port.label {
            "file" => "restype=share&",
            "blob" => "restype=container&",
            _ => "",
        };
        let target = format!("/made?{restype}comp=acl");
        let body = b"<SignedIdentifiers><SignedIdentifier><Id>bare</Id></SignedIdentifier>\
            <SignedIdentifier><Id>empty</Id><AccessPolicy/></SignedIdentifier><SignedIdentifier>\
            <Id>full</Id><AccessPolicy><Permission>r</Permission></AccessPolicy>\
            </SignedIdentifier></SignedIdentifiers>";
        let set = at.ask("PUT", &target, &[], body);
        assert!(set.status < 300, "{}: {}", at.port.label, set.text());
        let got = at.get(&target).is(200).text();
        for id in ["bare", "empty"] {
            let alone = format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>");
            assert!(got.contains(&alone), "{}: {got}", at.port.label);
        }
        assert_eq!(got.matches("<AccessPolicy>").count(), 1, "{}: {got}", at.port.label);
    });
}

/// A signed request without a version is of the latest one to queues and tables.
#[test]
fn a_signed_request_names_its_version_but_to_queues_and_tables() {
    on_each(|at| {
        let signed = [("x-ms-version", ""), ("authorization", "SharedKey devstoreaccount1:c2ln")];
        let got = at.ask("GET", at.port.read, &signed, b"");
        let need_not = matches!(at.port.label, "queue" | "table");
        let expected = if need_not { (200, "") } else { (400, "MissingRequiredHeader") };
        assert_eq!((got.status, got.code()), expected, "{}", at.port.label);
        assert_eq!(got.header("x-ms-version"), "2026-10-06", "{}", at.port.label);
        at.ask("GET", at.port.read, &signed[..1], b"").is(200);
    });
}

/// Headers of a request that a web page of another site has a browser send.
const FOREIGN: [&[(&str, &str)]; 4] = [
    &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")],
    &[("origin", "https://evil.example")],
    &[("origin", "null")],
    // An image or a link, which has no Origin.
    &[("sec-fetch-site", "cross-site")],
];

/// Sends the write of the service, signed, with further headers.
fn write_from(at: &Listening, from: &[(&str, &str)]) -> Got {
    let (method, target, body) = at.port.write;
    let target = at.with_sas(target, "racwdlup");
    let headers = [&[("content-type", "application/json")], from].concat();
    at.ask(method, &target, &headers, body)
}

#[test]
fn a_web_page_of_another_site_changes_nothing_where_anybody_can_sign() {
    for port in PORTS {
        for at in [Listening::signed(port), Listening::start(port, |_| {})] {
            for from in FOREIGN {
                let got = write_from(&at, from);
                let expected = (403, "AuthorizationFailure");
                assert_eq!((got.status, got.code()), expected, "{} {from:?}", port.label);
                // A page does not see the answer to a read: nothing is gained by a refusal.
                at.ask("GET", &at.with_sas(port.read, "rl"), from, b"").is(200);
            }
            let own = format!("http://{}", at.server.addr());
            let longer = format!("{own}0");
            assert_eq!(write_from(&at, &[("origin", &longer)]).status, 403, "{}", port.label);
            let got = write_from(&at, &[("origin", &own), ("sec-fetch-site", "same-origin")]);
            assert!(got.status < 300, "{}: {}", port.label, got.text());
        }
    }
}

#[test]
fn a_web_page_that_a_cors_rule_allows_may_change_something() {
    for port in PORTS {
        let at = Listening::signed(port);
        let rule = |origin: &str, method: &str| {
            let body = format!(
                "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>{origin}\
                 </AllowedOrigins><AllowedMethods>{method}</AllowedMethods></CorsRule></Cors>\
                 </StorageServiceProperties>"
            );
            at.ask("PUT", &at.with_sas(PROPERTIES, "w"), &[], body.as_bytes()).is(202);
        };
        rule("https://evil.example", "GET");
        assert_eq!(write_from(&at, FOREIGN[0]).status, 403, "{}: for GET alone", port.label);
        rule("https://good.example", port.write.0);
        assert_eq!(write_from(&at, FOREIGN[0]).status, 403, "{}: for another", port.label);
        let good = [("origin", "https://good.example"), ("sec-fetch-site", "cross-site")];
        let got = write_from(&at, &good);
        assert!(got.status < 300, "{}: {}", port.label, got.text());
    }
}

#[test]
fn a_web_page_is_no_danger_to_an_account_with_a_private_key() {
    for port in PORTS {
        let key: Credential = format!("{ACCOUNT}:cHJpdmF0ZSBrZXk=").parse().unwrap();
        let at = Listening::start(port, |options| {
            let accounts = Credentials::new([key.clone()]).unwrap();
            options.admission = Admission::Signed(Authorizer { accounts, ..Authorizer::default() });
        });
        let sas = AccountSas {
            permissions: "racwdlup".to_owned(),
            services: port.letter.to_owned(),
            levels: "sco".to_owned(),
            expiry: Timestamp(i64::MAX),
            ..AccountSas::default()
        };
        let (method, target, body) = port.write;
        let and = if target.contains('?') { '&' } else { '?' };
        let target = format!("{target}{and}{}", sas.token(&key));
        let got = at.ask(method, &target, FOREIGN[0], body);
        assert_ne!(got.code(), "AuthorizationFailure", "{}: {}", port.label, got.text());
    }
}

#[cfg(feature = "tls")]
#[test]
fn every_service_is_served_over_tls_and_tells_plain_http_so() {
    use std::time::SystemTime;

    use latchfs::http::tls::Authority;

    for port in PORTS {
        let authority = Authority::new().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()].to_vec();
        let tls = authority.issue(names, SystemTime::now()).unwrap();
        let at = Listening::start(port, |options| options.tls = Some(tls));
        let target = format!("/{ACCOUNT}{}", port.read);
        let answer = super::tls::ask(at.server.addr(), &authority, "localhost", &target).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{}: {answer}", port.label);
        let got = at.get(port.read);
        assert_eq!((got.status, got.code()), (400, "AccountRequiresHttps"), "{}", port.label);
    }
}
