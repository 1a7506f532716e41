//! Code of the wrappers.

use std::fmt::Write as _;

use crate::calls::handler;
use crate::library::{Function, Library};

/// Endings of the names of a function in bindings of Fortran: `mpif.h` and `use mpi` share one.
const FORTRAN: [(&str, &str); 6] = [
    ("_", "Fortran<false, false>"),
    // Of Open MPI, where an address is of the type C_PTR.
    ("_cptr_", "Fortran<false, false>"),
    ("_f08_", "Fortran<false, true>"),
    ("_f08ts_", "Fortran<false, true>"),
    ("_f08_large_", "Fortran<true, true>"),
    ("_f08ts_large_", "Fortran<true, true>"),
];

/// Returns the constants of the library.
pub(crate) fn constants(library: &Library) -> String {
    let mut code = String::new();
    for (name, value) in &library.constants {
        let _ = writeln!(
            code,
            "pub(crate) const {}: i32 = {value};",
            name.replace("MPI_", "")
        );
    }
    code
}

pub(crate) fn generate(library: &Library) -> String {
    let mut code = String::new();
    for function in &library.functions {
        // It has any number of parameters: written by hand.
        if function.name == "MPI_Pcontrol" {
            continue;
        }
        c(&mut code, function);
        fortran(&mut code, function, library);
    }
    code
}

fn c(code: &mut String, function: &Function) {
    let name = &function.name;
    let (base, large) = match name.strip_suffix("_c") {
        Some(base) => (base, true),
        None => (&name[..], false),
    };
    let base = base.replace("MPIX_", "MPI_");
    let (handler, extra) = handler(&base);
    let binding = format!("C<{large}>");
    let called = format!("{handler}::<{binding}>");
    wrapper(
        code,
        "wrapper",
        [name, name],
        function.parameters,
        &called,
        extra,
    );
}

fn fortran(code: &mut String, function: &Function, library: &Library) {
    let name = &function.name;
    let lower = name.to_ascii_lowercase();
    let (handler, extra) = handler(&name.replace("MPIX_", "MPI_"));
    // Functions without a meaning besides that of a region, and those that need it, get the lengths of texts, which follow the
    // error code. MPI_Init has no parameters but the error code.
    let has_lengths = matches!(&handler[..], "region" | "make_from_group");
    let parameters = match &name[..] {
        "MPI_Init" => 1,
        "MPI_Init_thread" => 3,
        _ if has_lengths => function.parameters + 1 + function.texts,
        _ => function.parameters + 1,
    };
    for (ending, binding) in FORTRAN {
        let symbol = format!("{lower}{ending}");
        if !library.symbols.contains(&symbol) {
            continue;
        }
        // Where lengths are at the end, the handler does not read the error code there.
        let kind = if has_lengths {
            "wrapper"
        } else {
            "fortran_wrapper"
        };
        // They call the function of C with large counts.
        let large = format!("{name}_c");
        let called = if ending.ends_with("large_") {
            &large
        } else {
            name
        };
        wrapper(
            code,
            kind,
            [&symbol, called],
            parameters,
            &format!("{handler}::<{binding}>"),
            extra,
        );
        if ending == "_" {
            let spellings = [
                lower.clone(),
                format!("{lower}__"),
                name.to_ascii_uppercase(),
            ];
            for other in spellings
                .iter()
                .filter(|other| library.symbols.contains(*other))
            {
                let _ = writeln!(code, "alias!({other}, {symbol});");
            }
        }
    }
}

fn wrapper(
    code: &mut String,
    kind: &str,
    [symbol, name]: [&str; 2],
    parameters: usize,
    handler: &str,
    extra: &str,
) {
    let list: Vec<String> = (0..parameters).map(|index| format!("a{index}")).collect();
    let list = list.join(", ");
    let _ = writeln!(
        code,
        "{kind}!({symbol}, c\"{symbol}\", c\"{name}\", [{list}], {handler}, ({extra}));"
    );
}
