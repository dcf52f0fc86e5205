//! Entry points for fuzzers and for the test of their corpora: each reads untrusted bytes as the
//! server does and drops the result. The only failure is a panic. No part of the program: built for
//! tests, and with the feature `fuzzing`.

use std::net::{Ipv4Addr, SocketAddr};

use hyper::body::Bytes;
use hyper::http::request::Parts;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::blob::rest::blocks::read_list;
use crate::blob::rest::settings::read_tags;
use crate::blob::rules::tags::Tags;
use crate::blob::rules::tags::query::{TagLanguage, TagQuery};
use crate::http::auth::{
    AuthError, AuthTarget, Authorizer, Credential, Credentials, Grant, OauthMode, RequestView,
    signing_account,
};
use crate::http::cors::Cors;
use crate::http::frame::address::{Address, ListenerNames};
use crate::http::frame::service::Service;
use crate::http::frame::version;
use crate::http::multipart;
use crate::http::policies::read_timed_policies;
use crate::http::request::{Query, Request, byte_range};
use crate::http::unframed::Unframer;
use crate::http::xml::Element;
use crate::queue::rest::messages::read_text;
use crate::rules::Timestamp;
use crate::rules::policy::StoredPolicy;
use crate::table::rest::json::{EntityBody, MetadataLevel, Scope, read_entity, read_table_name};
use crate::table::rules::{EntityFields, Filter, Properties, Select, Ticks, ValueRef};

const SERVICES: [&Service; 4] = [
    &crate::file::rest::operations::SERVICE_TABLE,
    &crate::blob::rest::operations::SERVICE_TABLE,
    &crate::queue::rest::operations::SERVICE_TABLE,
    &crate::table::rest::operations::SERVICE_TABLE,
];

/// A moment at which signatures are checked: 2026-01-05, 10:00.
const NOW: Timestamp = Timestamp(1_767_607_200_000_000_000);

/// Parts that a batch may have.
const PARTS_MAX: usize = 256;

/// The head of a request: a line with method and target, then headers. It is read, routed and
/// authorised, by each service: as it is, and with the signature that it should have had.
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
    // Whatever each of them says.
    let _ = (read_timed_policies(bytes), read_list(bytes), read_tags(bytes), read_text(bytes));
}

/// A structured body. Cut in two anywhere, it has the payload that it has as a whole.
pub fn structured(bytes: &[u8]) {
    let whole = unframed(&[bytes]);
    for at in [1, 13, 14, bytes.len() / 2] {
        let (first, second) = bytes.split_at(at.min(bytes.len()));
        assert_eq!(unframed(&[first, second]), whole, "cut at {at}");
    }
}

/// The JSON of an entity, or of a table. An entity within the limits is written as JSON that is
/// read the same.
pub fn entity(bytes: &[u8]) {
    // Whatever it says.
    let _ = read_table_name(bytes);
    let Ok(given) = read_entity(bytes) else { return };
    if given.properties.check_each().is_err() {
        return;
    }
    let row = given_entity(given);
    let scope = Scope { level: MetadataLevel::Full, base: "http://h", account: "a" };
    let written = scope.entity("t", &row, &Select::default());
    let again = read_entity(written.as_bytes()).expect("JSON of this server is read by it");
    let read = again.properties.iter().map(|property| format!("{property:?}"));
    // As texts: a number that is none differs from itself.
    assert!(read.eq(row.properties.iter().map(|property| format!("{property:?}"))), "{written}");
}

fn given_entity(body: EntityBody) -> GivenEntity {
    let [partition, row] = body.keys.unwrap_or_default();
    GivenEntity { partition, row, properties: body.properties }
}

/// A `$filter` of the Table service. An entity that it matches lies in the ranges that are read for
/// it.
pub fn filter(bytes: &[u8]) {
    let Some(filter) = std::str::from_utf8(bytes).ok().and_then(|text| Filter::parse(text).ok())
    else {
        return;
    };
    let row = read_entity(ROW).expect("an entity");
    let row = given_entity(row);
    let ranges = filter.ranges();
    let is_read = ranges.iter().any(|range| range.contains(row.partition(), row.row()));
    assert!(is_read || !filter.matches(&row), "{filter:?} is read in {ranges:?}");
}

