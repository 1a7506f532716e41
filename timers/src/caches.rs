//! Data caches of a core, and the cores that share them.

use core::ops::RangeInclusive;
use std::fs;
use std::path::Path;

use crate::cores::{CoreError, CoreId};

/// A cache that a core reads data through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataCache {
    /// Level; 1 is nearest to the core.
    pub level: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// True if no other core uses the cache. Hardware threads of the same core do not count.
    pub private: bool,
}

/// Lists the caches that a core reads data through, nearest first.
///
/// # Errors
/// If they are unknown.
pub fn data_caches(core: CoreId) -> Result<Vec<DataCache>, CoreError> {
    caches_below(
        Path::new(&format!("/sys/devices/system/cpu/cpu{core}")),
        core,
    )
}

/// The outermost cache that a core shares with no other. Data evicted from it must come from a shared cache or memory.
///
/// # Errors
/// If the caches are unknown, or none is private.
pub fn last_private_cache(core: CoreId) -> Result<DataCache, CoreError> {
    let private = data_caches(core)?.into_iter().rfind(|cache| cache.private);
    private.ok_or(CoreError::NoPrivateCache(core))
}

fn caches_below(cpu: &Path, core: CoreId) -> Result<Vec<DataCache>, CoreError> {
    let threads = || read(&cpu.join("topology/thread_siblings_list"), cores);
    let mut caches = Vec::new();
    for index in 0.. {
        let folder = cpu.join(format!("cache/index{index}"));
        if !folder.is_dir() {
            break;
        }
        if read(&folder.join("type"), |kind| Some(kind == "Instruction"))? {
            continue;
        }
        let (threads, users) = (threads()?, read(&folder.join("shared_cpu_list"), cores)?);
        let own = |users: &RangeInclusive<u32>| {
            threads
                .iter()
                .any(|threads| threads.start() <= users.start() && users.end() <= threads.end())
        };
        let level = read(&folder.join("level"), |level| level.parse().ok())?;
        let bytes = read(&folder.join("size"), size)?;
        caches.push(DataCache {
            level,
            bytes,
            private: users.iter().all(own),
        });
    }
    caches.sort_by_key(|cache| cache.level);
    if caches.is_empty() {
        Err(CoreError::CachesNotListed(core))
    } else {
        Ok(caches)
    }
}

fn read<T>(file: &Path, parse: impl Fn(&str) -> Option<T>) -> Result<T, CoreError> {
    let text = fs::read_to_string(file).ok();
    text.and_then(|text| parse(text.trim()))
        .ok_or_else(|| CoreError::CacheUnreadable(file.to_owned()))
}

/// Parses a size such as `48K`; the kernel writes no other unit, but `M` is accepted.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => text
            .strip_suffix('M')
            .map_or((text, 1), |number| (number, 1 << 20)),
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(unit)
        .filter(|bytes| *bytes > 0)
}

/// Parses a list of cores such as `0-3,8`.
fn cores(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    downbeat_files::parse_ranges(text).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A temporary folder with files like those of the kernel.
    struct CpuFolder(PathBuf);

    impl CpuFolder {
        fn new(name: &str, threads: &str) -> Self {
            let cpu = Self(
                std::env::temp_dir().join(format!("downbeat-caches-{name}-{}", std::process::id())),
            );
            cpu.write("topology/thread_siblings_list", threads);
            cpu
        }

        fn write(&self, file: &str, text: &str) {
            let file = self.0.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }

        fn cache(&self, index: u32, [level, kind, size, shared]: [&str; 4]) {
            for (file, text) in [
                ("level", level),
                ("type", kind),
                ("size", size),
                ("shared_cpu_list", shared),
            ] {
                self.write(&format!("cache/index{index}/{file}"), text);
            }
        }

        fn caches(&self) -> Result<Vec<DataCache>, CoreError> {
            caches_below(&self.0, CoreId(7))
        }
    }

    impl Drop for CpuFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn caches_of_hardware_threads_are_private() {
        let cpu = CpuFolder::new("threads", "7,39");
        cpu.cache(0, ["1", "Data", "48K", "7,39"]);
        cpu.cache(1, ["1", "Instruction", "32K", "7,39"]);
        cpu.cache(2, ["3", "Unified", "32M", "0-15,32-47"]);
        cpu.cache(3, ["2", "Unified", "2048K", "7"]);
        let cache = |level, bytes, private| DataCache {
            level,
            bytes,
            private,
        };
        let expected = [
            cache(1, 48 << 10, true),
            cache(2, 2 << 20, true),
            cache(3, 32 << 20, false),
        ];
        assert_eq!(cpu.caches().unwrap(), expected);
        // A range beyond the threads of the core.
        cpu.write("topology/thread_siblings_list", "6-7");
        assert_eq!(
            cpu.caches()
                .unwrap()
                .iter()
                .map(|cache| cache.private)
                .collect::<Vec<_>>(),
            [false, true, false]
        );
    }

    #[test]
    fn unknown_caches_are_reported() {
        let cpu = CpuFolder::new("unknown", "7");
        assert_eq!(cpu.caches(), Err(CoreError::CachesNotListed(CoreId(7))));
        for (size, shared, file) in [
            ("much", "7", "size"),
            ("0K", "7", "size"),
            ("-1K", "7", "size"),
            ("18446744073709551615K", "7", "size"),
            ("48K", "", "shared_cpu_list"),
            ("48K", "7-", "shared_cpu_list"),
            ("48K", "all", "shared_cpu_list"),
        ] {
            cpu.cache(0, ["1", "Data", size, shared]);
            let Err(CoreError::CacheUnreadable(found)) = cpu.caches() else {
                panic!("{size} {shared}")
            };
            assert!(found.ends_with(file), "{}", found.display());
        }
        cpu.cache(0, ["1", "Data", "48K", "7"]);
        fs::remove_file(cpu.0.join("topology/thread_siblings_list")).unwrap();
        let message = cpu.caches().unwrap_err().to_string();
        assert!(
            message.ends_with("thread_siblings_list cannot be read or does not describe a cache"),
            "{message}"
        );
        assert_eq!(
            data_caches(CoreId(u32::MAX)),
            Err(CoreError::CachesNotListed(CoreId(u32::MAX)))
        );
    }

    #[test]
    fn the_last_private_cache_of_this_machine_is_one_of_its_caches() {
        for core in crate::cores::allowed_cores() {
            match last_private_cache(core) {
                Ok(cache) => assert!(data_caches(core).unwrap().contains(&cache) && cache.private),
                Err(why) => println!("{why}"),
            }
        }
    }
}
