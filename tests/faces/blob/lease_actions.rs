//! Lease actions on blobs, and the same on containers: B59 to B63, B71, B72, B74, B77 to B92, B95,
//! and B118, which repeats them.

use super::fixture::{A, B, Blobs, C, Got};

const BLOB: &str = "/con/b?";
const CONTAINER: &str = "/con?restype=container&";
const ID: &str = "x-ms-lease-id";
const PROPOSED: &str = "x-ms-proposed-lease-id";
const MISMATCH: &str = "LeaseIdMismatchWithLeaseOperation";
const ABSENT: &str = "LeaseNotPresentWithLeaseOperation";
const PRESENT: &str = "LeaseAlreadyPresent";
const BAD: &str = "InvalidHeaderValue";

/// A blob or a container that is leased, by its address.
struct Leased {
    blobs: Blobs,
    at: &'static str,
}

impl Leased {
    fn new(at: &'static str) -> Self {
        let blobs = Blobs::new();
        blobs.blob("one");
        Self { blobs, at }
    }

    /// With a lease under A.
    fn under_a(at: &'static str, seconds: &str) -> Self {
        let it = Self::new(at);
        it.acquire(seconds, A).is(201);
        it
    }

    /// With a lease under A that has expired.
    fn expired(at: &'static str) -> Self {
        let it = Self::under_a(at, "15");
        it.blobs.pass(15);
        it.is_in("expired");
        it
    }

    /// With a lease under A that is breaking for 30 seconds.
    fn breaking(at: &'static str) -> Self {
        let it = Self::under_a(at, "-1");
        it.end(Some("30")).is(202);
        it.is_in("breaking");
        it
    }

    /// With a lease under A that is broken.
    fn broken(at: &'static str) -> Self {
        let it = Self::under_a(at, "-1");
        it.end(Some("0")).is(202);
        it.is_in("broken");
        it
    }

    fn act(&self, action: &str, headers: &[(&str, &str)]) -> Got {
        self.blobs.lease(self.at, action, headers)
    }

    fn acquire(&self, seconds: &str, id: &str) -> Got {
        self.act("acquire", &[("x-ms-lease-duration", seconds), (PROPOSED, id)])
    }

    fn renew(&self, id: &str) -> Got {
        self.act("renew", &[(ID, id)])
    }

    fn release(&self, id: &str) -> Got {
        self.act("release", &[(ID, id)])
    }

    fn change(&self, from: &str, to: &str) -> Got {
        self.act("change", &[(ID, from), (PROPOSED, to)])
    }

    fn end(&self, period: Option<&str>) -> Got {
        let header = period.map(|period| ("x-ms-lease-break-period", period));
        self.act("break", &header.into_iter().collect::<Vec<_>>())
    }

    /// Breaks; the seconds of the answer.
    fn time(&self, period: Option<&str>) -> u64 {
        self.end(period).is(202).header("x-ms-lease-time").parse().unwrap()
    }

    fn head(&self) -> Got {
        self.blobs.head(self.at.trim_end_matches(['?', '&']), &[]).is(200)
    }

    #[track_caller]
    fn is_in(&self, state: &str) {
        let got = self.head();
        let locked = matches!(state, "leased" | "breaking");
        let status = if locked { "locked" } else { "unlocked" };
        let shown = (got.header("x-ms-lease-state"), got.header("x-ms-lease-status"));
        assert_eq!(shown, (state, status));
    }
}

fn durations(at: &'static str) {
    for seconds in ["15", "60", "-1"] {
        let it = Leased::new(at);
        let got = it.act("acquire", &[("x-ms-lease-duration", seconds)]).is(201);
        assert_eq!(got.header(ID).len(), 36, "{got:?}");
    }
    let it = Leased::new(at);
    for bad in ["14", "61", "0", "-2", "long"] {
        it.acquire(bad, A).refused(400, BAD);
    }
    it.act("acquire", &[]).refused(400, "MissingRequiredHeader");
    it.is_in("available");
}

fn proposed_ids(at: &'static str) {
    let it = Leased::new(at);
    it.acquire("15", "nope").refused(400, BAD);
    assert_eq!(it.acquire("-1", A).is(201).header(ID), A);
    for spelled in [A.to_uppercase(), format!("{{{A}}}"), A.replace('-', "")] {
        it.renew(&spelled).is(200);
    }
}

