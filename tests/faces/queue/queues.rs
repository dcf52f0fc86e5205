//! Queues as a whole: create, list, metadata, stored policies, clear, delete.

use super::fixture::{ACCOUNT, Fixture, document, element, elements, texts};

#[test]
fn q18_the_last_metadata_stays_whatever_conditions_are_sent() {
    let queue = Fixture::new();
    let set = |value| {
        let headers = [("x-ms-meta-a", value), ("if-match", "\"0x1\""), ("if-none-match", "*")];
        queue.put("/queue?comp=metadata", &headers).is(204);
    };
    set("1");
    set("2");
    assert_eq!(queue.get("/queue?comp=metadata").is(200).header("x-ms-meta-a"), "2");
    queue.put("/queue?comp=metadata", &[]).is(204);
    assert_eq!(queue.get("/queue?comp=metadata").is(200).header("x-ms-meta-a"), "");
}

#[test]
fn q28_create_tells_new_existing_and_different() {
    let queue = Fixture::new();
    let create = |headers: &[(&str, &str)]| queue.put("/made", headers);
    create(&[("x-ms-meta-Cat", "tabby")]).is(201);
    create(&[("x-ms-meta-Cat", "tabby")]).is(204);
    create(&[("x-ms-meta-cAT", "tabby")]).is(204);
    for other in [&[][..], &[("x-ms-meta-cat", "Tabby")], &[("x-ms-meta-dog", "tabby")]] {
        create(other).refused(409, "QueueAlreadyExists");
    }
    let kept = queue.get("/made?comp=metadata").is(200);
    assert!(kept.spelled.iter().any(|name| name == "x-ms-meta-Cat"), "{:?}", kept.spelled);
    create(&[("x-ms-meta-1a", "x")]).refused(400, "InvalidMetadata");
    let long = "x".repeat(8_192);
    create(&[("x-ms-meta-a", &long)]).refused(400, "MetadataTooLarge");
}

#[test]
fn q29_names_have_a_length_and_an_alphabet() {
    let queue = Fixture::new();
    let long = format!("/{}", "a".repeat(64));
    for name in ["/ab", "/1", &long] {
        queue.put(name, &[]).refused(400, "OutOfRangeInput");
    }
    for name in ["/A_b", "/a--b", "/ab-", "/-ab", "/gr%C3%B6sse", "/a.b"] {
        queue.put(name, &[]).refused(400, "InvalidResourceName");
    }
    for (target, hint) in [
        ("/q1", "limits. [latchfs: 'q1' has 2 letters, 3 to 63 are allowed]"),
        ("/a--b", "characters. [latchfs: 'a--b': a hyphen stands between letters or digits]"),
    ] {
        let got = queue.put(target, &[]).text();
        assert!(got.contains(hint), "{got}");
        let got = queue.get(&format!("{target}/messages")).text();
        assert!(got.contains(hint), "{got}");
    }
    for name in ["/messages", "/metadata", "/a-1"] {
        queue.put(name, &[]).is(201);
    }
    queue.ask("POST", "/messages/messages", &[], document("x").as_bytes()).is(201);
}

#[test]
fn q30_everything_on_a_missing_queue_says_so() {
    let queue = Fixture::new();
    let message = "/none/messages/11111111-2222-4333-8444-555555555555?popreceipt=x";
    let update = format!("{message}&visibilitytimeout=0");
    let body = document("x");
    for (method, target) in [
        ("DELETE", "/none"),
        ("GET", "/none?comp=metadata"),
        ("PUT", "/none?comp=metadata"),
        ("GET", "/none?comp=acl"),
        ("PUT", "/none?comp=acl"),
        ("GET", "/none/messages"),
        ("GET", "/none/messages?peekonly=true"),
        ("DELETE", "/none/messages"),
        ("PUT", update.as_str()),
        ("DELETE", message),
    ] {
        queue.ask(method, target, &[], b"").refused(404, "QueueNotFound");
    }
    queue.ask("POST", "/none/messages", &[], body.as_bytes()).refused(404, "QueueNotFound");
    for target in ["/none?comp=metadata", "/none?comp=acl"] {
        assert_eq!(queue.head(target).is(404).code(), "QueueNotFound");
    }
}

