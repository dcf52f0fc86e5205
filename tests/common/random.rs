//! Random numbers from a seed, which seeds are run, and how far.

use std::collections::VecDeque;
use std::env;
use std::fmt::Debug;

/// How many of the last steps a failure shows.
const HISTORY: usize = 16;

/// splitmix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 on, below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("small");
        usize::try_from(self.next() % bound).expect("below a usize")
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }
}

/// The seeds to run: the one of `LATCHFS_TEST_SEED`, or the first few.
pub fn seeds(count: u64) -> Vec<u64> {
    match env::var("LATCHFS_TEST_SEED") {
        Ok(text) => vec![text.parse().expect("LATCHFS_TEST_SEED is a number")],
        Err(_) => (1..=count).collect(),
    }
}

/// So many steps, or ten times as many where all is to be run.
pub fn steps(usual: usize) -> usize {
    if env::var("LATCHFS_FULL").is_ok() { usual * 10 } else { usual }
}

/// The last steps, for the one who has to find out what went wrong.
pub struct History<T>(VecDeque<(usize, T)>);

impl<T: Debug> History<T> {
    pub fn new() -> Self {
        Self(VecDeque::with_capacity(HISTORY))
    }

    pub fn note(&mut self, step: usize, what: T) {
        if self.0.len() == HISTORY {
            self.0.pop_front();
        }
        self.0.push_back((step, what));
    }

    /// Fails if the last step did.
    pub fn hold(&self, seed: u64, step: usize, answer: Result<(), String>) {
        let Err(why) = answer else { return };
        let lines: Vec<_> = self.0.iter().map(|(at, what)| format!("{at:>9}  {what:?}")).collect();
        panic!("seed {seed}, step {step}: {why}\n{}\n", lines.join("\n"));
    }
}
