//! A record as it is kept in an extended attribute.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = latchfs::file::store::share::Record::from_bytes(bytes);
});
