//! The refusals of the Queue service: one variant per cause, with the request that caused it.
//!
//! Each text begins with the service's own wording of its code and continues, in brackets, with
//! the cause. `queue/rest` decides statuses and codes. A failure of the disk is a store error and
//! not a refusal.

use super::parameters::TEXT_BYTES_MAX;
use super::tick::Tick;
use crate::rules::conflict::Conflict;
use crate::rules::policy::PolicyFault;
use crate::rules::writer::{Ago, Writer};
use crate::rules::{MetadataError, NameError};

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QueueDenial {
    /// No queue can have that name.
    #[error("{}", .0.message())]
    Name(#[from] NameError),
    /// No queue of that name.
    #[error("The specified queue does not exist.{}", queue_absent_text(.0))]
    QueueNotFound(Box<Absence>),
    /// The queue exists, and its metadata is not what Create Queue came with.
    #[error("The specified queue already exists. [latchfs: {}]", other_metadata(names))]
    QueueAlreadyExists {
        /// The names of metadata that differ.
        names: Vec<String>,
    },
    /// Metadata that is not allowed.
    #[error("{}", metadata_text(.0))]
    Metadata(#[from] MetadataError),
    /// Stored access policies that are not allowed.
    #[error("XML specified is not syntactically valid. [latchfs: {0}]")]
    Policy(#[from] PolicyFault),
    /// A parameter that must be there.
    #[error(
        "A query parameter that's mandatory for this request is not specified. [latchfs: {0} is \
         missing]"
    )]
    MissingParameter(&'static str),
    /// A parameter that makes no sense.
    #[error(
        "Value for one of the query parameters specified in the request URI is invalid. [latchfs: \
         {name}={value}: {why}]"
    )]
    InvalidParameter {
        name: &'static str,
        /// Its value as it was sent.
        value: String,
        /// Why the value is refused.
        why: &'static str,
    },
    /// A parameter outside its bounds.
    #[error(
        "One of the query parameters specified in the request URI is outside the permissible \
         range. [latchfs: {name} must be {least} to {most}, not {value}]"
    )]
    OutOfRange {
        name: &'static str,
        /// Its value as it was sent.
        value: String,
        /// The least legal value.
        least: u32,
        /// The greatest legal value.
        most: u32,
    },
    /// A message whose text is too long.
    #[error(
        "The request body is too large and exceeds the maximum permissible limit. [latchfs: a \
         message's text has at most {TEXT_BYTES_MAX} bytes in UTF-8, not {bytes}]"
    )]
    TextTooLarge {
        /// How long the text is.
        bytes: usize,
    },
    /// No message of that ID.
    #[error("The specified message does not exist. [latchfs: {}]", absent_text(.0))]
    MessageNotFound(Box<Absence>),
    /// The receipt is not that of the message's present state (S97).
    #[error(
        "The specified pop receipt did not match the pop receipt for a dequeued message. \
         [latchfs: {}]",
        mismatch_text(.0)
    )]
    PopReceiptMismatch(Box<Mismatch>),
}

/// Why there is no message of an ID, or no queue of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Absence {
    /// Nothing is known of it: it never was, or its end is forgotten.
    Unknown,
    /// The message is past its time to live.
    Expired {
        since: Tick,
        /// The time of the request.
        now: Tick,
    },
    /// A request ended it.
    Ended {
        /// The request: Delete Message, Clear Messages or Delete Queue.
        by: Writer,
        /// The time of the request.
        now: Tick,
    },
}

/// A receipt that is not the present one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The request that got or updated the message last; none if nobody did since it was put.
    pub holder: Option<Writer>,
    /// When the message is visible next, or has been since.
    pub visible_at: Tick,
    /// The time of the request.
    pub now: Tick,
}

impl QueueDenial {
    /// A parameter whose value makes no sense.
    pub fn invalid(name: &'static str, value: &str, why: &'static str) -> Self {
        Self::InvalidParameter { name, value: value.to_owned(), why }
    }

    /// A message that the queue does not have.
    pub fn no_message(absence: Absence) -> Self {
        Self::MessageNotFound(Box::new(absence))
    }

    /// A queue that is not there.
    pub fn no_queue(absence: Absence) -> Self {
        Self::QueueNotFound(Box::new(absence))
    }
}

