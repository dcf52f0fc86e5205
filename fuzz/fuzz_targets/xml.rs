//! An XML body.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::http::frame::any_input::xml(bytes);
});
