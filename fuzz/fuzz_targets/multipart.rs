//! A multipart body, and the requests in it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::fuzzing::multipart(bytes);
});
