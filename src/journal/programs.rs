//! The programs behind the process ids of opens: looked up when an open is reported, and never when
//! a file is opened.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use crate::rules::{Holder, Owner};

/// The owner with its process, not the thread the kernel names, and its program.
pub fn resolved(owner: &Owner) -> Owner {
    let mut owner = owner.clone();
    if owner.pid == 0 || owner.program.is_some() {
        return owner;
    }
    (owner.pid, owner.program) = process_and_program(owner.pid);
    owner
}

/// Processes and programs by thread, each asked for once: for one report, since a number may be
/// another thread's by the next.
#[derive(Debug, Default)]
pub struct Programs(HashMap<u32, (u32, Option<Arc<str>>)>);

impl Programs {
    /// The owner with its process and its program.
    pub fn resolve(&mut self, owner: &Owner) -> Owner {
        let mut owner = owner.clone();
        if owner.pid != 0 && owner.program.is_none() {
            let known = self.0.entry(owner.pid);
            (owner.pid, owner.program) =
                known.or_insert_with_key(|tid| process_and_program(*tid)).clone();
        }
        owner
    }
}

/// The process of a thread, and its program, as far as they are still there.
pub fn process_and_program(tid: u32) -> (u32, Option<Arc<str>>) {
    let pid = process_of_thread(tid).unwrap_or(tid);
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    (pid, comm.map(|name| Arc::from(name.trim_end())))
}

/// A refusal in words, with the holder's program, where that is known by now.
pub fn words(message: &str, holder: Option<&Holder>, owner: Option<&Owner>) -> String {
    match (holder, owner) {
        (Some(holder), Some(owner)) => {
            let named = Holder { owner: owner.clone(), ..holder.clone() };
            message.replace(&holder.to_string(), &named.to_string())
        }
        _ => message.to_owned(),
    }
}

/// The process of a thread.
pub fn process_of_thread(tid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Client;

    #[test]
    fn a_report_asks_for_each_process_once() {
        let mut sleeper = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let client = Arc::new(Client { session: 1, name: "mount".into() });
        let owner = Owner { client, pid: sleeper.id(), program: None };
        let mut programs = Programs::default();
        let first = programs.resolve(&owner);
        assert!(first.program.is_some());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        // Asked for again, nothing would be known of it.
        assert_eq!(resolved(&owner).program, None);
        assert_eq!(programs.resolve(&owner), first);
    }

    #[test]
    fn a_thread_is_reported_as_its_process_with_the_program() {
        let own = std::process::id();
        let tid = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get())
            .join()
            .map(|tid| u32::try_from(tid).unwrap());
        // The thread has ended: nothing is known of it any more.
        let client = Arc::new(Client { session: 1, name: "mount".into() });
        let gone = Owner { client: Arc::clone(&client), pid: tid.unwrap(), program: None };
        assert_eq!(resolved(&gone).program, None);
        let (send, receive) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            ended.recv().unwrap_err();
        });
        let pid = u32::try_from(receive.recv().unwrap()).unwrap();
        let seen = resolved(&Owner { client, pid, program: None });
        assert_eq!(seen.pid, own);
        assert!(seen.program.is_some());
        drop(end);
        thread.join().unwrap();
    }
}
