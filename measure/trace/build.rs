//! Finds OTF2.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "otf2")]
    link_otf2()?;
    Ok(())
}

/// As OTF2's own program tells. Other versions than 3 call back with other arguments.
#[cfg(feature = "otf2")]
fn link_otf2() -> Result<(), Box<dyn Error>> {
    const PROGRAM: &str = "OTF2_CONFIG";
    println!("cargo:rerun-if-env-changed={PROGRAM}");
    let program = std::env::var(PROGRAM).unwrap_or_else(|_| "otf2-config".into());
    let ask = |what: &str| {
        let advice = "install OTF2 3 (Debian: libotf2-trace-dev), or say by OTF2_CONFIG where its otf2-config is";
        let output = std::process::Command::new(&program).arg(what).output();
        let output = output.map_err(|why| format!("{program}: {why}: {advice}"))?;
        if !output.status.success() {
            return Err(format!("{program} {what} fails: {advice}"));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let version = ask("--version")?;
    if !version
        .split_whitespace()
        .any(|word| word.starts_with("3."))
    {
        return Err(format!("OTF2 3 is needed, but {program} says: {}", version.trim()).into());
    }
    for word in format!("{} {}", ask("--ldflags")?, ask("--libs")?).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }
    Ok(())
}
