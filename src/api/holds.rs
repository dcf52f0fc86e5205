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
use super::hold::{Hold, HoldError, HoldOptions};
use super::rows::HoldRow;
use super::site::Peer;
use crate::file::service::Share;

/// The most opens that clients of the API hold at a time.
pub const HOLDS_MAX: usize = 1024;
/// The most with those of the server's owner.
const OWNERS_HOLDS_MAX: usize = 16 * HOLDS_MAX;
/// The longest time of a hold.
pub const HOLD_TIME_MAX: Duration = Duration::from_hours(1);
/// The time of a hold that names none, in milliseconds.
const FOR_MS: u64 = 60_000;

/// Asks for the holds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetHolds {}

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
        !self.of_owner || peer != Peer::Stranger
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
        let most = if peer == Peer::Stranger { HOLDS_MAX } else { OWNERS_HOLDS_MAX };
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
}

/// Releases a hold when its client goes away.
struct WhileConnected {
    holds: Arc<Holds>,
    number: u64,
}

impl Drop for WhileConnected {
    fn drop(&mut self) {
        end_soon(&self.holds, self.number);
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
            None if while_connected && call.peer != Peer::Stranger => None,
            ms => Some(Duration::from_millis(ms.unwrap_or(FOR_MS))),
        };
        if time.is_some_and(|time| time > HOLD_TIME_MAX) {
            let most = HOLD_TIME_MAX.as_millis();
            return Err(ApiFailure::bad(format!("for_ms is at most {most}: hold again later")));
        }
        if while_connected {
            call.peer.check_may_stay()?;
        }
        let place = self.holds.enter(call.peer)?;
        let session = self.session(&call)?;
        let file = match &wanted.share {
            Some(share) => format!("file:{share}/{}", wanted.path.trim_start_matches('/')),
            None => wanted.path.clone(),
        };
        let opened = self.blocking(move || {
            let (share, path) = session.target(wanted.share.as_deref(), &wanted.path)?;
            let owner = session.owner_of("hold");
            let hold = match Hold::open(owner, Arc::clone(&share), &path, &wanted) {
                Ok(hold) => hold,
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
            Ok((row, hold))
        });
        let (row, hold) = opened.await?.map_err(|failure| match call.peer {
            Peer::Stranger => failure.about(&file),
            // A command names the file as its user did.
            _ => failure,
        })?;
        let value = json!(row);
        let client = call.client.as_deref().unwrap_or_default().to_owned();
        let (sender, receiver) = mpsc::channel(1);
        self.holds.listen(hold.share());
        let answer = while_connected.then(|| sender.clone());
        let of_owner = call.peer != Peer::Stranger;
        let number = self.keep(row, client, of_owner, time, hold, answer);
        drop(place);
        if !while_connected {
            return Ok(json_answer(StatusCode::CREATED, &value));
        }
        // The channel has room for the one line.
        drop(sender.try_send(format!("{value}\n").into()));
        let guard = WhileConnected { holds: Arc::clone(&self.holds), number };
        Ok(json_stream(StatusCode::CREATED, receiver, guard))
    }

    fn keep(
        &self,
        row: HoldRow,
        client: String,
        of_owner: bool,
        time: Option<Duration>,
        hold: Hold,
        answer: Option<mpsc::Sender<Bytes>>,
    ) -> u64 {
        let mut state = self.holds.state();
        state.last += 1;
        let number = state.last;
        let holds = Arc::clone(&self.holds);
        // Under the lock: the timer cannot end the hold before it is known here.
        let timer = time.map(|time| {
            let timer = tokio::spawn(async move {
                sleep(time).await;
                end_soon(&holds, number);
            });
            timer.abort_handle()
        });
        let until = time.map(|time| Instant::now() + time);
        let hold = Arc::new(hold);
        // It may have been closed by force before the table knew it.
        let answer = answer.filter(|_| !hold.was_closed());
        state.holds.push(KeptHold { number, row, client, of_owner, until, hold, timer, answer });
        number
    }

    pub(super) async fn list_holds(
        self: Arc<Self>,
        call: ApiCall,
        _: GetHolds,
    ) -> Result<AdminResponse, ApiFailure> {
        let holds = self.holds_with_state(call.peer).await?;
        let holds = holds.into_iter().map(|(_, state)| state).collect();
        Ok(json_answer(StatusCode::OK, &json!(HoldList { holds })))
    }

    /// Forgets the holds whose handles were closed by force.
    pub(super) async fn forget_closed_holds(&self) -> Result<(), ApiFailure> {
        let all = Peer::Owner { pid: 0, may_stay: false };
        for (number, state) in self.holds_with_state(all).await? {
            if !state.open {
                end_soon(&self.holds, number);
            }
        }
        Ok(())
    }

    /// The holds that a client may see as rows, by number.
    async fn holds_with_state(&self, peer: Peer) -> Result<Vec<(u64, HoldState)>, ApiFailure> {
        // Whether a hold is open is asked without the list's lock: the engine may make it wait.
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
        let kept: Vec<_> = {
            let state = self.holds.state();
            state.holds.iter().filter(|kept| kept.is_shown_to(peer)).map(row).collect()
        };
        self.blocking(move || {
            let open = |(number, state, hold): (u64, HoldState, Arc<Hold>)| {
                (number, HoldState { open: !hold.was_closed(), ..state })
            };
            kept.into_iter().map(open).collect()
        })
        .await
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
        let closed = self.blocking(close).await?.ok_or_else(|| {
            ApiFailure::not_found(format!("no client of the API holds handle {handle}"))
        })?;
        let open = closed
            .map_err(|error| ApiFailure::failed(format!("closing handle {handle}: {error}")))?;
        Ok(json_answer(StatusCode::OK, &json!(Released { open })))
    }
}
