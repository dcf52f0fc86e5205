//! Messages: what each operation does, and what it needs (S96-S102).

use latchfs::rules::Timestamp;
use latchfs::rules::time::rfc1123;

use super::fixture::{Fixture, START, document, message_target, one, texts};

/// The date `seconds` after the start of the clock.
fn date(seconds: i64) -> String {
    rfc1123(Timestamp(START.0 + seconds * 1_000_000_000))
}

#[test]
fn q3_a_get_without_parameters_hides_one_message_for_thirty_seconds() {
    let queue = Fixture::new();
    queue.send("a");
    queue.send("b");
    let got = queue.take("");
    assert_eq!(texts(&got), ["a"]);
    assert_eq!(got[0].next_visible, date(30));
    queue.advance(29);
    assert_eq!(texts(&queue.peek()), ["b"]);
    queue.advance(1);
    assert_eq!(texts(&queue.peek()), ["b", "a"]);
}

#[test]
fn q4_a_message_that_was_got_is_hidden_from_others() {
    let queue = Fixture::new();
    queue.send("hello");
    queue.take_one("");
    let got = queue.get("/queue/messages").is(200);
    assert!(got.text().ends_with("<QueueMessagesList/>"), "{}", got.text());
    assert_eq!(got.header("cache-control"), "no-cache");
    assert_eq!(queue.peek(), []);
}

#[test]
fn q7_a_delete_needs_a_receipt() {
    let queue = Fixture::new();
    let put = queue.send("hello");
    let target = format!("/queue/messages/{}", put.id);
    queue.delete(&target).refused(400, "MissingRequiredQueryParameter");
    queue
        .put(&format!("{target}?visibilitytimeout=0"), &[])
        .refused(400, "MissingRequiredQueryParameter");
    // An empty one is a wrong one.
    queue.delete(&format!("{target}?popreceipt=")).refused(400, "PopReceiptMismatch");
    assert_eq!(texts(&queue.peek()), ["hello"]);
}

#[test]
fn q9_a_message_is_deleted_once() {
    let queue = Fixture::new();
    let put = queue.send("hello");
    queue
        .ask(
            "DELETE",
            &message_target(&put.id, &put.receipt),
            &[("x-ms-client-request-id", "mine")],
            b"",
        )
        .is(204);
    let refused = queue.remove(&put.id, &put.receipt).refused(404, "MessageNotFound");
    let told = "was removed 0.0 s ago by Delete Message, client request mine";
    assert!(refused.text().contains(told), "{}", refused.text());
}

#[test]
fn q10_an_unknown_message_is_not_found_whatever_the_receipt() {
    let queue = Fixture::new();
    for id in ["11111111-2222-4333-8444-555555555555", "no-id", "%2e%2e", "a%2Fb"] {
        queue.remove(id, "garbage").refused(404, "MessageNotFound");
        queue.update(id, "garbage", "&visibilitytimeout=0", "").refused(404, "MessageNotFound");
    }
}

#[test]
fn q12_an_update_changes_text_visibility_and_receipt() {
    let queue = Fixture::new();
    queue.send("old");
    let got = queue.take_one("");
    let more = "&visibilitytimeout=10";
    let updated = queue.update(&got.id, &got.receipt, more, &document("new")).is(204);
    let receipt = updated.header("x-ms-popreceipt").to_owned();
    assert_eq!(updated.header("x-ms-time-next-visible"), date(10));
    queue.update(&got.id, &got.receipt, more, "").refused(400, "PopReceiptMismatch");
    queue.remove(&got.id, &got.receipt).refused(400, "PopReceiptMismatch");
    queue.advance(10);
    let peeked = queue.peek();
    assert_eq!((&*peeked[0].text, &*peeked[0].count), ("new", "1"));
    queue.remove(&got.id, &receipt).is(204);
}

#[test]
fn q14_an_update_without_a_body_keeps_the_text() {
    let queue = Fixture::new();
    let put = queue.send("kept");
    let target = format!("{}&visibilitytimeout=0", message_target(&put.id, &put.receipt));
    let typed = queue.ask("PUT", &target, &[("content-type", "application/xml")], b"").is(204);
    let receipt = typed.header("x-ms-popreceipt").to_owned();
    queue.update(&put.id, &receipt, "&visibilitytimeout=0", "").is(204);
    assert_eq!(texts(&queue.peek()), ["kept"]);
}

