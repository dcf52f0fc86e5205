//! A client of the server's endpoints, for commands: one request at a time, waiting for the answer.
//!
//! Decides nothing about requests. Sources of copies on other servers are read by
//! [`super::fetch`], which has other limits.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use reqwest::{Method, Response};
use tokio::runtime::{Builder, Runtime};

use super::fetch::{build, cause, choose_crypto};

/// How long a connection may take to be made.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// A client that waits.
#[derive(Debug)]
pub struct HttpClient {
    runtime: Arc<Runtime>,
    client: reqwest::Client,
    /// The longest that an answer may take, to its last byte.
    limit: Option<Duration>,
}

/// An answer, whose body is read bit by bit.
#[derive(Debug)]
pub struct Got {
    runtime: Arc<Runtime>,
    response: Response,
}

impl HttpClient {
    /// A client that trusts the certificates in `ca_file`, or those of the system without one.
    pub fn new(agent: &str, ca_file: Option<&Path>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        choose_crypto();
        let make = || {
            reqwest::Client::builder()
                .no_proxy()
                .connect_timeout(CONNECT_WAIT)
                .redirect(reqwest::redirect::Policy::none())
                .user_agent(agent)
        };
        let client = match ca_file {
            Some(ca_file) => trusting(make(), &fs::read(ca_file)?)?.build(),
            None => build(make),
        };
        let client = client.map_err(|error| io::Error::other(cause(&error)))?;
        Ok(Self { runtime: Arc::new(runtime), client, limit: None })
    }

    /// The same client, whose requests fail if their answer takes longer.
    #[must_use]
    pub fn answered_within(self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Sends a request. An error says that there is no answer; it never tells the URL, whose query
    /// is signed.
    pub fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        body: Vec<u8>,
    ) -> io::Result<Got> {
        let method = Method::from_bytes(method.as_bytes()).map_err(io::Error::other)?;
        // Services want the length of an empty body too, where there could be one.
        let empty = body.is_empty() && matches!(method, Method::PUT | Method::POST);
        let mut request = self.client.request(method, url).body(body);
        if let Some(limit) = self.limit {
            request = request.timeout(limit);
        }
        if empty {
            request = request.header("content-length", "0");
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        // Inside the runtime: a time limit starts its timer when the request is sent.
        let response = self.runtime.block_on(async { request.send().await });
        let response = response.map_err(|error| io::Error::other(cause(&error)))?;
        Ok(Got { runtime: Arc::clone(&self.runtime), response })
    }
}

impl Got {
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// A header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next bytes of the body; none at its end.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let chunk = self.runtime.block_on(self.response.chunk());
        let chunk = chunk.map_err(|error| io::Error::other(cause(&error)))?;
        Ok(chunk.map(|bytes| bytes.to_vec()))
    }

    /// All of the body that is left.
    pub fn body(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk()? {
            body.extend(chunk);
        }
        Ok(body)
    }
}

/// A client that trusts these authorities alone.
#[cfg_attr(not(feature = "tls"), expect(unused_variables))]
fn trusting(
    client: reqwest::ClientBuilder,
    authority: &[u8],
) -> io::Result<reqwest::ClientBuilder> {
    #[cfg(feature = "tls")]
    let client = client.tls_certs_only(
        reqwest::Certificate::from_pem_bundle(authority)
            .map_err(|error| io::Error::other(cause(&error)))?,
    );
    Ok(client)
}
