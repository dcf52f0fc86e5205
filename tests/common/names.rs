//! Calls of the mount on names, as tests of the File service make them: each with one attempt,
//! whose answer stands.

use latchfs::file::rules::SharePath;
use latchfs::file::service::{Attempt, MoveHow, NameRules, Result, Share, Unlinked};
use latchfs::rules::Context;

const ANSWERED: &str = "the last attempt has an answer";

pub trait ShareNames {
    fn remove(&self, cx: &Context, path: &SharePath, how: (bool, NameRules)) -> Result<Unlinked>;

    fn move_to(
        &self,
        cx: &Context,
        ends: (&SharePath, &SharePath),
        how: (MoveHow, NameRules),
    ) -> Result<()>;

    fn unlink(&self, cx: &Context, path: &SharePath) -> Result<Unlinked> {
        self.remove(cx, path, (false, NameRules::Nt))
    }

    fn rmdir(&self, cx: &Context, path: &SharePath) -> Result<Unlinked> {
        self.remove(cx, path, (true, NameRules::Nt))
    }

    fn rename(&self, cx: &Context, from: &SharePath, to: &SharePath, replace: bool) -> Result<()> {
        let how = if replace { MoveHow::Replace } else { MoveHow::NoReplace };
        self.move_to(cx, (from, to), (how, NameRules::Nt))
    }

    fn exchange(&self, cx: &Context, one: &SharePath, other: &SharePath) -> Result<()> {
        self.move_to(cx, (one, other), (MoveHow::Exchange, NameRules::Nt))
    }
}

impl ShareNames for Share {
    fn remove(&self, cx: &Context, path: &SharePath, how: (bool, NameRules)) -> Result<Unlinked> {
        self.mount_remove(Attempt::Last, cx, path, how).expect(ANSWERED)
    }

    fn move_to(
        &self,
        cx: &Context,
        ends: (&SharePath, &SharePath),
        how: (MoveHow, NameRules),
    ) -> Result<()> {
        self.mount_rename(Attempt::Last, cx, ends, how, &|| ()).expect(ANSWERED)
    }
}
