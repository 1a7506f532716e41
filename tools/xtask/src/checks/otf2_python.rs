//! Archives of versions of OTF2 that Debian does not have, by its module for Python; only
//! in the long run.

use std::fs;
use std::process::Command;

use downbeat_launch::command::{self as shell, command};

use crate::programs::Programs;
use crate::steps::Step;
use crate::workspace::Workspace;

const VERSIONS: [&str; 3] = ["3.1", "3.1.1", "3.2"];
const CHECK: &str = "measure/otf2/tests/python/check.py";

pub(crate) fn step(workspace: &Workspace) -> Step<'_> {
    Step::new("OTF2's Python module", || {
        let mut build = command("cargo build -p downbeat-otf2 --example copy");
        let copy = Programs::build(&mut build)?.executable("copy")?;
        VERSIONS.into_iter().try_for_each(|version| {
            let folder = workspace.built(&format!("otf2-{version}"));
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
    })
}
