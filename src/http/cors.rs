//! CORS: what a page from another origin may ask, and what it may see of the answer.
//!
//! Decides which rule fits, and the headers that a browser looks for. The first rule that fits
//! counts. An answer that would differ for another origin says so (`Vary`), also to a request that
//! names none: a cache between could hand it on.
//! Source: the service's page on CORS, whose table of answers this follows.
//!
//! Decides too which requests of foreign pages are refused ([`check_foreign_page`]): those that
//! change something, while anybody can sign them. The well-known key is public, so any page can
//! make a SAS with it, and a browser sends a page's form, image or plain POST without a preflight.
//! Programs other than browsers send neither `Origin` nor `Sec-Fetch-Site`.

use hyper::header::{HeaderValue, ORIGIN};
use hyper::{Method, StatusCode};

use super::reply::Reply;
use super::xml::{Element, invalid};
use crate::http::frame::host::HostedAccount;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Operation;
use crate::http::frame::site::Site;
use crate::http::request::Request;

/// The most rules (the service's limit).
const RULES_MAX: usize = 5;
/// The methods that a rule may allow.
const METHODS: [&str; 8] = ["DELETE", "GET", "HEAD", "MERGE", "OPTIONS", "PATCH", "POST", "PUT"];
/// Any origin, any header.
const ANY: &str = "*";

const ALLOW_ORIGIN: &str = "access-control-allow-origin";

/// The rules of a service.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cors(Vec<CorsRule>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct CorsRule {
    origins: Vec<String>,
    methods: Vec<String>,
    headers: Vec<String>,
    exposed: Vec<String>,
    max_age: Option<u32>,
}

impl Cors {
    /// Reads the element `Cors` of the service properties.
    pub fn read(cors: &Element) -> Result<Self, Refusal> {
        if cors.children.len() > RULES_MAX {
            return Err(invalid(&format!("there are at most {RULES_MAX} CORS rules")));
        }
        cors.children.iter().map(CorsRule::read).collect::<Result<_, _>>().map(Self)
    }

    /// The answer to a preflight: may a page of `origin` send `method` with these headers?
    pub fn preflight(&self, origin: &str, method: &str, headers: &str) -> Option<Reply> {
        let named = || headers.split(',').map(str::trim).filter(|name| !name.is_empty());
        let rule = self.0.iter().find(|rule| {
            rule.allows(origin, method) && named().all(|name| matches_any(&rule.headers, name))
        })?;
        let reply = Reply::ok()
            .header("access-control-allow-methods", method)
            .maybe("access-control-max-age", rule.max_age);
        let reply = rule.allow_origin(reply, origin);
        Some(if headers.is_empty() {
            reply
        } else {
            reply.header("access-control-allow-headers", headers)
        })
    }

    /// Whether a page of `origin` may send `method`.
    pub fn allows(&self, origin: &str, method: &str) -> bool {
        self.0.iter().any(|rule| rule.allows(origin, method))
    }

    /// Adds the headers for pages of other origins to an ordinary answer.
    pub fn tell(&self, mut reply: Reply, method: &Method, origin: Option<&str>) -> Reply {
        if self.0.is_empty() {
            return reply;
        }
        let cached = matches!(*method, Method::GET | Method::HEAD);
        let rule = self.0.iter().find(|rule| match origin {
            Some(origin) => rule.allows(origin, method.as_str()),
            // This request has no Origin, but a cache may keep the answer for one that has.
            None => cached && rule.allows_all() && rule.has_method(method.as_str()),
        });
        match rule {
            Some(rule) => {
                let exposed: Vec<_> = reply.headers.keys().map(ToString::to_string).collect();
                let exposed = exposed.iter().filter(|name| matches_any(&rule.exposed, name));
                let exposed: Vec<_> = exposed.map(String::as_str).collect();
                if !exposed.is_empty() {
                    reply.set("access-control-expose-headers", exposed.join(","));
                }
                rule.allow_origin(reply, origin.unwrap_or(ANY))
            }
            None if cached => reply.header("vary", "Origin"),
            None => reply,
        }
    }
}

