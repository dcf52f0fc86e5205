//! Status and code of each refusal of the Queue service: one exhaustive table. The message comes
//! from the refusal itself, which names the request that caused it.

use hyper::StatusCode;

use crate::http::frame::refusal::{Refusal, metadata_code, name_code};
use crate::queue::rules::QueueDenial;
use crate::queue::rules::parameters::TEXT_BYTES_MAX;
use crate::queue::service::QueueError;

const BAD_REQUEST: StatusCode = StatusCode::BAD_REQUEST;
const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;

impl From<QueueError> for Refusal {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Denied(denial) => denial.into(),
            QueueError::Store(error) => Self::from(&error),
        }
    }
}

impl From<QueueDenial> for Refusal {
    fn from(denial: QueueDenial) -> Self {
        let (status, code) = code(&denial);
        let refusal = Self::new(status, code, denial.to_string()).by_conflict(denial.conflict());
        match denial {
            QueueDenial::MissingParameter(name) => {
                refusal.with("QueryParameterName", name.to_owned())
            }
            QueueDenial::InvalidParameter { name, value, why } => refusal
                .with("QueryParameterName", name.to_owned())
                .with("QueryParameterValue", value)
                .with("Reason", why.to_owned()),
            QueueDenial::OutOfRange { name, value, least, most } => refusal
                .with("QueryParameterName", name.to_owned())
                .with("QueryParameterValue", value)
                .with("MinimumAllowed", least.to_string())
                .with("MaximumAllowed", most.to_string()),
            QueueDenial::TextTooLarge { .. } => {
                refusal.with("MaxLimit", TEXT_BYTES_MAX.to_string())
            }
            _ => refusal,
        }
    }
}

fn code(denial: &QueueDenial) -> (StatusCode, &'static str) {
    match denial {
        QueueDenial::Name(error) => (BAD_REQUEST, name_code(error)),
        QueueDenial::QueueNotFound(_) => (NOT_FOUND, "QueueNotFound"),
        QueueDenial::QueueAlreadyExists { .. } => (StatusCode::CONFLICT, "QueueAlreadyExists"),
        QueueDenial::Metadata(error) => (BAD_REQUEST, metadata_code(error)),
        QueueDenial::Policy(_) => (BAD_REQUEST, "InvalidXmlDocument"),
        QueueDenial::MissingParameter(_) => (BAD_REQUEST, "MissingRequiredQueryParameter"),
        QueueDenial::InvalidParameter { .. } => (BAD_REQUEST, "InvalidQueryParameterValue"),
        QueueDenial::OutOfRange { .. } => (BAD_REQUEST, "OutOfRangeQueryParameterValue"),
        QueueDenial::TextTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "RequestBodyTooLarge"),
        QueueDenial::MessageNotFound(_) => (NOT_FOUND, "MessageNotFound"),
        QueueDenial::PopReceiptMismatch(_) => (BAD_REQUEST, "PopReceiptMismatch"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::frame::refusal::Code;

    #[test]
    fn a_value_out_of_range_is_told_with_its_bounds() {
        let denial =
            QueueDenial::OutOfRange { name: "x", value: "33".to_owned(), least: 1, most: 32 };
        let refusal = Refusal::from(denial);
        let names: Vec<_> = refusal.details.iter().map(|(name, _)| *name).collect();
        let all = ["QueryParameterName", "QueryParameterValue", "MinimumAllowed", "MaximumAllowed"];
        assert_eq!(
            (names, refusal.code),
            (all.to_vec(), Code::Is("OutOfRangeQueryParameterValue"))
        );
    }
}
