//! Holds what concerns the repository around the code: scripts, changelog, owner, links, stray
//! paths.

use super::tree::{File, Violation};

const SCRIPT_FOLDERS: [&str; 3] = ["tests", ".ci", "mount-scripts"];

/// Folders of machines that builds run on, without their slashes, so that this file does not name
/// one itself.
const MACHINE_FOLDERS: [&str; 3] = ["root", "work", "home"];

/// A script can be started by its name, and says what runs it.
///
/// A file of a script's name (no suffix, or `.sh`) needs both the mode and the shebang; any other
/// needs both or neither, so that a Python module that is only imported may stay as it is.
pub fn check_script(file: &File) -> Vec<Violation> {
    if !SCRIPT_FOLDERS.iter().any(|folder| file.is_below(folder)) {
        return Vec::new();
    }
    let shebang = file.text.starts_with("#!") && !file.text.starts_with("#![");
    let script = shebang || file.executable || is_script_name(&file.path);
    let mut found = Vec::new();
    if script && !shebang {
        found.push(file.violation(1, "a script without '#!': name what runs it in the first line"));
    }
    if script && !file.executable {
        found.push(file.violation(1, "a script that cannot be executed: chmod +x it"));
    }
    found
}

/// `run`, `setup.sh`; but neither `Dockerfile` nor `.gitignore`.
fn is_script_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let bare = name.strip_suffix(".sh").unwrap_or(name);
    !bare.contains('.') && bare.starts_with(|letter: char| letter.is_ascii_lowercase())
}

/// The changelog has a section for what is to come or for the version of `Cargo.toml`.
pub fn check_changelog(changelog: &str, manifest: &str) -> Vec<Violation> {
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .expect("Cargo.toml names the version on a line of its own");
    let named = changelog.lines().any(|line| {
        let title = line.strip_prefix("## [").and_then(|rest| rest.split(']').next());
        title.is_some_and(|title| title == "Unreleased" || title == version)
    });
    if named {
        return Vec::new();
    }
    let what = format!("neither '## [Unreleased]' nor '## [{version}]': add the section");
    vec![File::sample("CHANGELOG.md", "").violation(1, what)]
}

/// Who publishes latchfs is the one of `repository` in `Cargo.toml`, wherever its place is named.
pub fn check_owner(file: &File, manifest: &str) -> Vec<Violation> {
    let owner = manifest
        .lines()
        .find_map(|line| line.strip_prefix("repository = \"https://github.com/")?.split('/').next())
        .expect("Cargo.toml names the repository on a line of its own");
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        for before in ["github.com/", "ghcr.io/", "repository: "] {
            for (at, _) in line.match_indices(before) {
                let mut parts = line[at + before.len()..].split('/');
                let (named, project) = (parts.next(), parts.next());
                let ours = project.is_some_and(|project| project.starts_with("latchfs"));
                if ours && named != Some(owner) {
                    let what = format!("Cargo.toml names {owner} as who publishes latchfs");
                    found.push(file.violation(number, what));
                }
            }
        }
    }
    found
}

/// Every link of a Markdown file to a file of the repository leads to one, and to a heading of it
/// where it names one.
pub fn check_links(file: &File, files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in prose(file) {
        for link in links(&line) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
            let mut all = files.iter().chain([file]);
            let known = all.find(|other| other.path == target);
            let folder = files.iter().any(|other| other.is_below(&target));
            let what = match known {
                None if !folder => format!("the link to '{link}' leads nowhere: mend or drop it"),
                Some(known) if !heading.is_empty() && !has_heading(known, heading) => {
                    format!("'{target}' has no heading '#{heading}': mend the link")
                }
                _ => continue,
            };
            found.push(file.violation(number, what));
        }
    }
    found
}

/// The lines outside code blocks, with inline code taken out.
fn prose(file: &File) -> impl Iterator<Item = (usize, String)> {
    let mut in_code = false;
    file.lines().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            return None;
        }
        let outside = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        (!in_code).then_some((number, outside))
    })
}

