//! A line of the control protocol.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = latchfs::api::control::read_request(bytes);
});
