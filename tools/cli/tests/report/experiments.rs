//! Synthetic experiments with everything that a report shows.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use downbeat_files::testing::seal_record;

/// Properties of a synthetic experiment.
pub(crate) struct MadeExperiment {
    pub(crate) launches: usize,
    pub(crate) observations: usize,
    /// Factor of all run-times.
    pub(crate) slower: f64,
    /// Factor "mpi" of the experiment.
    pub(crate) library: &'static str,
}

/// Operations and sizes.
pub(crate) const OPERATIONS: [(&str, &[u64]); 3] = [
    ("allreduce", &[8, 64, 1_024, 8_192, 65_536, 1_048_576]),
    ("barrier", &[0]),
    ("bcast", &[0, 8, 64, 1_024, 32_768, 1_048_576]),
];

impl MadeExperiment {
    /// Writes the launches to a new folder.
    pub(crate) fn write(&self, folder: &Path) {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).expect("a test may write here");
        for launch in 0..self.launches {
            // Experiments with the same times are other ones.
            let seed = folder.as_os_str().as_encoded_bytes().iter();
            let seed = seed.fold(launch as u32, |seed, byte| {
                seed * 31 % 1_000_003 + u32::from(*byte)
            });
            let text = self.launch(launch, seed);
            fs::write(folder.join(format!("launch-{:03}.csv", launch + 1)), text)
                .expect("a test may write here");
        }
    }

    fn launch(&self, launch: usize, seed: u32) -> String {
        let mut random =
            fastrand::Rng::with_seed(launch as u64 + 1_000 * self.library.len() as u64);
        let mut text = format!(
            "# downbeat launch 1\n# factor program = downbeat-mpi 0.1.0\n# factor mpi = {}\n# factor ranks = 4\n\
             # factor scheme = round-time\n# factor pinning = cores 0-3\n# fact seed = {seed}\n# fact host = node1\n\
             # fact started = 2026-01-01T12:{launch:02}:00Z\noperation,bytes,ranks,call,state,nanos\n",
            self.library,
        );
        random.u32(..);
        for (operation, sizes) in OPERATIONS {
            for bytes in sizes {
                self.group(&mut text, &mut random, launch, operation, *bytes);
            }
        }
        seal_record(&(text + "# complete\n"))
    }

    fn group(
        &self,
        text: &mut String,
        random: &mut fastrand::Rng,
        launch: usize,
        operation: &str,
        bytes: u64,
    ) {
        let base = if operation == "barrier" { 250.0 } else { 400.0 } + bytes as f64 * 0.18;
        // Launches differ by some percent, and some drift.
        let launch_factor = 1.0 + 0.03 * random.f64() + 0.004 * launch as f64;
        let drift = if launch % 3 == 2 { 0.15 } else { 0.0 };
        let mut sum = 0.0;
        for call in 0..self.observations {
            let noise = -0.04 * (1.0 - random.f64()).ln();
            let passed = call as f64 / self.observations as f64;
            let outlier = if random.f64() < 0.004 {
                3.0 + 60.0 * random.f64()
            } else {
                1.0
            };
            let nanos =
                (base * self.slower * launch_factor * (1.0 + noise + drift * passed) * outlier)
                    .round();
            sum += nanos;
            let _ = writeln!(text, "{operation},{bytes},4,{call},valid,{nanos}");
        }
        let average = sum / self.observations as f64;
        let valid = self.observations;
        let _ = writeln!(
            text,
            "# end {operation},{bytes},4 valid={valid} late=2 long=0 drifted=0 avg={average}"
        );
    }
}
