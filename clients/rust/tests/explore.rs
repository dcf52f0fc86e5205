//! Two clients count up, and the order is found in which one of the counts is lost.

use latchfs::testing::{Error, Explore, Server, ServiceKind};
use latchfs_example::{Answer, ask};

/// Reads the counter, and writes one more; with the ETag that was read as a condition, or without.
fn count_up(endpoint: &str, client: &str, guarded: bool) {
    loop {
        let read = ask(endpoint, client, "GET", "box/count", &[], b"").unwrap();
        let more = (number(&read) + 1).to_string();
        let guard = guarded.then(|| ("If-Match", read.etag.as_str()));
        let headers: Vec<_> = guard.into_iter().chain([("x-ms-blob-type", "BlockBlob")]).collect();
        let written = ask(endpoint, client, "PUT", "box/count", &headers, more.as_bytes()).unwrap();
        if written.status == 201 {
            return;
        }
        assert_eq!(written.status, 412);
    }
}

fn number(read: &Answer) -> u32 {
    std::str::from_utf8(&read.body).unwrap().parse().unwrap()
}

#[test]
fn a_counter_without_a_condition_loses_a_count_in_an_order_that_is_found() {
    let server = Server::start_with(|builder| builder.share("docs").no_auth()).unwrap();
    let endpoint = server.endpoint(ServiceKind::Blob).unwrap();
    let explore = |search: Explore, guarded: bool| {
        server.explore(search, |run| {
            let block_blob = [("x-ms-blob-type", "BlockBlob")];
            ask(&endpoint, "set-up", "PUT", "box?restype=container", &[], b"").unwrap();
            ask(&endpoint, "set-up", "PUT", "box/count", &block_blob, b"0").unwrap();
            run.clients([
                ("A", &|_| count_up(&endpoint, "A", guarded)),
                ("B", &|_| count_up(&endpoint, "B", guarded)),
            ]);
            let read = ask(&endpoint, "check", "GET", "box/count", &[], b"").unwrap();
            assert_eq!(number(&read), 2);
        })
    };
    let clients = || Explore::new(["A", "B"]);
    let Err(Error::Race(race)) = explore(clients(), false) else { panic!("no race was found") };
    assert!(race.token.starts_with("A.B2.A~"), "{race}");
    assert!(race.to_string().contains("Put Blob blob:box/count"), "{race}");
    assert!(explore(clients().replay(&race.token), false).is_err());
    assert!(explore(clients(), true).unwrap().complete);
}
