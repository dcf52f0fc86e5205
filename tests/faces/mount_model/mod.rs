//! The same random calls on a plain directory and on a `--unlink=posix --case-sensitive` mount:
//! the same answers, the same tree, and the same behind the mount.
//!
//! ```text
//!   choose   which call comes next
//!   calls    what a call is, and doing it below a directory
//!   tree     what a directory holds
//! ```
//!
//! `LATCHFS_TEST_SEED` runs one seed, `LATCHFS_FULL` ten times as many steps.
mod calls;
mod choose;
use crate::common::random;
use crate::mount::fixture;
mod tree;

use latchfs::file::mount::UnlinkMode;
use latchfs::file::service::{Case, ShareOptions};

use calls::World;
use fixture::Fixture;
use random::{History, Random};

/// How many steps go by between two looks at the whole tree.
const BETWEEN_LOOKS: usize = 250;

#[test]
fn a_posix_mount_answers_as_a_plain_directory_does() {
    compare(true);
}

#[test]
fn a_posix_mount_without_passthrough_answers_as_a_plain_directory_does() {
    compare(false);
}

fn compare(passthrough: bool) {
    for seed in random::seeds(8) {
        let share = ShareOptions { case: Case::Sensitive, ..ShareOptions::default() };
        let mounted = Fixture::of(share, |options| {
            options.unlink = UnlinkMode::Posix;
            options.passthrough = passthrough;
        });
        let Some(at) = mounted else { return };
        let plain = tempfile::tempdir().unwrap();
        run(seed, &at, plain.path());
        at.idle();
        assert_eq!(tree::of(&at.root), tree::of(plain.path()), "seed {seed}: behind the mount");
    }
}

fn run(seed: u64, at: &Fixture, plain: &std::path::Path) {
    let (mut random, mut history) = (Random::new(seed), History::new());
    let (mut expected, mut mounted) = (World::below(plain), World::below(&at.mnt));
    for step in 1..=random::steps(1500) {
        let call = choose::call(&mut random);
        let (wanted, got) = (expected.call(&call), mounted.call(&call));
        history.note(step, call);
        let same = if wanted == got {
            Ok(())
        } else {
            Err(format!("the mount says {got:?}, a plain directory {wanted:?}"))
        };
        history.hold(seed, step, same);
        if step % BETWEEN_LOOKS == 0 {
            let (wanted, got) = (tree::of(plain), tree::of(&at.mnt));
            history.hold(seed, step, tree::compare(&got, &wanted));
        }
    }
}
