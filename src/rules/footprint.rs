//! The dependence relation: which steps of an exploration may change places without a difference.
//!
//! Decides when two footprints conflict. What an operation reads and writes is a function in its
//! row in the table of its service; a resource that is missing there hides races, one too many
//! costs runs.

/// A resource, named from the service down: `["blob:acct", "box", "blob", "a"]`. It stands for all
/// resources below it too.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Resource {
    names: Vec<String>,
    /// The last name is the beginning of a name.
    is_prefix: bool,
}

impl Resource {
    pub fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), is_prefix: false }
    }

    /// The resource of that name below this one.
    #[must_use]
    pub fn below(mut self, name: impl Into<String>) -> Self {
        debug_assert!(!self.is_prefix, "nothing is below a prefix");
        self.names.push(name.into());
        self
    }

    /// All resources below this one whose name begins so.
    #[must_use]
    pub fn below_prefix(self, prefix: impl Into<String>) -> Self {
        Self { is_prefix: true, ..self.below(prefix) }
    }

    /// Whether one of the two is the other, or above it.
    fn meets(&self, other: &Self) -> bool {
        let (short, long) =
            if self.names.len() <= other.names.len() { (self, other) } else { (other, self) };
        let last = short.names.len().saturating_sub(1);
        short.names.iter().zip(&long.names).enumerate().all(|(at, (name, full))| {
            let long_ends = long.is_prefix && at + 1 == long.names.len();
            match (short.is_prefix && at == last, long_ends) {
                (false, false) => name == full,
                (true, false) => full.starts_with(name.as_str()),
                (false, true) => name.starts_with(full.as_str()),
                (true, true) => full.starts_with(name.as_str()) || name.starts_with(full.as_str()),
            }
        })
    }
}

/// What a step reads and writes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    pub reads: Vec<Resource>,
    pub writes: Vec<Resource>,
    /// The step asks for the time, or writes it.
    pub time: Option<Time>,
}

/// What a step has to do with the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    Reads,
    /// Reads it, and gives a lease on what it writes.
    Leases,
    /// Reads it if what it reads or writes has a lease.
    ReadsIfLeased,
    Advances,
}

impl Footprint {
    pub fn of(
        reads: impl IntoIterator<Item = Resource>,
        writes: impl IntoIterator<Item = Resource>,
    ) -> Self {
        let (reads, writes) = (reads.into_iter().collect(), writes.into_iter().collect());
        Self { reads, writes, time: None }
    }

    #[must_use]
    pub fn timed(self, time: Time) -> Self {
        Self { time: Some(time), ..self }
    }

    /// Whether the order of two steps can make a difference.
    pub fn conflicts(&self, other: &Self) -> bool {
        let meet = |these: &[Resource], those: &[Resource]| {
            these.iter().any(|one| those.iter().any(|other| one.meets(other)))
        };
        let by_time = matches!(
            (self.time, other.time),
            (Some(Time::Advances), Some(_)) | (Some(_), Some(Time::Advances))
        );
        by_time
            || meet(&self.writes, &other.writes)
            || meet(&self.writes, &other.reads)
            || meet(&self.reads, &other.writes)
    }

    /// Whether it writes what another step reads or writes.
    pub fn changes(&self, other: &Self) -> bool {
        self.writes.iter().any(|written| {
            other.reads.iter().chain(&other.writes).any(|resource| written.meets(resource))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_meet_if_one_is_the_other_or_above_it() {
        let at = |path: &str| Resource::new(path.split('/').filter(|name| !name.is_empty()));
        let prefix = |path: &str, prefix: &str| at(path).below_prefix(prefix);
        for (one, other, meets) in [
            (at("box/a"), at("box/a"), true),
            (at("box"), at("box/a"), true),
            (at(""), at("box/a"), true),
            (at("box/a"), at("box/b"), false),
            (at("box/a/lease"), at("box/a/blocks"), false),
            (prefix("box", "log"), at("box/log-1"), true),
            (prefix("box", "log"), at("box/log-1/lease"), true),
            (prefix("box", "log"), at("box/other"), false),
            (prefix("box", ""), at("box/other"), true),
            (prefix("box", "log"), at("box"), true),
            (prefix("box", "log-1"), prefix("box", "log"), true),
            (prefix("box", "log-1"), prefix("box", "log-2"), false),
        ] {
            assert_eq!(one.meets(&other), meets, "{one:?} {other:?}");
            assert_eq!(other.meets(&one), meets, "{other:?} {one:?}");
        }
    }

    #[test]
    fn steps_conflict_by_a_write_or_by_the_clock() {
        let at = || [Resource::new(["box", "a"])];
        let (read, write) = (Footprint::of(at(), []), Footprint::of([], at()));
        let nothing = Footprint::default();
        assert!(!read.conflicts(&read) && read.conflicts(&write) && write.conflicts(&write));
        assert!(write.changes(&read) && !read.changes(&write));
        let clock = nothing.clone().timed(Time::Advances);
        for time in [Time::Reads, Time::Leases, Time::ReadsIfLeased, Time::Advances] {
            let looks = nothing.clone().timed(time);
            assert!(clock.conflicts(&looks) && looks.conflicts(&clock), "{time:?}");
        }
        assert!(!clock.conflicts(&write));
        let looks = nothing.clone().timed(Time::Reads);
        assert!(!looks.conflicts(&looks));
    }
}
