//! The image, started by Testcontainers as tests of applications start it.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{err, out, script};
use crate::common::need;
use crate::common::pages::page;
use crate::common::served::LATCHFS;
use crate::docs::blocks::blocks_of;

/// Begins the program of the page that starts the image.
const FIXTURE: &str = "import pytest\nfrom testcontainers";

/// Tests in Python: three services in the place of Azurite's, and the fixture of the page.
const TESTS: &str = r#"
import os

from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.queue import QueueServiceClient
from testcontainers.community.azurite import AzuriteContainer


def test_azurite():
    with AzuriteContainer(os.environ["IMAGE"]) as azurite:
        string = azurite.get_connection_string()
        box = BlobServiceClient.from_connection_string(string).create_container("box")
        box.upload_blob("a.txt", b"hello")
        assert box.download_blob("a.txt").readall() == b"hello"
        queue = QueueServiceClient.from_connection_string(string).create_queue("jobs")
        queue.send_message("one")
        assert queue.receive_message().content == "one"
        table = TableServiceClient.from_connection_string(string).create_table("people")
        table.create_entity({"PartitionKey": "a", "RowKey": "1", "Age": 30})
        assert table.get_entity("a", "1")["Age"] == 30


def test_fixture(storage):
    photos = ContainerClient.from_connection_string(storage, "photos")
    photos.upload_blob("cat.jpg", b"cat")
    assert photos.download_blob("cat.jpg").readall() == b"cat"
"#;

/// An image in the container engine. Removed when dropped.
struct Image(String);

impl Drop for Image {
    fn drop(&mut self) {
        drop(Command::new("docker").args(["rmi", "--force", &self.0]).output());
    }
}

#[test]
#[ignore = "builds a container image"]
fn testcontainers_starts_the_image_in_the_place_of_azurite_s_and_by_the_lines_of_the_page() {
    let python = need::cache("containers/bin/python");
    if !need::docker() || !need::installed(&[&python]) {
        return;
    }
    let image = Image(format!("latchfs-test-containers-{}:latest", std::process::id()));
    let mut build = script("build-image");
    build.env("BUILDER", "docker").args(["--tag", &image.0, "--program", LATCHFS]);
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}{}", out(&built), err(&built));

    let page = page("docs/running.md");
    let blocks = blocks_of(&page);
    let fixture = blocks.iter().find(|block| block.text.starts_with(FIXTURE)).unwrap().text;
    assert!(fixture.contains("\"latchfs:latest\""), "{fixture}");
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("conftest.py", &fixture.replace("latchfs:latest", &image.0));
    write("test_storage.py", TESTS);
    let passed = pytest(&python, folder.path(), &image);
    assert!(passed.contains("2 passed"), "{passed}");
}

fn pytest(python: &Path, folder: &Path, image: &Image) -> String {
    let output = Command::new(python)
        .args(["-m", "pytest", "-p", "no:cacheprovider"])
        .current_dir(folder)
        .env("IMAGE", &image.0)
        // The container that would clean up comes from a registry; these tests clean up themselves.
        .env("TESTCONTAINERS_RYUK_DISABLED", "true")
        .output()
        .unwrap();
    out(&output) + &err(&output)
}
