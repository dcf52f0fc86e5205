//! A condition on the tags of a blob, or a search for them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latchfs::fuzzing::tag_query(bytes);
});
