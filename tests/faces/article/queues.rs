//! What the article says of the Queue service: S96 to S102.

use crate::queue::fixture::{Fixture, document, message_target, texts};

#[test]
fn s96_getting_a_message_returns_it_with_a_pop_receipt() {
    let queue = Fixture::new();
    queue.send("hello");
    let got = queue.take_one("");
    assert!(got.text == "hello" && !got.receipt.is_empty());
}

#[test]
fn s97_the_pop_receipt_is_required_to_delete() {
    let queue = Fixture::new();
    queue.send("hello");
    let got = queue.take_one("");
    queue
        .delete(&format!("/queue/messages/{}", got.id))
        .refused(400, "MissingRequiredQueryParameter");
    queue.remove(&got.id, "another").refused(400, "PopReceiptMismatch");
    queue.remove(&got.id, &got.receipt).is(204);
}

#[test]
fn s98_a_message_that_was_got_is_hidden_and_not_deleted() {
    let queue = Fixture::new();
    queue.send("hello");
    queue.take_one("?visibilitytimeout=60");
    assert_eq!((queue.take(""), queue.peek(), queue.count()), (vec![], vec![], 1));
    queue.advance(60);
    assert_eq!(queue.peek().len(), 1);
}

#[test]
fn s99_the_answer_says_when_the_message_is_visible_again() {
    let queue = Fixture::new();
    queue.send("hello");
    assert_eq!(
        queue.take_one("?visibilitytimeout=60").next_visible,
        "Mon, 05 Jan 2026 10:01:00 GMT"
    );
}

#[test]
fn s100_a_message_that_is_not_deleted_in_time_goes_to_another_client() {
    let queue = Fixture::new();
    queue.send("hello");
    let first = queue.take_one("?visibilitytimeout=60");
    queue.advance(60);
    let second = queue.take_one("?visibilitytimeout=60");
    assert_eq!((&second.id, &*second.count), (&first.id, "2"));
}

#[test]
fn s101_no_condition_keeps_anybody_from_anything() {
    let queue = Fixture::new();
    let put = queue.send("old");
    let conditions = [("if-match", "\"other\""), ("if-none-match", "*")];
    let target = format!("{}&visibilitytimeout=0", message_target(&put.id, &put.receipt));
    let got = queue.ask("PUT", &target, &conditions, document("new").as_bytes()).is(204);
    assert_eq!(got.header("etag"), "");
    assert_eq!(texts(&queue.peek()), ["new"]);
}

#[test]
fn s102_the_last_writer_wins() {
    let queue = Fixture::new();
    for value in ["first", "second"] {
        queue.put("/queue?comp=metadata", &[("x-ms-meta-by", value)]).is(204);
        let identifier = format!("<SignedIdentifier><Id>{value}</Id></SignedIdentifier>");
        let body = format!("<SignedIdentifiers>{identifier}</SignedIdentifiers>");
        queue.ask("PUT", "/queue?comp=acl", &[], body.as_bytes()).is(204);
        let origin = format!("<AllowedOrigins>http://{value}.example</AllowedOrigins>");
        let rule = format!(
            "<CorsRule>{origin}<AllowedMethods>GET</AllowedMethods><AllowedHeaders />\
             <ExposedHeaders /><MaxAgeInSeconds>1</MaxAgeInSeconds></CorsRule>"
        );
        let body =
            format!("<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>");
        let target = "/?restype=service&comp=properties";
        queue.ask("PUT", target, &[], body.as_bytes()).is(202);
    }
    assert_eq!(queue.get("/queue?comp=metadata").is(200).header("x-ms-meta-by"), "second");
    for target in ["/queue?comp=acl", "/?restype=service&comp=properties"] {
        let kept = queue.get(target).is(200).text();
        assert!(kept.contains("second") && !kept.contains("first"), "{kept}");
    }
    // Of a message, too: whoever has its receipt.
    let put = queue.send("first");
    let target = format!("{}&visibilitytimeout=0", message_target(&put.id, &put.receipt));
    queue.ask("PUT", &target, &[], document("second").as_bytes()).is(204);
    assert_eq!(texts(&queue.peek()), ["second"]);
}
