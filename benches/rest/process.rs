//! What a process and its children cost, by the kernel's account in `/proc`.

use std::fs;
use std::time::Duration;

/// The processor time of a process and its children, to the nanosecond. Threads that ended are not
/// counted: the servers that are compared keep theirs.
pub fn cpu(pid: u32) -> Duration {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Duration::ZERO };
    let mut sum = Duration::ZERO;
    for task in tasks.flatten() {
        let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let schedstat = read("schedstat");
        let on_cpu = schedstat.split(' ').next().and_then(|word| word.parse().ok());
        sum += Duration::from_nanos(on_cpu.unwrap_or_default());
        let children = read("children");
        let children: Duration =
            children.split(' ').filter_map(|word| word.parse().ok()).map(cpu).sum();
        sum += children;
    }
    sum
}

/// Bytes of a process in memory. Pages of files that it mapped are among them.
pub fn resident(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}
