//! Asking about a mount of ours from a process of its own. If this one were killed while a thread
//! of it waits on its own mount, both would hang (FUSE-BETS 1.3).

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often it looks whether the answer is there.
const TICK: Duration = Duration::from_millis(1);

/// Runs the program for its exit status; none if that takes longer than `patience`.
pub fn ask(program: &mut Command, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let program = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut asked = program.spawn()?;
    let end = Instant::now() + patience;
    loop {
        if let Some(status) = asked.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            // Its answer is of no use any more; killing it leaves no zombie behind.
            drop(asked.kill().and_then(|()| asked.wait()));
            return Ok(None);
        }
        std::thread::sleep(TICK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_given_and_a_silent_program_is_not_waited_for() {
        let ask = |program: &mut Command, patience| ask(program, patience).unwrap();
        let long = Duration::from_secs(20);
        assert!(ask(&mut Command::new("true"), long).unwrap().success());
        assert!(!ask(&mut Command::new("false"), long).unwrap().success());
        assert_eq!(ask(Command::new("sleep").arg("60"), Duration::from_millis(20)), None);
    }
}
