//! The names of Azurite's commands: latchfs called by one of them, as the name of the program (a
//! symbolic link) or as its first argument, starts as that command does.
//!
//! Decides which arguments of `latchfs` they stand for, and which usage errors show. What
//! `--azurite` means is decided in `serve/azurite`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The commands, each with the value of `--azurite` that it stands for.
const NAMES: [(&str, &str); 4] = [
    ("azurite", "all"),
    ("azurite-blob", "blob"),
    ("azurite-queue", "queue"),
    ("azurite-table", "table"),
];

/// The arguments with a name of Azurite's replaced by what it stands for; `None` without one.
pub fn replaced(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let program = arguments.first()?;
    let file = Path::new(program).file_name().unwrap_or_default();
    let (which, rest) = match (which(file), arguments.get(1).and_then(|first| which(first))) {
        (Some(which), _) => (which, &arguments[1..]),
        (None, Some(which)) => (which, &arguments[2..]),
        (None, None) => return None,
    };
    let stands_for: &[&str] = match rest.first().and_then(|first| first.to_str()) {
        Some("-v" | "--version" | "version") => &["--version"],
        Some("-h" | "--help" | "help") => &["serve", "--help"],
        _ => &["serve", "--azurite", which],
    };
    let mut replaced = vec![program.clone()];
    replaced.extend(stands_for.iter().map(OsString::from));
    if stands_for.contains(&which) {
        replaced.extend_from_slice(rest);
    }
    Some(replaced)
}

/// The usage that errors show under a name of Azurite's, in place of the arguments that it stands
/// for; `None` without one.
pub fn usage(arguments: &[OsString]) -> Option<String> {
    let file = Path::new(arguments.first()?).file_name()?;
    let called = |name: &OsStr| which(name).map(|_| name.display().to_string());
    let first = || called(arguments.get(1)?).map(|name| format!("latchfs {name}"));
    Some(format!("{} [OPTIONS]", called(file).or_else(first)?))
}

fn which(name: &OsStr) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| name == *known).map(|(_, which)| *which)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_azurite_stands_for_its_options() {
        let of = |line: &str| {
            let arguments: Vec<_> = line.split(' ').map(OsString::from).collect();
            replaced(&arguments).map(|found| found.join(" ".as_ref()).into_string().unwrap())
        };
        let serve = |text: &str| Some(text.to_owned());
        let blob = "/bin/azurite-blob serve --azurite blob --blobPort 1";
        assert_eq!(of("/bin/azurite-blob --blobPort 1"), serve(blob));
        assert_eq!(of("latchfs azurite -l /x"), serve("latchfs serve --azurite all -l /x"));
        assert_eq!(of("azurite"), serve("azurite serve --azurite all"));
        assert_eq!(of("azurite -v"), serve("azurite --version"));
        assert_eq!(of("azurite-table --help"), serve("azurite-table serve --help"));
        assert_eq!((of("latchfs"), of("latchfs serve azurite")), (None, None));
    }

    #[test]
    fn usage_names_the_command_that_was_typed() {
        let of = |line: &str| usage(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of("/bin/azurite-blob --x").as_deref(), Some("azurite-blob [OPTIONS]"));
        assert_eq!(of("latchfs azurite --x").as_deref(), Some("latchfs azurite [OPTIONS]"));
        assert_eq!(of("latchfs serve"), None);
    }
}
