//! Checksums of the files of an archive, which its anchor file states.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use downbeat_files::Crc32;
use downbeat_otf2::{Anchor, files};

use super::Otf2Error;
use super::exact::SHIFT;

/// Property of the anchor file: a line for each other file, its CRC-32 and its name without the name
/// of the archive, so that an archive can be renamed.
const FILES: &str = "DOWNBEAT::CRC32";
/// Property of the anchor file: its CRC-32 without this property.
const ANCHOR: &str = "DOWNBEAT::CRC32_ANCHOR";

/// States the checksums of all files of a complete archive in its anchor file.
pub(super) fn write_checksums(anchor: &Path) -> Result<(), Otf2Error> {
    let wrong = |why| Otf2Error::content(anchor, why);
    let file = fs::read(anchor).map_err(Otf2Error::io(anchor))?;
    let mut properties = others(Anchor::parse(&file).map_err(wrong)?.properties);
    let mut lines = String::new();
    for (name, path) in others_of(anchor)? {
        let sum = sum_of(&path).map_err(Otf2Error::io(&path))?;
        lines += &format!("{sum:08x} {name}\n");
    }
    properties.push((FILES.to_owned(), lines));
    let Some(without) = Anchor::with_properties(&file, &properties).map_err(wrong)? else {
        // The oldest archives have no properties.
        return Ok(());
    };
    properties.push((
        ANCHOR.to_owned(),
        format!("{:08x}", Crc32::of_bytes(&without)),
    ));
    let sealed = Anchor::with_properties(&file, &properties).map_err(wrong)?;
    fs::write(anchor, sealed.unwrap_or(without)).map_err(Otf2Error::io(anchor))
}

/// Returns the content of an anchor file without what a correction changes: checksums,
/// and the shift of all times.
pub(super) fn uncorrected(file: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut others = others(Anchor::parse(file)?.properties);
    others.retain(|(name, _)| name != SHIFT);
    let without = Anchor::with_properties(file, &others)?;
    Ok(without.unwrap_or_else(|| file.to_vec()))
}

/// Returns the properties other than checksums.
fn others(properties: Vec<(String, String)>) -> Vec<(String, String)> {
    let is_other = |(name, _): &(String, String)| name != FILES && name != ANCHOR;
    properties.into_iter().filter(is_other).collect()
}

/// Returns the files of an archive besides its anchor file: their names without the name of the
/// archive, and their paths.
fn others_of(anchor: &Path) -> Result<BTreeMap<String, PathBuf>, Otf2Error> {
    let stem = anchor.file_stem().unwrap_or_default().len();
    let others = files::all(anchor)?.into_iter().filter_map(|name| {
        // A line has a name; OTF2 itself writes no others.
        let name = name.to_str().filter(|name| !name.contains('\n'))?;
        let path = files::folder(anchor).join(name);
        (path != anchor).then(|| (name[stem..].to_owned(), path))
    });
    Ok(others.collect())
}

/// Returns the checksum of a file.
fn sum_of(path: &Path) -> io::Result<u32> {
    let mut file = fs::File::open(path)?;
    let (mut sum, mut buffer) = (Crc32::default(), vec![0; 1 << 17]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(sum.value()),
            read => sum.add(&buffer[..read]),
        }
    }
}

/// Returns the paths of the files of an archive whose checksums are not those that the anchor file
/// states: they are damaged, or another program changed them. The archive of another
/// program states none.
///
/// # Errors
/// If a file cannot be read.
pub fn changed_files(anchor: &Path) -> Result<Vec<PathBuf>, Otf2Error> {
    let file = fs::read(anchor).map_err(Otf2Error::io(anchor))?;
    let wrong = |why| Otf2Error::content(anchor, why);
    let parsed = Anchor::parse(&file).map_err(wrong)?;
    let (lines, own) = (parsed.property(FILES), parsed.property(ANCHOR));
    let mut changed = vec![];
    if lines.is_some() || own.is_some() {
        let rest = parsed.properties.iter().filter(|(name, _)| name != ANCHOR);
        let rest: Vec<_> = rest.cloned().collect();
        let without = Anchor::with_properties(&file, &rest).map_err(wrong)?;
        let sum = format!("{:08x}", Crc32::of_bytes(&without.unwrap_or_default()));
        if own != Some(&sum) {
            changed.push(anchor.to_owned());
        }
    }
    // A damaged anchor file may state any name.
    let known = others_of(anchor)?;
    for line in lines.unwrap_or_default().lines() {
        let Some((sum, name)) = line.split_once(' ') else {
            continue;
        };
        let found = known.get(name).and_then(|path| sum_of(path).ok());
        if found.is_none_or(|found| format!("{found:08x}") != sum) {
            let path = known.get(name).cloned();
            changed.push(path.unwrap_or_else(|| {
                let mut path = anchor.with_extension("").into_os_string();
                path.push(name);
                path.into()
            }));
        }
    }
    Ok(changed)
}
