//! The front of the README: its test fails in the order that is shown and drawn, and its cure
//! passes.

use std::path::Path;
use std::process::Command;

use crate::common::need;
use crate::common::pages::page;
use crate::common::served::LATCHFS;
use crate::docs::blocks::blocks_of;
use crate::docs::pages::lines_of_picture;

const README: &str = "README.md";

#[test]
fn the_first_test_of_the_readme_fails_as_shown_and_its_cure_passes() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/src");
    let python = need::cache("packages/bin/python");
    if !need::installed(&[&python, &package.join("latchfs/pytest_plugin.py")]) {
        return;
    }
    let readme = page(README);
    let blocks = blocks_of(&readme);
    let text = |language: &str, nth: usize| {
        blocks.iter().filter(|block| block.language == language).nth(nth).unwrap().text
    };
    let test = text("python", 0);
    let (passed, said) = pytest(&python, &package, test);
    assert!(!passed, "{said}");
    let shown = text("text", 0);
    for line in shown.lines() {
        assert!(said.contains(line), "{line}\nis not in\n{said}");
    }
    let order = lines_of_picture("docs/race.svg").concat();
    let token = shown.split('\'').find(|part| part.contains('~') && !part.contains(' ')).unwrap();
    assert!(order.contains(token), "{token} is not in the picture");

    let (passed, said) = pytest(&python, &package, &cured(test, text("diff", 0)));
    assert!(passed && said.contains(text("text", 1).trim()), "{said}");
}

/// The program with the lines of the difference: its first one is an import.
fn cured(test: &str, difference: &str) -> String {
    let mut lines = difference.lines();
    let import = lines.next().and_then(|line| line.strip_prefix('+')).unwrap();
    let old = lines.next().and_then(|line| line.strip_prefix('-')).unwrap();
    let new = lines.next().and_then(|line| line.strip_prefix('+')).unwrap();
    assert!(test.contains(old), "{old}");
    format!("{import}\n{}", test.replace(old, new))
}

/// Runs the test in a directory of its own: whether it passed, and what pytest said.
fn pytest(python: &Path, package: &Path, test: &str) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("test_visits.py"), test).unwrap();
    let output = Command::new(python)
        .args(["-m", "pytest", "-p", "latchfs.pytest_plugin", "test_visits.py"])
        .current_dir(folder.path())
        .env("PYTHONPATH", package)
        .env("LATCHFS_BINARY", LATCHFS)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said + &String::from_utf8_lossy(&output.stderr))
}
