//! Preflight: what a browser asks before it sends a request from another origin.

use hyper::StatusCode;

use super::{Answer, Call};
use crate::rest::refusal::Refusal;

impl Call<'_> {
    pub(super) fn preflight(&self) -> Answer {
        let origin = self.request.required("origin")?;
        let method = self.request.required("access-control-request-method")?;
        let headers = self.request.header("access-control-request-headers")?.unwrap_or_default();
        self.site.service.cors().preflight(origin, method, headers).ok_or_else(|| {
            let message = "The CORS preflight was refused: no rule of the service fits it.";
            Refusal::new(StatusCode::FORBIDDEN, "CorsPreflightFailure", message)
        })
    }
}
