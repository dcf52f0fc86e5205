//! T73-T84: signatures, policies, the service as a whole, errors.

use serde_json::json;

use super::fixture::{Got, Sas, Tables, change, entity};
use crate::service::account_token;

const ROW: &str = r#"{"PartitionKey":"p","RowKey":"r"}"#;

#[track_caller]
fn is_refused(got: &Got, code: &str) {
    assert_eq!((got.status, got.code()), (403, code), "{}", got.text());
}

#[test]
fn t73_shared_key_and_shared_key_lite_have_texts_of_their_own() {
    let tables = Tables::signed();
    for scheme in ["SharedKey", "SharedKeyLite"] {
        tables.signed_ask(scheme, "GET", "/Tables", "", b"").is(200);
        tables.signed_ask(scheme, "GET", "/", "restype=service&comp=properties", b"").is(200);
        let wrong = tables.signed_with("d3Jvbmc=", 0, scheme, "GET", "/Tables", "", b"");
        is_refused(&wrong, "AuthenticationFailed");
        let late = tables.signed_with(Tables::KEY, -16 * 60, scheme, "GET", "/Tables", "", b"");
        is_refused(&late, "AuthenticationFailed");
    }
    tables.signed_ask("SharedKey", "POST", "/Tables", "", br#"{"TableName":"tab"}"#).is(201);
    let escaped = "/tab(PartitionKey='it%27%27s',RowKey='a%20b')";
    tables.signed_ask("SharedKey", "PUT", escaped, "", b"{}").is(204);
    let malformed = tables.ask("GET", "/Tables", &[("authorization", "SharedKey none")], b"");
    assert_eq!((malformed.status, malformed.code()), (400, "InvalidAuthenticationInfo"));
    let none = tables.ask("GET", "/Tables", &[], b"");
    assert_eq!(none.code(), "NoAuthenticationInformation");
}

#[test]
fn t74_a_table_sas_permits_by_letter() {
    let tables = Tables::signed_with_table("tab");
    let url = entity("tab", "p", "r");
    let ask = |letters: &str, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]| {
        let sas = Sas::of("tab", letters).token();
        tables.ask(method, &format!("{target}?{sas}"), headers, body)
    };
    let any = [("if-match", "*")];
    ask("a", "POST", "/tab", &[], ROW.as_bytes()).is(201);
    ask("r", "GET", &url, &[], b"").is(200);
    ask("r", "GET", "/tab()", &[], b"").is(200);
    ask("u", "PUT", &url, &any, b"{}").is(204);
    ask("au", "PUT", &url, &[], b"{}").is(204);
    let wrong = "AuthorizationPermissionMismatch";
    is_refused(&ask("aud", "GET", &url, &[], b""), wrong);
    is_refused(&ask("rud", "POST", "/tab", &[], ROW.as_bytes()), wrong);
    is_refused(&ask("rad", "PUT", &url, &any, b"{}"), wrong);
    for letters in ["a", "u", "ard", "urd"] {
        is_refused(&ask(letters, "PUT", &url, &[], b"{}"), wrong);
        is_refused(&ask(letters, "PATCH", &url, &[], b"{}"), wrong);
    }
    is_refused(&ask("rau", "DELETE", &url, &any, b""), wrong);
    ask("d", "DELETE", &url, &any, b"").is(204);
    let batch = |letters: &str, parts: &[String]| {
        let sas = Sas::of("tab", letters).token();
        tables.batch_at(&format!("/$batch?{sas}"), parts)
    };
    let insert = change("POST", "/tab", &[], ROW);
    let (status, code, message) = batch("r", std::slice::from_ref(&insert)).fault();
    assert_eq!((status, &*code), (403, wrong));
    assert!(message.starts_with("0:"));
    assert!(batch("a", &[insert]).is(202).text().contains("HTTP/1.1 201"));
}