impl CorsRule {
    fn read(rule: &Element) -> Result<Self, Refusal> {
        if rule.name != "CorsRule" {
            return Err(invalid(&format!("the element {} is no CORS rule", rule.name)));
        }
        let list = |name: &str| -> Vec<String> {
            let text = rule.child(name).map(|list| list.text.as_str()).unwrap_or_default();
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        let max_age = match rule.child("MaxAgeInSeconds").map(|age| age.text.as_str()) {
            None | Some("") => None,
            Some(text) => {
                Some(text.parse().map_err(|_| invalid("MaxAgeInSeconds is not a number"))?)
            }
        };
        let this = Self {
            origins: list("AllowedOrigins"),
            methods: list("AllowedMethods"),
            headers: list("AllowedHeaders"),
            exposed: list("ExposedHeaders"),
            max_age,
        };
        if this.origins.is_empty() || this.methods.is_empty() {
            return Err(invalid("a CORS rule allows at least one origin and one method"));
        }
        match this.methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
            Some(method) => Err(invalid(&format!("{method} is not a method of a CORS rule"))),
            None => Ok(this),
        }
    }

    fn allows_all(&self) -> bool {
        self.origins.iter().any(|pattern| pattern == ANY)
    }

    fn has_method(&self, method: &str) -> bool {
        self.methods.iter().any(|allowed| allowed == method)
    }

    fn allows(&self, origin: &str, method: &str) -> bool {
        let fits = |pattern: &String| matches_origin(pattern, origin);
        self.has_method(method) && (self.allows_all() || self.origins.iter().any(fits))
    }

    /// Credentials are for origins that a rule names.
    fn allow_origin(&self, reply: Reply, origin: &str) -> Reply {
        if self.allows_all() {
            return reply.header(ALLOW_ORIGIN, ANY);
        }
        reply
            .header(ALLOW_ORIGIN, origin)
            .header("access-control-allow-credentials", "true")
            .header("vary", "Origin")
    }
}

/// Origins are compared as they are spelled; one asterisk matches sub-domains.
fn matches_origin(pattern: &str, origin: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => {
            let middle = origin.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
            middle.is_some_and(|middle| !middle.is_empty() && !middle.contains('/'))
        }
        None => pattern == origin,
    }
}

/// True if one of `patterns` is the header `name`, or ends in `*` and begins as it does.
fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => {
            name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
        }
        None => pattern.eq_ignore_ascii_case(name),
    })
}

/// Tells where the page is from that a request is sent for. No page can set it.
const FETCH_SITE: &str = "sec-fetch-site";

/// Refuses a request of a foreign page that changes something.
pub fn check_foreign_page(
    site: &Site,
    account: &dyn HostedAccount,
    request: &Request,
    operation: &Operation,
) -> Result<(), Refusal> {
    if !operation.changes || !is_foreign(site, account, request) {
        return Ok(());
    }
    if !site.options.admission.is_open_to_all(account.name()) {
        return Ok(());
    }
    let why = "a web page of another origin sent the request, and no CORS rule allows that origin \
               to use this method";
    Err(Refusal::explained(StatusCode::FORBIDDEN, "AuthorizationFailure", why))
}

/// Whether a page of another origin sent the request that no CORS rule lets in.
fn is_foreign(site: &Site, account: &dyn HostedAccount, request: &Request) -> bool {
    let Some(origin) = request.headers.get(ORIGIN) else {
        // An image or a link has no Origin. A page on another port of this host is of its site.
        let from = request.headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
        let is = |foreign: &[u8]| from.is_some_and(|site| site.eq_ignore_ascii_case(foreign));
        return is(b"cross-site") || is(b"same-site");
    };
    let origin = origin.to_str().unwrap_or_default();
    let rest = request.address.endpoint.strip_prefix(origin);
    let own = rest.is_some_and(|rest| rest.starts_with('/'));
    !own && !site.cors(account).allows(origin, request.method.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_pattern_may_end_in_an_asterisk() {
        let patterns = ["x-ms-*".to_owned(), "Range".to_owned()];
        assert!(matches_any(&patterns, "X-MS-meta-a") && matches_any(&patterns, "range"));
        assert!(!matches_any(&patterns, "x-m") && !matches_any(&patterns, "ranges"));
        assert!(matches_any(&["*".to_owned()], "anything"));
    }

    #[test]
    fn an_origin_is_exact_or_a_sub_domain() {
        assert!(matches_origin("http://app.example", "http://app.example"));
        assert!(!matches_origin("http://app.example", "http://APP.example"));
        assert!(matches_origin("https://*.app.example", "https://a.b.app.example"));
        for other in ["https://app.example", "https://.app.example", "http://a.app.example"] {
            assert!(!matches_origin("https://*.app.example", other), "{other}");
        }
    }
}
