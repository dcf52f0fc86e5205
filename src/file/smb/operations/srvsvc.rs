//! The server service over DCE/RPC, as far as it tells which shares there are: `NetrShareEnum` and
//! `NetrShareGetInfo` (MS-SRVS 3.1.4.8 and 3.1.4.10).
//!
//! Decides which calls are answered, and writes the bytes of both layers; the shares come from the
//! service.

use crate::file::service::FileService;
use crate::file::service::shares::ListOptions;
use crate::file::smb::status::Status;
use crate::file::smb::wire::{Parsed, Reader, WireError, Writer, bytes};

/// Types of packets.
const REQUEST: u8 = 0;
const RESPONSE: u8 = 2;
const FAULT: u8 = 3;
const BIND: u8 = 11;
const BIND_ACK: u8 = 12;
/// First and last fragment.
const FIRST: u8 = 1;
const LAST: u8 = 2;
const HEADER: usize = 16;
/// Header, length of the call, context, cancel count.
const RESPONSE_HEADER: usize = 24;
/// The longest fragment, as Windows has it.
const FRAGMENT_MAX: usize = 4_280;
/// NDR, version 2: how arguments are written.
const NDR: [u8; 20] = [
    0x04, 0x5d, 0x88, 0x8a, 0xeb, 0x1c, 0xc9, 0x11, 0x9f, 0xe8, 0x08, 0x00, 0x2b, 0x10, 0x48, 0x60,
    2, 0, 0, 0,
];
/// The most ways to write arguments that a client offers.
const CONTEXTS_MAX: u8 = 16;
/// There is no such operation.
const OPERATION_RANGE: u32 = 0x1C01_0002;
const SHARE_ENUM: u16 = 15;
const SHARE_GET_INFO: u16 = 16;
/// Windows errors.
const UNKNOWN_LEVEL: u32 = 124;
const NO_SHARE: u32 = 2_310;
/// Kinds of shares: a disk, and `IPC$`, which is hidden.
const DISK: u32 = 0;
const PIPES: u32 = 0x8000_0003;
/// A pointer that is not null; its value means nothing.
const POINTER: u32 = 0x0002_0000;

/// The server's side of one pipe.
#[derive(Debug, Default)]
pub struct Server {
    bound: bool,
}

/// A share as this service tells it.
struct Told {
    name: String,
    kind: u32,
    comment: &'static str,
}

impl Server {
    /// The answer to one packet.
    pub fn answer(&mut self, packet: &[u8], files: &FileService) -> Result<Vec<u8>, Status> {
        let mut fields = Reader::new(packet);
        let (version, kind, flags, call) = header(&mut fields)?;
        if version != 5 || flags & (FIRST | LAST) != FIRST | LAST {
            return Err(Status::INVALID_PARAMETER);
        }
        match kind {
            BIND => {
                self.bound = true;
                Ok(bind(&mut fields, call)?)
            }
            REQUEST if self.bound => {
                fields.skip(4)?;
                let (context, operation) = (fields.u16()?, fields.u16()?);
                let stub = packet.get(RESPONSE_HEADER..).unwrap_or_default();
                let answer = match operation {
                    SHARE_ENUM => share_enum(stub, files),
                    SHARE_GET_INFO => share_info(stub, files),
                    _ => return Ok(fault(call, context)),
                };
                Ok(answer
                    .map_or_else(|_| fault(call, context), |stub| fragments(call, context, &stub)))
            }
            _ => Err(Status::INVALID_PARAMETER),
        }
    }
}

/// Version, type, flags and number of the call.
fn header(fields: &mut Reader<'_>) -> Parsed<(u8, u8, u8, u32)> {
    let (version, _minor, kind, flags) = (fields.u8()?, fields.u8()?, fields.u8()?, fields.u8()?);
    fields.skip(8)?;
    Ok((version, kind, flags, fields.u32()?))
}

fn packet(kind: u8, flags: u8, call: u32, body: &Writer) -> Vec<u8> {
    let body = body.clone().done();
    // Version 5.0, little-endian, ASCII.
    let head = Writer::new().u8(5).u8(0).u8(kind).u8(flags).u32(0x10);
    head.short_length(HEADER + body.len()).u16(0).u32(call).bytes(&body).done()
}

/// Accepts NDR, and refuses other ways to write arguments.
fn bind(fields: &mut Reader<'_>, call: u32) -> Parsed<Vec<u8>> {
    fields.skip(8)?;
    let count = fields.u8()?;
    fields.skip(3)?;
    if count > CONTEXTS_MAX {
        return Err(WireError);
    }
    let name = b"\\PIPE\\srvsvc\0";
    let size = FRAGMENT_MAX;
    let mut body = Writer::new().short_length(size).short_length(size).u32(0x53F0);
    body = body.short_length(name.len()).bytes(name);
    body = padded(body);
    body = body.u8(count).zeros(3);
    for _ in 0..count {
        fields.skip(2)?;
        let ways = fields.u8()?;
        fields.skip(1 + 20)?;
        let mut knows = false;
        for _ in 0..ways {
            knows |= fields.array::<20>()? == NDR;
        }
        body = if knows {
            body.u16(0).u16(0).bytes(&NDR)
        } else {
            // Refused by the provider: the syntax is not supported.
            body.u16(2).u16(2).zeros(20)
        };
    }
    Ok(packet(BIND_ACK, FIRST | LAST, call, &body))
}

