//! The service as a whole: properties, statistics, CORS, versions, the secondary location.

use super::fixture::{ACCOUNT, Fixture, element, texts};

const PROPERTIES: &str = "/?restype=service&comp=properties";

fn cors(rules: usize) -> String {
    let rule = "<CorsRule><AllowedOrigins>http://app.example</AllowedOrigins>\
                <AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-*</AllowedHeaders>\
                <ExposedHeaders>x-ms-popreceipt</ExposedHeaders>\
                <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>";
    format!(
        "<StorageServiceProperties><Cors>{}</Cors></StorageServiceProperties>",
        rule.repeat(rules)
    )
}

#[test]
fn q40_statistics_are_those_of_the_secondary() {
    let queue = Fixture::new();
    let target = "/?restype=service&comp=stats";
    queue.get(target).refused(400, "InvalidQueryParameterValue");
    let got = queue.ask_path("GET", &format!("/{ACCOUNT}-secondary{target}")).is(200);
    assert_eq!(element(&got.text(), "Status"), "live");
    assert_eq!(element(&got.text(), "LastSyncTime"), "Mon, 05 Jan 2026 10:00:00 GMT");
}

#[test]
fn the_secondary_reads_the_same_data_and_changes_nothing() {
    let queue = Fixture::new();
    queue.send("hello");
    let secondary = format!("/{ACCOUNT}-secondary/queue");
    let peek = queue.ask_path("GET", &format!("{secondary}/messages?peekonly=true")).is(200);
    assert_eq!(element(&peek.text(), "MessageText"), "hello");
    for (method, target) in [
        ("GET", "/messages"),
        ("POST", "/messages"),
        ("DELETE", "/messages"),
        ("DELETE", ""),
        ("PUT", "?comp=metadata"),
    ] {
        queue
            .ask_path(method, &format!("{secondary}{target}"))
            .refused(403, "WriteOperationNotSupportedOnSecondary");
    }
    assert_eq!(texts(&queue.peek()), ["hello"]);
}

#[test]
fn q41_a_version_that_is_newer_than_this_program_is_taken_and_given_back() {
    let queue = Fixture::new();
    let got = queue.ask("GET", "/queue/messages", &[("x-ms-version", "2030-01-01")], b"").is(200);
    assert_eq!(got.header("x-ms-version"), "2030-01-01");
    queue
        .ask("GET", "/queue/messages", &[("x-ms-version", "latest")], b"")
        .refused(400, "InvalidHeaderValue");
}

#[test]
fn q42_a_preflight_is_answered_by_the_rules_of_the_service() {
    let queue = Fixture::new();
    let asks = |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "GET"),
            ("access-control-request-headers", "x-ms-version"),
        ];
        queue.ask("OPTIONS", "/queue/messages", &headers, b"")
    };
    asks("http://app.example").refused(403, "CorsPreflightFailure");
    queue.ask("PUT", PROPERTIES, &[], cors(1).as_bytes()).is(202);
    let got = asks("http://app.example").is(200);
    assert_eq!(got.header("access-control-allow-origin"), "http://app.example");
    assert_eq!(got.header("access-control-allow-methods"), "GET");
    assert_eq!(got.header("access-control-max-age"), "60");
    asks("http://other.example").refused(403, "CorsPreflightFailure");
    let origin = [("origin", "http://app.example")];
    let got = queue.ask("GET", "/queue/messages", &origin, b"").is(200);
    assert_eq!(got.header("access-control-allow-origin"), "http://app.example");
    for headers in [&[][..], &origin, &[("access-control-request-method", "GET")]] {
        let missing = queue.ask("OPTIONS", "/queue/messages", headers, b"");
        let text = missing.refused(400, "InvalidHeaderValue").text();
        assert!(text.contains("A required CORS header is not present."), "{text}");
    }
}

#[test]
fn q43_service_properties_come_back_and_are_held_to_their_limits() {
    let queue = Fixture::new();
    let first = queue.get(PROPERTIES).is(200).text();
    assert_eq!(element(&first, "Read"), "false");
    assert!(first.contains("<Logging>") && first.contains("<Cors>"), "{first}");
    let logging = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read>\
                   <Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>7</Days>\
                   </RetentionPolicy></Logging>";
    let body = format!("<StorageServiceProperties>{logging}</StorageServiceProperties>");
    queue.ask("PUT", PROPERTIES, &[], body.as_bytes()).is(202);
    queue.ask("PUT", PROPERTIES, &[], cors(5).as_bytes()).is(202);
    let second = queue.get(PROPERTIES).is(200).text();
    assert!(second.contains(logging) && second.matches("<CorsRule>").count() == 5, "{second}");
    queue.ask("PUT", PROPERTIES, &[], cors(6).as_bytes()).refused(400, "InvalidXmlDocument");
    let days = body.replace("<Days>7</Days>", "<Days>366</Days>");
    queue.ask("PUT", PROPERTIES, &[], days.as_bytes()).refused(400, "InvalidXmlDocument");
    assert_eq!(queue.get(PROPERTIES).is(200).text(), second);
    let none = b"<StorageServiceProperties><Cors /></StorageServiceProperties>";
    queue.ask("PUT", PROPERTIES, &[], none).is(202);
    assert!(!queue.get(PROPERTIES).is(200).text().contains("<CorsRule>"));
}

#[test]
fn every_answer_has_the_headers_of_the_service() {
    let queue = Fixture::new();
    let mine = [("x-ms-client-request-id", "mine")];
    for (method, target, status) in
        [("GET", "/queue/messages", 200), ("DELETE", "/none", 404), ("DELETE", "/queue", 204)]
    {
        let got = queue.ask(method, target, &mine, b"").is(status);
        assert_eq!(got.header("x-ms-client-request-id"), "mine");
        for name in ["x-ms-request-id", "x-ms-version", "date"] {
            assert!(!got.header(name).is_empty(), "{method} {target}: no {name}");
        }
        assert_eq!(got.header("etag"), "");
    }
}
