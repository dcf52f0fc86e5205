//! A structured body: segments with checksums.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::fuzzing::structured(bytes);
});