#[test]
fn t75_a_table_sas_reaches_its_key_range() {
    let tables = Tables::signed_with_table("tab");
    for (partition, row) in [("a", "z"), ("b", "1"), ("b", "2"), ("c", "1"), ("d", "2"), ("d", "3")]
    {
        let url = entity("tab", partition, row);
        tables.signed_ask("SharedKey", "PUT", &url, "", b"{}").is(204);
    }
    let sas = Sas { keys: ["b", "2", "d", "2"], ..Sas::of("tab", "raud") }.token();
    let ask = |method: &str, partition: &str, row: &str| {
        let target = format!("{}?{sas}", entity("tab", partition, row));
        tables.ask(method, &target, &[("if-match", "*")], b"{}")
    };
    for (partition, row) in [("b", "2"), ("c", "1"), ("d", "2")] {
        ask("GET", partition, row).is(200);
        ask("PUT", partition, row).is(204);
    }
    for (partition, row) in [("b", "1"), ("a", "z"), ("d", "3")] {
        for method in ["GET", "PUT", "PATCH", "DELETE"] {
            is_refused(&ask(method, partition, row), "AuthorizationFailure");
        }
    }
    let outside = json!({"PartitionKey": "e", "RowKey": "r"}).to_string();
    let insert = tables.ask("POST", &format!("/tab?{sas}"), &[], outside.as_bytes());
    is_refused(&insert, "AuthorizationFailure");
    let found = tables.ask("GET", &format!("/tab()?{sas}"), &[], b"").is(200).json();
    let rows = found["value"].as_array().unwrap().iter().map(|one| {
        format!("{}{}", one["PartitionKey"].as_str().unwrap(), one["RowKey"].as_str().unwrap())
    });
    assert_eq!(rows.collect::<Vec<_>>(), ["b2", "c1", "d2"]);
    let part = change("POST", "/tab", &[], &outside);
    let answer = tables.batch_at(&format!("/$batch?{sas}"), &[part]);
    assert_eq!(answer.fault().1, "AuthorizationFailure");
}

