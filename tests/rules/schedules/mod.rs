//! Runs the engine's races through many schedules (shuttle), on real files.
//!
//! docs/architecture.md has the command.
//! Each scenario is a handful of threads; shuttle turns from one to another at every lock and
//! atomic of the engine, at random and by PCT, and notices deadlocks. What must hold is in
//! [`world`]. `LATCHFS_TEST_SEED=n` replays a seed, `LATCHFS_FULL=1` runs ten times as many
//! schedules.
mod scenarios;
mod world;

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};

use world::{Tally, World};

/// Schedules of each kind for one scenario.
const SCHEDULES: usize = 4_000;
/// Most turns PCT takes from the plain order of its priorities.
const PCT_DEPTH: usize = 3;
/// A lock that shuttle does not know would block the whole process: it is ended after this.
const PATIENCE: Duration = Duration::from_mins(5);
/// Far more turns than any scenario has: an endless retry fails.
const TURNS_MAX: usize = 20_000;
const STACK_BYTES: usize = 256 * 1024;

/// Runs a scenario through its schedules and gives back what happened in all of them.
fn explore(name: &str, scenario: fn(&World)) -> Arc<Tally> {
    let seed = env::var("LATCHFS_TEST_SEED").map_or(1, |text| text.parse().expect("a number"));
    let full = if env::var("LATCHFS_FULL").is_ok() { 10 } else { 1 };
    let count = SCHEDULES * full;
    let folder = tempfile::tempdir_in(fast_folder()).expect("a temporary folder");
    let tally = Arc::new(Tally::default());
    let watchdog = Watchdog::start(name, PATIENCE * u32::try_from(full).expect("1 or 10"));
    let start = Instant::now();
    let run = |scheduler: Box<dyn Scheduler + Send>| {
        let (folder, tally) = (folder.path().join("world"), Arc::clone(&tally));
        Runner::new(scheduler, config()).run(move || {
            let world = World::new(&folder, &tally);
            scenario(&world);
            world.check_clean();
        })
    };
    let done = run(Box::new(RandomScheduler::new_from_seed(seed, count)))
        + run(Box::new(PctScheduler::new_from_seed(seed, PCT_DEPTH, count)));
    watchdog.stop();
    println!("{name}: seed {seed}, {done} schedules in {:.1?}, {tally:?}", start.elapsed());
    assert_eq!(done, 2 * count);
    tally
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(TURNS_MAX);
    config.silence_warnings = true;
    config
}

/// Memory where there is some, since each schedule starts with an empty share.
fn fast_folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { env::temp_dir() }
}

/// Ends the process if it is not stopped in time.
struct Watchdog(Arc<AtomicU64>);

impl Watchdog {
    fn start(name: &str, patience: Duration) -> Self {
        let stopped = Arc::new(AtomicU64::new(0));
        let (seen, name) = (Arc::clone(&stopped), name.to_owned());
        std::thread::spawn(move || {
            let end = Instant::now() + patience;
            while seen.load(Ordering::Relaxed) == 0 {
                if Instant::now() > end {
                    eprintln!("{name}: stuck for {patience:?}, at a lock that shuttle cannot see");
                    std::process::exit(101);
                }
                std::thread::park_timeout(Duration::from_millis(200));
            }
        });
        Self(stopped)
    }

    fn stop(self) {
        self.0.store(1, Ordering::Relaxed);
    }
}
