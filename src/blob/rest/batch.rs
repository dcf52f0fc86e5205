//! Blob Batch: many deletions or tier changes in one request.
//!
//! Decides how a batch is taken apart and put together, and that a batch of a container stays in
//! it. Each part is admitted, authorised and carried out as a request of its own; one that fails
//! does not touch the others.

use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use hyper::{Method, StatusCode, Uri};

use super::BlobCall;
use super::operations::{BLOB_DELETE, BLOB_SET_TIER, SERVICE_TABLE};
use crate::http::auth::{GrantedBy, ResourceLevel, signing_account};
use crate::http::frame::address::Address;
use crate::http::frame::call::Call;
use crate::http::frame::facts;
use crate::http::frame::handle::{authorise, route};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::frame::version::{self, VERSION};
use crate::http::multipart::{self, Malformed, MultipartWriter, inner_answer};
use crate::http::reply::{Reply, ReplyBody};
use crate::http::request::{Query, Request};
use crate::rules::service::ServiceKind;
use crate::rules::time::{iso, rfc1123};
use crate::sync::random::new_guid;

const BATCH_MAX: usize = 4 << 20;
/// Most parts of a batch.
const PARTS_MAX: usize = 256;

/// A part of a batch.
struct BatchPart {
    id: Option<String>,
    method: Method,
    target: Uri,
    headers: HeaderMap,
}

impl BlobCall<'_> {
    pub(super) async fn submit_batch(self, body: Incoming) -> Answer {
        let document = self.collect_up_to(BATCH_MAX, body).await?;
        let boundary = multipart::boundary(self.required("content-type")?).map_err(malformed)?;
        let parts = multipart::parts(&document, boundary, PARTS_MAX).map_err(malformed)?;
        let parts = parts.iter().map(read_part).collect::<Result<Vec<_>, _>>()?;
        let kind = |part: &BatchPart| part.method == Method::DELETE;
        if parts.is_empty() || parts.iter().any(|part| kind(part) != kind(&parts[0])) {
            return Err(bad("it needs one kind of operation, at least once"));
        }
        let mut answer = MultipartWriter::new(format!("batchresponse_{}", new_guid()));
        for part in &parts {
            let id = part.id.iter().map(|id| ("Content-ID", id.as_str()));
            let headers = [("Content-Type", "application/http")].into_iter().chain(id);
            answer.part(headers, &self.answer_part(part).await);
        }
        let kind = answer.content_type();
        Ok(Reply::accepted().bytes(&kind, answer.finish()))
    }

    /// Carries a part out, and writes its answer.
    async fn answer_part(&self, part: &BatchPart) -> String {
        let reply = self.carry_out(part).await;
        let request_id = new_guid();
        let stamp = format!("RequestId:{request_id}\nTime:{}", iso(self.now));
        let names = self.site.options.error_names;
        let reply = reply.unwrap_or_else(|refusal| {
            self.0.note_part(&refusal);
            refusal.reply(SERVICE_TABLE.errors, names, false, &stamp)
        });
        let mut headers = Vec::new();
        for (name, value) in &reply.headers {
            if let Ok(value) = value.to_str() {
                headers.push((name.as_str(), value.to_owned()));
            }
        }
        headers.push(("x-ms-request-id", request_id));
        headers.push(("Date", rfc1123(self.now)));
        for name in [VERSION, "x-ms-client-request-id"] {
            let sent = part.headers.get(name).or(self.headers.get(name));
            if let Some(value) = sent.and_then(|value| value.to_str().ok()) {
                headers.push((name, value.to_owned()));
            }
        }
        let body = match &reply.body {
            ReplyBody::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            ReplyBody::Stream(..) | ReplyBody::HeadOf(_) => String::new(),
        };
        if !body.is_empty() {
            headers.push(("Content-Length", body.len().to_string()));
        }
        let reason = reply.status.canonical_reason().unwrap_or_default();
        inner_answer((reply.status.as_u16(), reason), headers, &body)
    }

    async fn carry_out(&self, part: &BatchPart) -> Answer {
        let request = self.request_of(part)?;
        let object = (SERVICE_TABLE.object)(&request);
        self.carry_out_request(request).await.map_err(|refusal| refusal.about(object))
    }

    async fn carry_out_request(&self, request: Request) -> Answer {
        // A part without a version has that of the batch.
        if request.headers.contains_key(VERSION) {
            version::check(&SERVICE_TABLE, &request, self.site.options.any_version)?;
        }
        let operation = route(self.site, &request)?;
        if !std::ptr::eq(operation, &raw const BLOB_DELETE)
            && !std::ptr::eq(operation, &raw const BLOB_SET_TIER)
        {
            return Err(bad("a part must be Delete Blob or Set Blob Tier"));
        }
        if request.address.account != self.address.account {
            return Err(bad("a part addresses another account"));
        }
        let (container, _) = (SERVICE_TABLE.target)(&request.address, ResourceLevel::Object);
        if self.address.container.is_some() && container != self.address.container.as_deref() {
            return Err(bad("a part addresses another container than the batch"));
        }
        // The key and a token are good for the whole account; a SAS is asked for each part.
        let covers = matches!(self.grant.by, GrantedBy::SharedKey | GrantedBy::Bearer { .. });
        let (request, grant) = if covers && !is_signed(&request.headers, &request.query) {
            (request, self.grant.clone())
        } else {
            authorise(self.0.site, self.0.account, request, operation).await?
        };
        let call = Call {
            site: self.0.site,
            account: self.0.account,
            request: &request,
            context: self.0.context,
            grant: &grant,
        };
        let noted = self.0.context.noted.as_ref();
        let before = noted.map_or(0, |noted| noted.changes());
        let answer = if std::ptr::eq(operation, &raw const BLOB_DELETE) {
            BlobCall(&call).delete_blob_now().await
        } else {
            BlobCall(&call).set_tier_now().await
        };
        // The head of the batch does not tell the conditions of its parts.
        self.0.context.note(|given| {
            let guards = facts::asked(ServiceKind::Blob, operation.title, &request).guards();
            for changed in given.changed.iter_mut().skip(before) {
                changed.guarded = Some(guards);
            }
        });
        answer
    }

    /// Where a part goes. One without credentials has those of the batch, as far as they are in
    /// its URL.
    fn with_sas(&self, part: &BatchPart) -> Result<Uri, Refusal> {
        let own = part.target.query().unwrap_or_default();
        let sas = sas_of(self.uri.query().unwrap_or_default());
        if sas.is_empty() || is_signed(&part.headers, &Query::read(own)) {
            return Ok(part.target.clone());
        }
        let uri = format!("{}?{own}&{sas}", part.target.path()).parse();
        uri.map_err(|_| bad("the URL of a part cannot be read"))
    }

    fn request_of(&self, part: &BatchPart) -> Result<Request, Refusal> {
        let host = part.headers.get("host").or(self.headers.get("host"));
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
        self.site.names().check_host(&host)?;
        let scheme = if self.https { "https" } else { "http" };
        let signer = part.headers.get("authorization").and_then(|value| value.to_str().ok());
        let signer = signer.and_then(signing_account);
        let names = self.site.names();
        let address = Address::read(names, (scheme, &host), part.target.path(), signer)?;
        let uri = self.with_sas(part)?;
        Ok(Request {
            id: new_guid(),
            method: part.method.clone(),
            headers: part.headers.clone(),
            body: Bytes::new(),
            peer: self.peer,
            https: self.https,
            address,
            now: self.now,
            outside: self.outside,
            query: Query::read(uri.query().unwrap_or_default()),
            uri,
            spelled: Vec::new(),
        })
    }
}

