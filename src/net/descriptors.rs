//! The limit of open descriptors: raised at the start, and divided between connections and the
//! rest of the process.
//!
//! Decides how many connections fit. Files that requests open, shares, the mount and the control
//! socket need descriptors too: a quarter of them is never given to connections and their
//! requests.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// With fewer descriptors a start warns. The listeners, the databases and the mount of a server
/// with every service take more than 50.
const FEW: u64 = 128;

/// Raises the soft limit to the hard one. Shells give 1,024, which a thousand idle connections use
/// up.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(errno) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        log::info!("the limit of open descriptors stays {current:?}: {errno}");
    }
}

/// The most connections of the process. Each takes a descriptor, and its request at most one more.
pub fn connections_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    share(limit)
}

/// A warning, if hardly any descriptors are left for clients.
pub fn warning() -> Option<String> {
    few(getrlimit(Resource::Nofile).current?)
}

fn few(limit: u64) -> Option<String> {
    let note = || {
        format!(
            "only {limit} descriptors: clients are refused where none is left; raise the limit \
             (ulimit -n 4096, or --ulimit nofile=4096 for a container)"
        )
    };
    (limit < FEW).then(note)
}

fn share(limit: usize) -> usize {
    ((limit - limit / 4) / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_all_descriptors_is_never_given_to_connections_and_their_files() {
        for limit in [64, 256, 1_024, 20_000, 1 << 20] {
            let connections = share(limit);
            assert!(2 * connections <= limit - limit / 4, "{limit}");
            assert!(connections >= limit / 4, "{limit}");
        }
        assert_eq!(share(0), 1);
    }

    #[test]
    fn few_descriptors_are_worth_a_warning() {
        assert!(few(FEW - 1).unwrap().starts_with("only 127 descriptors"));
        assert_eq!(few(FEW), None);
    }
}
