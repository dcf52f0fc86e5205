//! Unfenced lease: the lease of one object is taken for the right to write another, which does not
//! know of the lease.

use super::finding::{Level, ReportRule};
use super::found::Found;
use super::past::{ClientId, ObjectId, Past, Step, Write};
use super::row::ReportRow;
use crate::rules::conflict::Conflict;

/// The most leases that a client is remembered to believe in.
const BELIEVED_MAX: usize = 16;

/// Remembers who holds a lease, and who believes to.
pub fn leased(past: &mut Past, row: &ReportRow<'_>, step: &Step) {
    let (client, object) = (step.client, step.object);
    let is_refused = !row.is_done();
    if is_refused {
        let conflict = row.request.refusal.as_ref().and_then(|refusal| refusal.conflict);
        if conflict == Some(Conflict::Lease) {
            disbelieve(past, client, object);
        }
        return;
    }
    match row.asked().lease_action.as_deref() {
        Some("acquire") => {
            past.of_object(object).lease = Some(step.clone());
            let believes = &mut past.of_client(client).believes;
            if !believes.contains(&object) && believes.len() < BELIEVED_MAX {
                believes.push(object);
            }
            if let Some(entry) = past.entry(client, object) {
                entry.leases = Some(step.clone());
            }
        }
        Some("release") => {
            past.of_object(object).lease = None;
            disbelieve(past, client, object);
        }
        Some("break") => past.of_object(object).lease = None,
        _ => {}
    }
}

fn disbelieve(past: &mut Past, client: ClientId, object: ObjectId) {
    past.of_client(client).believes.retain(|one| *one != object);
    if past.seen(client, object).is_some()
        && let Some(entry) = past.entry(client, object)
    {
        entry.leases = None;
    }
}

/// Judges a write by a client that believes in leases of other objects. The write is not
/// remembered yet; that it was made under a lease is remembered here.
pub fn written(past: &mut Past, write: &Write) -> Option<Found> {
    let (client, object) = (write.step.client, write.step.object);
    let locks = past.seen_client(client).believes.clone();
    let mut found = None;
    for lock in locks.into_iter().filter(|lock| *lock != object) {
        let holder = past.seen_object(lock).lease.clone();
        match holder {
            Some(holder) if holder.client != client => {
                if !write.is_guarded {
                    found = late(past, lock, &holder, write).or(found);
                }
            }
            _ => {
                past.of_object(object).under = Some((lock, write.step.clone()));
                if !write.is_guarded && found.is_none() {
                    found = once(past, lock, write);
                }
            }
        }
    }
    found
}

/// A write of a client whose lease another one has by now, over what that one wrote.
fn late(past: &Past, lock: ObjectId, holder: &Step, write: &Write) -> Option<Found> {
    let belief = past.seen(write.step.client, lock)?.leases.clone()?;
    let state = past.seen_object(write.step.object);
    let (_, under) = state.under.as_ref().filter(|(under, step)| {
        *under == lock && step.client == holder.client && step.seq > holder.seq
    })?;
    let last = state.write_of(write.before.as_deref()?)?;
    (last.step.client == holder.client).then_some(())?;
    let (one, two) = (past.name(write.step.client), past.name(holder.client));
    let message = format!(
        "{one} wrote it under the lease of {}, which {two} has by now, and replaced what {two} \
         wrote under it",
        past.seen_object(lock).name
    );
    let steps = vec![belief, holder.clone(), under.clone(), write.step.clone()];
    Some(Found::new(ReportRule::UnfencedLease, Level::Error, steps, message))
}

/// The hint that the lease of an object stands for others, once for the object.
fn once(past: &mut Past, lock: ObjectId, write: &Write) -> Option<Found> {
    if std::mem::replace(&mut past.of_object(lock).is_lock, true) {
        return None;
    }
    let belief = past.seen(write.step.client, lock)?.leases.clone()?;
    let message = format!(
        "{} wrote it under the lease of {}, which does not guard it: a write that comes after the \
         end of the lease is not refused",
        past.name(write.step.client),
        past.seen_object(lock).name
    );
    let steps = vec![belief, write.step.clone()];
    Some(Found::new(ReportRule::UnfencedLease, Level::Hint, steps, message))
}
