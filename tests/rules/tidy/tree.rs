//! The files of the repository, and how a violation reads.
//!
//! What `.gitignore` names is left out, so a build folder or a live mount is never walked into.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

pub struct File {
    /// From the repository's root, with `/`.
    pub path: String,
    pub text: String,
    /// Somebody may execute it.
    pub executable: bool,
}

impl File {
    /// A file for the samples of a checker's own tests.
    pub fn sample(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), executable: false }
    }

    /// True for Rust source anywhere in the crate.
    pub fn is_rust(&self) -> bool {
        ["src", "tests", "benches"].iter().any(|top| self.is_rust_in(top))
    }

    /// True for Rust source below the folder `top`.
    pub fn is_rust_in(&self, top: &str) -> bool {
        self.is_below(top) && self.has_suffix("rs")
    }

    /// True for a file of that suffix.
    pub fn has_suffix(&self, suffix: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == suffix)
    }

    /// True for a file below the folder `top`.
    pub fn is_below(&self, top: &str) -> bool {
        self.path.strip_prefix(top).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The lines with their numbers, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.split('\n'))
    }

    /// A violation at `line` of this file.
    pub fn violation(&self, line: usize, what: impl Into<String>) -> Violation {
        Violation { path: self.path.clone(), line, what: what.into() }
    }
}

/// A rule broken at one place: which, and what to do.
#[derive(PartialEq, Eq, Debug)]
pub struct Violation {
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The rule and the cure.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Every file of the repository, sorted by path. The text of a file that is not text is empty.
pub fn files() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ignore = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let mut files = Vec::new();
    walk(root, "", &Ignored::parse(&ignore), &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(root: &Path, folder: &str, ignored: &Ignored, files: &mut Vec<File>) {
    let entries = fs::read_dir(root.join(folder)).expect("a folder of the repository can be read");
    for entry in entries {
        let entry = entry.expect("a folder of the repository can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if name == ".git" || ignored.covers(&path) {
            continue;
        }
        let kind = entry.file_type().expect("an entry of the repository has a type");
        if kind.is_dir() {
            walk(root, &path, ignored, files);
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).expect("a file of the repository can be read");
            let text = String::from_utf8(bytes).unwrap_or_default();
            let meta = entry.metadata().expect("a file just read can be looked at");
            files.push(File { path, text, executable: meta.permissions().mode() & 0o111 != 0 });
        }
    }
}

/// The patterns of `.gitignore`, as far as this repository uses them: `/path`, `name`, `*.suffix`.
struct Ignored(Vec<String>);

impl Ignored {
    fn parse(text: &str) -> Self {
        let patterns = text.lines().map(|line| line.trim().trim_end_matches('/'));
        Self(
            patterns
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
                .map(str::to_owned)
                .collect(),
        )
    }

    fn covers(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.0.iter().any(|pattern| {
            if let Some(from_root) = pattern.strip_prefix('/') {
                path == from_root
            } else if let Some(suffix) = pattern.strip_prefix('*') {
                name.ends_with(suffix)
            } else {
                name == pattern
            }
        })
    }
}

#[test]
fn ignored_files_are_told_by_path_name_and_suffix() {
    let ignored = Ignored::parse("# built\n/target\n/tests/.cache/\nnode_modules\n*.rs.bk\n");
    for path in ["target", "tests/.cache", "a/node_modules", "src/lib.rs.bk"] {
        assert!(ignored.covers(path), "{path}");
    }
    for path in ["src/target", "tests", "src/lib.rs", "# built"] {
        assert!(!ignored.covers(path), "{path}");
    }
}

#[test]
fn the_walk_finds_sources_and_scripts_and_no_git_folder() {
    let files = files();
    let find = |path: &str| files.iter().find(|file| file.path == path);
    assert!(find("src/lib.rs").is_some_and(|file| !file.executable));
    assert!(find("tests/run").is_some_and(|file| file.executable));
    assert!(!files.iter().any(|file| file.is_below(".git")));
}