#[test]
fn q16_an_update_needs_a_visibility_timeout_within_its_bounds() {
    let queue = Fixture::new();
    let put = queue.send("hello");
    for (more, code) in [
        ("", "MissingRequiredQueryParameter"),
        ("&visibilitytimeout=604801", "OutOfRangeQueryParameterValue"),
        ("&visibilitytimeout=-1", "OutOfRangeQueryParameterValue"),
        ("&visibilitytimeout=soon", "InvalidQueryParameterValue"),
    ] {
        queue.update(&put.id, &put.receipt, more, "").refused(400, code);
    }
    queue.update(&put.id, &put.receipt, "&visibilitytimeout=604800", "").is(204);
}

#[test]
fn q21_a_message_may_be_put_hidden() {
    let queue = Fixture::new();
    let put = one(&queue.send_with("late", "?visibilitytimeout=2").is(201));
    assert_eq!((put.inserted, put.next_visible), (date(0), date(2)));
    assert_eq!((queue.take(""), queue.peek(), queue.count()), (vec![], vec![], 1));
    queue.advance(2);
    assert_eq!(queue.take_one("").text, "late");
}

#[test]
fn q22_an_expired_message_is_gone_from_everything() {
    let queue = Fixture::new();
    let put = one(&queue.send_with("short", "?messagettl=1").is(201));
    assert_eq!(queue.count(), 1);
    queue.advance(1);
    assert_eq!((queue.take(""), queue.peek(), queue.count()), (vec![], vec![], 0));
    let update = queue.update(&put.id, &put.receipt, "&visibilitytimeout=0", "");
    update.refused(404, "MessageNotFound");
    let refused = queue.remove(&put.id, &put.receipt).refused(404, "MessageNotFound");
    assert!(refused.text().contains("404") || refused.text().contains("does not exist"));
}

#[test]
fn q23_a_message_lives_for_seven_days_for_as_long_as_it_says_or_for_ever() {
    let queue = Fixture::new();
    for (query, expires) in [
        ("", date(604_800)),
        ("?messagettl=604801", date(604_801)),
        ("?messagettl=-1", "Fri, 31 Dec 9999 23:59:59 GMT".to_owned()),
        ("?messagettl=9223372036854775807", "Fri, 31 Dec 9999 23:59:59 GMT".to_owned()),
    ] {
        assert_eq!(one(&queue.send_with("x", query).is(201)).expires, expires, "{query}");
    }
    queue.advance(604_801);
    assert_eq!(queue.count(), 2);
}

#[test]
fn q24_a_message_must_become_visible_before_it_expires() {
    let queue = Fixture::new();
    for query in [
        "?messagettl=0",
        "?messagettl=-2",
        "?messagettl=10&visibilitytimeout=10",
        "?messagettl=10&visibilitytimeout=11",
        "?messagettl=x",
    ] {
        queue.send_with("x", query).refused(400, "InvalidQueryParameterValue");
    }
    assert_eq!(queue.count(), 0);
    for query in ["?messagettl=10&visibilitytimeout=9", "?visibilitytimeout=604800"] {
        queue.send_with("x", query).is(201);
    }
}

#[test]
fn a_receipt_is_taken_as_it_is_sent_a_plus_too() {
    let queue = Fixture::new();
    let mut plus = 0;
    for _ in 0..200 {
        let put = queue.send("x");
        plus += usize::from(put.receipt.contains('+'));
        let target = format!("/queue/messages/{}?popreceipt={}", put.id, put.receipt);
        queue.delete(&target).is(204);
    }
    assert!(plus > 0, "no receipt had a plus");
}

#[test]
fn a_mismatch_names_the_client_that_has_the_message() {
    let queue = Fixture::new();
    let put = queue.send("hello");
    let who = [("x-ms-client-request-id", "worker-7"), ("user-agent", "tests/1")];
    queue.ask("GET", "/queue/messages", &who, b"").is(200);
    queue.advance(3);
    let text = queue.remove(&put.id, &put.receipt).refused(400, "PopReceiptMismatch").text();
    let told = "the message was last changed 3.0 s ago by Get Messages, client request worker-7, \
                tests/1, from 127.0.0.1:";
    assert!(text.contains(told), "{text}");
    assert!(text.contains(&format!("it is hidden until {}", date(30))), "{text}");
}
