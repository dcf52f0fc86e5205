//! Blind retry and stale receipt.

use super::check;

#[test]
fn a_request_that_is_sent_again_after_a_lost_answer_may_be_done_twice() {
    check(&[
        ("A send queue:q/1 body=x lost; A send queue:q/2 body=x", &["blind-retry error"]),
        ("A append b body=x lost; A append b body=x", &["blind-retry error"]),
        // The first attempt refuses the second.
        ("A put b new body=x lost; A put b new body=x", &["blind-retry warn"]),
        ("A append b at=0 body=x lost; A put b body=x", &[]),
        ("A append=url b from=x lost; A append=url b from=x", &["blind-retry error"]),
        // Another source, or another part of it.
        ("A append=url b from=x lost; A append=url b from=y", &[]),
        ("A append=url b from=x range=0-9 lost; A append=url b from=x range=10-19", &[]),
        // Harmless, another request, or another client.
        ("A put b body=x lost; A put b body=x", &[]),
        ("A send queue:q/1 body=x lost; A send queue:q/2 body=y", &[]),
        ("A send queue:q/1 body=x lost; B send queue:q/2 body=x", &[]),
        ("A send queue:q/1 body=x; A send queue:q/2 body=x", &[]),
        ("A get b lost; A get b", &[]),
    ]);
}

#[test]
fn a_receipt_is_stale_when_the_message_was_given_again() {
    check(&[
        (
            "S send queue:q/m; A take queue:q/m; B take queue:q/m; B done queue:q/m; \
             A done queue:q/m",
            &["stale-receipt warn"],
        ),
        (
            "S send queue:q/m; A take queue:q/m; A take queue:q/m; A done queue:q/m old",
            &["stale-receipt warn"],
        ),
        (
            "S send queue:q/m; A take queue:q/m; A keep queue:q/m; A done queue:q/m old",
            &["stale-receipt warn"],
        ),
        // Deleted in time, or renewed.
        ("S send queue:q/m; A take queue:q/m; A done queue:q/m", &[]),
        ("S send queue:q/m; A take queue:q/m; A keep queue:q/m; A done queue:q/m", &[]),
    ]);
}
