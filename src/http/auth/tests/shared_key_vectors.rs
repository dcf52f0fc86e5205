//! Shared Key signatures made by the SDKs' own signing code, with the development account's key.
//!
//! Python: `azure-storage-file-share` 12.27.1, `SharedKeyCredentialPolicy.on_request` on a
//! transport request with the headers below and `x-ms-version: 2026-10-06`. JS:
//! `@azure/storage-common` of `@azure/storage-file-share` 12.31.0,
//! `storageSharedKeyCredentialPolicy().sendRequest`, with the clock held and `x-ms-version:
//! 2026-04-06`.

use super::*;

struct Vector {
    method: &'static str,
    url: &'static str,
    headers: &'static [(&'static str, &'static str)],
    signature: &'static str,
}

const PYTHON: [Vector; 4] = [
    Vector {
        method: "PUT",
        url: "/devstoreaccount1/demo?restype=share",
        headers: &[("Content-Length", "0")],
        signature: "YxKIfrwXffOoJRuFR4JTEISNX7hTAnFG9jRET6lBJrg=",
    },
    Vector {
        method: "PUT",
        url: "/devstoreaccount1/demo/Dir%20A%2Fsub/caf%C3%A9.txt?comp=range&timeout=30",
        headers: &[
            ("Content-Length", "5"),
            ("Content-Type", "application/octet-stream"),
            ("Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="),
            ("x-ms-range", "bytes=0-4"),
            ("x-ms-write", "update"),
        ],
        signature: "0ZuEQT//orbqdJ18hop0nwGaBpC5tRvQOubkV+DyJWw=",
    },
    // An empty value is signed by Python.
    Vector {
        method: "GET",
        url: "/devstoreaccount1/?comp=list&include=&prefix=a%2Bb%20c",
        headers: &[],
        signature: "pg9/zijd6MFvxAyhvABvTKu/igpRZVtDgrgn8r7EK6Q=",
    },
    // Two names whose order depends on how hyphens count, and the stray header.
    Vector {
        method: "PUT",
        url: "/devstoreaccount1/demo/f?comp=metadata",
        headers: &[
            ("x-ms-meta-a-b", "1"),
            ("x-ms-meta-ab", "2"),
            ("x-ms-meta", "{'ab': '2'}"),
            ("Content-Length", "0"),
        ],
        signature: "bZqaHSjMPw9TZjz7o4ZTCHunsmyXICm+5IUELRgp5cY=",
    },
];

const JS: [Vector; 4] = [
    // An empty value is not signed by JS.
    Vector {
        method: "GET",
        url: "/devstoreaccount1/?comp=list&include=",
        headers: &[],
        signature: "GZ9pyRPqaUk3lfB4pTwe00rf9BwHxwK98vWrYyfrOdo=",
    },
    // Nor one with a second `=`.
    Vector {
        method: "GET",
        url: "/devstoreaccount1/demo?comp=list&marker=a==&restype=directory",
        headers: &[],
        signature: "+V3fGeg9msW99UwdJWP+j6agCdcTq47w0eJ4Q4pNcDI=",
    },
    // A rename's destination without the account, and an empty header.
    Vector {
        method: "PUT",
        url: "/demo/new.txt?comp=rename",
        headers: &[
            ("x-ms-file-rename-source", "http://127.0.0.1:10004/devstoreaccount1/demo/old.txt"),
            ("x-ms-file-attributes", ""),
            ("content-length", "0"),
        ],
        signature: "GXV+T1UIEoUGQSELaaPpMPcy3z5wFfoVaj92/hiN+FM=",
    },
    // Both deviations at once.
    Vector {
        method: "PUT",
        url: "/devstoreaccount1/demo/f?comp=metadata&include=",
        headers: &[
            ("x-ms-meta-a-b", "1"),
            ("x-ms-meta-ab", "2"),
            ("content-type", "application/octet-stream"),
            ("content-length", "0"),
        ],
        signature: "a0l5Hp7iOSzftcAQfbz+sbtrG0b05oV7aMEiEsiIzUg=",
    },
];

fn sent(vector: &Vector, version: &str) -> Sent {
    let signed = format!("SharedKey {DEVELOPMENT_NAME}:{}", vector.signature);
    let plain = Sent::new(vector.method, vector.url)
        .with("x-ms-date", DATE)
        .with("x-ms-version", version)
        .with("Authorization", &signed);
    vector.headers.iter().fold(plain, |sent, (name, value)| sent.with(name, value))
}

fn all() -> impl Iterator<Item = Sent> {
    let python = PYTHON.iter().map(|vector| sent(vector, "2026-10-06"));
    python.chain(JS.iter().map(|vector| sent(vector, "2026-04-06")))
}

#[test]
fn what_the_sdks_sign_is_let_in() {
    for sent in all() {
        let grant = sent.authorize(&DEMO).unwrap_or_else(|error| panic!("{}: {error}", sent.path));
        assert_eq!(grant.by, GrantedBy::SharedKey);
        assert_eq!(grant.account, DEVELOPMENT_NAME);
    }
}

#[test]
fn a_change_to_anything_signed_is_noticed() {
    for sent in all() {
        let mut spoilt = vec![
            Sent { method: "DELETE".into(), ..sent.clone() },
            Sent { path: format!("{}x", sent.path), ..sent.clone() },
            Sent { query: format!("{}&more=1", sent.query), ..sent.clone() },
            sent.clone().with("x-ms-more", ""),
            sent.clone().with("If-Match", "*"),
        ];
        for (index, (name, value)) in sent.headers.iter().enumerate() {
            let mut other = sent.clone();
            if name == "Authorization" {
                let (good, last) = value.split_at(value.len() - 3);
                let flipped = if last.starts_with('A') { "B" } else { "A" };
                other.headers[index].1 = format!("{good}{flipped}{}", &last[1..]);
            } else {
                other.headers[index].1.push('1');
            }
            spoilt.push(other);
        }
        for other in spoilt {
            let text = string_signed(other.authorize(&DEMO));
            assert!(!text.contains(DEVELOPMENT_KEY));
        }
    }
}
