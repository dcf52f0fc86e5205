//! NEGOTIATE: dialects and what both sides are able to; also from an SMB1 frame, and the check of
//! it all by `FSCTL_VALIDATE_NEGOTIATE_INFO`. What is chosen is decided by the connection.

use super::{Parsed, Reader, WireError, Writer, header};

pub const SMB_2_0_2: u16 = 0x202;
pub const SMB_2_1: u16 = 0x210;
pub const SMB_3_0: u16 = 0x300;
pub const SMB_3_0_2: u16 = 0x302;
pub const SMB_3_1_1: u16 = 0x311;
/// The answer to an SMB1 NEGOTIATE that knows SMB 2.1 or later: negotiate again.
pub const SMB_2_WILDCARD: u16 = 0x2FF;

pub const SIGNING_ENABLED: u16 = 1;
pub const SIGNING_REQUIRED: u16 = 2;

pub const CAPABILITY_LARGE_MTU: u32 = 0x4;
pub const CAPABILITY_ENCRYPTION: u32 = 0x40;

pub const CIPHER_AES_128_CCM: u16 = 1;
pub const CIPHER_AES_128_GCM: u16 = 2;

const PREAUTH: u16 = 1;
const ENCRYPTION: u16 = 2;
const SIGNING: u16 = 8;
/// The only hash of a preauth context.
const SHA_512: u16 = 1;
/// AES-CMAC, the only signature of 3.1.1 that is offered.
const AES_CMAC: u16 = 1;
/// The most contexts that are looked at.
const CONTEXTS_MAX: usize = 32;

/// What a client offers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NegotiateRequest {
    pub dialects: Vec<u16>,
    pub security_mode: u16,
    pub capabilities: u32,
    pub client_guid: [u8; 16],
    /// From the contexts of 3.1.1; empty without.
    pub ciphers: Vec<u16>,
    pub signatures: Vec<u16>,
    /// A context offers SHA-512 for the preauth hash, which 3.1.1 demands.
    pub has_sha_512: bool,
}

impl NegotiateRequest {
    pub fn parse(message: &[u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 36)?;
        let count = body.small()?;
        let security_mode = body.u16()?;
        body.skip(2)?;
        let (capabilities, client_guid) = (body.u32()?, body.array()?);
        let (offset, contexts) = (body.large()?, body.small()?);
        body.skip(2)?;
        let dialects = body.list(count)?;
        let mut request =
            Self { dialects, security_mode, capabilities, client_guid, ..Self::default() };
        // In older dialects the field of the offset is a time.
        if request.dialects.contains(&SMB_3_1_1) {
            request.read_contexts(message, offset, contexts)?;
        }
        Ok(request)
    }

    fn read_contexts(&mut self, message: &[u8], mut offset: usize, count: usize) -> Parsed<()> {
        if count > CONTEXTS_MAX {
            return Err(WireError);
        }
        for _ in 0..count {
            let mut context = Reader::new(message.get(offset..).ok_or(WireError)?);
            let (kind, length) = (context.u16()?, context.small()?);
            context.skip(4)?;
            let mut data = Reader::new(context.bytes(length)?);
            match kind {
                PREAUTH => {
                    let hashes = data.small()?;
                    data.skip(2)?;
                    self.has_sha_512 = data.list(hashes)?.contains(&SHA_512);
                }
                ENCRYPTION => {
                    let count = data.small()?;
                    self.ciphers = data.list(count)?;
                }
                SIGNING => {
                    let count = data.small()?;
                    self.signatures = data.list(count)?;
                }
                _ => {}
            }
            offset = (offset + 8 + length).next_multiple_of(8);
        }
        Ok(())
    }
}

/// What an SMB1 NEGOTIATE says about SMB2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Smb1Negotiate {
    /// `SMB 2.002`.
    pub knows_2_0_2: bool,
    /// `SMB 2.???`: 2.1 or later, to be negotiated in a second message.
    pub knows_later: bool,
}

