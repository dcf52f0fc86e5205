//! Opens that clients of the API keep. A hold ends when it is released, when its time is over, or
//! with the connection of a client that asked for that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use hyper::body::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::body::{AdminResponse, json as json_answer, json_stream};
use super::call::ApiCall;
use super::calls::{Api, drop_elsewhere};
use super::failure::ApiFailure;
use super::files::HoldRow;
use super::hold::{Hold, HoldError, HoldOptions};
use super::routes::GetHolds;
use super::site::{Peer, Room};
use crate::file::service::Share;

/// The most opens that clients of the API hold at a time.
pub const HOLDS_MAX: usize = 1024;
/// The most with those of the server's owner.
const OWNERS_HOLDS_MAX: usize = 16 * HOLDS_MAX;
/// The longest time of a hold.
pub const HOLD_TIME_MAX: Duration = Duration::from_hours(1);
/// The time of a hold that names none, in milliseconds.
const FOR_MS: u64 = 60_000;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HoldList {
    pub holds: Vec<HoldState>,
}

/// A hold, and who has it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HoldState {
    #[serde(flatten)]
    pub held: HoldRow,
    pub client: String,
    /// False once it was closed by force
    pub open: bool,
    /// When it ends by itself; null if it ends with a connection alone
    pub expires_in_ms: Option<u64>,
}

/// Ends a hold.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Release {
    pub handle: u64,
    /// The share; the only one without it
    pub share: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    /// False if it had been closed by force
    pub open: bool,
}

/// The holds of clients of the API.
#[derive(Default)]
pub struct Holds {
    kept: Mutex<HoldTable>,
}

#[derive(Default)]
struct HoldTable {
    last: u64,
    /// Places of holds that are being asked for.
    asked: usize,
    holds: Vec<KeptHold>,
    /// The shares that tell this table of handles that are closed by force.
    shares: Vec<Weak<Share>>,
}

struct KeptHold {
    number: u64,
    row: HoldRow,
    client: String,
    /// Of the server's owner: others neither see it nor release it.
    of_owner: bool,
    until: Option<Instant>,
    hold: Arc<Hold>,
    /// Releases it when its time is over.
    timer: Option<AbortHandle>,
    /// Dropped to end the answer of a client that keeps its connection.
    answer: Option<mpsc::Sender<Bytes>>,
}

impl KeptHold {
    fn is_shown_to(&self, peer: Peer) -> bool {
        !self.of_owner || peer.is_owner()
    }
}

impl Drop for KeptHold {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
    }
}

/// A place for a hold that is being asked for.
struct HoldReservation(Arc<Holds>);

impl Drop for HoldReservation {
    fn drop(&mut self) {
        self.0.state().asked -= 1;
    }
}

