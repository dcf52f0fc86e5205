//! The headers: of an SMB2 message, and of an encrypted one. Which flags a request may have is
//! decided by the connection.

use super::{Parsed, Reader, WireError, Writer};

/// The length of the header of a message.
pub const SIZE: usize = 64;
/// The length of the header of an encrypted message.
pub const TRANSFORM_SIZE: usize = 52;
/// How a message, an encrypted one and one of SMB1 begin.
pub const PROTOCOL: [u8; 4] = *b"\xFESMB";
pub const ENCRYPTED: [u8; 4] = *b"\xFDSMB";
pub const SMB1: [u8; 4] = *b"\xFFSMB";

pub const FLAG_ANSWER: u32 = 0x1;
/// The header names an async ID instead of a tree.
pub const FLAG_ASYNC: u32 = 0x2;
/// Uses session, tree and file of the request before it in the chain.
pub const FLAG_RELATED: u32 = 0x4;
pub const FLAG_SIGNED: u32 = 0x8;

macro_rules! commands {
    ($($code:literal $variant:ident $name:literal)*) => {
        /// What a message asks for.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Command { $($variant = $code),* }

        impl Command {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name for gates, faults, metrics and the journal.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

commands! {
    0 Negotiate "SMB Negotiate"
    1 SessionSetup "SMB SessionSetup"
    2 Logoff "SMB Logoff"
    3 TreeConnect "SMB TreeConnect"
    4 TreeDisconnect "SMB TreeDisconnect"
    5 Create "SMB Create"
    6 Close "SMB Close"
    7 Flush "SMB Flush"
    8 Read "SMB Read"
    9 Write "SMB Write"
    10 Lock "SMB Lock"
    11 Ioctl "SMB Ioctl"
    12 Cancel "SMB Cancel"
    13 Echo "SMB Echo"
    14 QueryDirectory "SMB QueryDirectory"
    15 ChangeNotify "SMB ChangeNotify"
    16 QueryInfo "SMB QueryInfo"
    17 SetInfo "SMB SetInfo"
    18 OplockBreak "SMB OplockBreak"
}

impl Command {
    pub fn of(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// The header of a request, or of its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    pub credit_charge: u16,
    /// In an answer; a request has its channel sequence here.
    pub status: u32,
    /// The number of the command, which [`Command::of`] may not know.
    pub command: u16,
    /// Asked for, or granted.
    pub credits: u16,
    pub flags: u32,
    /// Where the next message of the chain begins, from the start of this one; 0 in the last.
    pub next: u32,
    pub message_id: u64,
    /// Of an asynchronous message, which names no tree.
    pub async_id: u64,
    pub tree_id: u32,
    pub session_id: u64,
    pub signature: [u8; 16],
}

impl Header {
    pub fn parse(message: &[u8]) -> Parsed<Self> {
        let mut fields = Reader::new(message);
        if fields.array()? != PROTOCOL || fields.u16()? != 64 {
            return Err(WireError);
        }
        let mut header = Self {
            credit_charge: fields.u16()?,
            status: fields.u32()?,
            command: fields.u16()?,
            credits: fields.u16()?,
            flags: fields.u32()?,
            next: fields.u32()?,
            message_id: fields.u64()?,
            ..Self::default()
        };
        if header.has(FLAG_ASYNC) {
            header.async_id = fields.u64()?;
        } else {
            fields.skip(4)?;
            header.tree_id = fields.u32()?;
        }
        header.session_id = fields.u64()?;
        header.signature = fields.array()?;
        Ok(header)
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// The first message of a chain, and what stands behind it.
    pub fn split<'a>(&self, chain: &'a [u8]) -> Parsed<(&'a [u8], Option<&'a [u8]>)> {
        let next = usize::try_from(self.next).map_err(|_| WireError)?;
        match next {
            0 => Ok((chain, None)),
            next if next < SIZE || next % 8 != 0 => Err(WireError),
            next => {
                let (first, rest) = chain.split_at_checked(next).ok_or(WireError)?;
                Ok((first, Some(rest)))
            }
        }
    }

    /// Writes the header into the room at the start of a message. The signature comes later, from
    /// `auth`.
    pub fn fill(&self, message: &mut [u8]) {
        let fields = Writer::new().bytes(&PROTOCOL).u16(64).u16(self.credit_charge);
        let fields = fields.u32(self.status).u16(self.command).u16(self.credits);
        let fields = fields.u32(self.flags).u32(self.next).u64(self.message_id);
        let fields = if self.has(FLAG_ASYNC) {
            fields.u64(self.async_id)
        } else {
            // What Windows names as the process.
            fields.u32(0xFEFF).u32(self.tree_id)
        };
        let fields = fields.u64(self.session_id).bytes(&self.signature);
        message[..SIZE].copy_from_slice(&fields.done());
    }
}

/// The header of an encrypted message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transform {
    /// What the cipher says of header and message.
    pub tag: [u8; 16],
    pub nonce: [u8; 16],
    /// The length of the message.
    pub size: u32,
    pub session_id: u64,
}

impl Transform {
    /// The header of a frame, and the encrypted message behind it.
    pub fn parse(frame: &[u8]) -> Parsed<(Self, &[u8])> {
        let mut fields = Reader::new(frame);
        if fields.array()? != ENCRYPTED {
            return Err(WireError);
        }
        let (tag, nonce, size) = (fields.array()?, fields.array()?, fields.u32()?);
        fields.skip(2)?;
        // Encrypted; in 3.0 the field names the cipher, and 1 is CCM.
        if fields.u16()? != 1 {
            return Err(WireError);
        }
        let transform = Self { tag, nonce, size, session_id: fields.u64()? };
        let message = fields.bytes(frame.len().saturating_sub(TRANSFORM_SIZE))?;
        if usize::try_from(size) == Ok(message.len()) {
            Ok((transform, message))
        } else {
            Err(WireError)
        }
    }

    /// The header as bytes: what the cipher protects are those from the nonce on.
    pub fn write(&self) -> [u8; TRANSFORM_SIZE] {
        let fields = Writer::new().bytes(&ENCRYPTED).bytes(&self.tag).bytes(&self.nonce);
        let fields = fields.u32(self.size).u16(0).u16(1).u64(self.session_id);
        fields.done().try_into().expect("the fields have the length of the header")
    }
}
