//! Holds the arrows between folders, and keeps I/O, clocks and logging out of the rules.
//!
//! The checks read lines, not Rust: rustfmt puts one path on a line, an inline module ends at the
//! first column, and a comment has a line of its own.

use super::tree::{File, Violation};

/// The folders of a service. `mount` and `smb` are File's alone.
const SERVICES: [&str; 4] = ["file", "blob", "queue", "table"];
const PARTS: [&str; 6] = ["rules", "store", "service", "rest", "mount", "smb"];

/// What each folder may use beside itself. In the rows of a service's parts, `X` is the service
/// itself. Everything but the rules may use `sync`.
const ARROWS: [(&str, &[&str]); 21] = [
    ("rules", &[]),
    ("sync", &["rules"]),
    ("clock", &["rules"]),
    ("disk", &["rules"]),
    ("net", &[]),
    ("db", &["rules", "disk", "clock"]),
    ("journal", &["rules", "clock"]),
    ("bench", &["rules", "clock", "journal", "disk"]),
    ("http", &["rules", "clock", "net", "db", "journal", "bench"]),
    ("X/rules", &["rules"]),
    ("X/store", &["rules", "disk", "db", "X/rules"]),
    ("X/service", &["rules", "clock", "disk", "db", "journal", "bench", "X/rules", "X/store"]),
    (
        "X/rest",
        &["rules", "clock", "db", "journal", "bench", "net", "http", "X/rules", "X/service"],
    ),
    // `client` has the ioctl numbers that the two sides share.
    ("X/mount", &["rules", "clock", "journal", "bench", "client", "X/rules", "X/service"]),
    ("X/smb", &["rules", "clock", "journal", "bench", "net", "X/rules", "X/service"]),
    ("client", &["X/rules"]),
    (
        "api",
        &[
            "rules",
            "clock",
            "disk",
            "db",
            "journal",
            "bench",
            "net",
            "http",
            "X/rules",
            "X/service",
        ],
    ),
    // What embedders and the command line start: it puts the rest together, without clap.
    ("server", &["*"]),
    // A server for tests of other programs.
    ("testing", &["rules", "clock", "journal", "bench", "api", "server", "X/rules", "X/service"]),
    ("cli", &["*"]),
    // lib.rs, main.rs and the roots of services, which only declare modules.
    ("", &["*"]),
];

/// Crates whose types stay in one folder.
const AT_HOME: [(&str, &str); 10] = [
    ("aes", "file/smb"),
    ("aes_gcm", "file/smb"),
    ("ccm", "file/smb"),
    ("cmac", "file/smb"),
    ("fuser", "file/mount"),
    ("md4", "file/smb"),
    ("rcgen", "http"),
    ("reqwest", "http"),
    ("rusqlite", "db"),
    ("tokio_rustls", "http"),
];

/// What rules must not name: I/O, clocks, threads, logging, async.
const IMPURE: [&str; 21] = [
    "std::env",
    "std::fs",
    "std::io",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "std::os",
    "std::process",
    "std::thread",
    "Instant",
    "SystemTime",
    "time::UNIX_EPOCH",
    "dashmap::",
    "env_logger::",
    "libc::",
    "log::",
    "rustix::",
    "tokio::",
    "println!",
    "eprintln!",
    "print!",
];

/// Every arrow against the table.
pub fn check(files: &[&File]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files {
        let from = folder_of(&file.path);
        for (number, to) in named(file) {
            if to.is_empty() {
                let what = "name what is meant by crate::, with its folder: the arrow is hidden";
                violations.push(file.violation(number, what));
            } else if !may_use(&from, &to) {
                let what =
                    format!("{from} may not use {to}: move the shared part down, or pass it");
                violations.push(file.violation(number, what));
            }
        }
        violations.extend(strays(file, &from));
    }
    violations
}

/// The folder that a file of `src/` belongs to: `http`, `blob/rules`; empty for the files that only
/// declare modules.
fn folder_of(path: &str) -> String {
    let inside = path.strip_prefix("src/").unwrap_or(path);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    let parts: Vec<_> = inside.split('/').filter(|part| *part != "mod").collect();
    match parts[..] {
        ["lib" | "main"] | [] => String::new(),
        [service] if SERVICES.contains(&service) => String::new(),
        [service, part, ..] if SERVICES.contains(&service) => format!("{service}/{part}"),
        [top, ..] => top.to_owned(),
    }
}

