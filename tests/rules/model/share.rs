//! Random steps on a share with real files, by one caller at a time, each compared with the tree
//! of [`super::tree`]: answers, bytes, listings, and now and then all that is on disk.

use std::fs;
use std::path::PathBuf;

use latchfs::file::rules::create::{Disposition, OpenRequest, Options};
use latchfs::file::rules::{Access, Attributes, Denial, Rights, ShareMode};
use latchfs::file::service::{Case, FileError, FileKind, Handle, Share, Unlinked};
use latchfs::journal::AccountJournal;
use latchfs::rules::Context;

use super::random::{History, Random, seeds, steps};
use super::rules::{Answer, Asked, D, W, agree};
use super::tree::Tree;
use crate::common::asking::{caller, entries, open_share, path};
use crate::common::names::ShareNames as _;

const SEEDS: u64 = 4;
const STEPS: usize = 24_000;
const OPENS_MAX: usize = 10;
/// Steps between two looks at the whole disk.
const WALK_EVERY: usize = 8;

/// Few, so that steps meet; some are other spellings of others, some may be files or directories.
const PATHS: [&str; 14] =
    ["a", "b", "A", "d", "e", "D", "d/a", "d/b", "d/A", "D/a", "e/a", "e/b", "e/f", "d/f/x"];

