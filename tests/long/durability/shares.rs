//! What belongs to a share as a whole: the share itself, its metadata, policies, lease, snapshots,
//! permissions.

use std::net::SocketAddr;

use crate::common::http::{Kept, ask};
use crate::common::served::Served;

#[derive(Debug)]
enum Done {
    Made { share: String },
    Metadata { share: String },
    Policy { share: String },
    Leased { share: String },
    Snapshot { share: String, name: String },
    Permission { share: String, key: String },
}

const PERMISSION: &str = "O:SYG:SYD:(A;;FA;;;SY)";

/// A client that makes shares.
#[derive(Default)]
pub struct Maker(Vec<Done>);

impl Maker {
    pub fn acknowledged(&self) -> usize {
        self.0.len()
    }

    /// Makes one share and sets all it has, as far as the server lives. Not in every round: each
    /// takes a descriptor or two of the server, of which there may be few.
    pub fn work(&mut self, addr: SocketAddr, round: usize) {
        if round >= 20 && !round.is_multiple_of(10) {
            return;
        }
        let Ok(mut connection) = Kept::connect(addr) else { return };
        let share = format!("made-{round}");
        // None if the server is gone.
        let _ = self.make(&mut connection, &share);
    }

    fn make(&mut self, connection: &mut Kept, share: &str) -> Option<()> {
        let mut put = |query: &str, headers: &[(&str, &str)], body: &str, status: u16| {
            let target = format!("/{share}?restype=share{query}");
            connection.ask("PUT", &target, headers, body.as_bytes()).ok().map(|got| got.is(status))
        };
        let share = share.to_owned();
        put("", &[], "", 201)?;
        self.0.push(Done::Made { share: share.clone() });
        put("&comp=metadata", &[("x-ms-meta-kept", "yes")], "", 200)?;
        self.0.push(Done::Metadata { share: share.clone() });
        let policy = "<SignedIdentifiers><SignedIdentifier><Id>kept</Id><AccessPolicy>\
                      <Permission>rw</Permission></AccessPolicy></SignedIdentifier>\
                      </SignedIdentifiers>";
        put("&comp=acl", &[], policy, 200)?;
        self.0.push(Done::Policy { share: share.clone() });
        let got = put("&comp=snapshot", &[], "", 201)?;
        let name = got.header("x-ms-snapshot").replace(':', "%3A");
        self.0.push(Done::Snapshot { share: share.clone(), name });
        let permission = format!("{{\"permission\":\"{PERMISSION}\"}}");
        let got = put("&comp=filepermission", &[], &permission, 201)?;
        let key = got.header("x-ms-file-permission-key").to_owned();
        self.0.push(Done::Permission { share: share.clone(), key });
        let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        put("&comp=lease", &lease, "", 201)?;
        self.0.push(Done::Leased { share });
        Some(())
    }

    /// After a crash and a start: all of it, of every round.
    pub fn check(&self, served: &Served) {
        let get = |share: &str, query: &str, headers: &[(&str, &str)]| {
            ask(served.addr(), "GET", &format!("/{share}?restype=share{query}"), headers, b"")
                .is(200)
        };
        for done in &self.0 {
            match done {
                Done::Made { share } => drop(get(share, "", &[])),
                Done::Metadata { share } => {
                    assert_eq!(get(share, "", &[]).header("x-ms-meta-kept"), "yes", "{share}");
                }
                Done::Policy { share } => {
                    let text = get(share, "&comp=acl", &[]).text();
                    assert!(text.contains("<Id>kept</Id>"), "{share}: {text}");
                }
                Done::Leased { share } => {
                    assert_eq!(get(share, "", &[]).header("x-ms-lease-state"), "leased", "{share}");
                }
                Done::Snapshot { share, name } => {
                    get(share, &format!("&sharesnapshot={name}"), &[]);
                }
                Done::Permission { share, key } => {
                    let key = [("x-ms-file-permission-key", key.as_str())];
                    let text = get(share, "&comp=filepermission", &key).text();
                    assert!(text.contains(PERMISSION), "{share}: {text}");
                }
            }
        }
    }
}
