//! The service: list shares, service properties, preflight.

use crate::rest::fixture::Fixture;

#[test]
fn shares_are_listed_in_pages() {
    let fixture = Fixture::new();
    fixture.put("/more?restype=share", &[("x-ms-meta-a", "1")]).is(201);
    let all = fixture.get("/?comp=list").is(200).text();
    let endpoint =
        format!("ServiceEndpoint=\"http://{}/devstoreaccount1/\"", fixture.server.addr());
    assert!(all.contains(&endpoint), "{all}");
    assert!(all.contains("<Name>docs</Name>") && all.contains("<Name>more</Name>"), "{all}");
    assert!(all.contains("<Quota>5120</Quota>") && !all.contains("<Metadata>"), "{all}");
    let one = fixture.get("/?comp=list&maxresults=1").is(200).text();
    let marker = one.split("<NextMarker>").nth(1).unwrap().split('<').next().unwrap();
    let rest = fixture.get(&format!("/?comp=list&include=metadata&marker={marker}")).is(200).text();
    assert!(
        rest.contains("<Metadata><a>1</a></Metadata>") && !rest.contains("docs</Name>"),
        "{rest}"
    );
    fixture.get("/?comp=list&maxresults=0").refused(400, "OutOfRangeQueryParameterValue");
    fixture.get("/?comp=list&marker=x").refused(400, "InvalidContinuationToken");
}

#[test]
fn service_properties_are_set_part_by_part_and_rules_let_browsers_in() {
    let fixture = Fixture::new();
    let target = "/?restype=service&comp=properties";
    assert!(fixture.get(target).is(200).text().contains("<HourMetrics>"));
    let ask = [("origin", "http://app.example"), ("access-control-request-method", "GET")];
    fixture.ask("OPTIONS", "/docs/a", &ask, b"").refused(403, "CorsPreflightFailure");
    let body = b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://app.example\
        </AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-*\
        </AllowedHeaders><ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds>\
        </CorsRule></Cors></StorageServiceProperties>";
    fixture.ask("PUT", target, &[], body).is(202);
    let got = fixture.get(target).is(200).text();
    assert!(got.contains("<AllowedMethods>GET,PUT</AllowedMethods>"), "{got}");
    assert!(got.contains("<MinuteMetrics>"), "{got}");
    let got = fixture.ask("OPTIONS", "/docs/a", &ask, b"").is(200);
    assert_eq!(got.header("access-control-allow-origin"), "http://app.example");
    assert_eq!(got.header("access-control-max-age"), "60");
    fixture.ask("PUT", target, &[], b"<Nonsense/>").refused(400, "InvalidXmlDocument");
    let unknown = b"<StorageServiceProperties><X/></StorageServiceProperties>";
    fixture.ask("PUT", target, &[], unknown).refused(400, "InvalidXmlDocument");
}

const PROPERTIES: &str = "/?restype=service&comp=properties";

fn set_rule(fixture: &Fixture, origins: &str) {
    let body = format!(
        "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>{origins}</AllowedOrigins>\
         <AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>*</AllowedHeaders>\
         <ExposedHeaders>x-ms-meta-*,ETag</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds>\
         </CorsRule></Cors></StorageServiceProperties>"
    );
    fixture.ask("PUT", PROPERTIES, &[], body.as_bytes()).is(202);
}

