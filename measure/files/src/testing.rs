//! Support for the tests of Downbeat's crates.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Crc32;

/// The path of a temporary folder, which is removed with everything in it on drop.
#[derive(Debug)]
pub struct TemporaryFolder(pub PathBuf);

impl TemporaryFolder {
    /// Chooses a path that no other test uses; creates nothing.
    #[expect(
        clippy::new_without_default,
        reason = "every call returns a different path"
    )]
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "downbeat-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        Self(std::env::temp_dir().join(name))
    }

    /// The path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates the folder with one file in it.
    #[expect(clippy::expect_used, reason = "a test without its files has failed")]
    pub fn with_file(name: &str, content: &[u8]) -> (Self, PathBuf) {
        let folder = Self::new();
        fs::create_dir_all(&folder.0).expect("the folder of temporary files can be written");
        let path = folder.file(name);
        fs::write(&path, content).expect("the folder of temporary files can be written");
        (folder, path)
    }
}

/// Returns the text of a record with checksums behind its header, each group and its end, in place
/// of those that it has.
pub fn seal_record(text: &str) -> String {
    let mut sealed = String::new();
    let lines = text.split_inclusive('\n');
    for line in lines.filter(|line| !line.starts_with("# crc32 ")) {
        sealed += line;
        let ends = ["operation,bytes,ranks,call,", "# end ", "# complete"];
        if line.ends_with('\n') && ends.iter().any(|end| line.starts_with(end)) {
            sealed += &format!("# crc32 {:08x}\n", Crc32::of_bytes(sealed.as_bytes()));
        }
    }
    sealed
}

/// Checks that every flipped bit and every changed digit of a file is noticed.
pub fn is_noticed(file: &[u8], is_noticed: impl Fn(&[u8]) -> bool) {
    let mut damaged = file.to_vec();
    for (place, byte) in file.iter().enumerate() {
        let bits = (0..8).map(|bit| byte ^ 1 << bit);
        let digits = (b'0'..=b'9').filter(|digit| byte.is_ascii_digit() && digit != byte);
        for other in bits.chain(digits) {
            damaged[place] = other;
            assert!(
                is_noticed(&damaged),
                "byte {place}, {byte:#04x} to {other:#04x}, of {}",
                String::from_utf8_lossy(file)
            );
        }
        damaged[place] = *byte;
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
