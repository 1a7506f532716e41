//! Archives of versions of OTF2 that Debian does not have, by its module for Python.

use std::fs;
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::tree::temporary;

const VERSIONS: [&str; 3] = ["3.1", "3.1.1", "3.2"];
const CHECK: &str = "measure/otf2/tests/python/check.py";

/// Checks that each version reads what was written, and that its archives are read.
pub(crate) fn reads_archives() -> Outcome {
    let target = temporary("otf2-python");
    let mut build = command("cargo build -p downbeat-otf2 --example copy --target-dir");
    shell::run(build.arg(&target))?;
    let copy = target.join("debug/examples/copy");
    VERSIONS.into_iter().try_for_each(|version| {
        let folder = temporary(&format!("otf2-{version}"));
        // Left behind by a run that failed.
        let _ = fs::remove_dir_all(&folder);
        shell::run(command("python3 -m venv").arg(&folder))?;
        let python = folder.join("bin/python");
        let mut install = Command::new(&python);
        install.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            &format!("otf2=={version}"),
        ]);
        shell::run(&mut install)?;
        let mut check = Command::new(&python);
        shell::run(check.arg(CHECK).arg(&copy).arg(&folder))
    })
}
