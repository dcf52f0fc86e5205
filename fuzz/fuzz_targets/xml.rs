//! An XML body.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::fuzzing::xml(bytes);
});
