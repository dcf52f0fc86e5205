//! Bad ground: what stands below the share fails or changes. Errors are clear, on both faces,
//! nothing is lost, and the server goes on.
//!
//! A clock that is set back is in `tests/rules/account`: it needs a clock that a test can turn.
mod container;
mod damaged;
mod few_descriptors;
mod full;
mod full_databases;
mod full_mount;
mod injected;
mod injected_mount;
mod inode_numbers;
mod limits;
mod mounted_below;
mod no_xattrs;
mod overlay;
mod read_only;
mod refused_for_space;
mod removed;

use std::io;

use crate::common::http::{Got, ask};
use crate::common::served::{LATCHFS, Served};

/// The errno of what failed; 0 if it did not.
fn errno<T>(done: io::Result<T>) -> i32 {
    done.err().map_or(0, |error| error.raw_os_error().unwrap_or(-1))
}

/// A request to the share `share`.
fn rest(served: &Served, method: &str, target: &str, headers: &[(&str, &str)]) -> Got {
    ask(served.addr(), method, &format!("/share{target}"), headers, b"")
}

fn create(served: &Served, name: &str, bytes: usize) -> Got {
    let length = bytes.to_string();
    let headers = [("x-ms-type", "file"), ("x-ms-content-length", length.as_str())];
    rest(served, "PUT", &format!("/{name}"), &headers)
}

/// Put Range from the start of the file.
fn write(served: &Served, name: &str, bytes: &[u8]) -> Got {
    let range = format!("bytes=0-{}", bytes.len() - 1);
    let headers = [("x-ms-write", "update"), ("x-ms-range", range.as_str())];
    ask(served.addr(), "PUT", &format!("/share/{name}?comp=range"), &headers, bytes)
}

/// What a server that cannot start says.
fn start_fails(data: &std::path::Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(LATCHFS)
        .args(["serve", "--no-mount", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}
