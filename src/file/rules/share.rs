//! The share check, in counter form: O(1) in the number of opens.
//!
//! The rule, for a new open `(a2, s2)` against every existing open `(a1, s1)` of the same file:
//!
//! ```text
//! violation  iff  a1 != 0 and a2 != 0 and ( a2 not within s1  or  a1 not within s2 )
//! ```

use super::{Access, ShareMode};

/// Which half of the rule refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clash {
    /// The share mode of another open does not allow the requested access.
    AccessDenied,
    /// The requested share mode does not allow an access that another open has.
    ShareDenied,
}

/// Why an open is refused: which half of the rule, for which of read, write and delete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause {
    pub clash: Clash,
    /// 0 read, 1 write, 2 delete.
    bit: u8,
}

impl Cause {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// Its number, below [`Self::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.bit) + if self.clash == Clash::AccessDenied { 0 } else { 3 }
    }

    /// True if an open that holds `(held, held_share)` is one that causes it.
    pub fn is(self, held: Access, held_share: ShareMode) -> bool {
        match self.clash {
            Clash::AccessDenied => !held.is_empty() && held_share.bits() & (1 << self.bit) == 0,
            Clash::ShareDenied => held.bits() & (1 << self.bit) != 0,
        }
    }
}

/// True if an open of `(access, share)` cannot stand beside one that holds `(held, held_share)`.
pub fn clash(access: Access, share: ShareMode, held: Access, held_share: ShareMode) -> bool {
    !access.is_empty()
        && !held.is_empty()
        && (!access.allowed_by(held_share) || !held.allowed_by(share))
}

/// Sums over the opens of one file that have any of read, write, delete. Attribute-only opens
/// are not counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShareCounts {
    opens: u32,
    holding: [u32; 3],
    sharing: [u32; 3],
}

impl ShareCounts {
    /// May `(access, share)` be opened beside all that are counted?
    pub fn check(&self, access: Access, share: ShareMode) -> Result<(), Clash> {
        self.cause(access, share).map_or(Ok(()), |cause| Err(cause.clash))
    }

    /// The first of the reasons why it may not.
    pub fn cause(&self, access: Access, share: ShareMode) -> Option<Cause> {
        if access.is_empty() {
            return None;
        }
        let of = |clash| move |bit| Cause { clash, bit };
        let unshared = (0..3).find(|&bit| {
            access.bits() & (1 << bit) != 0 && self.sharing[usize::from(bit)] < self.opens
        });
        let untolerated = || {
            (0..3).find(|&bit| share.bits() & (1 << bit) == 0 && self.holding[usize::from(bit)] > 0)
        };
        unshared.map(of(Clash::AccessDenied)).or_else(|| untolerated().map(of(Clash::ShareDenied)))
    }

    /// Counts an open that was granted.
    pub fn add(&mut self, access: Access, share: ShareMode) {
        self.change(access, share, |count| *count += 1);
    }

    /// Takes an open out that was counted.
    pub fn remove(&mut self, access: Access, share: ShareMode) {
        self.change(access, share, |count| {
            *count = count.checked_sub(1).expect("an open is counted once and taken out once");
        });
    }

    fn change(&mut self, access: Access, share: ShareMode, mut step: impl FnMut(&mut u32)) {
        if access.is_empty() {
            return;
        }
        step(&mut self.opens);
        for bit in 0..3 {
            if access.bits() & (1 << bit) != 0 {
                step(&mut self.holding[bit]);
            }
            if share.bits() & (1 << bit) != 0 {
                step(&mut self.sharing[bit]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_agree_with_the_pairwise_rule_on_all_4096_pairs() {
        let mut grants = 0;
        for a1 in Access::ALL {
            for s1 in ShareMode::ALL {
                let mut counts = ShareCounts::default();
                counts.add(a1, s1);
                for a2 in Access::ALL {
                    for s2 in ShareMode::ALL {
                        let granted = counts.check(a2, s2).is_ok();
                        assert_eq!(granted, !clash(a2, s2, a1, s1), "{a1} {s1} {a2} {s2}");
                        grants += u32::from(granted);
                    }
                }
            }
        }
        // 512 + 448 + 19 * 19.
        assert_eq!(grants, 1321);
    }

    #[test]
    fn the_refusal_says_which_half_of_the_rule_it_was() {
        let mut counts = ShareCounts::default();
        counts.add(Access::W, ShareMode::R);
        assert_eq!(counts.check(Access::W, ShareMode::W), Err(Clash::AccessDenied)); // E2
        let mut counts = ShareCounts::default();
        counts.add(Access::W, ShareMode::W);
        assert_eq!(counts.check(Access::W, ShareMode::R), Err(Clash::ShareDenied)); // E3
    }

    #[test]
    fn what_is_added_and_removed_leaves_no_trace() {
        let mut counts = ShareCounts::default();
        for access in Access::ALL {
            for share in ShareMode::ALL {
                counts.add(access, share);
            }
        }
        for access in Access::ALL {
            for share in ShareMode::ALL {
                counts.remove(access, share);
            }
        }
        assert_eq!(counts, ShareCounts::default());
    }
}
