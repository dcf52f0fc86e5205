//! TLS handshakes with a time limit, and an answer to clients that speak plain HTTP.
//!
//! Decides what is offered: TLS 1.2 and 1.3, HTTP/1.1, no client certificates. Runs in the
//! connection's own task, so that no connection waits for another's handshake.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::super::xml::Xml;

/// How long a handshake may take, waiting for it to begin included.
pub const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// The first byte of a client that begins one.
const HANDSHAKE_RECORD: u8 = 0x16;
/// How much a client that speaks plain HTTP may send until it is cut off.
const PLAIN_BYTES_MAX: u64 = 8 << 20;

/// Why a certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No PEM, or none in it.
    #[error("it holds no certificate in PEM form: {0}")]
    NoCertificate(String),
    /// No PEM, or none in it.
    #[error("it holds no private key in PEM form: {0}")]
    NoKey(String),
    /// The two do not belong together.
    #[error("the key is not that of the certificate")]
    Mismatch,
    /// Anything else that is wrong with them.
    #[error("{0}")]
    Refused(String),
}

/// A certificate with its key, ready to serve.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    /// From PEM: the certificate and those between it and its authority, and its key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let certificates = certificates.map_err(|e| TlsError::NoCertificate(e.to_string()))?;
        if certificates.is_empty() {
            return Err(TlsError::NoCertificate("there is none".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| TlsError::NoKey(e.to_string()))?;
        Self::serving(certificates, key)
    }

    pub(super) fn serving(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        let refused = |error: rustls::Error| match error {
            rustls::Error::InconsistentKeys(_) => TlsError::Mismatch,
            other => TlsError::Refused(other.to_string()),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(refused)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(refused)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Shakes hands with a client; none if that does not come about.
    pub async fn accept(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> Option<TlsStream<TcpStream>> {
        match timeout(HANDSHAKE_WAIT, self.shake_hands(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                log::info!("the TLS handshake with {peer} failed: {error}");
                None
            }
            Err(_) => {
                log::info!("the TLS handshake with {peer} took too long");
                None
            }
        }
    }

    async fn shake_hands(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if first[0] != HANDSHAKE_RECORD {
            refuse_plain(stream).await?;
            return Err(io::Error::other("it speaks plain HTTP"));
        }
        self.acceptor.accept(stream).await
    }
}

/// Tells a client that speaks plain HTTP, in plain HTTP, and lets it read that: to close while it
/// still sends would take the answer away from it.
async fn refuse_plain(mut stream: TcpStream) -> io::Result<()> {
    const CODE: &str = "AccountRequiresHttps";
    let mut xml = Xml::default();
    xml.open("Error");
    xml.text("Code", CODE);
    xml.text("Message", "This port speaks https: the URL must begin with https://.");
    xml.close("Error");
    let body = xml.finish();
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\nserver: latchfs\r\nx-ms-error-code: {CODE}\r\n\
         content-type: application/xml\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(PLAIN_BYTES_MAX), &mut tokio::io::sink()).await?;
    Ok(())
}
