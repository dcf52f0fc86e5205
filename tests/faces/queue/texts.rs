//! What a message's text may be, and what becomes of documents that are none.

use super::fixture::{Fixture, element, texts};

#[test]
fn q26_a_text_comes_back_to_the_letter() {
    let queue = Fixture::new();
    let longest = "x".repeat(65_536);
    for text in ["", "  ", " a ", "<&>\"'", "a\r\nb\rc\n\td", "\u{1f600} \u{e9}", "]]>", &longest] {
        queue.send_with(text, "").is(201);
        let peeked = queue.peek();
        assert_eq!(texts(&peeked), [text]);
        let got = queue.take_one("");
        assert_eq!(got.text, text);
        queue.remove(&got.id, &got.receipt).is(204);
    }
    for text in ["x".repeat(65_537), "\u{e9}".repeat(32_769)] {
        let refused = queue.send_with(&text, "").refused(413, "RequestBodyTooLarge");
        assert_eq!(element(&refused.text(), "MaxLimit"), "65536");
    }
    assert_eq!(queue.count(), 0);
}

#[test]
fn an_empty_text_is_an_element_and_not_nothing() {
    let queue = Fixture::new();
    let empty = b"\xEF\xBB\xBF<?xml version='1.0' encoding='utf-8'?>\n\
                  <QueueMessage><MessageText /></QueueMessage>";
    queue.ask("POST", "/queue/messages", &[], empty).is(201);
    let got = queue.get("/queue/messages?peekonly=TRUE").is(200);
    assert!(got.text().contains("<MessageText></MessageText>"), "{}", got.text());
}

#[test]
fn q27_what_is_no_message_is_refused_and_changes_nothing() {
    let queue = Fixture::new();
    let put = queue.send("kept");
    let bad: [&[u8]; 11] = [
        b"",
        b"text",
        b"<QueueMessage>",
        b"<QueueMessage></QueueMessage>",
        b"<QueueMessage><Text>x</Text></QueueMessage>",
        b"<QueueMessage><MessageText>a<b>x</b></MessageText></QueueMessage>",
        b"<Message><MessageText>x</MessageText></Message>",
        b"<QueueMessage><MessageText>x</QueueMessage>",
        b"<QueueMessage><MessageText>&#1;</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText>\xFF</MessageText></QueueMessage>",
        b"<!DOCTYPE a><QueueMessage><MessageText>x</MessageText></QueueMessage>",
    ];
    for body in bad {
        queue.ask("POST", "/queue/messages", &[], body).refused(400, "InvalidXmlDocument");
        if !body.is_empty() {
            let body = String::from_utf8_lossy(body);
            let update = queue.update(&put.id, &put.receipt, "&visibilitytimeout=0", &body);
            if !body.contains('\u{FFFD}') {
                update.refused(400, "InvalidXmlDocument");
            }
        }
    }
    assert_eq!((texts(&queue.peek()).len(), queue.count()), (1, 1));
}

#[test]
fn a_body_without_a_length_or_beyond_the_limit_is_refused() {
    let queue = Fixture::new();
    let huge = vec![b'x'; 5 << 20];
    queue.ask("POST", "/queue/messages", &[], &huge).refused(413, "RequestBodyTooLarge");
    let nested = format!("{}{}", "<a>".repeat(1_000), "</a>".repeat(1_000));
    let answer = queue.ask("POST", "/queue/messages", &[], nested.as_bytes());
    answer.refused(400, "InvalidXmlDocument");
    assert_eq!(queue.count(), 0);
}
