//! A compiler and its build tool: hard links, renamed directories, programs that are run where
//! they were just written.

use std::fs;

use crate::programs::desk::{Desk, ready};

#[test]
fn cargo_builds_and_rebuilds_a_project_and_the_program_runs() {
    if !ready(&["cargo"]) {
        return;
    }
    let desk = Desk::new();
    fs::create_dir_all(desk.on("hello/src")).unwrap();
    fs::write(
        desk.on("hello/Cargo.toml"),
        "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    )
    .unwrap();
    let main = "mod said;\nfn main() { println!(\"{}\", said::WORDS); }\n";
    fs::write(desk.on("hello/src/main.rs"), main).unwrap();
    let words = |words: &str| {
        let text = format!("pub const WORDS: &str = {words:?};\n");
        fs::write(desk.on("hello/src/said.rs"), text).unwrap();
    };
    let build = || {
        let mut command = desk.command("cargo", &["build", "--offline", "--quiet"]);
        command.current_dir(desk.on("hello")).env("CARGO_TARGET_DIR", desk.on("hello/target"));
        // The toolchain is found where it is installed, not in this test's home.
        if let Some(home) = std::env::var_os("HOME") {
            command.env("HOME", home);
        }
        desk.finish_run("cargo build", command);
    };
    words("built on a share");
    build();
    assert_eq!(desk.run("hello/target/debug/hello", &[]), "built on a share\n");
    words("built again");
    build();
    assert_eq!(desk.run("hello/target/debug/hello", &[]), "built again\n");
    desk.sh("rm -rf hello/target");
    assert!(!desk.behind("hello/target").exists());
    desk.finish();
}
