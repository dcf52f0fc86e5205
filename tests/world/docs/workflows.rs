//! The jobs of the section about CI are carried out: their commands, step by step, as the CI
//! service does. Commands that install something need the network and are left out; the tests are
//! run in a folder that has the same things under the same names.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::need;
use crate::common::pages::page;
use crate::common::served::LATCHFS;
use crate::docs::blocks::{Block, blocks_of};

const PAGE: &str = "docs/running.md";

const SECTION: &str = "In CI";

/// What the commands begin with that only install something.
const INSTALLS: [&str; 5] =
    ["cargo install", "pip install", "sudo apt-get", "apt-get", "git clone"];

/// A step of a job.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    /// The commands, a line each.
    script: String,
    /// Whether it runs after a failure only.
    on_failure: bool,
}

/// The steps of a workflow of GitHub: what follows `run:`, on the same line or indented below.
fn steps_of_github(yaml: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = yaml.lines().peekable();
    let mut on_failure = false;
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        if text.starts_with("- ") {
            on_failure = false;
        }
        on_failure |= text == "if: failure()";
        let Some(run) = text.strip_prefix("- ").unwrap_or(text).strip_prefix("run: ") else {
            continue;
        };
        let mut script = run.to_owned();
        if run == "|" {
            let depth = line.len() - text.len();
            let below = |line: &&str| line.len() - line.trim_start().len() > depth;
            script.clear();
            while let Some(line) = lines.next_if(below) {
                script += line.trim_start();
                script += "\n";
            }
        }
        steps.push(Step { script, on_failure });
    }
    steps
}

/// The steps of a job of GitLab: the items below `before_script:` and `script:`.
fn steps_of_gitlab(yaml: &str) -> Vec<Step> {
    let items = yaml.lines().filter_map(|line| line.strip_prefix("    - "));
    items.map(|item| Step { script: item.to_owned(), on_failure: false }).collect()
}

/// The script without what installs something.
fn without_installs(script: &str) -> String {
    let kept = script.lines().filter(|line| !INSTALLS.iter().any(|start| line.starts_with(start)));
    kept.collect::<Vec<_>>().join("\n")
}

/// A folder like the one that a job runs in: the page's files, latchfs, and the repository.
fn workplace(blocks: &[Block<'_>]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for block in blocks.iter().filter(|block| block.language == "python") {
        let name = block.before.split('`').nth(1).expect("the line before names the file");
        fs::write(folder.path().join(name), block.text).unwrap();
    }
    symlink(env!("CARGO_MANIFEST_DIR"), folder.path().join("latchfs")).unwrap();
    for name in ["bin", "runtime"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    symlink(LATCHFS, folder.path().join("bin/latchfs")).unwrap();
    folder
}

/// Runs a job; what its steps print. A step finds the variables that earlier ones gave to the job.
fn run(folder: &Path, steps: &[Step]) -> String {
    let variables = folder.join("variables");
    fs::write(&variables, "").unwrap();
    let python = need::python();
    let path = format!(
        "{}:{}:{}",
        folder.join("bin").display(),
        python.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let mut printed = String::new();
    for step in steps.iter().filter(|step| !step.on_failure) {
        let given = fs::read_to_string(&variables).unwrap();
        let given: BTreeMap<_, _> = given.lines().filter_map(|line| line.split_once('=')).collect();
        let output = Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", &without_installs(&step.script)])
            .current_dir(folder)
            .env("PATH", &path)
            .env("GITHUB_ENV", &variables)
            .env("XDG_RUNTIME_DIR", folder.join("runtime"))
            .envs(given)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}\n{said}{complained}", step.script);
        printed += &said;
    }
    printed
}

fn blocks_of_ci(page: &str) -> Vec<Block<'_>> {
    blocks_of(page).into_iter().filter(|block| block.section == SECTION).collect()
}

fn jobs(blocks: &[Block<'_>]) -> Vec<String> {
    let yaml = blocks.iter().filter(|block| block.language == "yaml");
    yaml.map(|block| block.text.to_owned()).collect()
}

#[test]
fn the_jobs_without_a_mount_run_as_shown() {
    if !need::installed(&[&need::python()]) {
        return;
    }
    let page = page(PAGE);
    let blocks = blocks_of_ci(&page);
    let folder = workplace(&blocks);
    let jobs = jobs(&blocks);
    let github = steps_of_github(&jobs[0]);
    assert_eq!(github.len(), 5, "{github:?}");
    assert!(run(folder.path(), &github).contains("ConditionNotMet"));
    let gitlab = steps_of_gitlab(&jobs[2]);
    assert!(gitlab.iter().any(|step| step.script.contains("with-share")), "{gitlab:?}");
    assert!(run(folder.path(), &gitlab).contains("ConditionNotMet"));
    // What is shown after a failure works on the server of the job.
    let failed = github.iter().find(|step| step.on_failure).unwrap();
    assert_eq!(failed.script, "latchfs events");
}

#[test]
fn the_job_with_a_mount_runs_as_shown() {
    if !need::fuse() || !need::installed(&[&need::python()]) {
        return;
    }
    let page = page(PAGE);
    let blocks = blocks_of_ci(&page);
    let folder = workplace(&blocks);
    let github = steps_of_github(&jobs(&blocks)[1]);
    assert_eq!(github.len(), 3, "{github:?}");
    assert!(run(folder.path(), &github).contains("SharingViolation"));
}

#[test]
fn steps_are_found_on_the_line_and_below_it() {
    let yaml = "steps:\n  - run: one\n  - name: x\n    if: failure()\n    run: |\n      two\n      \
                three\n  - name: y\n    run: four\n";
    let step = |script: &str, on_failure| Step { script: script.to_owned(), on_failure };
    let expected = [step("one", false), step("two\nthree\n", true), step("four", false)];
    assert_eq!(steps_of_github(yaml), expected);
}
