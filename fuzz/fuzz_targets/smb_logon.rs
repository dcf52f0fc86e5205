//! The tokens of an SMB client that logs on.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::fuzzing::smb_logon(bytes);
});
