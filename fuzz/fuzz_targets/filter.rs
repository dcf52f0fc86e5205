//! A $filter of the Table service.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = latchfs::core::table::Filter::parse(text);
    }
});
