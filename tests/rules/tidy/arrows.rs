//! Holds the arrows between modules, and keeps I/O, clocks and logging out of the rules.
//!
//! The table below is the one of the design. A module that has no row yet gets one here, in the
//! commit that adds it.

use super::paths::{NamedPath, paths};
use super::tokens::{Token, tokens};
use super::tree::{File, Violation};

/// What a module may use of ours.
enum May {
    Use(&'static [&'static str]),
    UseAll,
}

const ARROWS: [(&str, May); 15] = [
    // The swap point for locks and threads: everyone's, but for the rules, which have none.
    ("sync", May::Use(&[])),
    ("core", May::Use(&[])),
    ("store", May::Use(&["core", "sync"])),
    ("engine", May::Use(&["core", "store", "sync"])),
    // Bounds that all listeners of the process share.
    ("connections", May::Use(&["sync"])),
    // `client` is the ioctl numbers that the two sides share.
    ("fuse", May::Use(&["engine", "core", "sync", "client"])),
    ("rest", May::Use(&["engine", "core", "connections", "sync"])),
    ("control", May::Use(&["engine", "core", "sync"])),
    ("play", May::Use(&["engine", "core", "sync"])),
    // The HTTP API is a second way to send the requests of `control`.
    ("admin", May::Use(&["control", "engine", "core", "connections", "sync"])),
    // What embedders and the command line start: it puts the rest together, without clap.
    (
        "server",
        May::Use(&[
            "admin",
            "client",
            "connections",
            "control",
            "core",
            "engine",
            "fuse",
            "play",
            "rest",
            "store",
            "sync",
        ]),
    ),
    // A server for tests of other programs.
    ("testing", May::Use(&["control", "core", "engine", "server"])),
    ("cli", May::UseAll),
    // What people embed: it may tie anything together.
    ("client", May::UseAll),
    // lib.rs and main.rs, where all of it is put together.
    ("", May::UseAll),
];

/// Crates whose types stay in one module.
const AT_HOME: [(&str, &str); 5] = [
    ("fuser", "fuse"),
    ("rcgen", "rest"),
    ("reqwest", "rest"),
    ("rusqlite", "store"),
    ("tokio_rustls", "rest"),
];

/// The folder of each service in a layer: services never see each other.
const SERVICES: [(&str, &[&str]); 4] = [
    ("core", &["smb", "blob", "queue", "table"]),
    ("store", &["share", "blob", "queue", "table"]),
    ("engine", &["file", "blob", "queue", "table"]),
    ("rest", &["file", "blob", "queue", "table"]),
];

/// What the rules in `core/` must not name: I/O, clocks, threads, logging, async.
const IMPURE: [&[&str]; 18] = [
    &["std", "env"],
    &["std", "fs"],
    &["std", "io"],
    &["std", "net"],
    &["std", "os"],
    &["std", "process"],
    &["std", "thread"],
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
    &["std", "time", "UNIX_EPOCH"],
    &["std", "time", "self"],
    &["std", "time", "*"],
    &["dashmap"],
    &["env_logger"],
    &["libc"],
    &["log"],
    &["rustix"],
    &["tokio"],
];

const PRINTING: [&str; 4] = ["print", "println", "eprint", "eprintln"];

/// The arrows that leave this file of `src/`.
pub fn check(file: &File) -> Vec<Violation> {
    let module = Module::of(&file.path);
    let Some((_, may)) = ARROWS.iter().find(|(name, _)| *name == module.top) else {
        let what = format!(
            "module '{}' has no row in the table of arrows: add one to tests/rules/tidy/arrows.rs",
            module.top
        );
        return vec![file.violation(1, what)];
    };
    let named = paths(&file.text);
    let arrows = named.iter().filter_map(|path| {
        let target = module.reached_by(path)?;
        let what = refused(module.top, may, target)?;
        Some(file.violation(path.line, what))
    });
    let strays = named.iter().filter_map(|path| {
        let (name, home) = AT_HOME.iter().find(|(name, _)| *name == path.segments[0])?;
        (module.top != *home).then(|| {
            let what = format!("{name} is known to {home}/ alone: translate its types there");
            file.violation(path.line, what)
        })
    });
    let own = service_of(&file.path);
    let crossings = named.iter().filter_map(|path| {
        let (own, reached) = (own?, service_reached(&module, path)?);
        (own != reached).then(|| {
            let what = format!(
                "the {own} service may not use the {reached} service: move the shared part up"
            );
            file.violation(path.line, what)
        })
    });
    arrows.chain(strays).chain(crossings).collect()
}

