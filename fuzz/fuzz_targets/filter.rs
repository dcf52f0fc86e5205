//! A $filter of the Table service.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::rest::any_input::filter(bytes);
});