/// The targets of `[text](target)` and `[text]: target` that stay in the repository.
fn links(line: &str) -> Vec<&str> {
    let inline =
        line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let reference =
        line.starts_with('[').then(|| line.split_once("]: ")).flatten().map(|(_, target)| target);
    inline
        .chain(reference)
        .filter_map(|target| target.split_whitespace().next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

/// The path `link` means when it stands in the file `from`; a leading slash is the root's.
fn resolve(from: &str, link: &str) -> String {
    let (folder, _) = from.rsplit_once('/').unwrap_or_default();
    let start = if link.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = start.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// True if a heading of the Markdown file is reached by `#anchor`: lower case, blanks as hyphens,
/// other marks dropped.
fn has_heading(file: &File, anchor: &str) -> bool {
    file.lines().any(|(_, line)| {
        let title = line.trim_start_matches('#');
        let slug = title.trim().to_lowercase().replace(' ', "-");
        let kept = slug.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        line.starts_with('#') && kept.eq(anchor.chars())
    })
}

/// No absolute path into a folder of the machine that built or wrote it.
pub fn check_machine_paths(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        for folder in MACHINE_FOLDERS {
            let pattern = format!("/{folder}/");
            if line.match_indices(&pattern).any(|(at, _)| is_absolute(&line[..at])) {
                let what = format!("a path of one machine ({pattern}...): make it relative");
                found.push(file.violation(number, what));
            }
        }
    }
    found
}

/// True if a path that starts after `before` is absolute, and not the rest of a longer one.
fn is_absolute(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(found: &[Violation]) -> Vec<usize> {
        found.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_script_needs_its_mode_and_its_shebang() {
        let count = |path: &str, text: &str, executable| {
            let mut file = File::sample(path, text);
            file.executable = executable;
            check_script(&file).len()
        };
        assert_eq!(count("tests/run", "#!/bin/sh\n", true), 0);
        assert_eq!(count("tests/run", "#!/bin/sh\n", false), 1);
        assert_eq!(count("mount-scripts/up.sh", "echo\n", true), 1);
        assert_eq!(count(".ci/run", "echo\n", false), 2);
        assert_eq!(count("tests/world/clients/check.py", "#!/usr/bin/env python3\n", false), 1);
        assert_eq!(count("tests/world/clients/helper.py", "import os\n", false), 0);
        assert_eq!(count("tests/a.rs", "#![allow(unused)]\n", false), 0);
        assert_eq!(count("tests/Dockerfile", "FROM x\n", false), 0);
        assert_eq!(count("docs/run", "echo\n", false), 0);
    }

    #[test]
    fn a_changelog_of_another_version_is_found() {
        let manifest = "[package]\nname = \"x\"\nversion = \"0.2.0\"\n";
        assert_eq!(check_changelog("# Changelog\n## [Unreleased]\n", manifest), []);
        assert_eq!(check_changelog("## [0.2.0] - 2026-11-16\n", manifest), []);
        assert_eq!(check_changelog("## [0.1.0]\nUnreleased 0.2.0\n", manifest).len(), 1);
        assert_eq!(check_changelog("", manifest).len(), 1);
    }

    #[test]
    fn another_owner_is_found() {
        let manifest = "[package]\nrepository = \"https://github.com/us/latchfs\"\n";
        let check = |text: &str| lines(&check_owner(&File::sample("docs/b.md", text), manifest));
        let ours = "git clone https://github.com/us/latchfs\nimage: ghcr.io/us/latchfs:1\n";
        assert_eq!(check(ours), [0; 0]);
        assert_eq!(check("https://github.com/fuser/fuser\nrepository: us/latchfs,"), [0; 0]);
        assert_eq!(check("\nrepository: me/latchfs, path: x\nghcr.io/me/latchfs"), [2, 3]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let files = [
            File::sample("README.md", "# Top\n## What it is, today\n"),
            File::sample("docs/a.md", ""),
            File::sample("tests/run", ""),
        ];
        let check = |text: &str| lines(&check_links(&File::sample("docs/b.md", text), &files));
        let good = "[a](a.md) [r](../README.md#what-it-is-today) [t](/tests) [u](https://x.y/z)\n\
                    `[code](no)`\n```\n[block](no)\n```\n[ref]: ../tests/run\n# Here\n[h](#here)";
        assert_eq!(check(good), [0; 0]);
        assert_eq!(check("\n[a](b/a.md)"), [2]);
        assert_eq!(check("[a](../README.md#no-such)"), [1]);
        assert_eq!(check("[ok](a.md) [a](/a.md)\n\n[ref]: gone.md"), [1, 3]);
        assert_eq!(check("[h](#here)"), [1]);
    }

    #[test]
    fn a_path_of_a_build_machine_is_found() {
        for folder in MACHINE_FOLDERS {
            let check = |text: String| lines(&check_machine_paths(&File::sample("a", &text)));
            assert_eq!(check(format!("\nsee /{folder}/x")), [2]);
            assert_eq!(check(format!("file:///{folder}/x or '/{folder}/y'")), [1]);
            assert_eq!(
                check(format!("a/{folder}/x https://a.b/{folder}/c ${{D}}/{folder}/")),
                [0; 0]
            );
        }
    }
}
