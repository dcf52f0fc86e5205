//! The scripted SMB-style client: conflict scenarios written down as JSON lines.
//!
//! A front end like the others: it translates steps into engine calls and refusals into NTSTATUS
//! names, and decides nothing. It can ask for what `open(2)` cannot: delete access,
//! attribute-only opens, delete-on-close.
//!
//! ```text
//!   script     the format: scenarios, steps, traces
//!   words      how a script spells accesses, share modes, options
//!   player     carries steps out on a share
//!   ntstatus   what a refusal is called
//! ```

mod fresh;
mod ntstatus;
mod player;
mod script;
mod words;

pub use fresh::FreshShare;
pub use ntstatus::{NO_STATUS, STILL_WAITING, ntstatus, store_status};
pub use player::{PlayAnswer, Player};
pub use script::{Group, Op, RangeArg, ScriptError, Step, read_script, read_step};