fn metadata_text(error: &MetadataError) -> String {
    let wording = match error {
        MetadataError::EmptyName => "The key for one of the metadata key-value pairs is empty.",
        MetadataError::InvalidName(_) | MetadataError::InvalidValue(_) => {
            "The metadata specified is invalid. It has characters that are not permitted."
        }
        MetadataError::TooLarge(_) => {
            "The size of the specified metadata exceeds the maximum size permitted."
        }
    };
    format!("{wording} [latchfs: {error}]")
}

fn other_metadata(names: &[String]) -> String {
    format!("its metadata is not that of the request: {} differs", names.join(", "))
}

impl QueueDenial {
    /// The conflict with another client that the refusal is about, if any.
    pub const fn conflict(&self) -> Option<Conflict> {
        match self {
            Self::PopReceiptMismatch(_) => Some(Conflict::Receipt),
            _ => None,
        }
    }
}

fn queue_absent_text(absence: &Absence) -> String {
    match absence {
        Absence::Ended { by, now } => {
            format!(" [latchfs: {}]", by.told_as("the queue was deleted", now.timestamp()))
        }
        Absence::Unknown | Absence::Expired { .. } => String::new(),
    }
}

fn absent_text(absence: &Absence) -> String {
    match absence {
        Absence::Unknown => "the queue has no message with this ID".to_owned(),
        Absence::Expired { since, now } => {
            format!("the message expired {} ago", Ago(now.timestamp().since(since.timestamp())))
        }
        Absence::Ended { by, now } => by.told_as("the message was removed", now.timestamp()),
    }
}

fn mismatch_text(mismatch: &Mismatch) -> String {
    let Mismatch { holder, visible_at, now } = mismatch;
    let last = match holder {
        Some(by) => by.told_as("the message was last changed", now.timestamp()),
        None => "nobody got or updated the message since it was put".to_owned(),
    };
    if visible_at > now {
        format!("{last}; it is hidden until {}", visible_at.rfc1123())
    } else {
        format!("{last}; it is visible")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder() -> Writer {
        let (operation, client_request) = ("Get Messages".to_owned(), Some("r1".to_owned()));
        Writer { operation, client_request, ..Writer::default() }
    }

    #[test]
    fn a_mismatch_names_who_has_the_message_and_until_when() {
        let mismatch = Mismatch {
            holder: Some(holder()),
            visible_at: Tick(0).after(30),
            now: Tick(8_000_000),
        };
        let text = QueueDenial::PopReceiptMismatch(Box::new(mismatch)).to_string();
        assert_eq!(
            text,
            "The specified pop receipt did not match the pop receipt for a dequeued message. \
             [latchfs: the message was last changed 0.8 s ago by Get Messages, client request r1; \
             it is hidden until Thu, 01 Jan 1970 00:00:30 GMT]"
        );
    }

    #[test]
    fn a_missing_message_is_told_by_what_ended_it() {
        let texts = [
            (Absence::Unknown, "the queue has no message with this ID"),
            (Absence::Expired { since: Tick(0), now: Tick(0).after(1) }, "expired 1.0 s ago"),
            (
                Absence::Ended { by: holder(), now: Tick(0).after(2) },
                "the message was removed 2.0 s ago by Get Messages, client request r1",
            ),
        ];
        for (absence, wanted) in texts {
            let denial = QueueDenial::MessageNotFound(Box::new(absence));
            let text = denial.to_string();
            assert!(text.starts_with("The specified message does not exist. [latchfs: "), "{text}");
            assert!(text.contains(wanted), "{text}");
        }
    }
}

#[cfg(test)]
mod requester {
    use super::*;

    impl QueueDenial {
        /// The request behind the state that refuses, where one is.
        pub fn requester(&self) -> Option<&Writer> {
            match self {
                Self::PopReceiptMismatch(mismatch) => mismatch.holder.as_ref(),
                Self::MessageNotFound(absence) | Self::QueueNotFound(absence) => match &**absence {
                    Absence::Ended { by, .. } => Some(by),
                    Absence::Unknown | Absence::Expired { .. } => None,
                },
                _ => None,
            }
        }
    }
}
