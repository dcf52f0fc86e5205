//! Programs that know nothing of latchfs, and the commands that stand in for one, as REST sees
//! them.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::common::calls::Call;
use crate::common::meeting::{Meeting, errno};

const SV: &str = "SharingViolation";

/// A command that has said a line. It ends with its input; killed when dropped.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended");
        Self(child)
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_hold_refuses_rest_and_is_named_until_it_ends() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("program-hold");
    let path = file.path();
    let arguments = ["hold", path.to_str().unwrap(), "--access", "rw", "--share", "none"];
    let hold = Running::start(&mut at.served().latchfs(&arguments));
    let named = format!("latchfs hold (pid {})", hold.0.id());
    let got = file.call(Call::Get).refused(409, SV);
    let quoted = format!("[latchfs: \"latchfs hold\" (pid {}) has it open for rw, ", hold.0.id());
    assert!(got.text().contains(&quoted), "{}", got.text());
    assert!(file.handles()[0].client.starts_with(&named), "{:?}", file.handles());
    assert_eq!(file.handles()[0].access, ["Read", "Write"]);
    hold.end();
    at.wait_idle("program-hold");
    file.answers("ok", &[Call::Get]);
}

#[test]
fn an_unchanged_program_run_with_share_none_refuses_rest() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("program-run");
    let mount = at.served().mount();
    let mut run = at.served().latchfs(&["run", "--share", "none", "--mount"]);
    run.arg(&mount).args(["--", "sh", "-c", "exec 3<\"$0\"; echo opened; read line; exit 0"]);
    let run = Running::start(run.arg(file.path()));
    let got = file.call(Call::Get).refused(409, SV);
    assert!(got.text().contains("\"sh\" (pid "), "{}", got.text());
    assert_eq!(errno(file.descriptor("r")), libc::EBUSY);
    run.end();
    at.wait_idle("program-run");
    file.answers("ok", &[Call::Get]);
}

#[test]
fn a_rule_for_names_gives_an_unchanged_program_its_share_mode() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("program-rule.r");
    let mut cat = Command::new("sh");
    cat.args(["-c", "exec 3<\"$0\"; echo opened; read line; exit 0"]).arg(file.path());
    let cat = Running::start(&mut cat);
    file.answers("ok", &[Call::Get, Call::Head]);
    file.answers(SV, &[Call::Put, Call::Create, Call::Delete]);
    cat.end();
    at.wait_idle("program-rule.r");
    file.answers("ok", &[Call::Put]);
}

#[test]
fn why_names_at_the_shell_whom_rest_met() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("program-why");
    let holder = file.open("r", "none");
    file.answers(SV, &[Call::Get]);
    let path = file.path();
    let why = at.served().latchfs(&["why", path.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8_lossy(&why.stdout).into_owned();
    assert_eq!(why.status.code(), Some(1), "{text}");
    assert!(text.contains(&holder.id().to_string()), "{text}");
    assert!(text.contains("Get File"), "the refusal of REST: {text}");
}