/// The keys of a SAS count as they were signed, however the request spells them.
#[test]
fn a_key_range_cannot_be_spelled_away() {
    let tables = Tables::signed_with_table("tab");
    for partition in ["a", "m m", "m+m", "z"] {
        let url = entity("tab", partition, "r");
        tables.signed_ask("SharedKey", "PUT", &url, "", b"{}").is(204);
    }
    let sas = Sas { keys: ["m+m", "", "m+m", ""], ..Sas::of("tab", "raud") }.token();
    let found = |sas: &str| {
        let found = tables.ask("GET", &format!("/tab()?{sas}"), &[], b"").is(200).json();
        let partition = |one: &serde_json::Value| one["PartitionKey"].as_str().unwrap().to_owned();
        found["value"].as_array().unwrap().iter().map(partition).collect::<Vec<_>>()
    };
    assert_eq!(found(&sas), ["m+m"]);
    // A plus that is not escaped is signed as one.
    assert_eq!(found(&sas.replace("m%2Bm", "m+m")), ["m+m"]);
    assert_eq!(found(&sas.replace("spk", "S%50k").replace("epk", "EPK")), ["m+m"]);
    // The Kelvin sign is no letter K of ASCII, though its lower case is.
    let kelvin = sas.replace("spk=", "sp%E2%84%AA=").replace("epk=", "ep%E2%84%AA=");
    let all = tables.ask("GET", &format!("/tab()?{kelvin}"), &[], b"");
    is_refused(&all, "AuthenticationFailed");
    let target = format!("{}?{kelvin}", entity("tab", "z", "r"));
    let deleted = tables.ask("DELETE", &target, &[("if-match", "*")], b"");
    is_refused(&deleted, "AuthenticationFailed");
    // The first value of a name counts, for the signature and for the range alike.
    let twice = format!("spk=a&epk=z&{sas}");
    is_refused(&tables.ask("GET", &format!("/tab()?{twice}"), &[], b""), "AuthenticationFailed");
    assert_eq!(found(&format!("{sas}&spk=a&epk=z")), ["m+m"]);
    // So does the table of a transaction.
    tables.signed_ask("SharedKey", "POST", "/Tables", "", br#"{"TableName":"other"}"#).is(201);
    let other = r#"{"PartitionKey":"m+m","RowKey":"new"}"#;
    let part = change("POST", "/other", &[], other);
    let answer = tables.batch_at(&format!("/$batch?{sas}&tn=other"), &[part]);
    assert_eq!(answer.fault().0, 403);
}

#[test]
fn t76_a_table_sas_reaches_nothing_else() {
    let tables = Tables::signed_with_table("tab");
    tables.signed_ask("SharedKey", "POST", "/Tables", "", br#"{"TableName":"other"}"#).is(201);
    let get = |target: &str, sas: &str| tables.ask("GET", &format!("{target}{sas}"), &[], b"");
    let good = Sas::of("tab", "raud").token();
    get("/tab()?", &good).is(200);
    get("/TAB()?", &good).is(200);
    assert_eq!(get("/other()?", &good).status, 403);
    let renamed = good.replace("tn=tab", "tn=other");
    is_refused(&get("/other()?", &renamed), "AuthenticationFailed");
    is_refused(&get("/Tables?", &good), "AuthorizationResourceTypeMismatch");
    is_refused(&get("/tab?comp=acl&", &good), "AuthorizationResourceTypeMismatch");
    let expired = Sas { expiry: "2020-01-01T00:00:00Z", ..Sas::of("tab", "r") }.token();
    is_refused(&get("/tab()?", &expired), "AuthenticationFailed");
    let secure = Sas { protocol: "https", ..Sas::of("tab", "r") }.token();
    is_refused(&get("/tab()?", &secure), "AuthorizationProtocolMismatch");
    is_refused(&get("/tab()?", &good[..good.len() - 12]), "AuthenticationFailed");
    let part = change("POST", "/other", &[], ROW);
    let answer = tables.batch_at(&format!("/$batch?{good}"), &[part]);
    assert_eq!(answer.fault().0, 403);
}

#[test]
fn t77_a_stored_policy_is_revoked_by_its_removal() {
    let tables = Tables::signed_with_table("tab");
    let acl = |body: &str| {
        tables.signed_ask("SharedKey", "PUT", "/tab", "comp=acl", body.as_bytes()).is(204);
    };
    acl("<SignedIdentifiers><SignedIdentifier><Id>mine</Id><AccessPolicy>\
         <Expiry>2099-01-01T00:00:00.0000000Z</Expiry><Permission>ra</Permission></AccessPolicy>\
         </SignedIdentifier></SignedIdentifiers>");
    let sas = Sas { letters: "", expiry: "", policy: "mine", ..Sas::of("tab", "") }.token();
    let get = || tables.ask("GET", &format!("/tab()?{sas}"), &[], b"");
    get().is(200);
    let insert = change("POST", "/tab", &[], ROW);
    tables.batch_at(&format!("/$batch?{sas}"), &[insert]).is(202);
    acl("<SignedIdentifiers />");
    is_refused(&get(), "AuthenticationFailed");
}

#[test]
fn t78_an_account_sas_permits_by_level_and_letter() {
    let tables = Tables::signed_with_table("tab");
    let ask = |(services, levels, letters): (&str, &str, &str), method: &str, target: &str| {
        let sas = account_token(services, levels, letters);
        let mark = if target.contains('?') { '&' } else { '?' };
        let body: &[u8] = match (method, target) {
            ("POST", "/Tables") => br#"{"TableName":"more"}"#,
            ("POST", _) => ROW.as_bytes(),
            ("PUT", "/?restype=service&comp=properties") => b"<StorageServiceProperties />",
            _ => b"{}",
        };
        tables.ask(method, &format!("{target}{mark}{sas}"), &[("if-match", "*")], body)
    };
    let url = entity("tab", "p", "r");
    let properties = "/?restype=service&comp=properties";
    for (sas, method, target, status) in [
        (("t", "s", "r"), "GET", properties, 200),
        (("t", "s", "w"), "PUT", properties, 202),
        (("t", "c", "l"), "GET", "/Tables", 200),
        (("t", "c", "c"), "POST", "/Tables", 201),
        (("t", "c", "d"), "DELETE", "/Tables('more')", 204),
        (("t", "c", "w"), "POST", "/Tables", 201),
        (("t", "o", "a"), "POST", "/tab", 201),
        (("bqt", "sco", "r"), "GET", &url, 200),
        (("t", "o", "r"), "GET", "/tab()", 200),
        (("t", "c", "r"), "GET", "/tab()", 200),
        (("t", "o", "u"), "PUT", &url, 204),
        (("t", "o", "d"), "DELETE", &url, 204),
    ] {
        let got = ask(sas, method, target);
        assert_eq!(got.status, status, "{sas:?} {method} {target}: {}", got.text());
    }
    for (sas, method, target, code) in [
        (("q", "sco", "raudlcw"), "GET", "/Tables", "AuthorizationServiceMismatch"),
        (("t", "co", "r"), "GET", properties, "AuthorizationResourceTypeMismatch"),
        (("t", "so", "l"), "GET", "/Tables", "AuthorizationResourceTypeMismatch"),
        (("t", "s", "r"), "GET", "/tab()", "AuthorizationResourceTypeMismatch"),
        (("t", "s", "l"), "GET", properties, "AuthorizationPermissionMismatch"),
        (("t", "sco", "aud"), "GET", url.as_str(), "AuthorizationPermissionMismatch"),
        (("t", "sco", "raudlcw"), "GET", "/tab?comp=acl", "AuthorizationPermissionMismatch"),
        (("t", "sco", "raudlcw"), "PUT", "/tab?comp=acl", "AuthorizationPermissionMismatch"),
    ] {
        is_refused(&ask(sas, method, target), code);
    }
}

#[test]
fn t79_statistics_are_read_from_the_secondary() {
    let tables = Tables::signed();
    let query = "restype=service&comp=stats";
    let stats = tables.secondary("-secondary/", "-secondary/", query).is(200).text();
    assert!(stats.contains("<Status>live</Status><LastSyncTime>"), "{stats}");
    // Signed as the primary's path.
    tables.secondary("-secondary/", "/", query).is(200);
    // The Python client sends the account twice and signs it once.
    tables.secondary("-secondary/devstoreaccount1/", "/", query).is(200);
    let primary = tables.signed_ask("SharedKey", "GET", "/", query, b"").is(400);
    assert_eq!(primary.code(), "InvalidQueryParameterValue");
    tables.secondary("-secondary/Tables", "-secondary/Tables", "").is(200);
}

#[test]
fn t80_a_table_has_five_policies() {
    let tables = Tables::with("tab");
    let set = |inner: &str| {
        let body = format!("<SignedIdentifiers>{inner}</SignedIdentifiers>");
        tables.ask("PUT", "/tab?comp=acl", &[("accept", "application/xml")], body.as_bytes())
    };
    let get = || tables.get("/tab?comp=acl").is(200).text();
    let many = |count: usize| {
        let one = |n| format!("<SignedIdentifier><Id>{n}</Id><AccessPolicy /></SignedIdentifier>");
        (0..count).map(one).collect::<String>()
    };
    set(&many(5)).is(204);
    assert_eq!(get().matches("<Id>").count(), 5);
    assert_eq!(set(&many(6)).is(400).code(), "InvalidXmlDocument");
    assert_eq!(get().matches("<Id>").count(), 5);
    let full = "<SignedIdentifier><Id>a</Id><AccessPolicy><Start>2020-01-01T00:00:00Z</Start>\
                <Expiry>2099-01-01</Expiry><Permission>raud</Permission></AccessPolicy>\
                </SignedIdentifier>";
    set(full).is(204);
    assert!(get().contains(full), "as it was sent: {}", get());
    for (field, other) in [("2020-01-01T00:00:00Z", "tomorrow"), ("2099-01-01", "yesterday")] {
        let got = set(&full.replace(field, other)).is(400);
        assert_eq!(got.code(), "InvalidXmlDocument", "{other}");
    }
    assert!(get().contains(full), "a refusal changes nothing: {}", get());
    tables.ask("PUT", "/tab?comp=acl", &[], b"").is(204);
    assert!(!get().contains("<Id>"));
    assert_eq!(set("<Other />").is(400).code(), "InvalidXmlDocument");
}

#[test]
fn t81_service_properties_and_cors() {
    let tables = Tables::with("tab");
    let target = "/?restype=service&comp=properties";
    let cors = "<Cors><CorsRule><AllowedOrigins>http://here.example</AllowedOrigins>\
                <AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>*</AllowedHeaders>\
                <ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds>\
                </CorsRule></Cors>";
    let set = |inner: &str| {
        let body = format!("<StorageServiceProperties>{inner}</StorageServiceProperties>");
        tables.ask("PUT", target, &[], body.as_bytes())
    };
    set(cors).is(202);
    set("<HourMetrics><Version>1.0</Version><Enabled>false</Enabled></HourMetrics>").is(202);
    let text = tables.get(target).is(200).text();
    assert!(text.contains(cors) && text.contains("<Logging>"), "{text}");
    let preflight = |origin: &str| {
        let headers = [("origin", origin), ("access-control-request-method", "GET")];
        tables.ask("OPTIONS", "/tab", &headers, b"")
    };
    let allowed = preflight("http://here.example").is(200);
    assert_eq!(allowed.header("access-control-allow-origin"), "http://here.example");
    let refused = preflight("http://there.example").is(403);
    assert_eq!(refused.code(), "CorsPreflightFailure");
    let got = tables.ask("GET", "/tab", &[("origin", "http://here.example")], b"").is(200);
    assert_eq!(got.header("access-control-allow-origin"), "http://here.example");
    let days = "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true\
                </IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>366</Days>\
                </RetentionPolicy></HourMetrics>";
    assert_eq!(set(days).is(400).code(), "InvalidXmlDocument");
}

#[test]
fn t82_every_refusal_has_a_code_in_body_and_header() {
    let tables = Tables::with("tab");
    for (method, target, status, code) in [
        ("GET", "/none", 404, "TableNotFound"),
        ("GET", "/tab(PartitionKey='p',RowKey='r')", 404, "ResourceNotFound"),
        ("PATCH", "/Tables", 405, "MethodNotAllowed"),
        ("PUT", "/tab", 405, "MethodNotAllowed"),
        ("POST", "/tab(PartitionKey='p',RowKey='r')", 405, "MethodNotAllowed"),
        ("GET", "/$batch", 405, "MethodNotAllowed"),
        ("GET", "/tab('x')", 400, "InvalidInput"),
        ("POST", "/Tables", 400, "InvalidInput"),
    ] {
        let got = tables.ask(method, target, &[], b"").refused(status, code);
        assert!(got.message().contains("RequestId:"), "{method} {target}");
        assert!(got.header("content-type").starts_with("application/json"), "{method} {target}");
    }
    for (target, code) in [
        ("/none?comp=acl", "TableNotFound"),
        ("/?restype=service&comp=none", "InvalidQueryParameterValue"),
    ] {
        let got = tables.get(target);
        assert_eq!(got.code(), code);
        assert!(got.text().contains(&format!("<m:code>{code}</m:code>")), "{}", got.text());
    }
}

#[test]
fn t83_etags_rise_though_the_clock_is_set_back() {
    let tables = Tables::with("tab");
    let mut last = String::new();
    for seconds in [0_i64, 10, -3_600, 5, -7_200] {
        tables.turn_clock(seconds);
        let etag = tables.put_row("tab", "p", "r", 1);
        // Zeros at the end of a fraction are left out, and a digit comes before Z.
        let moment = etag.trim_end_matches("Z'\"").to_owned();
        assert!(moment > last, "{moment} after {last}");
        last = moment;
    }
}

#[test]
fn t84_no_lease_header_has_an_effect() {
    let tables = Tables::with("tab");
    let lease = [("x-ms-lease-id", "c0ffee00-1234-5678-9abc-def012345678"), ("if-match", "*")];
    tables.put_row("tab", "p", "r", 1);
    tables.ask("PUT", &entity("tab", "p", "r"), &lease, b"{}").is(204);
    let page = crate::common::pages::page("docs/table.md");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("one designated blob for each table"), "the pattern is documented");
}