fn may_use(from: &str, to: &str) -> bool {
    if from == to {
        return true;
    }
    if to == "sync" {
        return !from.ends_with("rules");
    }
    let (service, part) = from.split_once('/').unwrap_or(("", from));
    let row = if service.is_empty() { from.to_owned() } else { format!("X/{part}") };
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == row) else { return false };
    allowed.iter().any(|name| match name.strip_prefix("X/") {
        _ if *name == "*" => to != "cli" || from.is_empty(),
        // Above the services all of them are seen, inside a service only that one.
        Some(wanted) => to
            .split_once('/')
            .is_some_and(|(of, part)| part == wanted && (service.is_empty() || of == service)),
        None => *name == to,
    })
}

/// The folders that the lines of a file name by `crate::`, or by `super::` past their own folder,
/// which comes out empty.
fn named(file: &File) -> Vec<(usize, String)> {
    let inside = file.path.trim_start_matches("src/").trim_end_matches("mod.rs");
    let depth = inside.trim_end_matches(".rs").split('/').filter(|part| !part.is_empty()).count();
    let own = folder_of(&file.path).split('/').filter(|part| !part.is_empty()).count();
    let mut found = Vec::new();
    for (number, line, inline) in code(file) {
        for (at, _) in line.match_indices("crate::") {
            if !is_word_end(&line[..at]) {
                found.push((number, target(&line[at + "crate::".len()..])));
            }
        }
        let mut rest = line;
        while let Some(at) = rest.find("super::") {
            let climb = rest[at..].len();
            let after = rest[at..].trim_start_matches("super::");
            let supers = (climb - after.len()) / "super::".len();
            // Of a declared module the first `super` is its parent folder's file.
            if supers > (depth + inline).saturating_sub(own) && own > 0 {
                found.push((number, String::new()));
            }
            rest = after;
        }
    }
    found
}

/// The folder that a path behind `crate::` leads to; empty for a group such as `crate::{a, b}`.
fn target(path: &str) -> String {
    let mut words = path.split("::").map(|word| {
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
        &word[..end]
    });
    let first = words.next().unwrap_or_default();
    if !SERVICES.contains(&first) {
        return first.to_owned();
    }
    match words.next() {
        Some(part) if PARTS.contains(&part) => format!("{first}/{part}"),
        _ => String::new(),
    }
}

fn is_word_end(before: &str) -> bool {
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The lines that are code, with their numbers and how many inline modules they stand in.
fn code(file: &File) -> impl Iterator<Item = (usize, &str, usize)> {
    let mut inline = 0;
    file.lines().filter_map(move |(number, line)| {
        if line.starts_with('}') {
            inline = 0;
        }
        let here = inline;
        if line.ends_with('{') && (line.starts_with("mod ") || line.starts_with("pub mod ")) {
            inline = 1;
        }
        (!line.trim_start().starts_with("//")).then_some((number, line, here))
    })
}

fn strays(file: &File, from: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line, _) in code(file) {
        for (name, home) in AT_HOME {
            let at_home = from == home || home == "db" && from.ends_with("/store");
            let named = line.split(&format!("{name}::")).next().unwrap_or(line);
            if named.len() < line.len() && !is_word_end(named) && !at_home {
                let what = format!("{name} is known to {home} alone: translate its types there");
                found.push(file.violation(number, what));
            }
        }
    }
    found
}

