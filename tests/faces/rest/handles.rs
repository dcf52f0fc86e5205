//! Handles of the mount, listed and closed over REST.

use crate::rest::fixture::Fixture;

#[test]
fn handles_are_listed_with_their_holders_and_closed() {
    let fixture = Fixture::new();
    fixture.put("/docs/d?restype=directory", &[]).is(201);
    fixture.upload("d/f", b"f");
    let handle = fixture.open("d/f", "rw", "none");
    let list = fixture.get("/docs/d/f?comp=listhandles").is(200).text();
    let id = list.split("<HandleId>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    assert!(
        list.contains("<Path>d/f</Path>") && list.contains("<SessionId>7</SessionId>"),
        "{list}"
    );
    assert!(list.contains("<AccessRight>Write</AccessRight>"), "{list}");
    assert!(list.contains("excel (pid 4711)"), "{list}");
    assert!(!fixture.get("/docs?comp=listhandles").is(200).text().contains("<Handle>"));
    let recursive = [("x-ms-recursive", "true")];
    let below = fixture.ask("GET", "/docs?comp=listhandles", &recursive, b"").is(200).text();
    assert!(below.contains(&id), "{below}");
    let close =
        |id: &str| fixture.put("/docs/d/f?comp=forceclosehandles", &[("x-ms-handle-id", id)]);
    assert_eq!(close("12").is(200).header("x-ms-number-of-handles-closed"), "0");
    close("all").refused(400, "InvalidHeaderValue");
    let got = close(&id).is(200);
    assert_eq!(got.header("x-ms-number-of-handles-closed"), "1");
    assert_eq!(got.header("x-ms-number-of-handles-failed"), "0");
    fixture.get("/docs/d/f").is(200);
    assert!(fixture.share().close(&handle).is_err());
    let on_file = [("x-ms-handle-id", "*"), ("x-ms-recursive", "true")];
    let got = fixture.put("/docs/d/f?comp=forceclosehandles", &on_file);
    got.refused(400, "InvalidHeaderValue");
    fixture.get("/docs/none?comp=listhandles").refused(404, "ResourceNotFound");
}
