//! Preflight: what a browser asks before it sends a request from another origin.
//!
//! The first CORS rule that fits decides, as the service properties have them. The answers to
//! the requests themselves carry no CORS headers.

use super::service::{cors_refused, listed};
use super::{Answer, Call};
use crate::rest::reply::Reply;
use crate::rest::xml::Element;

impl Call<'_> {
    pub(super) fn preflight(&self) -> Answer {
        let origin = self.request.required("origin")?;
        let method = self.request.required("access-control-request-method")?;
        let headers = self.request.header("access-control-request-headers")?.unwrap_or_default();
        let rules = self.site.service.cors_rules();
        let fits = |rule: &&Element| {
            allows(&listed(rule, "AllowedOrigins"), origin)
                && listed(rule, "AllowedMethods").iter().any(|m| m.eq_ignore_ascii_case(method))
                && headers
                    .split(',')
                    .map(str::trim)
                    .filter(|name| !name.is_empty())
                    .all(|name| allows(&listed(rule, "AllowedHeaders"), name))
        };
        let rule = rules.iter().find(fits).ok_or_else(|| cors_refused("no rule fits it"))?;
        let age = rule.child("MaxAgeInSeconds").map(|age| age.text.clone());
        let reply = Reply::ok()
            .header("access-control-allow-origin", origin)
            .header("access-control-allow-methods", method)
            .header("access-control-allow-credentials", "true")
            .maybe("access-control-max-age", age);
        Ok(if headers.is_empty() {
            reply
        } else {
            reply.header("access-control-allow-headers", headers)
        })
    }
}

/// True if one of `patterns` is `wanted`, or ends in `*` and begins as it does.
fn allows(patterns: &[String], wanted: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => {
            wanted.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
        }
        None => pattern.eq_ignore_ascii_case(wanted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_may_end_in_an_asterisk() {
        let patterns = ["x-ms-*".to_owned(), "Range".to_owned()];
        assert!(allows(&patterns, "X-MS-meta-a") && allows(&patterns, "range"));
        assert!(!allows(&patterns, "x-m") && !allows(&patterns, "ranges"));
        assert!(allows(&["*".to_owned()], "http://a"));
    }
}