impl Smb1Negotiate {
    pub fn parse(frame: &[u8]) -> Parsed<Self> {
        let mut fields = Reader::new(frame);
        if fields.array()? != header::SMB1 || fields.u8()? != 0x72 {
            return Err(WireError);
        }
        // The rest of the SMB1 header, and a count of parameters that is 0.
        fields.skip(28)?;
        let length = fields.small()?;
        let names = fields.bytes(length)?;
        let knows = |name: &[u8]| names.split(|byte| *byte == 0).any(|one| one == name);
        Ok(Self { knows_2_0_2: knows(b"\x02SMB 2.002"), knows_later: knows(b"\x02SMB 2.???") })
    }
}

/// What the server chose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NegotiateAnswer<'a> {
    pub security_mode: u16,
    pub dialect: u16,
    pub server_guid: [u8; 16],
    pub capabilities: u32,
    /// The most bytes of a read, a write, and of any other exchange.
    pub max_bytes: u32,
    /// The time, as a FILETIME.
    pub now: u64,
    /// The token that offers the mechanisms.
    pub token: &'a [u8],
    /// For 3.1.1: a fresh salt; the cipher, 0 if none is shared; whether to name the signature.
    pub contexts: Option<Contexts>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contexts {
    pub salt: [u8; 32],
    /// None if the client offered no ciphers; 0 if there is none in common.
    pub cipher: Option<u16>,
    /// The client sent a signing context, so that it is answered: with AES-CMAC.
    pub signature: bool,
}

impl NegotiateAnswer<'_> {
    pub fn write(&self) -> Vec<u8> {
        let contexts = self.contexts.map(Contexts::list).unwrap_or_default();
        let token_at = header::SIZE + 64;
        let contexts_at =
            if contexts.is_empty() { 0 } else { (token_at + self.token.len()).next_multiple_of(8) };
        let mut body = Writer::answer(65)
            .u16(self.security_mode)
            .u16(self.dialect)
            .short_length(contexts.len())
            .bytes(&self.server_guid)
            .u32(self.capabilities)
            .u32(self.max_bytes)
            .u32(self.max_bytes)
            .u32(self.max_bytes)
            .u64(self.now)
            .u64(0)
            .short_length(token_at)
            .short_length(self.token.len())
            .length(contexts_at)
            .bytes(self.token);
        for (kind, data) in contexts {
            body = body.align().u16(kind).short_length(data.len()).u32(0).bytes(&data);
        }
        body.done()
    }
}

impl Contexts {
    fn list(self) -> Vec<(u16, Vec<u8>)> {
        let hash = Writer::new().u16(1).u16(32).u16(SHA_512).bytes(&self.salt).done();
        let mut list = vec![(PREAUTH, hash)];
        list.extend(self.cipher.map(|cipher| (ENCRYPTION, one(cipher))));
        list.extend(self.signature.then(|| (SIGNING, one(AES_CMAC))));
        list
    }
}

fn one(value: u16) -> Vec<u8> {
    Writer::new().u16(1).u16(value).done()
}

/// What a client believes was negotiated: the input of `FSCTL_VALIDATE_NEGOTIATE_INFO`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NegotiateCheck {
    pub capabilities: u32,
    pub client_guid: [u8; 16],
    pub security_mode: u16,
    pub dialects: Vec<u16>,
}

impl NegotiateCheck {
    pub fn parse(input: &[u8]) -> Parsed<Self> {
        let mut fields = Reader::new(input);
        let (capabilities, client_guid) = (fields.u32()?, fields.array()?);
        let (security_mode, count) = (fields.u16()?, fields.small()?);
        Ok(Self { capabilities, client_guid, security_mode, dialects: fields.list(count)? })
    }

    /// Whether it is what the first message said.
    pub fn matches(&self, first: &NegotiateRequest) -> bool {
        self.capabilities == first.capabilities
            && self.client_guid == first.client_guid
            && self.security_mode == first.security_mode
            && self.dialects == first.dialects
    }
}

/// The output of `FSCTL_VALIDATE_NEGOTIATE_INFO`: what the server chose.
pub fn validated(capabilities: u32, guid: &[u8; 16], security_mode: u16, dialect: u16) -> Vec<u8> {
    Writer::new().u32(capabilities).bytes(guid).u16(security_mode).u16(dialect).done()
}
