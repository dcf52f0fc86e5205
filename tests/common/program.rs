//! A second process: a Python interpreter that does what it is told, one line at a time.
//!
//! It reaches what the standard library of Rust has no safe call for (`fcntl` locks, mappings,
//! `SEEK_HOLE`), and it is another process to the kernel, which is what locks ask about.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::need;
use super::served::PATIENCE;

const INTERPRETER: &str = r#"
import ctypes, errno, fcntl, json, mmap, os, signal, stat, struct, sys, time
SETLK, SETLKW, GETLK = fcntl.F_SETLK, fcntl.F_SETLKW, fcntl.F_GETLK
OFD_GETLK, OFD_SETLK, OFD_SETLKW = 36, 37, 38
def lock(fd, command, kind, start=0, length=0):
    asked = struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)
    return list(struct.unpack("hhqqi4x", fcntl.fcntl(fd, command, asked)))
def plain(value):
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, (int, str, bool, float, list, type(None))) else repr(value)
names = globals()
for line in sys.stdin:
    source = json.loads(line)
    try:
        try:
            code = compile(source, "test", "eval")
        except SyntaxError:
            exec(source, names)
            answer = ["ok", None]
        else:
            answer = ["ok", plain(eval(code, names))]
    except OSError as error:
        answer = ["errno", error.errno]
    except BaseException as error:
        answer = ["bug", repr(error)]
    print(json.dumps(answer), flush=True)
"#;

/// The other process. Killed when dropped.
pub struct Program {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<String>,
}

impl Program {
    /// Starts one with the mount point as its working directory; none if there is no Python.
    #[track_caller]
    pub fn start(dir: &Path) -> Option<Self> {
        Self::by(Command::new("python3"), dir)
    }

    /// Starts one as another user and group.
    #[track_caller]
    pub fn as_user(id: u32, dir: &Path) -> Option<Self> {
        if !need::root() || !need::client("setpriv") {
            return None;
        }
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={id}"), format!("--regid={id}")]);
        // Not every user may run an interpreter that belongs to another.
        command.args(["--clear-groups", "--", "/usr/bin/python3"]);
        Self::by(command, dir)
    }

    /// Starts one by a command that ends in the name of a Python interpreter.
    #[track_caller]
    pub fn by(mut command: Command, dir: &Path) -> Option<Self> {
        if !need::client("python3") {
            return None;
        }
        let mut child = command
            .args(["-I", "-S", "-u", "-c", INTERPRETER])
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)).ok()
        });
        let mut program = Self { child, stdin, answers };
        assert_eq!(program.run("1"), Ok(json!(1)));
        Some(program)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Runs a line of Python: the value of an expression, or the errno it failed with.
    #[track_caller]
    pub fn run(&mut self, code: &str) -> Result<Value, i32> {
        self.begin(code);
        self.answer().unwrap_or_else(|| panic!("no answer to {code}"))
    }

    /// Runs a line that must do; an expression's value.
    #[track_caller]
    pub fn ok(&mut self, code: &str) -> Value {
        self.run(code).unwrap_or_else(|errno| panic!("{code}: errno {errno}"))
    }

    /// Runs a line that must fail; its errno.
    #[track_caller]
    pub fn fails(&mut self, code: &str) -> i32 {
        self.run(code).map_or_else(|errno| errno, |value| panic!("{code} gave {value}"))
    }

    /// Sends a line without waiting for its answer.
    pub fn begin(&mut self, code: &str) {
        writeln!(self.stdin, "{}", json!(code)).unwrap();
    }

    /// The answer to the oldest line sent, if it comes soon.
    #[track_caller]
    pub fn answer(&mut self) -> Option<Result<Value, i32>> {
        self.answer_within(PATIENCE)
    }

    /// The same, if it comes in time.
    #[track_caller]
    pub fn answer_within(&mut self, time: Duration) -> Option<Result<Value, i32>> {
        let line = self.answers.recv_timeout(time).ok()?;
        let answer: Value = serde_json::from_str(&line).unwrap();
        Some(match (answer[0].as_str(), &answer[1]) {
            (Some("ok"), value) => Ok(value.clone()),
            (Some("errno"), errno) => Err(i32::try_from(errno.as_i64().unwrap()).unwrap()),
            (_, bug) => panic!("the program is wrong: {bug}"),
        })
    }

    /// Kills it at once and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a shell command in the directory; what it printed, or its exit code and complaint.
pub fn sh(dir: &Path, command: &str) -> Result<String, String> {
    let done = Command::new("sh").args(["-c", command]).current_dir(dir).output().unwrap();
    if done.status.success() {
        Ok(String::from_utf8(done.stdout).unwrap())
    } else {
        Err(format!("{}: {}", done.status, String::from_utf8_lossy(&done.stderr)))
    }
}
