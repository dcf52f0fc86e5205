//! What a process and its children cost, by the kernel's account in `/proc`.

use std::fs;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;

/// The processor time of a process and its children, those still running included.
pub fn cpu(pid: u32) -> Duration {
    let own = stat_ticks(pid).unwrap_or_default();
    let ticks = Duration::from_secs(own) / u32::try_from(clock_ticks_per_second()).unwrap_or(100);
    children(pid).into_iter().fold(ticks, |sum, child| sum + cpu(child))
}

/// `utime`, `stime` and what the children that ended had of both.
fn stat_ticks(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may have blanks; the fourteenth field is the twelfth after it.
    let (_, fields) = text.rsplit_once(") ")?;
    fields.split(' ').skip(11).take(4).map(|field| field.parse::<u64>().ok()).sum()
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().map(|task| fs::read_to_string(task.path().join("children")));
    let lists: Vec<String> = lists.map(Result::unwrap_or_default).collect();
    lists.iter().flat_map(|list| list.split(' ')).filter_map(|word| word.parse().ok()).collect()
}

/// Bytes of a process in memory.
pub fn resident(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}
