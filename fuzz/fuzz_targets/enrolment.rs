#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| vere_targets::run("enrolment", octets));
