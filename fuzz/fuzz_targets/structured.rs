//! A structured body: segments with checksums.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::http::frame::any_input::structured(bytes);
});
