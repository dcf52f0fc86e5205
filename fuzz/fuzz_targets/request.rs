//! The head of a request: routing, Shared Key and SAS.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::fuzzing::request(bytes);
});
