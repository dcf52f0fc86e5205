//! The front of the README: the picture shows the session that is replayed, and the test passes.

use std::path::Path;
use std::process::Command;

use crate::common::need;
use crate::common::pages::page;
use crate::common::served::LATCHFS;
use crate::docs::blocks::blocks_of;
use crate::docs::pages::lines_of_picture;

const README: &str = "README.md";
const PICTURE: &str = "docs/conflict.svg";

#[test]
fn the_picture_of_the_readme_shows_lines_of_its_session() {
    let readme = page(README);
    assert!(readme.contains(&format!("({PICTURE})")));
    let blocks = blocks_of(&readme);
    let session = blocks.iter().find(|block| block.language == "console").unwrap().text;
    let lines = lines_of_picture(PICTURE);
    assert!(lines.len() > 15, "{lines:?}");
    for line in lines.iter().filter(|line| *line != "$") {
        assert!(session.contains(line.as_str()), "not in the session: {line}");
    }
}

#[test]
fn the_first_test_of_the_readme_passes() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/src");
    let python = need::cache("packages/bin/python");
    if !need::installed(&[&python, &package.join("latchfs/pytest_plugin.py")]) {
        return;
    }
    let readme = page(README);
    let blocks = blocks_of(&readme);
    let test = blocks.iter().find(|block| block.language == "python").unwrap().text;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("test_busy.py"), test).unwrap();
    let output = Command::new(python)
        .args(["-m", "pytest", "-q", "-p", "latchfs.pytest_plugin"])
        .current_dir(folder.path())
        .env("PYTHONPATH", package)
        .env("LATCHFS_BINARY", LATCHFS)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{complained}");
}
