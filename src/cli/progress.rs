//! Shows the progress of a long operation: a line that is rewritten, on a terminal only.

use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, ProgressBar};

/// How often the line moves by itself.
const TICK: Duration = Duration::from_millis(100);

/// A line on standard error, gone when dropped. Off a terminal there is none.
pub struct Moving {
    bar: ProgressBar,
    what: String,
}

impl Moving {
    /// Shows that `what` is being done.
    pub fn new(what: impl Into<String>) -> Self {
        let what = what.into();
        let bar = ProgressBar::new_spinner().with_message(what.clone());
        bar.enable_steady_tick(TICK);
        Self { bar, what }
    }

    /// So much is done.
    pub fn at(&self, files: u64, bytes: u64) {
        let (files, bytes) = (HumanCount(files), HumanBytes(bytes));
        self.say(&format!("{files} files, {bytes}"));
    }

    /// This is being done now.
    pub fn say(&self, what: &str) {
        self.bar.set_message(format!("{}: {what}", self.what));
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