impl Holds {
    fn state(&self) -> MutexGuard<'_, HoldTable> {
        // Nothing in here panics half done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, peer: Peer) -> Result<HoldReservation, ApiFailure> {
        let most = if peer.is_owner() { OWNERS_HOLDS_MAX } else { HOLDS_MAX };
        let mut state = self.state();
        if state.holds.len() + state.asked >= most {
            return Err(ApiFailure::busy(format!(
                "clients of the API hold {most} files already: release some"
            )));
        }
        state.asked += 1;
        Ok(HoldReservation(Arc::clone(self)))
    }

    /// Takes a hold out. Its end may wait for the disk, so the caller drops it elsewhere.
    fn take(&self, number: u64) -> Option<KeptHold> {
        let mut state = self.state();
        let at = state.holds.iter().position(|kept| kept.number == number)?;
        Some(state.holds.remove(at))
    }

    pub fn release_all(&self) {
        let holds = std::mem::take(&mut self.state().holds);
        drop(holds);
    }

    /// Has the share tell of handles that are closed by force, unless it does already.
    fn listen(self: &Arc<Self>, share: &Arc<Share>) {
        let mut state = self.state();
        state.shares.retain(|known| known.strong_count() > 0);
        if state.shares.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(share))) {
            return;
        }
        let (holds, of) = (Arc::downgrade(self), Arc::downgrade(share));
        let listening = share.on_force_close(move |closed| {
            if let Some(holds) = holds.upgrade() {
                holds.closed_by_force(&of, closed.id.0);
            }
            Ok(Vec::new())
        });
        match listening {
            Ok(()) => state.shares.push(Arc::downgrade(share)),
            Err(error) => log::warn!("holds are not told of forced closes: {error}"),
        }
    }

    /// Ends the answer of a client that waits for the end of its hold.
    fn closed_by_force(&self, share: &Weak<Share>, handle: u64) {
        for kept in &mut self.state().holds {
            let same = std::ptr::eq(share.as_ptr(), Arc::as_ptr(kept.hold.share()));
            if same && kept.row.handle == handle {
                kept.answer = None;
            }
        }
    }

    /// Keeps a hold, which ends after `time`. Asks the File service, so not for an event loop.
    fn keep(self: &Arc<Self>, mut kept: KeptHold, time: Option<Duration>) -> WhileConnected {
        self.listen(kept.hold.share());
        let hold = Arc::clone(&kept.hold);
        let number = {
            let mut state = self.state();
            state.last += 1;
            kept.number = state.last;
            let (holds, number) = (Arc::clone(self), state.last);
            // Under the lock: the timer cannot end the hold before it is known here.
            kept.timer = time.map(|time| {
                let timer = tokio::spawn(async move {
                    sleep(time).await;
                    end_soon(&holds, number);
                });
                timer.abort_handle()
            });
            state.holds.push(kept);
            number
        };
        // A close by force before the table knew the hold was told to nobody.
        if hold.was_closed() {
            self.closed_by_force(&Arc::downgrade(hold.share()), hold.id());
        }
        WhileConnected { holds: Arc::clone(self), number: Some(number) }
    }

    /// The holds that a client may see, by number, with what tells whether they are open: the File
    /// service, which is asked without the lock of the table.
    fn shown_to(&self, peer: Peer) -> Vec<(u64, HoldState, Arc<Hold>)> {
        let row = |kept: &KeptHold| {
            let left = kept.until.map(|until| until.saturating_duration_since(Instant::now()));
            let millis = |left: Duration| u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            let state = HoldState {
                held: kept.row.clone(),
                client: kept.client.clone(),
                open: true,
                expires_in_ms: left.map(millis),
            };
            (kept.number, state, Arc::clone(&kept.hold))
        };
        let state = self.state();
        state.holds.iter().filter(|kept| kept.is_shown_to(peer)).map(row).collect()
    }

    /// Forgets the holds whose handles were closed by force. Asks the File service.
    pub fn forget_closed(&self) {
        let all = Peer::Owner { pid: 0, room: Room::Everything };
        for (number, _, hold) in self.shown_to(all) {
            if hold.was_closed() {
                drop(self.take(number));
            }
        }
    }
}

/// Releases a hold when its client goes away.
struct WhileConnected {
    holds: Arc<Holds>,
    /// `None` once the hold no longer depends on its client.
    number: Option<u64>,
}

impl Drop for WhileConnected {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            end_soon(&self.holds, number);
        }
    }
}

/// Ends a hold on a thread that may block.
fn end_soon(holds: &Holds, number: u64) {
    if let Some(kept) = holds.take(number) {
        drop_elsewhere(kept);
    }
}

