//! Digests of programs and of MPI libraries, by which a rebuilt one is noticed.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use downbeat_files::Crc32;

/// Digest of a regular file: its CRC-32 and its length.
///
/// # Errors
/// If it cannot be read, or is not a regular file.
pub fn of_file(path: &Path) -> io::Result<String> {
    let mut file = downbeat_files::open(path).map_err(io::Error::other)?;
    let mut checksum = Crc32::default();
    let mut length = 0;
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(format!("{:08x} of {length} bytes", checksum.value())),
            Ok(read) => {
                checksum.add(&buffer[..read]);
                length += read as u64;
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}

/// Digest of this program, or `unknown`.
pub fn of_this_program() -> String {
    let found = std::env::current_exe().and_then(|path| of_file(&path));
    found.unwrap_or_else(|_| "unknown".to_owned())
}

/// Digest of the MPI library that this process has loaded, or `unknown`: it may be part of the program.
pub fn of_loaded_mpi() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    of_mpi_libraries(&maps).unwrap_or_else(|| "unknown".to_owned())
}

/// Digest of the MPI libraries among the files that these lines end with, as those of `ldd` and of
/// `/proc/self/maps` do; `None` if there are none, or one cannot be read.
pub fn of_mpi_libraries(lines: &str) -> Option<String> {
    let file = |line: &str| {
        let path = &line[line.find('/')?..];
        let path = PathBuf::from(path.split(" (").next()?);
        is_mpi_library(path.file_name()?.to_str()?).then_some(path)
    };
    let mut files: Vec<PathBuf> = lines.lines().filter_map(file).collect();
    files.sort();
    files.dedup();
    let digests: Result<Vec<_>, _> = files.iter().map(|file| of_file(file)).collect();
    digests
        .ok()
        .filter(|digests| !digests.is_empty())
        .map(|digests| digests.join(", "))
}

/// Recognizes the names that Open MPI, MPICH and the libraries that descend from them have.
fn is_mpi_library(name: &str) -> bool {
    ["libmpi.", "libmpi_", "libmpich", "libmpifort", "libpmpi"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        && name.contains(".so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mpi_libraries_are_found_in_both_kinds_of_lines() {
        let folder = std::env::temp_dir().join(format!("downbeat digest {}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str| folder.join(name).display().to_string();
        let (mpi, fortran) = (file("libmpich.so.12"), file("libmpifort.so.12"));
        fs::write(&mpi, "123456789").unwrap();
        fs::write(&fortran, "").unwrap();

        let maps = format!(
            "7f0000-7f1000 r--p 00000000 fd:00 123  {mpi}\n7f1000-7f2000 r-xp 00001000 fd:00 123  {mpi}\n\
             7f2000-7f3000 rw-p 00000000 00:00 0  [heap]\n7f3000-7f4000 r--p 00000000 fd:00 7  /lib/libm.so.6\n"
        );
        assert_eq!(of_mpi_libraries(&maps).unwrap(), "cbf43926 of 9 bytes");
        let ldd = format!(
            "\tlibmpifort.so.12 => {fortran} (0x00007f63dc000000)\n\tlibmpich.so.12 => {mpi} (0x00007f648)\n\
             \tlibm.so.6 => /lib/libm.so.6 (0x00007f64)\n\tlinux-vdso.so.1 (0x00007f19cb1a7000)\n"
        );
        assert_eq!(
            of_mpi_libraries(&ldd).unwrap(),
            "cbf43926 of 9 bytes, 00000000 of 0 bytes"
        );

        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(of_mpi_libraries(&ldd), None);
        assert_eq!(of_mpi_libraries("not a dynamic executable"), None);
        assert!(of_file(Path::new("/dev/zero")).is_err());
        assert!(of_this_program().ends_with(" bytes"));
    }
}
