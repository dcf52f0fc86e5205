//! What `docs/explore.md` shows happens as it is shown: in pytest with the wheel, in `node --test`
//! with the npm package.

use std::fs;
use std::os::unix::fs::symlink;

use super::{node, python, sandbox};
use crate::common::need;
use crate::common::pages::{blocks, page};

const PAGE: &str = "docs/explore.md";

/// The test of the page with the condition that the page names.
const CURED: &str = r#"
import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.storage.blob import BlobServiceClient


def site(connection_string):
    service = BlobServiceClient.from_connection_string(connection_string, retry_total=0)
    return service.get_container_client("site")


def count_up(connection_string):
    read = site(connection_string).download_blob("visits")
    more = str(int(read.readall()) + 1)
    guard = {"etag": read.properties.etag, "match_condition": MatchConditions.IfNotModified}
    try:
        site(connection_string).upload_blob("visits", more, overwrite=True, **guard)
    except ResourceModifiedError:
        count_up(connection_string)


@pytest.mark.explore
def test_both_visits_are_counted(latchfs):
    stored = site(latchfs.connection_string)
    stored.create_container()
    stored.upload_blob("visits", "0")
    with latchfs.clients() as c:
        c.run("A", count_up)
        c.run("B", count_up)
    assert stored.download_blob("visits").readall() == b"2"
"#;

/// A line as the page has it: with any blanks, and without the digits of a token, which are those
/// of the operations.
fn masked(line: &str) -> String {
    let words = line.trim_start_matches("E ").split_whitespace();
    let words = words.map(|word| match word.split_once('~') {
        Some((steps, digits)) if digits.len() >= 4 => format!("{steps}~{}", &digits[4..]),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Every line that the page shows is there, in its order.
#[track_caller]
fn assert_shown(shown: &str, output: &str) {
    let mut lines = output.lines().map(masked);
    for line in shown.lines().filter(|line| *line != "...") {
        let line = masked(line);
        assert!(lines.any(|seen| seen == line), "'{line}' is not in its place in\n{output}");
    }
}

#[test]
fn the_first_race_of_the_page_is_found_as_shown_and_its_cure_passes() {
    if !python::installed() {
        return;
    }
    let page = page(PAGE);
    let test = blocks(&page, "python")[0];
    let shown = blocks(&page, "text");
    let project = python::Project::with_wheel(python::ENVIRONMENTS[0]);
    project.sandbox.write("test_visits.py", test);
    let found = project.pytest(&["test_visits.py"]).output().expect("pytest runs");
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_shown(shown[0], &found);
    let again = found.lines().find_map(|line| line.split_once("--latchfs-schedule '"));
    let token = again.expect("a token").1.trim_end_matches('\'');
    let again = project.pytest(&["test_visits.py", "--latchfs-schedule", token]).output();
    let again = String::from_utf8_lossy(&again.expect("pytest runs").stdout).into_owned();
    assert!(again.contains("found in run 1") && again.contains("1 failed"), "{again}");
    project.sandbox.write("test_visits.py", CURED);
    let passed = sandbox::succeeded(project.pytest(&["test_visits.py"]));
    assert_shown(shown[1], &passed);
    project.sandbox.assert_clean();
}

#[test]
fn the_test_for_node_on_the_page_finds_its_race() {
    let sdk = need::cache("node/node_modules/@azure");
    if !node::installed() || !need::installed(&[&sdk]) {
        return;
    }
    let page = page(PAGE);
    let project = node::project();
    // With the SDK of blobs too.
    let place = project.project().join("node_modules/@azure");
    fs::remove_file(&place).expect("a link");
    symlink(sdk, place).expect("a link");
    project.write("visits.test.mjs", blocks(&page, "js")[0]);
    let found = node::node_test(&project, &["visits.test.mjs"]).output().expect("node runs");
    let found = sandbox::said(&found);
    for part in ["fail 1", "path: \\\"A2.B3.A~", "Put Blob", "Expected values to be strictly equal"]
    {
        let plain = part.replace("\\\"", "\"");
        assert!(found.contains(part) || found.contains(&plain), "no {part} in {found}");
    }
    project.assert_clean();
}
