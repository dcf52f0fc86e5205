//! Lost update, laundered `ETag`, check-then-create, published empty and unfenced lease: the
//! failing orders, and the programs that are right.

use super::{check, judged};

#[test]
fn a_write_over_a_version_that_its_client_has_not_read_is_a_lost_update() {
    check(&[
        ("S put b; A get b; B put b; A put b", &["lost-update error"]),
        // The pattern without the overlap.
        ("S put b; A get b; A put b; B get b; B put b", &["lost-update hint", "lost-update hint"]),
        // A condition on any version, or on a second, is none.
        ("S put b; A get b; B put b; A put b if=*", &["lost-update error"]),
        ("S put b; A get b; B put b; A put b if=date", &["lost-update error"]),
        // An earlier change of others counts, whatever lies over it.
        ("S put b; A get b; B put b; C meta b; A put b", &["lost-update error"]),
        (
            "S put b; A get b; A put b; B get b; B put b if=read; A put b",
            &["lost-update error", "lost-update hint"],
        ),
        ("S put b; A get b; B put b; A delete b", &["lost-update error"]),
        ("S put b; A get b; B put b; A get b fresh; A put b", &["lost-update hint"]),
        // Table, with the SDK's default condition.
        (
            "S insert table:t/p/r; A query table:t/p/r; B query table:t/p/r; B replace table:t/p/r \
             if=*; A replace table:t/p/r if=*",
            &["lost-update error", "lost-update hint"],
        ),
        (
            "S insert table:t/p/r; A query=all table:t; B merge=n table:t/p/r; \
             A merge=n table:t/p/r",
            &["lost-update error"],
        ),
        // What it has replaced once is lost once.
        ("S put b; A get b; B put b; A put b; A put b", &["lost-update error"]),
        // Metadata, read by a HEAD.
        ("S put b; A head b; B meta b; A meta b", &["lost-update error"]),
    ]);
}

#[test]
fn programs_that_lose_no_update_have_no_error() {
    check(&[
        // A loop with a condition.
        (
            "S put b; A get b; B get b; B put b if=read; A put b if=read; A get b; A put b if=read",
            &[],
        ),
        // Heartbeats without reads.
        ("A put b; B put b; A put b; B put b", &[]),
        // A HEAD is no read of the content.
        ("S put b; A head b; B put b; A put b", &[]),
        // Each client its own properties, its own range.
        (
            "S insert table:t/p/r; A query table:t/p/r; B merge=b table:t/p/r; \
             A merge=a table:t/p/r",
            &["lost-update hint"],
        ),
        ("S put b; A get=0-512 b; B page=512-600 b; A page=0-512 b", &["lost-update hint"]),
        ("S put b; A get=0-512 b; B page=512-600 b; A page=512-600 b", &[]),
        // Metadata beside content.
        ("S put b; A get b; B put b; A meta b", &["lost-update hint"]),
        // A snapshot or a version is another object.
        ("S put b; A get b version=1; B put b; A put b", &[]),
        // Each part of a transaction has its own condition.
        ("S insert table:t/p/r; A query table:t/p/r; A batch table:t/p/r if=read", &[]),
        ("S insert table:t/p/r; A query table:t/p/r; A batch table:t/p/r", &["lost-update hint"]),
        // Appends lose nothing.
        ("S put b; A get b; B append b; A append b", &[]),
        // Under a lease of the object itself.
        ("S put b; A acquire b; A get b; A put b leased; A release b", &[]),
    ]);
    let many = "A get d; ".repeat(33);
    let far = format!("S put b; S put d; A get b; B put b; {many} A put b");
    assert_eq!(judged(&far), [""; 0], "a read long ago");
    let many = "A get d; ".repeat(32);
    let near = format!("S put b; S put d; A get b; B put b; {many} A put b");
    assert_eq!(judged(&near), ["lost-update error"]);
}

#[test]
fn the_order_of_two_writers_is_that_of_the_versions_not_of_the_rows() {
    check(&[
        // The row of A's write comes before the row of B's, which it has overwritten.
        ("S put b; A get b; hold; B put b; A put b; flush", &["lost-update error"]),
        ("S put b; A get b; hold; A put b; A put b; flush", &["lost-update hint"]),
        ("A get b; hold; B put b; A put b; flush", &["check-then-create error"]),
        (
            "S put b; A get b; A head b; hold; B put b; flush; A head b; A put b if=last",
            &["laundered-etag error"],
        ),
    ]);
}