/// Whether a request brings credentials. An empty signature is one too: it is refused, and never
/// replaced by that of the batch.
fn is_signed(headers: &HeaderMap, query: &Query) -> bool {
    headers.contains_key("authorization") || query.names("sig")
}

/// The SAS of a batch, which its parts without credentials have too. Empty if it has none.
fn sas_of(query: &str) -> String {
    if Query::read(query).get("sig").is_none() {
        return String::new();
    }
    let name = |pair: &&str| pair.split('=').next().unwrap_or_default().to_ascii_lowercase();
    let of_batch = |pair: &&str| matches!(name(pair).as_str(), "comp" | "restype" | "timeout");
    query.split('&').filter(|pair| !of_batch(pair)).collect::<Vec<_>>().join("&")
}

fn bad(why: &str) -> Refusal {
    let message = "One of the request inputs is not valid.";
    Refusal::new(StatusCode::BAD_REQUEST, "InvalidInput", format!("{message} [latchfs: {why}]"))
}

/// Reads a part: an HTTP request, and the ID that its answer repeats.
fn read_part(part: &multipart::Part<'_>) -> Result<BatchPart, Refusal> {
    let request = multipart::inner_request(part.body).map_err(malformed)?;
    let method = Method::from_bytes(request.method.as_bytes());
    let (Ok(method), Ok(target)) = (method, request.target.parse::<Uri>()) else {
        return Err(bad("a part is not a request"));
    };
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers {
        let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
        else {
            return Err(malformed(Malformed::Header));
        };
        headers.insert(name, value);
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        return Err(bad("a part has no Transfer-Encoding"));
    }
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    if let Some(target) = target.authority()
        && host.is_none_or(|host| !host.eq_ignore_ascii_case(target.as_str().as_bytes()))
    {
        return Err(bad("the target of a part is a path"));
    }
    let id = multipart::header(&part.headers, "content-id").map(str::to_owned);
    Ok(BatchPart { id, method, target, headers })
}

fn malformed(error: Malformed) -> Refusal {
    bad(&error.to_string())
}