fn renewing(at: &'static str) {
    let it = Leased::under_a(at, "15");
    it.blobs.pass(10);
    assert_eq!(it.renew(A).is(200).header(ID), A);
    it.blobs.pass(14);
    it.is_in("leased");
    let it = Leased::under_a(at, "-1");
    it.renew(A).is(200);
}

fn releasing(at: &'static str) {
    let it = Leased::under_a(at, "-1");
    it.release(A).is(200);
    it.is_in("available");
    it.acquire("15", B).is(201);
}

fn expiring(at: &'static str) {
    let it = Leased::under_a(at, "15");
    it.blobs.pass(14);
    it.is_in("leased");
    it.blobs.pass(1);
    it.is_in("expired");
}

fn acquiring_what_another_has(at: &'static str) {
    let it = Leased::under_a(at, "-1");
    let refused = it.acquire("15", B).refused(409, PRESENT).text();
    assert!(refused.contains("[latchfs: leased") && refused.contains("(acquire)"), "{refused}");
    it.act("acquire", &[("x-ms-lease-duration", "15")]).refused(409, PRESENT);
}

fn acquiring_again(at: &'static str) {
    let it = Leased::under_a(at, "-1");
    it.acquire("15", A).is(201);
    assert_eq!(it.head().header("x-ms-lease-duration"), "fixed");
    it.blobs.pass(15);
    it.is_in("expired");
}

fn renewing_what_expired(at: &'static str) {
    let it = Leased::expired(at);
    it.renew(B).refused(409, MISMATCH);
    it.renew(A).is(200);
    it.is_in("leased");
}

fn acquiring_what_expired(at: &'static str) {
    let it = Leased::expired(at);
    it.acquire("15", B).is(201);
    it.renew(A).refused(409, MISMATCH);
}

fn others_on_what_expired(at: &'static str) {
    let it = Leased::expired(at);
    it.change(A, B).refused(409, ABSENT);
    it.release(A).is(200);
    it.is_in("available");
    it.release(A).refused(409, MISMATCH);
    let it = Leased::expired(at);
    assert_eq!(it.time(None), 0);
    it.is_in("broken");
}

fn changing(at: &'static str) {
    let it = Leased::under_a(at, "-1");
    assert_eq!(it.change(A, B).is(200).header(ID), B);
    it.renew(A).refused(409, MISMATCH);
    it.renew(B).is(200);
}

fn changing_again(at: &'static str) {
    let it = Leased::under_a(at, "-1");
    it.change(B, A).is(200);
    it.change(B, C).refused(409, MISMATCH);
    it.renew(A).is(200);
}

fn nothing_leased(at: &'static str) {
    let it = Leased::new(at);
    it.change(A, B).refused(409, ABSENT);
    it.end(None).refused(409, ABSENT);
    it.renew(A).refused(409, MISMATCH);
    it.release(A).refused(409, MISMATCH);
}

fn releasing_what_another_has(at: &'static str) {
    let it = Leased::under_a(at, "-1");
    it.release(B).refused(409, MISMATCH);
    it.is_in("leased");
}

fn breaking_an_infinite_lease(at: &'static str) {
    let it = Leased::under_a(at, "-1");
    assert_eq!(it.time(None), 0);
    it.is_in("broken");
}

fn breaking_a_finite_lease(at: &'static str) {
    let it = Leased::under_a(at, "60");
    it.blobs.pass(20);
    assert_eq!(it.time(None), 40);
    it.is_in("breaking");
    it.blobs.pass(40);
    it.is_in("broken");
}

fn breaking_within_a_period(at: &'static str) {
    let it = Leased::under_a(at, "60");
    assert_eq!(it.time(Some("5")), 5);
    it.blobs.pass(4);
    it.is_in("breaking");
    it.blobs.pass(1);
    it.is_in("broken");
}

fn a_period_longer_than_the_rest(at: &'static str) {
    let it = Leased::under_a(at, "60");
    it.blobs.pass(50);
    assert_eq!(it.time(Some("60")), 10);
}

fn a_second_break_never_lengthens(at: &'static str) {
    let it = Leased::under_a(at, "-1");
    assert_eq!(it.time(Some("30")), 30);
    assert_eq!(it.time(Some("5")), 5);
    assert_eq!(it.time(Some("30")), 5);
}

