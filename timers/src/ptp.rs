//! Hardware clocks of the Precision Time Protocol.

mod clock;

use std::fs::{self, File};
use std::path::Path;

pub use clock::PtpClock;

/// Clock of a network card, or one that a hypervisor passes to its guests, which Linux shows as `/dev/ptp0` and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PtpDevice {
    /// Name of the device: `ptp0`.
    pub device: String,
    /// Name of the clock as its driver states it: `KVM virtual PTP`, or that of a network card's driver.
    pub clock: String,
    /// True if this process may read it.
    pub readable: bool,
}

impl PtpDevice {
    /// Lists all such clocks in the order of their numbers; none on systems other than Linux.
    pub fn all() -> Vec<Self> {
        Self::within(Path::new("/sys/class/ptp"), Path::new("/dev"))
    }

    fn within(class: &Path, devices: &Path) -> Vec<Self> {
        let found = fs::read_dir(class).into_iter().flatten().flatten();
        let mut found: Vec<Self> = found
            .filter_map(|entry| {
                let device = entry.file_name().into_string().ok()?;
                let clock = fs::read_to_string(entry.path().join("clock_name")).ok()?;
                let readable = File::open(devices.join(&device)).is_ok();
                Some(Self {
                    device,
                    clock: clock.trim().to_owned(),
                    readable,
                })
            })
            .collect();
        // `ptp10` comes behind `ptp9`.
        found.sort_by_key(|one| (one.device.len(), one.device.clone()));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_listed_by_number() {
        let folder = std::env::temp_dir().join(format!("downbeat-ptp-{}", std::process::id()));
        let (class, devices) = (folder.join("class"), folder.join("dev"));
        for (device, clock) in [("ptp10", "ice"), ("ptp9", "KVM virtual PTP")] {
            fs::create_dir_all(class.join(device)).unwrap();
            fs::write(class.join(device).join("clock_name"), format!("{clock}\n")).unwrap();
        }
        fs::create_dir_all(&devices).unwrap();
        fs::write(devices.join("ptp9"), "").unwrap();
        let found = PtpDevice::within(&class, &devices);
        fs::remove_dir_all(&folder).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.device.as_str(), one.clock.as_str(), one.readable))
            .collect();
        assert_eq!(
            found,
            [("ptp9", "KVM virtual PTP", true), ("ptp10", "ice", false)]
        );
        assert!(PtpDevice::within(&class, &devices).is_empty());
    }
}
