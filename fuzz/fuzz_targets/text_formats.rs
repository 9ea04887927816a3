//! The readers of other programs' formats: an embedding or an error, never a panic.

#![no_main]

use fastdx::Control;
use fastdx::words::embedding::format::{Options, load};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let path = std::env::temp_dir().join(format!("fastdx-fuzz-{}", std::process::id()));
    if std::fs::write(&path, data).is_ok() {
        let _ = load(&path, &Options::default(), &Control::new());
    }
});
