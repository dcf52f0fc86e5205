//! Reports each answer to an observer, which counts it, and to the log.
//!
//! Decides the content of a log line and its level: debug for an answer, info for a refusal. Paths
//! and queries are left out, since a query may contain a signature.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::{Method, Response};
use log::Level;

use super::frame::Operation;
use super::server::RestOptions;
use crate::journal::row::UNKNOWN;

/// A receiver of every answer, called on the thread that gives it: it must not wait.
pub trait Observer: Send + Sync {
    /// A request was answered. `took` ends where the answer begins: the bytes of a download
    /// follow it.
    fn answered(&self, operation: &'static str, status: u16, took: Duration);
}

/// A request under way.
pub struct ObservedRequest {
    pub began: Instant,
    method: Method,
    /// The operation, once it is known.
    pub operation: Option<&'static Operation>,
    observer: Option<Arc<dyn Observer>>,
}

impl ObservedRequest {
    pub fn now(options: &RestOptions, method: &Method) -> Self {
        let observer = options.observer.clone();
        Self { began: Instant::now(), method: method.clone(), operation: None, observer }
    }

    /// How long it has taken so far.
    pub fn took(&self) -> Duration {
        self.began.elapsed()
    }

    /// Tells of its answer. Returns how long the answer took.
    pub fn answered<B>(&self, answer: &Response<B>) -> Duration {
        let took = self.took();
        let operation = self.operation.map_or(UNKNOWN, |known| known.name);
        let status = answer.status().as_u16();
        if let Some(observer) = &self.observer {
            observer.answered(operation, status, took);
        }
        let header = |name| {
            answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        let code = header("x-ms-error-code");
        let (level, what) =
            if code.is_empty() { (Level::Debug, "answered") } else { (Level::Info, "refused") };
        log::log!(
            level,
            request_id = header("x-ms-request-id"),
            client_request_id = header("x-ms-client-request-id"),
            method = self.method.as_str(),
            operation = operation,
            status = status,
            code = code,
            took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            "{what}"
        );
        took
    }
}
