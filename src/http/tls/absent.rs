//! The replacement of TLS where the feature `tls` is off: a type without values.

use std::net::SocketAddr;

use tokio::net::TcpStream;

#[derive(Clone, Debug)]
pub enum Tls {}

impl Tls {
    #[allow(clippy::unused_async, reason = "as the one that shakes hands")]
    pub async fn accept(&self, _: TcpStream, _: SocketAddr) -> Option<TcpStream> {
        match *self {}
    }
}
