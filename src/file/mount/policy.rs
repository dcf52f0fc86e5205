//! Decides the share mode of an open whose program does not name one: `run` policy, path rule,
//! default.

use std::collections::HashMap;
use std::fs;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::file::rules::name::fold;
use crate::file::rules::{ShareMode, SharePath};
use crate::rules::glob;

/// The deepest process tree that is walked; past it there is a loop or no policy.
const ANCESTORS_MAX: usize = 256;

/// The most verdicts remembered; then all are forgotten at once.
const VERDICTS_MAX: usize = 4096;

/// `--share-rule GLOB=MODE`: files whose name (or path, if the pattern has a slash) matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareRule {
    /// `*` and `?` do not match a slash, `**` does.
    pub glob: String,
    /// The share mode of such opens.
    pub share: ShareMode,
}

impl ShareRule {
    /// Reads `GLOB=MODE`.
    pub fn parse(text: &str) -> Option<Self> {
        let (glob, mode) = text.rsplit_once('=')?;
        (!glob.is_empty()).then_some(())?;
        Some(Self { glob: glob.to_owned(), share: ShareMode::parse(mode)? })
    }

    fn matches(&self, path: &SharePath) -> bool {
        let glob = self.glob.strip_prefix('/').unwrap_or(&self.glob);
        let subject =
            if self.glob.contains('/') { path.as_str() } else { path.name().unwrap_or("") };
        glob::matches(fold(glob).as_bytes(), fold(subject).as_bytes())
    }
}

/// The policies of one mount.
#[derive(Debug)]
pub struct Policy {
    default: ShareMode,
    rules: Vec<ShareRule>,
    runs: RwLock<Vec<Run>>,
    /// How many of them; read without a lock on every open.
    run_count: AtomicUsize,
    verdicts: RwLock<HashMap<u32, Verdict>>,
}

/// A process tree under `latchfs run`. The start time tells its root from a later process with the
/// same pid.
#[derive(Clone, Copy, Debug)]
struct Run {
    number: u64,
    pid: u32,
    started: Option<u64>,
    share: ShareMode,
}

/// The policy that was found for a thread, valid as long as the thread is the same.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    started: u64,
    share: Option<ShareMode>,
}

const POISON: &str = "policies are only looked up and replaced";

impl Policy {
    /// Rules are tried in order.
    pub fn new(default: ShareMode, rules: Vec<ShareRule>) -> Self {
        Self {
            default,
            rules,
            runs: RwLock::default(),
            run_count: AtomicUsize::new(0),
            verdicts: RwLock::default(),
        }
    }

    /// The share mode of an open of `path` by thread `tid`.
    pub fn share_of(&self, tid: u32, path: &SharePath) -> ShareMode {
        if self.run_count.load(Ordering::Acquire) > 0
            && let Some(share) = self.run_share(tid)
        {
            return share;
        }
        let rule = self.rules.iter().find(|rule| rule.matches(path));
        rule.map_or(self.default, |rule| rule.share)
    }

    /// From now on the tree of `pid` opens with that share mode. `number` is that of no other run.
    pub fn start_run(&self, number: u64, pid: u32, share: ShareMode) {
        let started = parent_and_start(pid).map(|(_, started)| started);
        let mut runs = self.runs.write().expect(POISON);
        runs.push(Run { number, pid, started, share });
        self.verdicts.write().expect(POISON).clear();
        self.run_count.store(runs.len(), Ordering::Release);
    }

    /// The policy of that run ends.
    pub fn end_run(&self, number: u64) {
        let mut runs = self.runs.write().expect(POISON);
        runs.retain(|run| run.number != number);
        self.verdicts.write().expect(POISON).clear();
        self.run_count.store(runs.len(), Ordering::Release);
    }

    fn run_share(&self, tid: u32) -> Option<ShareMode> {
        let (parent, started) = parent_and_start(tid)?;
        if let Some(verdict) = self.verdicts.read().expect(POISON).get(&tid)
            && verdict.started == started
        {
            return verdict.share;
        }
        let share = self.walk(tid, parent, started);
        let mut verdicts = self.verdicts.write().expect(POISON);
        if verdicts.len() >= VERDICTS_MAX {
            verdicts.clear();
        }
        verdicts.insert(tid, Verdict { started, share });
        share
    }

    fn walk(&self, tid: u32, parent: u32, started: u64) -> Option<ShareMode> {
        let runs = self.runs.read().expect(POISON);
        let (mut pid, mut parent, mut started) = (tid, parent, started);
        for _ in 0..ANCESTORS_MAX {
            let is_root = |run: &&Run| run.pid == pid && run.started == Some(started);
            if let Some(run) = runs.iter().rev().find(is_root) {
                return Some(run.share);
            }
            pid = parent;
            (parent, started) = parent_and_start(pid)?;
        }
        None
    }
}

/// Parent process and start time of a thread or process.
fn parent_and_start(tid: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    // The program's name stands in parentheses and may hold anything, parentheses too.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 2..)?.split(' ').collect();
    Some((fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> SharePath {
        SharePath::new(text).unwrap()
    }

    #[test]
    fn a_pattern_without_a_slash_is_for_names_in_any_case() {
        let rule = ShareRule::parse("*.xlsx=r").unwrap();
        assert!(rule.matches(&path("a/b/Report.XLSX")));
        assert!(!rule.matches(&path("a/report.xlsx.bak")));
        assert!(ShareRule::parse("report.???=none").unwrap().matches(&path("x/report.txt")));
    }

    #[test]
    fn a_pattern_with_a_slash_is_for_paths() {
        let rule = ShareRule::parse("/data/*/in.txt=rw").unwrap();
        assert!(rule.matches(&path("data/x/in.txt")));
        assert!(!rule.matches(&path("data/x/y/in.txt")));
        assert!(ShareRule::parse("data/**=none").unwrap().matches(&path("data/x/y/in.txt")));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["", "=r", "*.txt", "*.txt=x"] {
            assert_eq!(ShareRule::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_run_policy_wins_over_rules_and_covers_children_until_it_ends() {
        let rules = vec![ShareRule::parse("*=r").unwrap()];
        let policy = Policy::new(ShareMode::RWD, rules);
        let me = std::process::id();
        assert_eq!(policy.share_of(me, &path("f")), ShareMode::R);
        policy.start_run(1, me, ShareMode::NONE);
        assert_eq!(policy.share_of(me, &path("f")), ShareMode::NONE);
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        assert_eq!(policy.share_of(child.id(), &path("f")), ShareMode::NONE);
        assert_eq!(policy.share_of(1, &path("f")), ShareMode::R);
        policy.end_run(1);
        assert_eq!(policy.share_of(child.id(), &path("f")), ShareMode::R);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_run_ends_by_its_number_and_a_later_process_with_its_pid_is_not_covered() {
        let policy = Policy::new(ShareMode::RWD, Vec::new());
        let me = std::process::id();
        let share = || policy.share_of(me, &path("f"));
        policy.start_run(1, me, ShareMode::R);
        policy.start_run(2, me, ShareMode::NONE);
        policy.end_run(1);
        assert_eq!(share(), ShareMode::NONE, "the end of one run leaves the other");
        for run in &mut *policy.runs.write().unwrap() {
            run.started = run.started.map(|started| started - 1);
        }
        policy.verdicts.write().unwrap().clear();
        assert_eq!(share(), ShareMode::RWD, "the root of the run was an earlier process");
    }
}