/// The service whose folder a file stands in, by the name of that folder in `engine/`.
fn service_of(path: &str) -> Option<&'static str> {
    let mut parts = path.strip_prefix("src/")?.split('/');
    let (layer, folder) = (parts.next()?, parts.next()?);
    service_named(layer, folder.strip_suffix(".rs").unwrap_or(folder))
}

/// The service whose folder of any layer a path reaches.
fn service_reached(module: &Module<'_>, path: &NamedPath<'_>) -> Option<&'static str> {
    let layer = match module.reached_by(path) {
        Some(layer) => layer,
        // Climbs within the layer: `super::super::blob`.
        None if path.segments.contains(&"super") => module.top,
        None => return None,
    };
    let after = path.segments.iter().position(|name| *name == layer);
    let rest = if let Some(at) = after {
        &path.segments[at + 1..]
    } else {
        let ups = path.segments.iter().filter(|name| **name == "super").count();
        if ups != module.depth + path.inline_depth - 1 {
            return None;
        }
        &path.segments[ups..]
    };
    service_named(layer, rest.first()?)
}

fn service_named(layer: &str, folder: &str) -> Option<&'static str> {
    let (_, folders) = SERVICES.iter().find(|(name, _)| *name == layer)?;
    let at = folders.iter().position(|name| *name == folder)?;
    Some(SERVICES[2].1[at])
}

/// Why `module` may not use `target`, if it may not.
fn refused(module: &str, may: &May, target: &str) -> Option<String> {
    let May::Use(allowed) = may else { return None };
    if target == module || allowed.contains(&target) {
        return None;
    }
    if !ARROWS.iter().any(|(name, _)| *name == target) {
        return Some(format!(
            "'{target}' is taken from the crate's root, which hides the arrow: name its module"
        ));
    }
    let list = if allowed.is_empty() {
        "nothing of ours".to_owned()
    } else {
        format!("only {}", allowed.join(", "))
    };
    Some(format!(
        "{module} may not use {target} (it may use {list}): move the shared part down, or pass \
         what is needed as an argument"
    ))
}

/// What this file of `core/` names that a pure rule must not. Test code may.
pub fn check_purity(file: &File) -> Vec<Violation> {
    let test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    if !file.is_below("src/core") || test {
        return Vec::new();
    }
    let named = paths(&file.text);
    let impure = named.iter().filter(|path| !path.in_test).filter_map(|path| {
        let taken = IMPURE.iter().find(|taken| path.segments.starts_with(taken))?;
        let what = format!(
            "core/ is pure and may not use {}: take the fact or the time as an argument",
            taken.join("::")
        );
        Some(file.violation(path.line, what))
    });
    let printing = tokens(&file.text);
    let printing = printing.windows(2).filter_map(|pair| match *pair {
        [(Token::Word(word), line), (Token::Mark('!'), _)] if PRINTING.contains(&word) => {
            Some(file.violation(line, format!("core/ is pure and may not {word}!: return a value")))
        }
        _ => None,
    });
    impure.chain(printing).collect()
}

/// Where a file stands in the crate.
struct Module<'a> {
    /// Its top-level module; empty for the root files.
    top: &'a str,
    /// How many modules deep: 0 for the root files.
    depth: usize,
}

impl<'a> Module<'a> {
    fn of(path: &'a str) -> Self {
        let inside = path.strip_prefix("src/").unwrap_or(path);
        let name = inside.strip_suffix(".rs").unwrap_or(inside);
        if matches!(name, "lib" | "main") {
            return Self { top: "", depth: 0 };
        }
        let name = name.strip_suffix("/mod").unwrap_or(name);
        Self { top: name.split('/').next().unwrap_or(name), depth: name.split('/').count() }
    }

