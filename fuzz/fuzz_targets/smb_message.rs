//! A frame of an SMB client.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::fuzzing::smb_message(bytes);
});
