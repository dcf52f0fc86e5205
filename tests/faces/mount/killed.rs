//! Processes that die with files open and locked: all of it is given back.
use serde_json::json;

use crate::mount::fixture::{Fixture, rounds, soon};
use crate::mount::program::Program;

/// How many hold at the same time.
const AT_ONCE: usize = 50;

/// Starts processes of which each opens and locks a file of its own and one of all, says so and
/// waits for its end; and kills them all.
const HOLDERS: &str = "
def hold(n):
    own = os.open(f'own-{n}', os.O_CREAT | os.O_RDWR)
    shared = os.open('shared', os.O_RDWR)
    fcntl.lockf(own, fcntl.LOCK_EX)
    fcntl.lockf(shared, fcntl.LOCK_SH)
def start(count, hold):
    said, says = os.pipe()
    pids = []
    for n in range(count):
        pid = os.fork()
        if pid == 0:
            try:
                hold(n)
                os.write(says, b'h')
                time.sleep(600)
            finally:
                os._exit(1)
        pids.append(pid)
    os.close(says)
    held = 0
    while held < count and os.read(said, 1):
        held += 1
    os.close(said)
    return pids, held
def end(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)
";

#[test]
fn all_that_killed_processes_held_is_given_back() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    program.ok(HOLDERS);
    at.make("shared", "");
    // 200 in all; 1,000 where time is not short.
    for batch in 0..rounds(200).min(1000) / AT_ONCE {
        program.ok(&format!("pids, held = start({AT_ONCE}, hold)"));
        assert_eq!(program.ok("held"), json!(AT_ONCE));
        assert_eq!(at.share.files_in_use(), AT_ONCE + 1, "batch {batch}");
        program.ok("end(pids)");
        soon("all is given back", || at.share.files_in_use() == 0);
    }
}