fn breaking_at_once(at: &'static str) {
    let it = Leased::under_a(at, "60");
    assert_eq!(it.time(Some("0")), 0);
    it.is_in("broken");
}

fn bad_periods(at: &'static str) {
    let it = Leased::under_a(at, "-1");
    for bad in ["61", "-1", "soon"] {
        it.end(Some(bad)).refused(400, BAD);
    }
    it.is_in("leased");
}

fn breaking_needs_no_id(at: &'static str) {
    let it = Leased::under_a(at, "-1");
    it.act("break", &[(ID, B)]).is(202);
    it.is_in("broken");
}

fn acquiring_what_is_breaking(at: &'static str) {
    let it = Leased::breaking(at);
    it.acquire("15", A).refused(409, "LeaseIsBreakingAndCannotBeAcquired");
    it.acquire("15", B).refused(409, PRESENT);
}

fn others_on_what_is_breaking(at: &'static str) {
    let it = Leased::breaking(at);
    it.renew(A).refused(409, "LeaseIsBrokenAndCannotBeRenewed");
    it.change(A, B).refused(409, "LeaseIsBreakingAndCannotBeChanged");
    it.release(A).is(200);
    it.is_in("available");
}

fn what_is_broken(at: &'static str) {
    let it = Leased::broken(at);
    it.renew(A).refused(409, "LeaseIsBrokenAndCannotBeRenewed");
    it.change(A, B).refused(409, ABSENT);
    assert_eq!(it.time(None), 0);
    it.release(A).is(200);
    for id in [A, B] {
        Leased::broken(at).acquire("15", id).is(201);
    }
}

/// A test by number for each behaviour on a blob, and one that repeats all of them on a container.
macro_rules! on_both {
    ($($name:ident = $check:ident;)*) => {
        $(
            #[test]
            fn $name() {
                $check(BLOB);
            }
        )*

        #[test]
        fn b118_containers_are_leased_as_blobs_are() {
            $($check(CONTAINER);)*
            // Unlike a blob, a container that was changed since may still be renewed.
            let it = Leased::expired(CONTAINER);
            it.blobs.put("/con?restype=container&comp=metadata", &[]).is(200);
            it.renew(A).is(200);
        }
    };
}

on_both! {
    b059_a_lease_lasts_15_to_60_seconds_or_for_ever = durations;
    b060_a_proposed_id_is_a_guid_in_any_spelling = proposed_ids;
    b061_renewing_starts_the_time_anew = renewing;
    b062_a_released_blob_can_be_leased_at_once = releasing;
    b063_a_lease_expires_at_its_time = expiring;
    b071_what_another_has_leased_is_refused = acquiring_what_another_has;
    b072_the_holder_may_acquire_again_with_another_duration = acquiring_again;
    b074_an_expired_lease_is_renewed_by_its_holder_alone = renewing_what_expired;
    b077_an_expired_lease_keeps_nobody_out = acquiring_what_expired;
    b078_change_release_and_break_of_an_expired_lease = others_on_what_expired;
    b079_a_changed_lease_has_the_new_id = changing;
    b080_a_change_may_be_repeated = changing_again;
    b081_without_a_lease_there_is_nothing_to_act_on = nothing_leased;
    b082_the_holder_alone_releases = releasing_what_another_has;
    b083_an_infinite_lease_breaks_at_once = breaking_an_infinite_lease;
    b084_a_finite_lease_breaks_at_its_end = breaking_a_finite_lease;
    b085_a_lease_breaks_within_a_period = breaking_within_a_period;
    b086_a_period_does_not_outlast_the_lease = a_period_longer_than_the_rest;
    b087_a_second_break_never_lengthens = a_second_break_never_lengthens;
    b088_a_period_of_zero_breaks_at_once = breaking_at_once;
    b089_a_break_period_is_0_to_60 = bad_periods;
    b090_breaking_needs_no_id = breaking_needs_no_id;
    b091_a_breaking_lease_cannot_be_acquired = acquiring_what_is_breaking;
    b092_a_breaking_lease_can_only_be_released = others_on_what_is_breaking;
    b095_a_broken_lease_can_be_acquired_by_anybody = what_is_broken;
}