    /// What the path names in the crate's root, if it goes there: by `crate::`, or by as many
    /// `super::` as it takes to climb out of the top module.
    fn reached_by<'p>(&self, path: &NamedPath<'p>) -> Option<&'p str> {
        let mut segments = path.segments.iter().copied().skip_while(|name| *name == "self");
        let mut left = self.depth + path.inline_depth;
        loop {
            match segments.next()? {
                "crate" => return segments.next(),
                "super" => left = left.saturating_sub(1),
                name => {
                    let climbed = path.segments.contains(&"super");
                    return (climbed && left == 0).then_some(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let found = check(&File::sample(path, text));
        found.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn an_arrow_against_the_design_is_found_in_each_spelling() {
        for text in [
            "use crate::engine::FileService;",
            "use crate::{engine, core::id};",
            "fn f() { crate::engine::run() }",
            "use super::super::engine;",
            "use super::super::{engine::FileService};",
            "mod deep { use super::super::super::engine; }",
            "type E = super::super::engine::E;",
        ] {
            assert_eq!(lines("src/store/stat.rs", text), [1], "{text}");
        }
        assert_eq!(lines("src/core/mod.rs", "\nuse super::store;"), [2]);
    }

    #[test]
    fn arrows_of_the_design_pass() {
        for (path, text) in [
            ("src/store/stat.rs", "use crate::core::id; use super::error; use crate::sync::Mutex;"),
            ("src/core/ranges/tests.rs", "use super::super::id; use super::*; use crate::core;"),
            ("src/core/id.rs", "mod tests { use super::*; use super::super::path; }"),
            ("src/core/id.rs", "// crate::engine\n/// [`crate::engine`]\npub(crate) fn f() {}"),
            ("src/engine/mod.rs", "use crate::{core, store};"),
            ("src/cli/run.rs", "use crate::fuse; use crate::rest;"),
            ("src/main.rs", "use crate::anything;"),
        ] {
            assert_eq!(lines(path, text), [0; 0], "{text}");
        }
    }

    #[test]
    fn the_front_ends_never_see_each_other() {
        let ends = ["fuse", "rest", "control", "play", "admin"];
        for from in ends {
            for to in ends.into_iter().filter(|to| *to != from) {
                if (from, to) == ("admin", "control") {
                    continue;
                }
                let path = format!("src/{from}/mod.rs");
                assert_eq!(lines(&path, &format!("use crate::{to}::x;")), [1], "{from} {to}");
            }
        }
        assert_eq!(lines("src/core/id.rs", "use crate::sync::Mutex;"), [1]);
        assert_eq!(lines("src/rest/mod.rs", "use crate::store::Stat;"), [1]);
    }

    #[test]
    fn services_never_see_each_other_in_any_layer() {
        for (layer, folders) in SERVICES {
            for from in folders {
                let path = format!("src/{layer}/{from}/x.rs");
                for to in folders.iter().filter(|to| to != &from) {
                    for text in [
                        format!("use crate::{layer}::{to}::x;"),
                        format!("use super::super::{to}::x;"),
                        format!("fn f() {{ crate::{layer}::{to}::x() }}"),
                    ] {
                        assert_eq!(lines(&path, &text), [1], "{path} {text}");
                    }
                }
                let own = format!("use crate::{layer}::{from}::y; use super::z;");
                assert_eq!(lines(&path, &own), [0; 0], "{path}");
            }
        }
        assert_eq!(lines("src/rest/blob/a.rs", "use crate::engine::queue::Q;"), [1]);
        assert_eq!(lines("src/rest/blob/a.rs", "use crate::engine::blob::B;"), [0; 0]);
        assert_eq!(lines("src/rest/file/a.rs", "use crate::core::smb::Denial;"), [0; 0]);
        assert_eq!(lines("src/rest/handle.rs", "use crate::engine::file::Share;"), [0; 0]);
    }

    #[test]
    fn new_modules_hidden_arrows_and_stray_crates_are_named() {
        assert_eq!(lines("src/fresh/mod.rs", ""), [1]);
        assert_eq!(lines("src/store/stat.rs", "use crate::FileService;"), [1]);
        assert_eq!(lines("src/engine/mod.rs", "use fuser::Filesystem;"), [1]);
        assert_eq!(lines("src/fuse/mod.rs", "use fuser::Filesystem;"), [0; 0]);
    }

    #[test]
    fn a_rule_that_does_io_asks_a_clock_or_prints_is_found() {
        let impure = |path: &str, text: &str| check_purity(&File::sample(path, text)).len();
        for text in [
            "use std::fs;",
            "use std::{fmt, net::IpAddr};",
            "fn f() { std::thread::yield_now() }",
            "use std::time::{Duration, Instant};",
            "use std::time::{self, Duration};",
            "fn now() -> std::time::SystemTime { x }",
            "fn f() { log::info!(\"x\") }",
            "use tokio::sync::Mutex;",
            "fn f() { println!(\"x\") }",
        ] {
            assert_eq!(impure("src/core/id.rs", text), 1, "{text}");
            for free in ["src/engine/mod.rs", "src/core/a/tests.rs", "src/core/a/tests/b.rs"] {
                assert_eq!(impure(free, text), 0, "{free} {text}");
            }
        }
        for text in [
            "use std::time::Duration; use std::sync::Arc;",
            "#[cfg(test)] mod tests { use std::fs; }",
            "struct S { log: Vec<u8> } // std::fs",
        ] {
            assert_eq!(impure("src/core/id.rs", text), 0, "{text}");
        }
    }
}
