//! Functions of an MPI library: those of its header, and the symbols of its bindings of Fortran.

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An MPI library.
pub(crate) struct Library {
    pub(crate) is_open_mpi: bool,
    /// Functions of the header that return an error code.
    pub(crate) functions: Vec<Function>,
    /// Symbols of the bindings of Fortran.
    pub(crate) symbols: BTreeSet<String>,
    /// Values of constants.
    pub(crate) constants: Vec<(&'static str, i64)>,
}

/// A function of the header.
pub(crate) struct Function {
    pub(crate) name: String,
    /// Number of parameters.
    pub(crate) parameters: usize,
    /// Number of parameters that are texts: Fortran passes their lengths, too.
    pub(crate) texts: usize,
}

const CONSTANTS: [&str; 9] = [
    "MPI_ANY_SOURCE",
    "MPI_ANY_TAG",
    "MPI_PROC_NULL",
    "MPI_ROOT",
    "MPI_ERR_UNKNOWN",
    "MPI_ERR_SPAWN",
    "MPI_ERR_PENDING",
    "MPI_MODE_NOPRECEDE",
    "MPI_MODE_NOSUCCEED",
];

impl Library {
    /// Asks the compiler of the library.
    pub(crate) fn find(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let mpicc = env::var("MPICC").unwrap_or("mpicc".to_owned());
        let source = folder.join("header.c");
        let mut text =
            "#include <mpi.h>\n#ifdef OPEN_MPI\nDOWNBEAT LIBRARY 1\n#elif defined(MPICH_VERSION)\n\
                        DOWNBEAT LIBRARY 2\n#endif\n"
                .to_owned();
        for name in CONSTANTS {
            text += &format!("DOWNBEAT \"{name}\" {name}\n");
        }
        // Open MPI has its extensions in a header of their own.
        text += "#ifdef OPEN_MPI\n#include <mpi-ext.h>\n#endif\n";
        fs::write(&source, text)?;
        let header = output(Command::new(&mpicc).arg("-E").arg(&source))?;
        let value = |name: &str| {
            let line = header
                .lines()
                .find_map(|line| line.strip_prefix("DOWNBEAT ")?.strip_prefix(name));
            let digits = line?.trim().trim_matches(['(', ')']);
            digits.parse::<i64>().ok()
        };
        let is_open_mpi =
            match value("LIBRARY") {
                Some(1) => true,
                Some(2) => false,
                _ => return Err(format!(
                    "{mpicc} is neither of Open MPI nor of MPICH or a library with its interface"
                )
                .into()),
            };
        let mut constants = vec![];
        for name in CONSTANTS {
            let found = value(&format!("\"{name}\""));
            constants.push((name, found.ok_or(format!("{mpicc}: mpi.h has no {name}"))?));
        }
        Ok(Self {
            is_open_mpi,
            functions: functions(&header),
            symbols: fortran_symbols(&mpicc),
            constants,
        })
    }
}

fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let done = command
        .output()
        .map_err(|why| format!("{command:?}: {why}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{command:?}: {said}").into());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Returns the functions that are declared in a header.
fn functions(header: &str) -> Vec<Function> {
    let lines = header.lines().filter(|line| !line.starts_with('#'));
    let text = lines.collect::<Vec<_>>().join(" ");
    let mut known = BTreeSet::new();
    let declarations = text
        .split(';')
        .filter(|of| !of.trim_start().starts_with("typedef"));
    let functions = declarations.filter_map(function);
    let mut functions: Vec<_> = functions
        .filter(|function| known.insert(function.name.clone()))
        .collect();
    functions.sort_by(|a, b| a.name.cmp(&b.name));
    functions
}

fn function(declaration: &str) -> Option<Function> {
    let (before, rest) = declaration.split_once("int MPI")?;
    // The type of a parameter is in parentheses.
    if before.matches('(').count() != before.matches(')').count() {
        return None;
    }
    let (name, parameters) = rest.split_once('(')?;
    if !name.starts_with(['_', 'X'])
        || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_')
    {
        return None;
    }
    let name = format!("MPI{name}");
    let is_conversion = ["_c2f", "_f2c", "_f082", "2f08"]
        .iter()
        .any(|part| name.contains(part));
    let is_callback = name.to_ascii_lowercase().ends_with("_fn");
    if is_conversion || is_callback {
        return None;
    }
    let mut depth = 0;
    let end = parameters.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (depth < 0).then_some(at)
    })?;
    let parameters: Vec<&str> = parameters[..end].split(',').map(str::trim).collect();
    let texts = parameters.iter().filter(|of| of.contains("char ")).count();
    let is_none = matches!(parameters[..], ["void" | ""]);
    Some(Function {
        name,
        parameters: if is_none { 0 } else { parameters.len() },
        texts,
    })
}

/// Returns the symbols of the libraries that `mpif90` links; none where it is not installed.
fn fortran_symbols(mpicc: &str) -> BTreeSet<String> {
    let mpif90 = mpicc.replace("mpicc", "mpif90");
    let shown = output(Command::new(mpif90).arg("-show")).unwrap_or_default();
    let words: Vec<&str> = shown.split_whitespace().collect();
    let folders = words.iter().filter_map(|word| word.strip_prefix("-L"));
    let mut folders: Vec<PathBuf> = folders.map(PathBuf::from).collect();
    folders.extend(["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"].map(PathBuf::from));
    let names = words.iter().filter_map(|word| word.strip_prefix("-l"));
    let mut symbols = BTreeSet::new();
    for name in names.filter(|name| name.contains("mpi")) {
        let files = folders
            .iter()
            .map(|folder| folder.join(format!("lib{name}.so")));
        let Some(file) = files.into_iter().find(|file| file.exists()) else {
            continue;
        };
        let listed = output(Command::new("nm").args(["-D", "--defined-only"]).arg(file));
        let listed = listed.unwrap_or_default();
        let names = listed
            .lines()
            .filter_map(|line| line.split_whitespace().nth(2));
        symbols.extend(names.map(|name| name.split('@').next().unwrap_or(name).to_owned()));
    }
    symbols
}
