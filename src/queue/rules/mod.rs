//! The rules of the Queue service: parameters, and the states of a message.
//!
//! Pure, as all rules: the service passes the state and the time in and keeps the result.
//!
//! ```text
//!   message      the state of one message: visible, hidden, expired; its next state
//!   receipt      the name of one state; id: the name of a message
//!   parameters   bounds and defaults of what requests ask for; tick: moments
//!   denial       the refusals
//! ```

pub mod denial;
pub mod id;
pub mod message;
pub mod parameters;
pub mod receipt;
pub mod tick;

pub use denial::{Absence, Mismatch, QueueDenial};
pub use id::MessageId;
pub use message::{ChangedBy, Message};
pub use parameters::{PutTimes, TimeToLive, check_text};
pub use receipt::Receipt;
pub use tick::Tick;
