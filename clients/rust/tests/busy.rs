//! What the program does about a file that somebody else has open.

use latchfs::testing::{Access, Server, ServiceKind, ShareMode};
use latchfs_example::read_file;

#[test]
fn a_file_that_is_held_open_is_refused_and_free_again_afterwards() {
    let server = Server::start_with(|builder| builder.share("docs").no_auth()).unwrap();
    let endpoint = server.endpoint(ServiceKind::File).unwrap();
    server.put("a.txt", b"x").unwrap();
    let hold = server.hold("a.txt", Access::RW, ShareMode::NONE).unwrap();
    assert_eq!(read_file(&endpoint, "docs", "a.txt").unwrap().status, 409);
    drop(hold);
    assert_eq!(read_file(&endpoint, "docs", "a.txt").unwrap().body, b"x");
}