#[test]
fn an_etag_that_is_younger_than_the_content_is_laundered() {
    check(&[
        ("S put b; A get b; B put b; A head b; A put b if=last", &["laundered-etag error"]),
        ("S put b; A get b; B put b; A list blob:c; A put b if=last", &["laundered-etag error"]),
        ("S put b; A get b; A head b; A put b if=last", &["laundered-etag hint"]),
        (
            "S put b; A get b; B put b; A meta b; A put b if=last",
            &["laundered-etag error", "lost-update hint"],
        ),
        // Its own write: it knows what it wrote.
        ("S put b; A get b; A put b if=read; A put b if=last", &[]),
        ("S put b; A get b; B put b; A get b; A put b if=read", &[]),
        // Nothing that it overwrites was changed.
        ("S put b; A get b; B meta b; A head b; A meta b if=last", &[]),
    ]);
}

#[test]
fn what_was_not_there_may_be_there_when_it_is_created() {
    check(&[
        ("A get b; B put b; A put b", &["check-then-create error"]),
        ("A head b; B put b; A put b", &["check-then-create error"]),
        ("S put a; A list blob:c; B put b; A put b", &["check-then-create error"]),
        ("A list blob:c prefix=b; B put b; A put b", &["check-then-create error"]),
        ("A get b; A put b", &["check-then-create hint"]),
        // The cure, and what is no check.
        ("A get b; B put b new; A put b new", &[]),
        ("A list blob:c prefix=x; B put b; A put b", &[]),
        ("A list blob:c more; B put b; A put b", &[]),
        ("B put b; A list blob:c; A put b", &[]),
        ("A get b; B put b; A get b; A put b if=read", &[]),
        ("A query table:t/p/r; A insert table:t/p/r", &[]),
    ]);
}

#[test]
fn a_blob_that_is_filled_later_is_published_empty() {
    check(&[
        ("A put b empty; B get b; A put b", &["published-empty warn"]),
        ("A put b empty; B get b; A commit b", &["published-empty warn"]),
        ("A put b empty; A put b", &["published-empty hint"]),
        // An append blob is created empty, as is a page blob.
        ("A put b empty; B get b; A append b", &[]),
        ("A put b empty; B get b; A page=0-512 b", &[]),
        ("A put b empty; B put b; A put b", &[]),
        ("A put b; B get b; A put b", &[]),
    ]);
}

#[test]
fn a_lease_of_another_object_does_not_stop_a_late_write() {
    check(&[
        (
            // The lease of A ends unnoticed.
            "S put l; A acquire l; A put b; B acquire l; B put b; A put b",
            &["unfenced-lease error", "unfenced-lease hint"],
        ),
        // While the lease lasts.
        (
            "S put l; A acquire l; A put b; A release l; B acquire l; B put b",
            &["unfenced-lease hint"],
        ),
        // It is told that the lease is lost, and stops.
        ("S put l; A acquire l; B acquire l; B put b; A renew l", &["unfenced-lease hint"]),
        // Fenced by a condition, or by a lease of the object itself.
        (
            "S put l; S put b; A acquire l; A get b; B acquire l; B get b; B put b if=read; \
             A put b if=read",
            &[],
        ),
        ("S put b; A acquire b; A put b leased; B acquire b; B put b leased; A put b leased", &[]),
        // The holder overwrote it itself.
        ("S put l; A acquire l; B acquire l; A put b; B put b", &["unfenced-lease hint"]),
        // Another object.
        ("S put l; A acquire l; B acquire l; B put b; A put d", &["unfenced-lease hint"]),
    ]);
}

#[test]
fn files_are_judged_by_their_ranges() {
    let file = "S fput=0-10 file:s/f; A fget file:s/f; ";
    for (rest, expected) in [
        ("B fput=0-10 file:s/f; A fput=0-10 file:s/f", "file error"),
        ("B fput=10-20 file:s/f; A fput=0-10 file:s/f", "file hint"),
        ("A fput=0-10 file:s/f", "file hint"),
    ] {
        assert_eq!(judged(&format!("{file}{rest}")), [expected], "{rest}");
    }
}