#[derive(Clone, Copy, Debug)]
enum Op {
    Open { asked: Asked, path: &'static str },
    Close { handle: usize },
    ForceClose { handle: usize },
    Dispose { handle: usize, delete: bool },
    Unlink { path: &'static str },
    Rmdir { path: &'static str },
    Undelete { path: &'static str },
    Rename { from: &'static str, to: &'static str, replace: bool },
    RenameHandle { handle: usize, to: &'static str, replace: bool },
    Link { from: &'static str, to: &'static str },
    Write { handle: usize, offset: usize, byte: u8, length: usize },
    Read { handle: usize, offset: usize, length: usize },
    List { path: &'static str },
}

struct World {
    share: Option<Share>,
    tree: Tree,
    who: Context,
    handles: Vec<Handle>,
    closed: Option<Handle>,
    folder: tempfile::TempDir,
    done: usize,
    refused: usize,
}

fn an_open(random: &mut Random) -> Op {
    let access = u8::try_from(random.below(8)).expect("three bits");
    let share = if random.once_in(3) { random.below(8) } else { 7 };
    let path = random.pick(&PATHS);
    // Mostly what has names below it elsewhere.
    let directory = matches!(path, "d" | "D" | "e") != random.once_in(8);
    let disposition =
        if random.once_in(2) { Disposition::OpenIf } else { random.pick(&Disposition::ALL) };
    let asked = Asked {
        access,
        share: u8::try_from(share).expect("three bits"),
        may_delete: access & D != 0,
        may_overwrite: access & W != 0,
        disposition,
        delete_on_close: access & D != 0 && random.once_in(3),
        directory,
        non_directory: !directory && random.once_in(6),
        hidden: false,
    };
    Op::Open { asked, path }
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("share")).expect("a folder for the share");
        let mut world = Self {
            share: None,
            tree: Tree::default(),
            who: caller("model"),
            handles: Vec::new(),
            closed: None,
            folder,
            done: 0,
            refused: 0,
        };
        world.start();
        world
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("share")
    }

    fn start(&mut self) {
        let state = self.folder.path().join("state");
        let events = AccountJournal::default();
        self.share = Some(open_share(&self.root(), &state, Case::Insensitive, events));
    }

    fn share(&self) -> &Share {
        self.share.as_ref().expect("it is started")
    }

    fn step(&self, random: &mut Random) -> Op {
        let handle = random.below(self.handles.len() + 1);
        let (path, to) = (random.pick(&PATHS), random.pick(&PATHS));
        let replace = random.once_in(2);
        match random.below(100) {
            _ if self.handles.len() >= OPENS_MAX => Op::Close { handle },
            0..30 => an_open(random),
            30..46 => Op::Close { handle },
            46..49 => Op::ForceClose { handle },
            49..56 => Op::Dispose { handle, delete: random.once_in(2) },
            56..64 => Op::Unlink { path },
            64..68 => Op::Rmdir { path },
            68..70 => Op::Undelete { path },
            70..77 => Op::Rename { from: path, to, replace },
            77..81 => Op::RenameHandle { handle, to, replace },
            81..85 => Op::Link { from: path, to },
            85..91 => {
                let byte = u8::try_from(random.below(256)).expect("a byte");
                let (offset, length) = (random.below(50), 1 + random.below(20));
                Op::Write { handle, offset, byte, length }
            }
            91..96 => Op::Read { handle, offset: random.below(40), length: 1 + random.below(60) },
            _ => Op::List { path },
        }
    }

    /// The handle of that number; the one past the live ones is closed. None at the start.
    fn handle(&self, number: usize) -> Option<&Handle> {
        self.handles.get(number).or(self.closed.as_ref())
    }

    fn apply(&mut self, op: Op) -> Result<(), String> {
        let answer = match op {
            Op::Open { asked, path } => self.open(asked, path),
            Op::Close { handle } => self.close(handle, false),
            Op::ForceClose { handle } => self.close(handle, true),
            Op::List { path } => self.list(path),
            Op::Unlink { path: name } => {
                let got = self.share().unlink(&self.who, &path(name));
                let expected = self.tree.delete(name, false);
                self.compare(got.map(|unlinked| unlinked == Unlinked::Removed), expected)
            }
            Op::Rmdir { path: name } => {
                let got = self.share().rmdir(&self.who, &path(name));
                let expected = self.tree.delete(name, true);
                self.compare(got.map(|unlinked| unlinked == Unlinked::Removed), expected)
            }
            Op::Undelete { path: name } => {
                let got = self.share().undelete(&self.who, &path(name));
                let expected = self.tree.undelete(name);
                self.compare(got, expected)
            }
            Op::Rename { from, to, replace } => {
                let got = self.share().rename(&self.who, &path(from), &path(to), replace);
                let expected = self.tree.rename(Ok(from), to, replace);
                self.compare(got, expected)
            }
            Op::Link { from, to } => {
                let got = self.share().link(&self.who, &path(from), &path(to));
                let expected = self.tree.link(from, to);
                self.compare(got, expected)
            }
            by_handle => self.apply_to_handle(by_handle),
        };
        answer?;
        if self.share().files_in_use() < usize::from(!self.handles.is_empty()) {
            return Err("an open file is not in the table".into());
        }
        Ok(())
    }

    fn apply_to_handle(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Dispose { handle, delete } => {
                let Some(handle) = self.handle(handle) else { return Ok(()) };
                let (got, id) = (self.share().set_disposition(handle, delete), handle.id().0);
                let expected = self.tree.dispose(id, delete);
                self.compare(got, expected)
            }
            Op::RenameHandle { handle, to, replace } => {
                let Some(handle) = self.handle(handle) else { return Ok(()) };
                let got = self.share().rename_handle(handle, &path(to), replace);
                let id = handle.id().0;
                let expected = self.tree.rename(Err(id), to, replace);
                self.compare(got, expected)
            }
            Op::Write { handle, offset, byte, length } => {
                let Some(handle) = self.handle(handle) else { return Ok(()) };
                let (bytes, id) = (vec![byte; length], handle.id().0);
                let got = self.share().write(handle, offset as u64, &bytes);
                let expected = self.tree.write(id, offset, &bytes);
                self.compare(got, expected)
            }
            Op::Read { handle, offset, length } => {
                let Some(handle) = self.handle(handle) else { return Ok(()) };
                let got = self.share().read(handle, offset as u64, length);
                let expected = self.tree.read(handle.id().0, offset, length);
                self.compare(got, expected)
            }
            other => unreachable!("{other:?} has no handle"),
        }
    }

    fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        got: Result<T, FileError>,
        expected: Answer<T>,
    ) -> Result<(), String> {
        let got: Result<T, Denial> = match got {
            Ok(done) => {
                self.done += 1;
                Ok(done)
            }
            Err(FileError::Denied(denial)) => {
                self.refused += 1;
                Err(denial)
            }
            Err(FileError::Store(error)) => return Err(format!("the disk could not: {error}")),
        };
        agree(got, expected)
    }

    fn open(&mut self, asked: Asked, name: &str) -> Result<(), String> {
        let request = OpenRequest {
            rights: Rights::from(Access::from_bits(asked.access)),
            share: ShareMode::from_bits(asked.share),
            disposition: asked.disposition,
            options: Options {
                delete_on_close: asked.delete_on_close,
                directory: asked.directory,
                non_directory: asked.non_directory,
            },
            attributes: Attributes::default(),
        };
        let got = self.share().open(&self.who, &path(name), &request).map(|opened| {
            let id = opened.handle.id().0;
            self.handles.push(opened.handle);
            (id, opened.path.as_str().to_owned())
        });
        let id = got.as_ref().map_or(0, |(id, _)| *id);
        let expected = self.tree.open(id, asked, name);
        self.compare(got.map(|(_, path)| path), expected)
    }

    fn close(&mut self, number: usize, forced: bool) -> Result<(), String> {
        let Some(handle) = self.handle(number) else { return Ok(()) };
        let id = handle.id();
        let answer = if forced {
            let got = self.share().force_close(&self.who, id);
            let expected = self.tree.close(id.0, true).is_ok();
            self.compare(got, Ok(u64::from(expected)))
        } else {
            let got = self.share().close(handle);
            let expected = self.tree.close(id.0, false);
            self.compare(got, expected)
        };
        if number < self.handles.len() {
            self.closed = Some(self.handles.swap_remove(number));
        }
        answer
    }

    fn list(&mut self, name: &str) -> Result<(), String> {
        let Some(spelled) = self.tree.spelled(name) else { return Ok(()) };
        if !self.tree.nodes[self.tree.names[spelled]].directory {
            return Ok(());
        }
        let got = self.share().list(&path(spelled), None, 100);
        let names = got.map(|listed| listed.into_iter().map(|entry| entry.name).collect());
        let expected = self.tree.entries(spelled);
        self.compare(names, Ok(expected))
    }

    /// All that is on disk is what the tree says, spelling and bytes included.
    fn walk(&self) -> Result<(), String> {
        let mut found = Vec::new();
        let mut folders = vec![self.root()];
        while let Some(folder) = folders.pop() {
            for entry in entries(&folder) {
                let name = entry.strip_prefix(self.root()).expect("below the root");
                found.push(name.to_str().expect("UTF-8").to_owned());
                if entry.is_dir() {
                    folders.push(entry);
                }
            }
        }
        found.sort();
        let expected: Vec<_> = self.tree.names.keys().cloned().collect();
        if found != expected {
            return Err(format!("on disk {found:?}, expected {expected:?}"));
        }
        for (name, &node) in &self.tree.names {
            let stat = self.share().stat(&path(name)).map_err(|error| error.to_string())?;
            let node = &self.tree.nodes[node];
            let same_kind = node.directory == (stat.kind == FileKind::Directory);
            if !same_kind {
                return Err(format!("{name} is {:?}", stat.kind));
            }
            if !node.directory
                && fs::read(self.root().join(name)).ok() != Some(node.content.clone())
            {
                return Err(format!("{name} has other bytes"));
            }
        }
        Ok(())
    }

    /// Closes everything: nothing is left in table and state, and a new start changes nothing.
    fn finish(&mut self) -> Result<(), String> {
        while !self.handles.is_empty() {
            self.close(0, false)?;
        }
        self.walk()?;
        let left = self.share().files_in_use();
        let pending = entries(&self.folder.path().join("state/pending"));
        if left != 0 || !pending.is_empty() {
            return Err(format!("{left} files in use and {pending:?} pending, all is closed"));
        }
        self.share = None;
        self.start();
        self.walk()
    }
}

#[test]
fn a_share_answers_as_the_tree_does_and_leaves_the_same_files() {
    let seeds = seeds(SEEDS);
    let each = steps(STEPS) / seeds.len();
    for seed in seeds {
        let (mut random, mut world, mut history) =
            (Random::new(seed), World::new(), History::new());
        for step in 0..each {
            let op = world.step(&mut random);
            history.note(step, op);
            let walks = step.is_multiple_of(WALK_EVERY);
            let answer = world.apply(op).and_then(|()| if walks { world.walk() } else { Ok(()) });
            history.hold(seed, step, answer);
        }
        history.hold(seed, each, world.finish());
        let World { done, refused, .. } = world;
        println!("seed {seed}: {each} steps, {done} done, {refused} refused");
        assert!(done > each / 4 && refused > each / 10, "the run tested little");
    }
}
