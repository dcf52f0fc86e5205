//! SPNEGO: the tokens that NTLM's messages travel in (RFC 4178). What the messages say is decided
//! in [`super::ntlm`].

use super::LogonError;

/// 1.3.6.1.5.5.2
const SPNEGO: &[u8] = &[0x2b, 6, 1, 5, 5, 2];
/// 1.3.6.1.4.1.311.2.2.10
const NTLM: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];

const APPLICATION: u8 = 0x60;
const OID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const ENUMERATED: u8 = 0x0a;
const SEQUENCE: u8 = 0x30;

/// The tag of a numbered field.
const fn field(number: u8) -> u8 {
    0xa0 + number
}

/// A token of a client.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// The first: its list of mechanisms as it wrote it, the place of NTLM in it, and a message of
    /// the first mechanism.
    Init {
        mechanisms: &'a [u8],
        ntlm: Option<usize>,
        token: Option<&'a [u8]>,
    },
    Next {
        token: Option<&'a [u8]>,
        mic: Option<&'a [u8]>,
    },
    /// NTLM without SPNEGO.
    Bare(&'a [u8]),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    Completed = 0,
    Incomplete = 1,
    RequestMic = 3,
}

/// What NEGOTIATE offers: NTLM.
pub fn offer() -> Vec<u8> {
    let list = element(SEQUENCE, &element(OID, NTLM));
    let init = element(field(0), &element(SEQUENCE, &element(field(0), &list)));
    element(APPLICATION, &[element(OID, SPNEGO), init].concat())
}

/// A token of the server. With a message, even an empty one, it names NTLM as the mechanism.
pub(super) fn answer(state: State, message: Option<&[u8]>, mic: Option<&[u8]>) -> Vec<u8> {
    let mut fields = element(field(0), &element(ENUMERATED, &[state as u8]));
    if let Some(message) = message {
        fields.extend(element(field(1), &element(OID, NTLM)));
        if !message.is_empty() {
            fields.extend(element(field(2), &element(OCTETS, message)));
        }
    }
    fields.extend(mic.map(|mic| element(field(3), &element(OCTETS, mic))).unwrap_or_default());
    element(field(1), &element(SEQUENCE, &fields))
}

/// The last token of the server.
pub(super) fn done(mic: Option<&[u8]>) -> Vec<u8> {
    answer(State::Completed, None, mic)
}

pub(super) fn read(token: &[u8]) -> Result<Incoming<'_>, LogonError> {
    if token.starts_with(b"NTLMSSP\0") {
        return Ok(Incoming::Bare(token));
    }
    let found = match token.first() {
        Some(&APPLICATION) => read_init(token),
        _ => read_next(token),
    };
    found.ok_or(LogonError::Malformed)
}

fn read_init(token: &[u8]) -> Option<Incoming<'_>> {
    let mut body = only(token, APPLICATION)?;
    if take(&mut body, OID)? != SPNEGO {
        return None;
    }
    let mut fields = only(only(body, field(0))?, SEQUENCE)?;
    let mechanisms = take(&mut fields, field(0))?;
    let (mut list, mut ntlm, mut place) = (only(mechanisms, SEQUENCE)?, None, 0);
    while !list.is_empty() {
        if take(&mut list, OID)? == NTLM && ntlm.is_none() {
            ntlm = Some(place);
        }
        place += 1;
    }
    let [_, token, _] = options(fields)?;
    Some(Incoming::Init { mechanisms, ntlm, token })
}

fn read_next(token: &[u8]) -> Option<Incoming<'_>> {
    let mut fields = only(only(token, field(1))?, SEQUENCE)?;
    if fields.first() == Some(&field(0)) {
        take(&mut fields, field(0))?;
    }
    let [_, token, mic] = options(fields)?;
    Some(Incoming::Next { token, mic })
}

/// The octets of the fields 1 to 3, each of which may be missing; the first is none, and is left.
fn options(mut fields: &[u8]) -> Option<[Option<&[u8]>; 3]> {
    let mut found = [None; 3];
    while let Some(tag) = fields.first().copied() {
        let body = take(&mut fields, tag)?;
        if let Some(number @ 2..=3) = tag.checked_sub(field(0)) {
            found[usize::from(number) - 1] = Some(only(body, OCTETS)?);
        }
    }
    Some(found)
}

/// The body of an element that is all there is.
fn only(mut bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let body = take(&mut bytes, tag)?;
    bytes.is_empty().then_some(body)
}

/// The body of the first element, which must have that tag; `bytes` goes on behind it.
fn take<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&[found, length], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        // A length of one or two bytes: a token has fewer than 65,536.
        0x81 | 0x82 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 3))?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (body, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    (found == tag).then_some(body)
}

fn element(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).expect("a token of the server is short").to_be_bytes();
    let mut bytes = vec![tag];
    match length {
        [0, short @ 0..=0x7f] => bytes.push(short),
        [0, byte] => bytes.extend([0x81, byte]),
        [high, low] => bytes.extend([0x82, high, low]),
    }
    bytes.extend_from_slice(body);
    bytes
}
