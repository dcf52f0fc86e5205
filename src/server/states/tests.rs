//! A process that is killed at any step of a save, a restore or a reset, or of the start that
//! completes one: the next start has the old state or the new one.

mod damaged;
mod failed;
mod restored;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use super::*;
use crate::bench::{Controls, StateError};
use crate::blob::service::NewContainer;
use crate::clock::TimeSource as _;
use crate::disk::DataRoot;
use crate::disk::steps::arm;
use crate::file::service::shares::NewShare;
use crate::queue::service::QueueList;
use crate::rules::service::ServiceKind;
use crate::rules::{Client, Context, Owner};
use crate::server::{AccountOptions, PropertyParts};
use crate::table::rules::TableName;
use crate::table::service::TableQuery;

const FOLDER: &str = "LATCHFS_TEST_FOLDER";
const OPERATION: &str = "LATCHFS_TEST_OPERATION";
const STEP: &str = "LATCHFS_TEST_STEP";
const ACCOUNTS: [&str; 2] = ["one", "two"];

/// An open data directory with two accounts.
struct Bench {
    states: States,
    accounts: Arc<Accounts>,
    root: DataRoot,
}

fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

impl Bench {
    /// As a start does it.
    fn open(folder: &Path) -> Self {
        Self::open_with(folder, &ACCOUNTS).unwrap()
    }

    /// As a start with these accounts does it.
    fn open_with(folder: &Path, accounts: &[&str]) -> Result<Self, StateError> {
        let root = DataRoot::open(folder).unwrap();
        let controls = Arc::new(Controls::default());
        let clock = Arc::clone(&controls.clock);
        let options = AccountOptions { clock, ..AccountOptions::default() };
        let opened = accounts.iter().map(|name| Account::open(&root, name, &options).unwrap());
        let mut opened: Vec<_> = opened.collect();
        let accounts = Accounts::new(opened.remove(0), opened).with_controls(controls);
        let accounts = Arc::new(accounts);
        let states =
            super::open(root.folder(), &accounts, BTreeMap::new(), Loads::default()).unwrap();
        states.complete()?;
        Ok(Self { states, accounts, root })
    }

    fn cx(&self) -> Context {
        let client = Arc::new(Client { session: 1, name: "test".to_owned() });
        let owner = Owner { client, pid: std::process::id(), program: None };
        Context::local(self.accounts.controls().clock.now(), owner, "test")
    }

    /// Puts one thing called `name` into every service of every account.
    fn furnish(&self, name: &str) {
        for account in self.accounts.iter() {
            let (cx, blob) = (self.cx(), account.blob().unwrap());
            within(blob.create_container(&cx, name, NewContainer::default())).unwrap();
            let queue = account.queue().unwrap();
            within(queue.create_queue(&cx, name, crate::rules::Metadata::default())).unwrap();
            let table = TableName::parse(name).unwrap();
            within(account.table().unwrap().create_table(&cx, &table)).unwrap();
            account.file().create_share(name, NewShare::default()).unwrap();
            let files = self.root.files_path(account.name());
            fs::write(files.join(name).join("file"), name).unwrap();
            let parts = PropertyParts::from([("part".to_owned(), name.to_owned())]);
            account.properties(ServiceKind::Queue).set(parts).unwrap();
        }
    }

    /// All names, in one set for each service of each account.
    fn names(&self) -> Vec<BTreeSet<String>> {
        let cx = self.cx();
        let mut names = Vec::new();
        for account in self.accounts.iter() {
            let blob = account.blob().unwrap();
            let page = blob.list_containers(&cx, "", None, 9, true).unwrap();
            names.push(page.containers.into_iter().map(|found| found.name).collect());
            let queue = account.queue().unwrap();
            let page = queue.list_queues(&cx, &QueueList::default()).unwrap();
            names.push(page.queues.into_iter().map(|(name, _)| name).collect());
            let table = account.table().unwrap();
            let page = table.list_tables(TableQuery::default()).unwrap();
            names.push(page.names.into_iter().collect());
            let files = self.root.files_path(account.name());
            let share = |name: String| {
                let text = fs::read_to_string(files.join(&name).join("file")).unwrap();
                assert!(account.file().share(&name).is_ok());
                text
            };
            let listed = fs::read_dir(&files).unwrap();
            let listed = listed.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.push(listed.map(share).collect());
            let parts = account.properties(ServiceKind::Queue).get();
            names.push(parts.get("part").cloned().into_iter().collect());
        }
        names
    }

    /// The one name of everything, `none` if there is nothing.
    fn whole(&self) -> String {
        let names = self.names();
        assert!(names.iter().all(|set| *set == names[0]), "a mixture: {names:?}");
        let mut first = names[0].iter();
        let whole = first.next().map_or("none", String::as_str).to_owned();
        assert_eq!(first.next(), None, "a mixture: {names:?}");
        whole
    }
}

/// A data directory with something old in it, and the saved state `saved`.
fn prepare(folder: &Path) {
    let bench = Bench::open(folder);
    bench.furnish("saved");
    bench.states.save("saved").unwrap();
    bench.states.reset().unwrap();
    bench.furnish("old");
    assert_eq!(bench.whole(), "old");
}