#[test]
fn q31_queues_are_listed_page_by_page() {
    let queue = Fixture::new();
    for name in ["p-3", "p-1", "p-5", "p-2", "p-4", "q-1"] {
        queue.put(&format!("/{name}"), &[("x-ms-meta-Name", name)]).is(201);
    }
    let (mut pages, mut marker) = (Vec::new(), String::new());
    loop {
        let query = format!("?comp=list&prefix=p-&maxresults=2&include=metadata&marker={marker}");
        let got = queue.get(&format!("/{query}")).is(200);
        let text = got.text();
        assert_eq!(elements(&text, "Name").len() % 2, 0, "each has its metadata: {text}");
        pages.push(elements(&text, "Name"));
        marker = element(&text, "NextMarker");
        if marker.is_empty() {
            break;
        }
    }
    let names: Vec<_> = pages.iter().flatten().step_by(2).collect();
    assert_eq!(names, ["p-1", "p-2", "p-3", "p-4", "p-5"]);
    assert_eq!(pages.len(), 3);
    // The marker names the first queue of the next page; a bare name will do, there or not.
    let first = queue.get("/?comp=list&prefix=p-&maxresults=2").is(200).text();
    assert_eq!(element(&first, "NextMarker"), format!("/{ACCOUNT}/p-3"));
    assert!(!first.contains("<Metadata>"));
    let later = queue.get("/?comp=list&marker=p-44").is(200).text();
    assert_eq!(elements(&later, "Name"), ["p-5", "q-1", "queue"]);
    for bad in ["0", "-1"] {
        let got = queue.get(&format!("/?comp=list&maxresults={bad}"));
        got.refused(400, "OutOfRangeQueryParameterValue");
    }
    let unknown = queue.get("/?comp=list&include=metadata,nonsense");
    unknown.refused(400, "InvalidQueryParameterValue");
    assert_eq!(queue.ask_path("GET", &format!("/{ACCOUNT}?comp=list&maxresults=9999")).status, 200);
}

#[test]
fn q32_a_cleared_queue_is_empty_and_usable() {
    let queue = Fixture::new();
    queue.send("hidden");
    let hidden = queue.take_one("?visibilitytimeout=600");
    let put = queue.send("visible");
    queue.delete("/queue/messages").is(204);
    assert_eq!((queue.count(), queue.peek()), (0, vec![]));
    for (id, receipt) in [(&hidden.id, &hidden.receipt), (&put.id, &put.receipt)] {
        let text = queue.remove(id, receipt).refused(404, "MessageNotFound").text();
        assert!(text.contains("by Clear Messages"), "{text}");
    }
    queue.send("new");
    assert_eq!(texts(&queue.peek()), ["new"]);
    queue.delete("/queue/messages").is(204);
    queue.delete("/queue/messages").is(204);
}

#[test]
fn metadata_and_count_are_read_by_head_too() {
    let queue = Fixture::new();
    queue.send("x");
    queue.put("/queue?comp=metadata", &[("x-ms-meta-Colour", "Blue")]).is(204);
    let got = queue.head("/queue?comp=metadata").is(200);
    assert_eq!(got.header("x-ms-approximate-messages-count"), "1");
    assert_eq!(got.header("x-ms-meta-colour"), "Blue");
}

#[test]
fn six_policies_or_a_bad_one_are_refused_and_change_nothing() {
    let queue = Fixture::new();
    let policy = |id: &str, expiry: &str| {
        format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy><Expiry>{expiry}</Expiry>\
             <Permission>r</Permission></AccessPolicy></SignedIdentifier>"
        )
    };
    let set = |inside: &str| {
        let body = format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
        queue.ask("PUT", "/queue?comp=acl", &[], body.as_bytes())
    };
    // Times come back as they were sent.
    set(&policy("kept", "2027-01-01")).is(204);
    let six: String = (0..6).map(|id| policy(&id.to_string(), "2027-01-01")).collect();
    let lettered = |letters: &str| policy("a", "").replace(">r<", &format!(">{letters}<"));
    let bad = [six, policy("a", "soon"), policy(&"x".repeat(65), ""), "<Other/>".to_owned()];
    for bad in bad.into_iter().chain(["rwdl", "xyz", "R"].map(lettered)) {
        set(&bad).refused(400, "InvalidXmlDocument");
    }
    let kept = queue.get("/queue?comp=acl").is(200).text();
    assert_eq!(
        (elements(&kept, "Id"), element(&kept, "Expiry")),
        (vec!["kept".to_owned()], "2027-01-01".to_owned())
    );
    set(&lettered("raup")).is(204);
    queue.put("/queue?comp=acl", &[]).is(204);
    let none = queue.get("/queue?comp=acl").is(200).text();
    assert_eq!(elements(&none, "Id"), [""; 0]);
}

#[test]
fn requests_that_fit_no_operation_are_refused_with_a_code() {
    let queue = Fixture::new();
    for (method, target, status, code) in [
        ("GET", "/queue", 405, "UnsupportedHttpVerb"),
        ("POST", "/queue", 405, "UnsupportedHttpVerb"),
        ("PUT", "/queue/messages", 405, "UnsupportedHttpVerb"),
        ("GET", "/queue/messages/id", 405, "UnsupportedHttpVerb"),
        ("PATCH", "/queue/messages", 405, "UnsupportedHttpVerb"),
        ("GET", "/queue/others", 400, "InvalidUri"),
        ("PUT", "/queue/messages/a/b", 400, "InvalidUri"),
        ("GET", "/queue?comp=lease", 400, "InvalidQueryParameterValue"),
        ("GET", "/queue/messages?comp=acl", 400, "InvalidQueryParameterValue"),
        ("GET", "/?restype=service&comp=nothing", 400, "InvalidQueryParameterValue"),
    ] {
        queue.ask(method, target, &[], b"").refused(status, code);
    }
    // What is not known passes.
    queue.ask("GET", "/queue/messages?timeout=30&x=y", &[("x-ms-other", "z")], b"").is(200);
}
