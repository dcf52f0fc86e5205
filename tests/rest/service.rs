//! The service: list shares, service properties, preflight.

use crate::fixture::Fixture;

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
