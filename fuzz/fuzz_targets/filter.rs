//! A $filter of the Table service.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::fuzzing::filter(bytes);
});