/// A condition on tags, or a search for them.
pub fn tag_query(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for language in [TagLanguage::Condition, TagLanguage::Find] {
        // Whatever it says.
        let _ = TagQuery::parse(text, language).map(|query| query.holds("c", &Tags::default()));
    }
}

/// An entity with a property of every type.
const ROW: &[u8] = br#"{"PartitionKey":"p","RowKey":"r","A":1,"B":"b","C":true,"D":1.5,
    "E@odata.type":"Edm.Int64","E":"5","F@odata.type":"Edm.Binary","F":"AQ==",
    "G@odata.type":"Edm.Guid","G":"00000000-0000-0000-0000-000000000001",
    "H@odata.type":"Edm.DateTime","H":"2026-01-05T10:00:00Z"}"#;

struct GivenEntity {
    partition: Option<String>,
    row: Option<String>,
    properties: Properties,
}

impl EntityFields for GivenEntity {
    fn partition(&self) -> &str {
        self.partition.as_deref().unwrap_or_default()
    }

    fn row(&self) -> &str {
        self.row.as_deref().unwrap_or_default()
    }

    fn timestamp(&self) -> Ticks {
        Ticks::of(NOW)
    }

    fn properties(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
        self.properties.iter()
    }
}

fn unframed(parts: &[&[u8]]) -> Option<Vec<u8>> {
    let mut unframer = Unframer::default();
    let mut payload = Vec::new();
    for part in parts {
        let mut rest = Bytes::copy_from_slice(part);
        while let Some(bytes) = unframer.next(&mut rest).ok()? {
            payload.extend_from_slice(&bytes);
        }
    }
    unframer.finish().ok().map(|()| payload)
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

/// A frame of an SMB client: every message of its chain is parsed, and read as any that follows
/// from the classes and codes in it.
#[cfg(feature = "smb")]
pub fn smb_message(frame: &[u8]) {
    use crate::file::smb::wire::{self, Header, Transform};
    // Whatever each of them says.
    let _ = (Transform::parse(frame), wire::negotiate::Smb1Negotiate::parse(frame));
    let mut rest = Some(frame);
    while let Some(chain) = rest {
        let Ok(header) = Header::parse(chain) else { return };
        let Ok((message, behind)) = header.split(chain) else { return };
        smb_request(message);
        let mut again = message.to_vec();
        header.fill(&mut again);
        assert_eq!(Header::parse(&again), Ok(header), "a header is written as it was read");
        rest = behind;
    }
}

/// A message as the request of its command. Where it is cut off, no parser reads past its end.
#[cfg(feature = "smb")]
fn smb_request(message: &[u8]) {
    use crate::file::smb::wire::{self, create, data, directory, info, ioctl, lock, negotiate};
    use crate::file::smb::wire::{session, set_info};
    use crate::file::smb::{names, times};
    let _ = (wire::parse_flush(message), wire::parse_empty(message));
    let _ = (negotiate::NegotiateRequest::parse(message), session::SessionSetup::parse(message));
    let _ = (session::parse_tree_connect(message), create::CloseRequest::parse(message));
    let _ = (data::ReadRequest::parse(message), data::WriteRequest::parse(message));
    let _ = (lock::LockRequest::parse(message), directory::NotifyRequest::parse(message));
    let _ = info::QueryInfo::parse(message);
    if let Ok(request) = create::CreateRequest::parse(message) {
        let _ = (names::path(&request.name), request.context(b"MxAc"));
    }
    if let Ok(request) = ioctl::IoctlRequest::parse(message) {
        let _ = negotiate::NegotiateCheck::parse(request.input);
    }
    if let Ok(request) = directory::DirectoryRequest::parse(message) {
        let _ = names::matches(&request.pattern, "a name.txt");
    }
    if let Ok(request) = set_info::SetInfo::parse(message) {
        let set = set_info::SetFile::parse(request.class, request.data);
        if let Ok(Some(set_info::SetFile::Basic { times: set, .. })) = set {
            let _ = set.map(times::moment);
        }
    }
}

/// The tokens of an SMB logon: the length of the first, then both.
#[cfg(feature = "smb")]
pub fn smb_logon(bytes: &[u8]) {
    use crate::file::smb::auth::Logon;
    let Some((length, tokens)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(tokens.len());
    let (first, second) = tokens.split_at(length);
    let mut logon = Logon::default();
    for token in [first, second] {
        // The challenge is a new one each time: none can have answered it.
        let step = logon.step(token, 0, |_| vec!["key".to_owned()]);
        assert!(!matches!(step, Ok(crate::file::smb::auth::Step::Done(_))), "{step:?}");
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
    let accounts = [crate::http::auth::DEVELOPMENT_NAME.to_owned()];
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
    let view = request.view(&headers);
    let found = authorizer.authorize(&view, &target, &no_policies);
    if let Err(AuthError::SignatureMismatch { string_to_sign }) = found {
        let signature = Credential::development().key().sign(&string_to_sign);
        let again = authorize_signed(&authorizer, &view, &target, &signature);
        let mismatch = matches!(again, Err(AuthError::SignatureMismatch { .. }));
        // A user delegation SAS is signed with a key of its own.
        let delegated = request.query.names("skoid");
        assert!(!mismatch || delegated, "what a refusal shows was signed: {string_to_sign:?}");
    }
}

fn no_policies(_: &str, _: &str, _: &str) -> Option<StoredPolicy> {
    None
}

/// Authorises a request with another signature: in the header, or else in the query.
fn authorize_signed(
    authorizer: &Authorizer,
    view: &RequestView<'_>,
    target: &AuthTarget<'_>,
    signature: &str,
) -> Result<Grant, AuthError> {
    let named = view.header("authorization").filter(|value| signing_account(value).is_some());
    let Some((account, _)) = named.and_then(|value| value.split_once(':')) else {
        let is_signature = |piece: &str| {
            let name = piece.split('=').next().unwrap_or_default();
            percent_decode_str(name).decode_utf8_lossy().eq_ignore_ascii_case("sig")
        };
        let pieces = view.raw_query.split('&').filter(|piece| !is_signature(piece));
        let encoded = utf8_percent_encode(signature, NON_ALPHANUMERIC);
        let signed = format!("sig={encoded}");
        let query = pieces.chain([signed.as_str()]).collect::<Vec<_>>().join("&");
        let view = RequestView { raw_query: &query, ..*view };
        return authorizer.authorize(&view, target, &no_policies);
    };
    let value = format!("{account}:{signature}");
    let others = view.headers.iter().filter(|(name, _)| *name != "authorization");
    let headers: Vec<_> = others.copied().chain([("authorization", value.as_str())]).collect();
    authorizer.authorize(&RequestView { headers: &headers, ..*view }, target, &no_policies)
}

/// The corpora of `fuzz/`: every file in them is read without a panic. The fuzzers themselves need
/// another toolchain and run for minutes; what they found stays there.
#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::api;
    use crate::file::store::share::Record;

    type Target = (&'static str, fn(&[u8]));

    const TARGETS: &[Target] = &[
        ("control", api::read_any),
        ("entity", entity),
        ("filter", filter),
        ("multipart", multipart),
        ("range", range),
        ("record", |bytes| drop(Record::from_bytes(bytes))),
        ("request", request),
        #[cfg(feature = "smb")]
        ("smb_logon", smb_logon),
        #[cfg(feature = "smb")]
        ("smb_message", smb_message),
        ("structured", structured),
        ("tag_query", tag_query),
        ("xml", xml),
    ];

    fn fuzz(folder: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(folder)
    }

    fn names(folder: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_file_of_the_corpora_is_read_without_a_panic() {
        for (name, read) in TARGETS {
            let corpus = fs::read_dir(fuzz("corpus").join(name)).unwrap();
            let mut files = 0;
            for file in corpus {
                let bytes = fs::read(file.unwrap().path()).unwrap();
                files += 1;
                // Cut off and spoilt, too.
                for end in [bytes.len(), bytes.len() / 2, bytes.len() / 3] {
                    read(&bytes[..end]);
                }
                for at in 0..bytes.len().min(64) {
                    let mut spoilt = bytes.clone();
                    spoilt[at] ^= 0x20;
                    read(&spoilt);
                }
            }
            assert!(files > 1, "{name} has {files} files");
        }
    }

    #[test]
    fn every_fuzz_target_has_a_corpus_that_is_read_here() {
        let known: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(names(&fuzz("fuzz_targets")), known);
        assert_eq!(names(&fuzz("corpus")), known);
    }
}