/// Does the operation of the environment, and is killed at a step of it.
#[test]
#[ignore = "a child of the tests here"]
fn child() {
    let folder = std::env::var(FOLDER).unwrap();
    let step = std::env::var(STEP).unwrap().parse().unwrap();
    let operation = std::env::var(OPERATION).unwrap();
    if operation == "start" {
        arm(step);
    }
    let bench = Bench::open(Path::new(&folder));
    arm(if operation == "start" { 0 } else { step });
    match operation.as_str() {
        "start" => {}
        "reset" => bench.states.reset().unwrap(),
        "restore" => bench.states.restore("saved").unwrap(),
        "save" => drop(bench.states.save("new").unwrap()),
        "save again" => drop(bench.states.save("saved").unwrap()),
        other => panic!("{other}"),
    }
    arm(0);
}

/// A copy of a data directory. Links stay links: content files of saved states have two names.
fn copy(data: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(data).arg(folder.path().join("data"));
    assert!(copy.status().unwrap().success());
    folder
}

/// Has another process carry out an operation. True if it was killed at that step of it.
fn kill(operation: &str, data: &Path, step: u64) -> bool {
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([&format!("{module}::child"), "--exact", "--ignored", "--test-threads=1"]);
    child.env(FOLDER, data).env(OPERATION, operation).env(STEP, step.to_string());
    let ended = child.output().unwrap();
    let was_killed = ended.status.signal() == Some(9);
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(was_killed || ended.status.success(), "{operation}, step {step}: {said}");
    was_killed
}

/// Kills a process at each step of an operation, and shows what the next start has.
fn killed(operation: &str, see: impl FnMut(&Bench)) {
    let prepared = tempfile::tempdir().unwrap();
    prepare(&prepared.path().join("data"));
    killed_in(&prepared.path().join("data"), operation, see);
}

/// As [`killed`], in copies of a data directory.
fn killed_in(prepared: &Path, operation: &str, mut see: impl FnMut(&Bench)) {
    for step in 1.. {
        let folder = copy(prepared);
        let data = folder.path().join("data");
        let was_killed = kill(operation, &data, step);
        let bench = Bench::open(&data);
        see(&bench);
        drop(bench);
        // It is complete: another start finds the same, and nothing to do.
        see(&Bench::open(&data));
        assert!(!States::is_interrupted(&data.join(".latchfs")).unwrap());
        if !was_killed {
            assert!(step > 1, "{operation}: the child met no step");
            println!("{operation}: killed at {} steps", step - 1);
            return;
        }
    }
}

/// Notes a replacement, as if the process was killed right after.
fn cut_off(data: &Path, by: &str, accounts: &[&str]) {
    let note = data.join(".latchfs/replacing");
    let _ = fs::remove_file(&note);
    std::os::unix::fs::symlink(format!("{by} of {}", accounts.join(" ")), note).unwrap();
}

#[test]
fn a_kill_at_any_step_of_a_start_that_completes_leaves_no_mixture() {
    for (by, whole) in [("reset", "none"), ("restore saved", "saved")] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        prepare(&data);
        cut_off(&data, by, &ACCOUNTS);
        killed_in(&data, "start", |bench| assert_eq!(bench.whole(), whole));
    }
}

#[test]
fn a_replacement_that_was_cut_off_is_completed_for_its_own_accounts() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    prepare(&data);
    cut_off(&data, "reset", &ACCOUNTS);
    let refused = Bench::open_with(&data, &ACCOUNTS[..1]).err().unwrap();
    assert!(matches!(&refused, StateError::CutOff { account } if account == "two"), "{refused}");
    assert!(States::is_interrupted(&data.join(".latchfs")).unwrap());
    // An account that was not served then is left alone.
    cut_off(&data, "reset", &ACCOUNTS[1..]);
    let names = Bench::open(&data).names();
    let (one, two) = names.split_at(names.len() / 2);
    assert!(one.iter().all(|set| set.contains("old")), "{one:?}");
    assert!(two.iter().all(BTreeSet::is_empty), "{two:?}");
}

#[test]
fn a_kill_at_any_step_of_a_reset_leaves_everything_or_nothing() {
    let mut seen = BTreeSet::new();
    killed("reset", |bench| {
        seen.insert(bench.whole());
    });
    assert_eq!(seen, BTreeSet::from(["none".to_owned(), "old".to_owned()]));
}

#[test]
fn a_kill_at_any_step_of_a_restore_leaves_the_old_state_or_the_saved_one() {
    let mut seen = BTreeSet::new();
    killed("restore", |bench| {
        seen.insert(bench.whole());
        assert_eq!(bench.states.list().unwrap().len(), 1, "the state is still there");
    });
    assert_eq!(seen, BTreeSet::from(["old".to_owned(), "saved".to_owned()]));
}

#[test]
fn a_kill_at_any_step_of_a_save_leaves_a_whole_state_or_none() {
    let mut seen = BTreeSet::new();
    killed("save", |bench| {
        assert_eq!(bench.whole(), "old", "a save changes nothing");
        let names: Vec<_> = bench.states.list().unwrap();
        let names: Vec<_> = names.into_iter().map(|one| one.unwrap().name).collect();
        seen.insert(names.clone());
        if names.contains(&"new".to_owned()) {
            bench.states.restore("new").unwrap();
            assert_eq!(bench.whole(), "old");
        }
    });
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(seen, BTreeSet::from([names(&["saved"]), names(&["new", "saved"])]));
}

#[test]
fn a_kill_at_any_step_of_a_save_over_a_state_leaves_the_one_or_the_other() {
    let mut seen = BTreeSet::new();
    let mut started = true;
    killed("save again", |bench| {
        if std::mem::take(&mut started) {
            bench.states.restore("saved").unwrap();
            seen.insert(bench.whole());
        } else {
            started = true;
        }
    });
    assert_eq!(seen, BTreeSet::from(["old".to_owned(), "saved".to_owned()]));
}