#[test]
fn an_answer_tells_a_page_of_another_origin_what_it_may_see() {
    let fixture = Fixture::new();
    let create = [("x-ms-type", "file"), ("x-ms-content-length", "0"), ("x-ms-meta-k", "v")];
    fixture.put("/docs/a", &create).is(201);
    let origin = [("origin", "http://app.example")];
    let get = |headers: &[(&str, &str)]| fixture.ask("GET", "/docs/a", headers, b"");
    let seen = |got: &crate::rest::fixture::Got| {
        let names = ["access-control-allow-origin", "access-control-expose-headers", "vary"];
        names.map(|name| got.header(name).to_owned())
    };
    assert_eq!(seen(&get(&origin).is(200)), ["", "", ""], "no rules");

    set_rule(&fixture, "http://app.example,https://*.more.example");
    let got = get(&origin).is(200);
    assert_eq!(seen(&got), ["http://app.example", "etag,x-ms-meta-k", "Origin"]);
    assert_eq!(got.header("access-control-allow-credentials"), "true");
    assert_eq!(seen(&get(&[("origin", "https://a.more.example")]))[0], "https://a.more.example");
    assert_eq!(seen(&get(&[("origin", "http://other.example")]).is(200)), ["", "", "Origin"]);
    assert_eq!(seen(&get(&[]).is(200)), ["", "", "Origin"], "a cache must not mix them up");
    let missing = fixture.ask("GET", "/docs/b", &origin, b"").refused(404, "ResourceNotFound");
    assert_eq!(seen(&missing)[0], "http://app.example", "a page may see why");
    let deleted = fixture.ask("DELETE", "/docs/a", &origin, b"").is(403);
    assert_eq!(seen(&deleted), ["", "", ""], "the rule is for other methods");

    set_rule(&fixture, "*");
    let got = fixture.ask("GET", "/docs?restype=share", &origin, b"").is(200);
    assert_eq!(seen(&got), ["*", "etag", ""]);
    assert_eq!(got.header("access-control-allow-credentials"), "");
}

#[test]
fn service_properties_outlive_the_server() {
    let fixture = Fixture::new();
    set_rule(&fixture, "http://app.example");
    let metrics = b"<StorageServiceProperties><HourMetrics><Version>1.0</Version><Enabled>true\
        </Enabled></HourMetrics></StorageServiceProperties>";
    fixture.ask("PUT", PROPERTIES, &[], metrics).is(202);
    let before = fixture.get(PROPERTIES).is(200).text();
    let fixture = fixture.restart();
    assert_eq!(fixture.get(PROPERTIES).is(200).text(), before);
    let ask = [("origin", "http://app.example"), ("access-control-request-method", "PUT")];
    let got = fixture.ask("OPTIONS", "/docs/a", &ask, b"").is(200);
    assert_eq!(got.header("access-control-allow-methods"), "PUT");
}

#[test]
fn a_cors_rule_that_makes_no_sense_is_refused_and_changes_nothing() {
    let fixture = Fixture::new();
    let before = fixture.get(PROPERTIES).is(200).text();
    let rule = |inside: &str| format!("<CorsRule>{inside}</CorsRule>");
    let whole = "<AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>";
    let bad = [
        rule("<AllowedMethods>GET</AllowedMethods>"),
        rule("<AllowedOrigins>*</AllowedOrigins>"),
        rule("<AllowedOrigins>*</AllowedOrigins><AllowedMethods>FETCH</AllowedMethods>"),
        rule(&format!("{whole}<MaxAgeInSeconds>soon</MaxAgeInSeconds>")),
        "<Rule/>".to_owned(),
        rule(whole).repeat(6),
    ];
    for rules in bad {
        let body =
            format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>");
        fixture.ask("PUT", PROPERTIES, &[], body.as_bytes()).refused(400, "InvalidXmlDocument");
    }
    assert_eq!(fixture.get(PROPERTIES).is(200).text(), before);
}

#[test]
fn elements_that_cannot_be_read_are_refused_and_unknown_ones_are_not_kept() {
    let fixture = Fixture::new();
    let before = fixture.get(PROPERTIES).is(200).text();
    let set = |inside: &str| {
        let body = format!(
            "<StorageServiceProperties><HourMetrics>{inside}</HourMetrics>\
             </StorageServiceProperties>"
        );
        fixture.ask("PUT", PROPERTIES, &[], body.as_bytes())
    };
    for bad in ["<x&y/>", "<1/>", "<\u{e9}\u{0}/>", "<a<b/>"] {
        set(bad).refused(400, "InvalidXmlDocument");
    }
    for bad in ["<Enabled>maybe</Enabled>", "<Enabled/>", "<IncludeAPIs>1</IncludeAPIs>"] {
        set(bad).refused(400, "InvalidXmlNodeValue");
    }
    assert_eq!(fixture.get(PROPERTIES).is(200).text(), before);
    set("<Version>1.0</Version><Enabled>True</Enabled><Strange><Enabled/></Strange>").is(202);
    let after = fixture.get(PROPERTIES).is(200).text();
    assert!(after.contains("<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><"));
    assert!(!after.contains("Strange"), "{after}");
    let fixture = fixture.restart();
    assert_eq!(fixture.get(PROPERTIES).is(200).text(), after);
}
