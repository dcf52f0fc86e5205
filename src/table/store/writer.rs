//! The last writer of an entity as the text of a row.
//!
//! Decides the encoding only: five fields with a unit separator between them, each cut to a
//! bounded length.

use crate::rules::Writer;
use crate::rules::writer::shortened;
use crate::table::rules::Ticks;

const SEPARATOR: char = '\u{1f}';

pub(super) fn encode(writer: &Writer) -> String {
    let fields = [
        Some(writer.operation.as_str()),
        writer.client_request.as_deref(),
        writer.user_agent.as_deref(),
        writer.address.as_deref(),
        writer.client.as_deref(),
    ];
    let mut out = String::with_capacity(160);
    for (index, field) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(SEPARATOR);
        }
        let field = shortened(field.unwrap_or_default());
        out.extend(field.chars().filter(|letter| !letter.is_control()));
    }
    out
}

pub(super) fn decode(text: &str, written: Ticks) -> Writer {
    let mut fields = text.split(SEPARATOR);
    let mut field = || fields.next().filter(|text| !text.is_empty()).map(str::to_owned);
    Writer {
        operation: field().unwrap_or_default(),
        client_request: field(),
        user_agent: field(),
        address: field(),
        client: field(),
        when: written.timestamp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_survives_its_text_but_for_control_characters() {
        let writer = Writer {
            operation: "Merge Entity".into(),
            client_request: Some("5f\u{1f}x".into()),
            user_agent: None,
            address: Some("127.0.0.1:5".into()),
            client: Some("A".into()),
            when: Ticks(20_000_000_000_000_000).timestamp(),
        };
        let read = decode(&encode(&writer), Ticks(20_000_000_000_000_000));
        assert_eq!(read, Writer { client_request: Some("5fx".into()), ..writer });
    }
}