/// What this file of rules names that a pure rule must not. Test code may.
pub fn check_purity(file: &File) -> Vec<Violation> {
    let test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    if !folder_of(&file.path).ends_with("rules") || test {
        return Vec::new();
    }
    let lines = code(file).filter(|(_, _, inline)| *inline == 0);
    let found = lines.filter_map(|(number, line, _)| {
        let taken = IMPURE
            .iter()
            .find(|taken| line.match_indices(*taken).any(|(at, _)| !is_word_end(&line[..at])))?;
        let what = format!("rules are pure and may not use {taken}: take the fact as an argument");
        Some(file.violation(number, what))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = File::sample(path, text);
        let found = check(&[&file]);
        let here = found.iter().filter(|violation| violation.path == path);
        here.map(|violation| violation.line).collect()
    }

    #[test]
    fn an_arrow_against_the_table_is_found_in_each_spelling() {
        for text in [
            "use crate::file::service::FileService;",
            "use crate::{cli, rules::id};",
            "fn f() { crate::api::run() }",
            "use super::super::rest;",
            "use super::super::super::blob::Blob;",
            "mod deep {\n    use super::super::super::rest;\n}",
            "    let x = crate::server::Account::new();",
        ] {
            assert_eq!(lines("src/file/store/stat.rs", text).len(), 1, "{text}");
        }
        assert_eq!(lines("src/rules/mod.rs", "\nuse crate::sync::Mutex;"), [2]);
        assert_eq!(lines("src/http/mod.rs", "use crate::FileService;"), [1]);
        assert_eq!(lines("src/fresh/mod.rs", "use crate::rules::Etag;"), [1]);
    }

    #[test]
    fn arrows_of_the_table_pass() {
        for (path, text) in [
            (
                "src/file/store/stat.rs",
                "use crate::rules::id;\nuse super::error;\nuse crate::sync::M;",
            ),
            ("src/file/rules/ranges/tests.rs", "use super::super::id;\nuse super::*;"),
            ("src/rules/id.rs", "mod tests {\n    use super::*;\n    use super::super::path;\n}"),
            ("src/rules/id.rs", "// crate::api\n/// [`crate::api`]\npub(crate) fn f() {}"),
            ("src/file/mount/mod.rs", "use crate::file::service::Share;"),
            ("src/api/mod.rs", "use crate::blob::service::BlobService;"),
            ("src/cli/run.rs", "use crate::server::Server;"),
            ("src/main.rs", "use crate::anything;"),
        ] {
            assert_eq!(lines(path, text), [0; 0], "{text}");
        }
    }

    #[test]
    fn services_never_see_each_other_and_a_face_never_sees_the_store() {
        for service in SERVICES {
            for other in SERVICES {
                for part in ["rules", "store", "service", "rest"] {
                    for target in ["rules", "store", "service", "rest"] {
                        let text = format!("use crate::{other}::{target}::x;");
                        let allowed = service == other
                            && (target == part
                                || target == "rules"
                                || (part, target) == ("service", "store")
                                || (part, target) == ("rest", "service"));
                        let found = lines(&format!("src/{service}/{part}/a.rs"), &text);
                        assert_eq!(found.is_empty(), allowed, "{service}/{part} {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn stray_crates_are_named() {
        assert_eq!(lines("src/blob/service/mod.rs", "use fuser::Filesystem;"), [1]);
        assert_eq!(lines("src/file/mount/mod.rs", "use fuser::Filesystem;"), [0; 0]);
        assert_eq!(lines("src/blob/store/rows.rs", "use rusqlite::Row;"), [0; 0]);
        assert_eq!(lines("src/blob/service/a.rs", "fn f(row: &rusqlite::Row) {}"), [1]);
    }

    #[test]
    fn a_rule_that_does_io_asks_a_clock_or_prints_is_found() {
        let impure = |path: &str, text: &str| check_purity(&File::sample(path, text)).len();
        for text in [
            "use std::fs;",
            "fn f() { std::thread::yield_now() }",
            "use std::time::{Duration, Instant};",
            "fn now() -> std::time::SystemTime { x }",
            "fn f() { log::info!(\"x\") }",
            "use tokio::sync::Mutex;",
            "fn f() { println!(\"x\") }",
        ] {
            assert_eq!(impure("src/rules/id.rs", text), 1, "{text}");
            assert_eq!(impure("src/blob/rules/id.rs", text), 1, "{text}");
            for free in ["src/api/mod.rs", "src/rules/a/tests.rs", "src/rules/a/tests/b.rs"] {
                assert_eq!(impure(free, text), 0, "{free} {text}");
            }
        }
        for text in [
            "use std::time::Duration;\nuse std::sync::Arc;",
            "#[cfg(test)]\nmod tests {\n    use std::fs;\n}",
            "// std::fs",
            "struct S { catalog: Vec<u8> }",
        ] {
            assert_eq!(impure("src/rules/id.rs", text), 0, "{text}");
        }
    }
}