fn fault(call: u32, context: u16) -> Vec<u8> {
    let body = Writer::new().u32(0).u16(context).u16(0).u32(OPERATION_RANGE).u32(0);
    packet(FAULT, FIRST | LAST, call, &body)
}

/// An answer in as many fragments as it needs.
fn fragments(call: u32, context: u16, stub: &[u8]) -> Vec<u8> {
    let pieces: Vec<_> = stub.chunks(FRAGMENT_MAX - RESPONSE_HEADER).collect();
    let mut all = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let first = if number == 0 { FIRST } else { 0 };
        let last = if number + 1 == pieces.len() { LAST } else { 0 };
        let body = Writer::new().length(stub.len()).u16(context).u16(0).bytes(piece);
        all.extend(packet(RESPONSE, first | last, call, &body));
    }
    all
}

/// Server name, level: the shares, in one answer.
fn share_enum(stub: &[u8], files: &FileService) -> Parsed<Vec<u8>> {
    let mut fields = Reader::new(stub);
    if fields.u32()? != 0 {
        text(&mut fields, stub)?;
    }
    let level = fields.u32()?;
    let shares = shares(files)?;
    let out = Writer::new().u32(level).u32(level);
    if level > 1 {
        return Ok(out.u32(0).u32(0).u32(0).u32(UNKNOWN_LEVEL).done());
    }
    let count = shares.len();
    let mut out = out.u32(POINTER).length(count).u32(POINTER).length(count);
    for share in &shares {
        out = entry(out, share, level);
    }
    for share in &shares {
        out = texts(out, share, level);
    }
    // All of them, nothing to go on with, no error.
    Ok(out.length(count).u32(0).u32(0).done())
}

/// Server name, share name, level.
fn share_info(stub: &[u8], files: &FileService) -> Parsed<Vec<u8>> {
    let mut fields = Reader::new(stub);
    if fields.u32()? != 0 {
        text(&mut fields, stub)?;
    }
    let name = text(&mut fields, stub)?;
    let level = fields.u32()?;
    let out = Writer::new().u32(level);
    let shares = shares(files)?;
    let share = shares.iter().find(|share| share.name.eq_ignore_ascii_case(&name));
    Ok(match share {
        None => out.u32(0).u32(NO_SHARE),
        Some(_) if level > 1 => out.u32(0).u32(UNKNOWN_LEVEL),
        Some(share) => texts(entry(out.u32(POINTER), share, level), share, level).u32(0),
    }
    .done())
}

/// The shares of the account, and `IPC$`.
fn shares(files: &FileService) -> Parsed<Vec<Told>> {
    let mut told = Vec::new();
    let mut marker: Option<String> = None;
    loop {
        let options = ListOptions { marker: marker.as_deref(), ..ListOptions::default() };
        let page = files.list_shares(&options).map_err(|_| WireError)?;
        let disk = |name: &str| Told { name: name.to_owned(), kind: DISK, comment: "" };
        told.extend(page.shares.iter().map(|share| disk(&share.name)));
        match page.next {
            Some(next) => marker = Some(next),
            None => break,
        }
    }
    told.push(Told { name: "IPC$".to_owned(), kind: PIPES, comment: "Pipes" });
    Ok(told)
}

/// The fixed part of a share: pointers to its texts, and its kind.
fn entry(out: Writer, share: &Told, level: u32) -> Writer {
    let out = out.u32(POINTER);
    if level == 0 { out } else { out.u32(share.kind).u32(POINTER) }
}

/// The texts that the fixed part points to.
fn texts(out: Writer, share: &Told, level: u32) -> Writer {
    let out = put_text(out, &share.name);
    if level == 0 { out } else { put_text(out, share.comment) }
}

/// A text with its lengths, a zero at the end, in steps of four bytes.
fn put_text(out: Writer, text: &str) -> Writer {
    let text = bytes::utf16(&format!("{text}\0"));
    let count = text.len() / 2;
    padded(out.length(count).u32(0).length(count).bytes(&text))
}

fn padded(out: Writer) -> Writer {
    let length = out.len();
    out.zeros(length.next_multiple_of(4) - length)
}

/// Reads what [`put_text`] writes.
fn text(fields: &mut Reader<'_>, stub: &[u8]) -> Parsed<String> {
    let (_room, start, count) = (fields.u32()?, fields.u32()?, fields.large()?);
    let length = count.checked_mul(2).filter(|length| *length <= stub.len()).ok_or(WireError)?;
    if start != 0 {
        return Err(WireError);
    }
    let text = bytes::text(fields.bytes(length)?)?;
    fields.skip(length.next_multiple_of(4) - length)?;
    Ok(text.trim_end_matches('\0').to_owned())
}
