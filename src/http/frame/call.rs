//! An authorised request, as an operation gets it.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

use hyper::body::{Bytes, Incoming};

use super::host::{HostedAccount, open_service};
use super::receive::collect;
use super::refusal::Refusal;
use super::site::Site;
use crate::http::auth::Grant;
use crate::http::checksum::crc64;
use crate::http::request::Request;
use crate::rules::Context;

/// A request that was authorised.
pub struct Call<'a> {
    /// The listener's own state.
    pub site: &'a Arc<Site>,
    /// The account that the request addresses.
    pub account: &'a Arc<dyn HostedAccount>,
    /// The request; its body, too, unless the operation takes it as it comes.
    pub request: &'a Request,
    /// The time of the operation, and the caller.
    pub context: &'a Context,
    /// The permissions of the request.
    pub grant: &'a Grant,
}

impl<'a> Call<'a> {
    /// The call of an operation.
    pub fn new(
        site: &'a Arc<Site>,
        account: &'a Arc<dyn HostedAccount>,
        request: &'a Request,
        context: &'a Context,
        grant: &'a Grant,
    ) -> Self {
        Self { site, account, request, context, grant }
    }

    /// The service that the operation is one of.
    pub fn service<S: Any>(&self) -> Result<&'a S, Refusal> {
        open_service(&**self.account, self.site.service.kind)
    }

    /// Receives a whole body into memory.
    pub async fn collect(&self, body: Incoming) -> Result<Bytes, Refusal> {
        self.collect_up_to(self.site.options.limits.body_bytes, body).await
    }

    /// As [`Call::collect`], of at most that many bytes.
    pub async fn collect_up_to(&self, most: usize, body: Incoming) -> Result<Bytes, Refusal> {
        let body = if self.request.body.is_empty() {
            collect(body, most, &self.site.options.limits).await?
        } else {
            // It came before the turn of the request.
            self.request.body.clone()
        };
        note_body(self.context, &body);
        Ok(body)
    }
}

/// Notes the hash of a body: a request that is sent again has the same one.
pub fn note_body(context: &Context, body: &Bytes) {
    if !body.is_empty() {
        context.note(|given| given.body = Some(crc64(body)));
    }
}

/// Operations mostly look at the request.
impl Deref for Call<'_> {
    type Target = Request;

    fn deref(&self) -> &Request {
        self.request
    }
}
