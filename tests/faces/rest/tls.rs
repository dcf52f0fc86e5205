//! The listener over TLS: who is let in, who is told to come by https, who is given up.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use latchfs::http::tls::{Authority, HANDSHAKE_WAIT, Tls, TlsError};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::rest::fixture::{ACCOUNT, Fixture, sas};

fn names() -> Vec<String> {
    ["localhost", "127.0.0.1", "*.file.localhost"].map(str::to_owned).to_vec()
}

fn secured(authority: &Authority) -> Fixture {
    let tls = authority.issue(names(), SystemTime::now()).unwrap();
    Fixture::with(|options| options.tls = Some(tls))
}

/// One request as `name`, trusting `authority` alone; what came back, or why nothing did.
pub fn ask(
    addr: SocketAddr,
    authority: &Authority,
    name: &str,
    target: &str,
) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    let pem = authority.certificate_pem().unwrap();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(addr)?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut stream = StreamOwned::new(client, socket);
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn requests_are_answered_under_each_name_and_the_endpoint_says_https() {
    let authority = Authority::new().unwrap();
    let fixture = secured(&authority);
    for name in ["localhost", "127.0.0.1", "devstoreaccount1.file.localhost"] {
        let answer =
            ask(fixture.server.addr(), &authority, name, &format!("/{ACCOUNT}/?comp=list"))
                .unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("ServiceEndpoint=\"https://localhost/"), "{answer}");
    }
    let other = ask(fixture.server.addr(), &authority, "example.com", "/").unwrap_err();
    assert!(other.to_string().contains("certificate"), "{other}");
}

#[test]
fn only_those_who_trust_the_authority_go_on_and_its_key_is_all_there_is_to_keep() {
    let authority = Authority::new().unwrap();
    let fixture = secured(&authority);
    let stranger = Authority::new().unwrap();
    assert!(ask(fixture.server.addr(), &stranger, "localhost", "/").is_err());
    let again = Authority::from_key_pem(&authority.key_pem()).unwrap();
    let fixture = secured(&again);
    assert!(ask(fixture.server.addr(), &authority, "localhost", "/").is_ok());
}

#[test]
fn plain_http_is_told_to_come_by_https() {
    let fixture = secured(&Authority::new().unwrap());
    let got = fixture.ask("PUT", "/docs/a", &[], &vec![0; 1 << 20]);
    let got = got.refused(400, "AccountRequiresHttps");
    assert!(got.text().contains("https://"));
}

#[test]
fn who_never_shakes_hands_holds_nobody_up_and_a_stop_does_not_wait() {
    let authority = Authority::new().unwrap();
    let mut fixture = secured(&authority);
    let mut silent = TcpStream::connect(fixture.server.addr()).unwrap();
    let mut halfway = TcpStream::connect(fixture.server.addr()).unwrap();
    halfway.write_all(&[0x16, 3, 1]).unwrap();
    assert!(ask(fixture.server.addr(), &authority, "localhost", "/").is_ok());
    let begun = Instant::now();
    fixture.server.stop();
    assert!(begun.elapsed() < Duration::from_secs(4));
    for stream in [&mut silent, &mut halfway] {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // A reset, where bytes were left unread.
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
}

#[test]
fn a_handshake_that_does_not_begin_is_given_up() {
    let fixture = secured(&Authority::new().unwrap());
    let mut silent = TcpStream::connect(fixture.server.addr()).unwrap();
    silent.set_read_timeout(Some(HANDSHAKE_WAIT * 3)).unwrap();
    let begun = Instant::now();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    assert!(begun.elapsed() < HANDSHAKE_WAIT * 2, "{:?}", begun.elapsed());
}

#[test]
fn files_that_will_not_do_are_told_apart() {
    let (one, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let (chain, key) = (one.certificate_pem().unwrap(), one.key_pem());
    let load = |chain: &str, key: &str| Tls::from_pem(chain.as_bytes(), key.as_bytes());
    assert!(load(&chain, &key).is_ok());
    assert!(matches!(load(&chain, &other.key_pem()), Err(TlsError::Mismatch)));
    assert!(matches!(load(&chain, &chain), Err(TlsError::NoKey(_))));
    assert!(matches!(load(&key, &key), Err(TlsError::NoCertificate(_))));
    assert!(matches!(load("nonsense", &key), Err(TlsError::NoCertificate(_))));
}

#[test]
fn a_sas_for_https_only_is_taken_over_tls_and_refused_without() {
    let target = format!("/{ACCOUNT}/?comp=list&{}", sas("l", true));
    let plain = Fixture::signed(|_| {});
    plain
        .ask_host("localhost", "GET", &target, &[], b"")
        .refused(403, "AuthorizationProtocolMismatch");
    let authority = Authority::new().unwrap();
    let tls = authority.issue(names(), SystemTime::now()).unwrap();
    let fixture = Fixture::signed(|options| options.tls = Some(tls));
    let answer = ask(fixture.server.addr(), &authority, "localhost", &target).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
