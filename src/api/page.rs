//! The page: files inside the program, at `/` and below `/page/`.
//!
//! Decides what a browser may do with the page: load from this address and nowhere else. What the
//! page shows is decided in its files, from `page/page.js` on.

use hyper::StatusCode;
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_FRAME_OPTIONS};

use super::body::{AdminResponse, bytes};

/// A file of the page: its path, its kind, its text.
type PageFile = (&'static str, &'static str, &'static str);

const fn html(path: &'static str, text: &'static str) -> PageFile {
    (path, "text/html; charset=utf-8", text)
}

const fn script(path: &'static str, text: &'static str) -> PageFile {
    (path, "text/javascript; charset=utf-8", text)
}

/// The files, by path.
const FILES: [PageFile; 21] = [
    html("/", include_str!("page/index.html")),
    ("/page/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
    ("/page/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    script("/page/api.js", include_str!("page/api.js")),
    script("/page/bench.js", include_str!("page/bench.js")),
    script("/page/clock.js", include_str!("page/clock.js")),
    script("/page/connect.js", include_str!("page/connect.js")),
    script("/page/dom.js", include_str!("page/dom.js")),
    script("/page/explore.js", include_str!("page/explore.js")),
    script("/page/follow.js", include_str!("page/follow.js")),
    script("/page/lanes.js", include_str!("page/lanes.js")),
    script("/page/list.js", include_str!("page/list.js")),
    script("/page/locks.js", include_str!("page/locks.js")),
    script("/page/log.js", include_str!("page/log.js")),
    script("/page/page.js", include_str!("page/page.js")),
    script("/page/panels.js", include_str!("page/panels.js")),
    script("/page/report.js", include_str!("page/report.js")),
    script("/page/sections.js", include_str!("page/sections.js")),
    script("/page/state.js", include_str!("page/state.js")),
    script("/page/stream.js", include_str!("page/stream.js")),
    script("/page/timeline.js", include_str!("page/timeline.js")),
];

/// Nothing from elsewhere, no scripts in the text, no frame around the page.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The file of that path, if there is one.
pub fn file(path: &str) -> Option<AdminResponse> {
    let (_, kind, text) = FILES.iter().find(|(name, _, _)| *name == path)?;
    let mut answer = bytes(StatusCode::OK, kind, *text);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // The address of the page may have the token in it.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    Some(answer)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The most bytes of all files together.
    const SIZE_MAX: usize = 200 << 10;

    #[test]
    fn every_file_of_the_page_is_served_and_all_are_small() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api/page");
        for entry in fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = if name == "index.html" { "/".into() } else { format!("/page/{name}") };
            assert!(FILES.iter().any(|(served, _, _)| *served == path), "{path} is not served");
        }
        let size: usize = FILES.iter().map(|(_, _, text)| text.len()).sum();
        assert!(size < SIZE_MAX, "{size} bytes");
    }

    #[test]
    fn what_a_file_of_the_page_loads_is_a_file_of_the_page() {
        for (path, _, text) in FILES {
            for quote in ['"', '\''] {
                for reference in text.split(quote) {
                    let wanted = match reference.strip_prefix("./") {
                        Some(name) if Path::new(name).extension() == Some(OsStr::new("js")) => {
                            format!("/page/{name}")
                        }
                        _ if reference.starts_with("/page/") => reference.to_owned(),
                        _ => continue,
                    };
                    assert!(file(&wanted).is_some(), "{path} loads {wanted}");
                }
            }
        }
    }

    #[test]
    fn the_page_has_no_code_or_style_in_its_markup_and_makes_no_markup_of_texts() {
        let (_, _, markup) = FILES[0];
        for banned in [" style=", " onclick=", " onload=", "javascript:", "<style", "<script>"] {
            assert!(!markup.contains(banned), "index.html has {banned}");
        }
        let makers = ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("];
        for (path, kind, text) in FILES {
            let found = makers.iter().find(|maker| text.contains(**maker));
            assert!(!kind.contains("javascript") || found.is_none(), "{path} uses {found:?}");
            assert!(!text.contains("https://"), "{path} names another address");
        }
    }
}
