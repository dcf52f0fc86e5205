//! A call of the HTTP API: a line with method and target, then the body.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::api::read_any(bytes);
});
