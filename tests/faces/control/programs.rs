//! Programs that know latchfs: the C header, and the Python snippet of `docs/semantics.md`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::fixture::{Folder, error_text, is_busy};
use crate::common::need;

const PROGRAM: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include "latchfs.h"

int main(int count, char **arguments)
{
    int fd = open(arguments[1], O_RDONLY);
    struct latchfs_handle h;
    if (count != 2 || fd == -1 || latchfs_get_handle(fd, &h) == -1)
        return 3;
    printf("%u %u %u %d\n", h.access, h.share, h.delete_pending, h.handle != 0);
    if (latchfs_set_share(fd, LATCHFS_NONE) == -1)
        return 4;
    if (open(arguments[1], O_RDONLY) != -1 || errno != EBUSY)
        return 5;
    /* The mark is a delete of its own: the holder, too, must share that. */
    if (latchfs_set_delete(fd, 1) != -1 || errno != EBUSY)
        return 9;
    if (latchfs_set_share(fd, LATCHFS_DELETE) == -1)
        return 10;
    if (latchfs_set_delete(fd, 1) == -1 || latchfs_get_handle(fd, &h) == -1)
        return 6;
    printf("%u %u %u\n", h.access, h.share, h.delete_pending);
    if (latchfs_set_delete(fd, 0) == -1)
        return 7;
    if (latchfs_set_share(fd, 8) != -1 || errno != EINVAL)
        return 8;
    return 0;
}
"#;

fn repository(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn a_c_program_names_its_share_mode() {
    if !need::fuse() || !need::client("cc") {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let file = folder.file("a.txt", "hello");
    fs::write(folder.join("try.c"), PROGRAM).unwrap();
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o", "try", "try.c"])
        .arg("-I")
        .arg(repository("mount-scripts"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", error_text(&compiled));
    let output = Command::new(folder.join("try")).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 7 0 1\n1 4 1\n");
    assert!(!is_busy(&file));
}

#[test]
fn the_python_snippet_of_the_documentation_does_what_it_says() {
    if !need::fuse() || !need::client("python3") {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let file = folder.file("a.txt", "hello");
    let text = fs::read_to_string(repository("docs/semantics.md")).unwrap();
    let snippet = text.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let output = Command::new("python3").arg("-c").arg(snippet).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", error_text(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("access 1, share 0, pending 0"), "{text}");
    assert!(text.contains("second open: Device or resource busy"), "{text}");
}
