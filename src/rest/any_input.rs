//! Entry points for fuzzers and for the test of their corpora: each reads untrusted bytes as the
//! server does and drops the result.
//!
//! Decides nothing; the only failure is a panic.

use std::net::{Ipv4Addr, SocketAddr};

use hyper::body::Bytes;
use hyper::http::request::Parts;

use super::address::{Address, ListenerNames};
use super::auth::{AuthTarget, Authorizer, Credential, Credentials, OauthMode, signing_account};
use super::http::cors::Cors;
use super::http::multipart;
use super::http::request::{Query, Request, byte_range};
use super::http::xml::Element;
use super::service::Service;
use super::version;
use crate::core::Timestamp;
use crate::core::policy::StoredPolicy;

const SERVICES: [&Service; 4] = [&super::FILE, &super::BLOB, &super::QUEUE, &super::TABLE];

/// A moment at which signatures are checked: 2026-01-05, 10:00.
const NOW: Timestamp = Timestamp(1_767_607_200_000_000_000);

/// Parts that a batch may have.
const PARTS_MAX: usize = 256;

/// The head of a request: a line with method and target, then headers. It is read, routed and
/// authorised, by each service.
pub fn request(bytes: &[u8]) {
    for service in SERVICES {
        if let Some(request) = read(service, bytes) {
            look_at(service, &request);
        }
    }
}

/// A header `Range`.
pub fn range(bytes: &[u8]) {
    if let Some(range) = std::str::from_utf8(bytes).ok().and_then(byte_range) {
        assert!(range.start < range.end || range.end == u64::MAX, "{range:?}");
    }
}

/// An XML body. What was read is written as XML that is read the same.
pub fn xml(bytes: &[u8]) {
    for root in ["SignedIdentifiers", "StorageServiceProperties", "BlockList", "Cors", "Tags"] {
        if let Ok(element) = Element::read(bytes, root) {
            let written = element.document();
            let again = Element::read(written.as_bytes(), root);
            assert!(again.is_ok(), "{written}");
            // Whatever it says.
            let _ = Cors::read(&element);
        }
    }
}

/// A multipart body: a line with the content type, then the body.
pub fn multipart(bytes: &[u8]) {
    let (kind, body) = match memchr::memchr(b'\n', bytes) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    let Some(boundary) =
        std::str::from_utf8(kind).ok().and_then(|kind| multipart::boundary(kind).ok())
    else {
        return;
    };
    for part in multipart::parts(body, boundary, PARTS_MAX).into_iter().flatten() {
        // Whatever it says.
        let _ = multipart::inner_request(part.body);
    }
}

fn read(service: &Service, bytes: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let mut head = hyper::Request::builder().method(method).uri(target);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        head = head.header(name, value.trim());
    }
    let (head, ()) = head.body(()).ok()?.into_parts();
    as_request(service, head)
}

fn as_request(service: &Service, head: Parts) -> Option<Request> {
    let accounts = [super::auth::DEVELOPMENT_NAME.to_owned()];
    let names = ListenerNames {
        service: service.kind,
        accounts: &accounts,
        hosts: &[],
        any_suffix: false,
        any_label: false,
        path_style: false,
    };
    let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let host = text("host").unwrap_or("127.0.0.1").to_owned();
    names.check_host(&host).ok()?;
    let signer = text("authorization").and_then(signing_account);
    let address = Address::read(names, ("http", &host), head.uri.path(), signer).ok()?;
    let query = Query::read(head.uri.query().unwrap_or_default());
    let (method, uri, headers, body) = (head.method, head.uri, head.headers, Bytes::new());
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let (id, now, spelled) = (String::new(), NOW, Vec::new());
    let https = false;
    let outside = NOW;
    Some(Request {
        method,
        uri,
        headers,
        body,
        peer,
        https,
        address,
        id,
        now,
        outside,
        query,
        spelled,
    })
}

fn look_at(service: &Service, request: &Request) {
    // Whatever each of them says.
    let _ = version::check(service, request, false);
    let _ = (service.route)(request);
    let _ = (request.range(), request.metadata(), request.page_size(100));
    let _ = request.lease_id("x-ms-lease-id");
    let accounts = Credentials::new([Credential::development()]).expect("one account");
    let authorizer = Authorizer { accounts, oauth: OauthMode::Basic };
    let path = request.address.path();
    let target = AuthTarget {
        signatures: service.signatures,
        account: &request.address.account,
        container: request.address.container.as_deref(),
        path: &path,
        level: request.address.level(),
    };
    let headers = request.header_pairs();
    let policies = |_: &str, _: &str, _: &str| None::<StoredPolicy>;
    let _ = authorizer.authorize(&request.view(&headers), &target, &policies);
}
