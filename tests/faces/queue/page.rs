//! Tries the tables of `docs/queue.md` row by row.

use super::fixture::{Fixture, Got, Message, document, message_target, texts};
use crate::common::pages::{page, rows_of};

/// The rows of the table that follows a heading.
fn rows(heading: &str) -> Vec<Vec<String>> {
    rows_of("docs/queue.md", heading)
}

/// Asserts that the answer is `204` or `412 Code`, as the page says.
#[track_caller]
fn is_as_said(got: &Got, said: &str, row: &[String]) {
    let told = format!("{} {}", got.status, got.code());
    assert_eq!(told.trim(), said, "{row:?}: {}", got.text());
}

/// The queue in the state that a row begins with, and the receipts of its first message.
struct Stage<'a> {
    queue: &'a Fixture,
    put: Message,
    gets: Vec<Message>,
}

impl<'a> Stage<'a> {
    fn new(queue: &'a Fixture, before: &str) -> Self {
        queue.delete("/queue/messages").is(204);
        let mut steps = before.split(", ");
        let sent: Vec<_> = steps.next().unwrap().split(' ').map(|text| queue.send(text)).collect();
        let mut stage = Self { put: sent[0].clone(), queue, gets: Vec::new() };
        for step in steps {
            match step.strip_prefix("got for ").and_then(|rest| rest.strip_suffix(" s")) {
                Some(seconds) => {
                    let got = stage.queue.take_one(&format!("?visibilitytimeout={seconds}"));
                    stage.gets.push(got);
                }
                None => stage.wait(step),
            }
        }
        stage
    }

    fn wait(&self, step: &str) {
        let seconds = step.strip_prefix("wait ").and_then(|rest| rest.strip_suffix(" s"));
        self.queue.advance(seconds.expect(step).parse().unwrap());
    }

    fn receipt(&self, name: &str) -> &str {
        match name {
            "`put`" => &self.put.receipt,
            "`got`" => &self.gets.last().unwrap().receipt,
            "`old`" => &self.gets[self.gets.len() - 2].receipt,
            other => panic!("no receipt is called {other}"),
        }
    }

    /// Does what the row asks for; says what came of it.
    fn answer(&self, request: &str) -> String {
        let words: Vec<_> = request.split(' ').collect();
        let (queue, id) = (self.queue, self.put.id.as_str());
        let listed = |messages: Vec<Message>| match texts(&messages).join(" ").as_str() {
            "" => "200 none".to_owned(),
            texts => format!("200 {texts}"),
        };
        let told = |got: Got| format!("{} {}", got.status, got.code()).trim().to_owned();
        match words[..] {
            ["Get", many] => listed(queue.take(&format!("?numofmessages={many}"))),
            ["Peek", _] => listed(queue.peek()),
            ["wait", ..] => {
                self.wait(request);
                "nothing".to_owned()
            }
            ["Delete", "by", "nothing"] => told(queue.delete(&format!("/queue/messages/{id}"))),
            ["Delete", "by", name] => told(queue.remove(id, self.receipt(name))),
            ["Update", "to", seconds, "s", "by", name] => {
                let more = format!("&visibilitytimeout={seconds}");
                told(queue.update(id, self.receipt(name), &more, ""))
            }
            ["Clear"] => told(queue.delete("/queue/messages")),
            _ => panic!("no request is called {request}"),
        }
    }
}

#[test]
fn a_message_does_what_the_page_says() {
    let queue = Fixture::new();
    for row in rows("What a message does") {
        let stage = Stage::new(&queue, &row[0]);
        assert_eq!(stage.answer(&row[1]), row[2], "{row:?}");
        let visible = queue.peek();
        let visible = texts(&visible).join(" ");
        let visible = if visible.is_empty() { "none" } else { visible.as_str() };
        assert_eq!(visible, row[3], "{row:?}");
    }
}

#[test]
fn what_the_page_says_is_refused_is_refused() {
    let queue = Fixture::new();
    queue.send("kept");
    for row in rows("What is refused") {
        let (method, target) = row[0].trim_matches('`').split_once(' ').unwrap();
        let body = if method == "POST" { document("x") } else { String::new() };
        is_as_said(&queue.ask(method, target, &[], body.as_bytes()), &row[1], &row);
    }
    assert_eq!((texts(&queue.peek()), queue.count()), (vec!["kept"], 1));
}

#[test]
fn limits_are_held_where_the_page_says() {
    let queue = Fixture::new();
    for row in rows("Limits") {
        let most: usize = row[1].parse().unwrap();
        for (value, said) in [(most, None), (most + 1, Some(&row[2]))] {
            let got = at_limit(&queue, &row[0], value);
            match said {
                Some(said) => is_as_said(&got, said, &row),
                None => assert!(got.status < 300, "{row:?}: {}", got.text()),
            }
        }
    }
}

fn at_limit(queue: &Fixture, what: &str, value: usize) -> Got {
    match what {
        "bytes of a message's text, in UTF-8" => queue.send_with(&"x".repeat(value), ""),
        "messages of one Get" => queue.get(&format!("/queue/messages?numofmessages={value}")),
        "seconds of a visibility timeout" => {
            let put = queue.send("x");
            let target = message_target(&put.id, &put.receipt);
            queue.put(&format!("{target}&visibilitytimeout={value}"), &[])
        }
        "characters of a queue's name" => queue.put(&format!("/{}", "a".repeat(value)), &[]),
        "stored access policies of a queue" => {
            let one = |id| format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>");
            let all: String = (0..value).map(one).collect();
            let body = format!("<SignedIdentifiers>{all}</SignedIdentifiers>");
            queue.ask("PUT", "/queue?comp=acl", &[], body.as_bytes())
        }
        "bytes of a queue's metadata" => {
            let text = "x".repeat(value - 1);
            queue.put("/queue?comp=metadata", &[("x-ms-meta-a", &text)])
        }
        other => panic!("no limit is called {other}"),
    }
}

#[test]
fn every_operation_that_the_page_counts_is_carried_out() {
    let operations = latchfs::queue::rest::operations::SERVICE_TABLE.operations;
    let count = format!("All {} operations of the service are there.", operations.len());
    assert!(page("docs/queue.md").replace('\n', " ").contains(&count), "{count}");
}
