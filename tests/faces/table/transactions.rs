//! T62-T72: entity group transactions. T71, about a killed server, is in `tests/long`.

use serde_json::json;

use super::fixture::{Tables, change, entity};

fn row(key: &str, n: i32) -> String {
    json!({"PartitionKey": "p", "RowKey": key, "n": n}).to_string()
}

fn insert(key: &str) -> String {
    change("POST", "/tab", &[("Prefer", "return-no-content")], &row(key, 1))
}

#[test]
fn t62_all_kinds_of_changes_in_one_transaction() {
    let tables = Tables::with("tab");
    for key in ["b", "c", "d"] {
        tables.put_row("tab", "p", key, 0);
    }
    let any = [("If-Match", "*")];
    let answer = tables.batch(&[
        insert("a"),
        change("PUT", &entity("tab", "p", "b"), &any, r#"{"n":1}"#),
        change("PATCH", &entity("tab", "p", "c"), &any, r#"{"n":1}"#),
        change("DELETE", &entity("tab", "p", "d"), &any, ""),
        change("PUT", &entity("tab", "p", "e"), &[], r#"{"n":1}"#),
        change("MERGE", &entity("tab", "p", "f"), &[], r#"{"n":1}"#),
        change("POST", "/tab", &[], &row("g", 1)),
    ]);
    let answer = answer.is(202);
    let content_type = answer.header("content-type").to_owned();
    assert!(content_type.starts_with("multipart/mixed; boundary=batchresponse_"), "{content_type}");
    let text = answer.text();
    let parts: Vec<_> = text.split("--changesetresponse_").skip(1).collect();
    assert_eq!(parts.len(), 8, "{text}");
    for (index, part) in parts[..7].iter().enumerate() {
        let status = if index == 6 { "HTTP/1.1 201 Created" } else { "HTTP/1.1 204 No Content" };
        assert!(part.contains(status), "{part}");
        assert_eq!(part.contains("\r\nETag: W/\"datetime'"), index != 3, "{part}");
        assert_eq!(part.contains("\r\nLocation: http"), index == 0 || index == 6, "{part}");
        assert_eq!(part.contains('{'), index == 6, "{part}");
    }
    assert!(parts[0].contains("\r\nPreference-Applied: return-no-content\r\n"));
    assert!(!text.replace("\r\n", "").contains('\n'), "lines end with CR LF");
    assert_eq!(tables.rows("tab", "n eq 1"), ["p/a", "p/b", "p/c", "p/e", "p/f", "p/g"]);
}

#[test]
fn t63_t64_the_operation_that_fails_is_told_and_nothing_is_applied() {
    let tables = Tables::with("tab");
    let stale = tables.put_row("tab", "p", "x", 0);
    tables.put_row("tab", "p", "x", 1);
    let before = tables.get(&entity("tab", "p", "x")).text();
    let inserts = || vec![insert("a"), insert("b"), insert("c")];
    for (last, status, code, message) in [
        (
            insert("x"),
            409,
            "EntityAlreadyExists",
            "3:The specified entity already exists. [latchfs: changed",
        ),
        (
            change("PUT", &entity("tab", "p", "x"), &[("If-Match", &stale)], "{}"),
            412,
            "UpdateConditionNotSatisfied",
            "3:The update condition specified in the request was not satisfied. [latchfs: changed",
        ),
        (
            change("DELETE", &entity("tab", "p", "none"), &[("If-Match", "*")], ""),
            404,
            "ResourceNotFound",
            "3:The specified resource does not exist.",
        ),
        (
            change("DELETE", &entity("tab", "p", "x"), &[], ""),
            400,
            "MissingRequiredHeader",
            "3:An HTTP header",
        ),
        (change("POST", "/tab", &[], r#"{"PartitionKey":"p"}"#), 400, "PropertiesNeedValue", "3:"),
        (change("POST", "/tab", &[], "no json"), 400, "InvalidInput", "3:"),
    ] {
        let mut parts = inserts();
        parts.push(last);
        let (got_status, got_code, got_message) = tables.batch(&parts).fault();
        assert_eq!((got_status, &*got_code), (status, code), "{got_message}");
        assert!(got_message.starts_with(message), "{got_message}");
        assert!(got_message.contains("\nRequestId:"), "{got_message}");
    }
    assert_eq!(tables.rows("tab", "true"), ["p/x"]);
    assert_eq!(tables.get(&entity("tab", "p", "x")).text(), before);
}

#[test]
fn t66_rows_of_one_partition_once_each() {
    let tables = Tables::with("tab");
    tables.create("other");
    let elsewhere = r#"{"PartitionKey":"q","RowKey":"b"}"#;
    for (parts, code, message) in [
        (
            vec![insert("a"), change("PUT", &entity("tab", "p", "a"), &[], "{}")],
            "InvalidDuplicateRow",
            "1:The batch request contains multiple changes with same row key. An entity can \
             appear only once in a batch request.",
        ),
        (
            vec![insert("a"), change("POST", "/tab", &[], elsewhere)],
            "CommandsInBatchActOnDifferentPartitions",
            "1:All commands in a batch must operate on same entity group.",
        ),
        (
            vec![insert("a"), change("POST", "/other", &[], &row("b", 1))],
            "CommandsInBatchActOnDifferentPartitions",
            "1:All commands in a batch must operate on same entity group.",
        ),
    ] {
        let (status, got, text) = tables.batch(&parts).fault();
        assert_eq!((status, &*got), (400, code));
        assert!(text.starts_with(message), "{text}");
    }
    assert!(tables.rows("tab", "true").is_empty());
}

#[test]
fn t67_an_unknown_table_is_told_with_index_0() {
    let tables = Tables::new();
    let (status, code, message) = tables.batch(&[insert("a")]).fault();
    assert_eq!((status, &*code), (404, "TableNotFound"));
    assert!(message.starts_with("0:The table specified does not exist."));
}

#[test]
fn t68_batches_of_all_clients_read_alike() {
    let tables = Tables::with("tab");
    let base = tables.base();
    let key = |n: usize| json!({"PartitionKey": "p", "RowKey": n.to_string()}).to_string();
    let python = format!(
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n--changeset_1\r\n\
         Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\
         \r\nPOST {base}/tab HTTP/1.1\r\nx-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\n\
         Content-Type: application/json;odata=nometadata\r\n\
         Accept: application/json;odata=minimalmetadata\r\nContent-Length: {}\r\n\
         x-ms-date: Mon, 05 Jan 2026 10:00:00 GMT\r\nDate: Mon, 05 Jan 2026 10:00:00 GMT\r\n\r\n\
         {}\r\n--changeset_1--\r\n\r\n--batch_1--\r\n",
        key(0).len(),
        key(0)
    );
    let js = format!(
        "--batch_1\r\ncontent-type: multipart/mixed; boundary=changeset_1\r\n\r\n\r\n\
         --changeset_1\r\ncontent-type: application/http\r\ncontent-transfer-encoding: binary\r\n\
         \r\nPOST {base}/tab HTTP/1.1\r\naccept: application/json\r\n\
         content-type: application/json\r\nprefer: return-no-content\r\n\r\n\r\n{}\r\n\
         --changeset_1--\r\n--batch_1--",
        key(1)
    );
    let dotnet = format!(
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n--changeset_1\r\n\
         Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         POST /devstoreaccount1/tab?$format=application%2Fjson%3Bodata%3Dminimalmetadata \
         HTTP/1.1\r\n\
         Host: elsewhere.example\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
         \r\n{}\r\n--changeset_1--\r\n--batch_1--\r\n",
        key(2)
    );
    let feeds = js.replace("\r\n", "\n").replace(&key(1), &key(3));
    for (text, boundary) in
        [(python, "batch_1"), (js, "\"batch_1\""), (dotnet, "batch_1"), (feeds, "batch_1")]
    {
        let content_type = format!("multipart/mixed; boundary={boundary}");
        let headers = [("content-type", content_type.as_str())];
        let got = tables.ask("POST", "/$batch", &headers, text.as_bytes()).is(202);
        assert!(got.text().contains("HTTP/1.1 20"), "{}", got.text());
    }
    assert_eq!(tables.rows("tab", "true"), ["p/0", "p/1", "p/2", "p/3"]);
}

#[test]
fn t69_one_get_stands_alone() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 1);
    let base = tables.base();
    let get = format!(
        "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         GET {base}/tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n\r\n"
    );
    let headers = [("content-type", "multipart/mixed; boundary=b")];
    let ask = |text: String| tables.ask("POST", "/$batch", &headers, text.as_bytes());
    let got = ask(format!("{get}--b--")).is(202).text();
    assert!(got.contains("HTTP/1.1 200 OK") && got.contains(r#""RowKey":"r""#), "{got}");
    let beside = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\
                  Content-Type: application/http\r\n\r\nPOST /tab HTTP/1.1\r\n\r\n\
                  {\"PartitionKey\":\"p\",\"RowKey\":\"z\"}\r\n--c--\r\n";
    ask(format!("{get}{beside}--b--")).refused(400, "InvalidInput");
    assert_eq!(tables.rows("tab", "true"), ["p/r"]);
}

#[test]
fn t70_what_is_no_batch_is_refused_as_a_whole() {
    let tables = Tables::with("tab");
    let typed = [("content-type", "multipart/mixed; boundary=b")];
    let large = vec![b' '; (4 << 20) + 1];
    let refused = tables.ask("POST", "/$batch", &typed, &large).is(413);
    assert_eq!(refused.code(), "RequestBodyTooLarge");
    for body in [
        "",
        "--b--",
        "no boundary",
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n--b--",
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\ncut",
    ] {
        tables.ask("POST", "/$batch", &typed, body.as_bytes()).refused(400, "InvalidInput");
    }
    let json = [("content-type", "application/json")];
    tables.ask("POST", "/$batch", &json, b"{}").refused(400, "InvalidInput");
    tables.batch(&[]).refused(400, "InvalidInput");
}

#[test]
fn t72_readers_see_all_of_a_transaction_or_nothing() {
    let tables = Tables::with("tab");
    let round = |n: i32| {
        let one = |row: usize| {
            change(
                "PUT",
                &entity("tab", "p", &format!("{row:03}")),
                &[],
                &format!(r#"{{"n":{n}}}"#),
            )
        };
        tables.batch(&(0..100).map(one).collect::<Vec<_>>()).is(202);
    };
    round(0);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..20).for_each(round);
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut looks = 0;
        while looks < 3 || !done.load(std::sync::atomic::Ordering::SeqCst) {
            let body = tables.get("/tab").is(200).json();
            let values = body["value"].as_array().unwrap();
            assert_eq!(values.len(), 100);
            assert!(values.iter().all(|one| one["n"] == values[0]["n"]), "half a transaction");
            looks += 1;
        }
    });
}

#[test]
fn the_format_of_a_part_goes_before_its_accept() {
    let tables = Tables::with("tab");
    let accept = [("content-type", "application/json"), ("accept", "application/json")];
    let insert = |row: &str, query: &str| {
        let body = format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}");
        let path = format!("/tab{query}");
        tables.batch(&[change("POST", &path, &accept, &body)]).is(202).text()
    };
    assert!(insert("a", "").contains("odata=minimalmetadata"));
    let full = insert("b", "?$format=application/json;odata=fullmetadata");
    assert!(full.contains("odata=fullmetadata") && full.contains("odata.editLink"), "{full}");
    assert!(insert("c", "?%24format=json%3Bodata%3Dnometadata").contains("odata=nometadata"));
}