impl Api {
    /// Opens a file and keeps the open.
    pub(super) async fn hold(
        self: Arc<Self>,
        call: ApiCall,
        wanted: HoldOptions,
    ) -> Result<AdminResponse, ApiFailure> {
        let while_connected = wanted.while_connected;
        let time = match wanted.for_ms {
            // The owner's hold ends with the connection alone.
            None if while_connected && call.peer.is_owner() => None,
            ms => Some(Duration::from_millis(ms.unwrap_or(FOR_MS))),
        };
        if time.is_some_and(|time| time > HOLD_TIME_MAX) {
            let most = HOLD_TIME_MAX.as_millis();
            return Err(ApiFailure::bad(format!("for_ms is at most {most}: hold again later")));
        }
        if while_connected {
            call.peer.check_may_stay()?;
        }
        let session = self.session(&call)?;
        let file = match &wanted.share {
            Some(share) => format!("file:{share}/{}", wanted.path.trim_start_matches('/')),
            None => wanted.path.clone(),
        };
        self.turn_to_hold(&call, session.account.name(), &file).await?;
        let place = self.holds.enter(call.peer)?;
        let (sender, receiver) = mpsc::channel(1);
        let answer = while_connected.then(|| sender.clone());
        let client = call.client.as_deref().unwrap_or_default().to_owned();
        let (holds, of_owner) = (Arc::clone(&self.holds), call.peer.is_owner());
        let opened = self.blocking(call.peer, move || {
            let (share, path) = session.target(wanted.share.as_deref(), &wanted.path)?;
            let owner = session.owner_of("hold");
            let hold = match Hold::open(owner, Arc::clone(&share), &path, &wanted) {
                Ok(hold) => Arc::new(hold),
                Err(HoldError::Open(error)) => return Err(session.refused(&share, &path, error)),
                Err(error) => return Err(ApiFailure::bad(error.to_string())),
            };
            let row = HoldRow {
                handle: hold.id(),
                account: session.account.name().to_string(),
                share_name: share.name().to_string(),
                path: hold.path().to_string(),
                access: wanted.access.to_string(),
                share_mode: wanted.share_mode.to_string(),
            };
            let value = json!(row);
            let until = time.map(|time| Instant::now() + time);
            let (number, timer) = (0, None);
            let kept = KeptHold { number, row, client, of_owner, until, hold, timer, answer };
            let guard = holds.keep(kept, time);
            drop(place);
            Ok((value, guard))
        });
        // A client that hangs up meanwhile drops the guard, and with it the hold.
        let (value, mut guard) = opened.await?.map_err(|failure| {
            // A command names the file as its user did.
            if of_owner { failure } else { failure.about(&file) }
        })?;
        if !while_connected {
            guard.number = None;
            return Ok(json_answer(StatusCode::CREATED, &value));
        }
        // The channel has room for the one line.
        drop(sender.try_send(format!("{value}\n").into()));
        Ok(json_stream(StatusCode::CREATED, receiver, guard))
    }

    pub(super) async fn list_holds(
        self: Arc<Self>,
        call: ApiCall,
        _: GetHolds,
    ) -> Result<AdminResponse, ApiFailure> {
        let shown = self.holds.shown_to(call.peer);
        let look = move || {
            let open = |(_, state, hold): (u64, HoldState, Arc<Hold>)| HoldState {
                open: !hold.was_closed(),
                ..state
            };
            HoldList { holds: shown.into_iter().map(open).collect() }
        };
        let list = self.blocking(call.peer, look).await?;
        Ok(json_answer(StatusCode::OK, &json!(list)))
    }

    pub(super) async fn release(
        self: Arc<Self>,
        call: ApiCall,
        Release { handle, share }: Release,
    ) -> Result<AdminResponse, ApiFailure> {
        let first = self.serving.first_account().name().to_string();
        let account = call.account.clone().unwrap_or(first);
        let number = {
            let state = self.holds.state();
            let meant = |kept: &&KeptHold| {
                kept.is_shown_to(call.peer)
                    && kept.row.handle == handle
                    && kept.row.account == account
                    && share.as_ref().is_none_or(|share| kept.row.share_name == *share)
            };
            let mut found = state.holds.iter().filter(meant);
            let first = found.next().map(|kept| kept.number);
            if found.next().is_some() {
                return Err(ApiFailure::bad(format!(
                    "handle {handle} is held in several shares: add share=NAME"
                )));
            }
            first
        };
        // Taken on the thread that closes it: a call that gets no thread changes nothing.
        let holds = Arc::clone(&self.holds);
        let close = move || Some(holds.take(number?)?.hold.close());
        let closed = self.blocking(call.peer, close).await?.ok_or_else(|| {
            ApiFailure::not_found(format!("no client of the API holds handle {handle}"))
        })?;
        let open = closed
            .map_err(|error| ApiFailure::failed(format!("closing handle {handle}: {error}")))?;
        Ok(json_answer(StatusCode::OK, &json!(Released { open })))
    }
}
