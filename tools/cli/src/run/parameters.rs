//! Parameters of an experiment: every combination of their values is launched, with the values in place of their names.

use std::str::FromStr;

use downbeat_common::nearest;
use downbeat_common::sizes::Sizes;
use downbeat_common::{Failure, did_you_mean};

/// A parameter with its values: `size=1,2,4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    name: String,
    /// Distinct values, at least one.
    values: Vec<String>,
}

/// Values of all parameters, in the order of the command line.
pub(super) type Combination<'a> = Vec<(&'a str, &'a str)>;

const OPTION: &str = "--parameter";

/// Maximum number of combinations; more are a mistake.
const MOST: usize = 1_000;

/// Placeholders that every launch has.
const RESERVED: [&str; 2] = ["out", "launch"];

impl FromStr for Parameter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, list)) = text.split_once('=') else {
            return Err("must be a name, = and values: size=1,2,4 or size=1..64*2".to_owned());
        };
        if !is_name(name) {
            return Err(format!(
                "\"{}\": a name must begin with a letter, and contain only letters, digits, - and _",
                name.escape_debug()
            ));
        }
        if RESERVED.contains(&name) {
            return Err(format!(
                "{{{name}}} has a meaning already: choose another name"
            ));
        }
        let mut values = Vec::<String>::new();
        for item in list.split(',') {
            for value in values_of(item).map_err(|why| format!("{name}: {why}"))? {
                // Some file systems ignore case.
                if values
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(&value))
                {
                    return Err(format!("{name}: the value {value} is given twice"));
                }
                values.push(value);
            }
        }
        Ok(Self {
            name: name.to_owned(),
            values,
        })
    }
}

/// Returns true for characters that every file system takes in the name of a folder, as names of variants and values of parameters
/// become.
pub(super) fn fits_folders(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._+=@-".contains(c)
}

/// Returns one value, or those of a range.
fn values_of(item: &str) -> Result<Vec<String>, String> {
    if item.is_empty() {
        return Err("a value is empty".to_owned());
    }
    if item.contains("..") {
        let numbers: Sizes = item.parse()?;
        let numbers = numbers.as_slice();
        if numbers.len() > MOST {
            return Err(format!("{item}: more than {MOST} values"));
        }
        return Ok(numbers.iter().map(u64::to_string).collect());
    }
    if !item.chars().all(fits_folders) {
        return Err(format!(
            "\"{}\": a value can contain only letters, digits and . _ + = @ -, as it becomes part of the name of a folder",
            item.escape_debug()
        ));
    }
    Ok(vec![item.to_owned()])
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Returns all combinations of values, the last parameter changing fastest; one empty combination without parameters.
///
/// # Errors
/// If a parameter is given twice, or there are too many combinations.
pub(super) fn combinations(parameters: &[Parameter]) -> Result<Vec<Combination<'_>>, Failure> {
    let mut all = vec![Combination::new()];
    for (i, Parameter { name, values }) in parameters.iter().enumerate() {
        if parameters[..i].iter().any(|before| before.name == *name) {
            return Err(Failure::option(OPTION, format!("{name} is given twice")));
        }
        if all.len() * values.len() > MOST {
            let why = format!("there are more than {MOST} combinations of values");
            return Err(Failure::option(OPTION, why));
        }
        let mut longer = Vec::new();
        for combination in &all {
            for value in values {
                longer.push([&combination[..], &[(name.as_str(), value.as_str())]].concat());
            }
        }
        all = longer;
    }
    Ok(all)
}

/// Checks that texts, which are replaced together, contain every parameter, and nothing that was probably meant to be one.
///
/// # Errors
/// If they do not.
pub(super) fn check_use<'a>(
    parameters: &[Parameter],
    texts: impl Iterator<Item = &'a str>,
) -> Result<(), Failure> {
    let names = || parameters.iter().map(|parameter| parameter.name.as_str());
    let used: Vec<&str> = texts.flat_map(placeholders).collect();
    for name in used
        .iter()
        .filter(|name| !RESERVED.contains(*name) && !names().any(|known| known == **name))
    {
        if let [near] = nearest(name, names(), 1)[..] {
            let meant = did_you_mean(Some(&format!("{{{near}}}")));
            let why = format!("there is no parameter for {{{name}}}{meant}");
            return Err(Failure::option(OPTION, why));
        }
    }
    match names().find(|name| !used.contains(name)) {
        Some(unused) => Err(Failure::option(
            OPTION,
            format!("{unused}: no word of the command contains {{{unused}}}"),
        )),
        None => Ok(()),
    }
}

/// Returns the names in braces.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split('{').skip(1);
    names.filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        is_name(name).then_some(name)
    })
}

/// Replaces names in braces by their values.
pub(super) fn replaced(text: &str, combination: &[(&str, &str)]) -> String {
    // One pass, since a value and what follows it must not become a name.
    let mut parts = text.split('{');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let value = part.split_once('}').and_then(|(name, rest)| {
            let (_, value) = combination.iter().find(|(known, _)| *known == name)?;
            Some((value, rest))
        });
        match value {
            Some((value, rest)) => result.extend([value, rest]),
            None => result.extend(["{", part]),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(text: &str) -> Parameter {
        text.parse().unwrap()
    }

    #[test]
    fn values_are_listed_or_ranges() {
        let values = |text: &str| parameter(text).values.join(" ");
        assert_eq!(values("a=1,x.y,-O2"), "1 x.y -O2");
        assert_eq!(values("a=1..16*2,100,0..6+3"), "1 2 4 8 16 100 0 3 6");
        assert_eq!(values("a=k=v"), "k=v");
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for (text, why) in [
            ("size", "must be a name, = and values"),
            ("=1", "\"\": a name must begin with a letter"),
            ("1a=1", "\"1a\": a name must begin with a letter"),
            ("a b=1", "\"a b\": a name"),
            ("out=1", "{out} has a meaning already"),
            ("launch=1", "{launch} has a meaning already"),
            ("a=", "a: a value is empty"),
            ("a=1,,2", "a: a value is empty"),
            ("a=1,2,1", "a: the value 1 is given twice"),
            ("a=1..8*2,4", "a: the value 4 is given twice"),
            ("a=x,X", "a: the value X is given twice"),
            ("a=b/c", "a: \"b/c\": a value can contain only"),
            ("a=\n", "a: \"\\n\": a value can contain only"),
            ("a=1..8", "a: "),
            ("a=1..99999+1", "a: 1..99999+1: more than 1000 values"),
        ] {
            let said = text.parse::<Parameter>().unwrap_err();
            assert!(said.starts_with(why), "{text}: {said}");
        }
    }

    #[test]
    fn all_combinations_are_made_and_counted() {
        let two = [parameter("a=1,2"), parameter("b=x,y")];
        let shown: Vec<String> = combinations(&two)
            .unwrap()
            .iter()
            .map(|combination| replaced("{a}{b}", combination))
            .collect();
        assert_eq!(shown, ["1x", "1y", "2x", "2y"]);
        assert_eq!(combinations(&[]).unwrap(), [vec![]]);
        for (parameters, why) in [
            (["a=1", "a=2"], "--parameter: a is given twice"),
            (["a=1..40+1", "b=1..40+1"], "more than 1000 combinations"),
        ] {
            let failure = combinations(&parameters.map(parameter)).unwrap_err();
            assert!(
                matches!(&failure, Failure::Input(said) if said.contains(why)),
                "{failure:?}"
            );
        }
    }

    #[test]
    fn names_in_braces_are_replaced_once() {
        let with = |text| replaced(text, &[("a", "1"), ("b", "a")]);
        assert_eq!(with("x{a}y{b}{a}"), "x1ya1");
        assert_eq!(with("{{b}}"), "{a}");
        assert_eq!(with("{c} { } {a"), "{c} { } {a");
        assert_eq!(with("{out}/{launch}"), "{out}/{launch}");
    }

    #[test]
    fn unused_and_mistyped_names_are_pointed_out() {
        let check = |texts: &[&str]| {
            let checked = check_use(&[parameter("size=1")], texts.iter().copied());
            checked.map_err(|failure| match failure {
                Failure::Input(why) => why,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(check(&["p", "-n{size}", "{x}", "{ print }"]), Ok(()));
        assert_eq!(
            check(&["{sizes}"]).unwrap_err(),
            "--parameter: there is no parameter for {sizes}; did you mean {size}?"
        );
        assert_eq!(
            check(&["p", "size"]).unwrap_err(),
            "--parameter: size: no word of the command contains {size}"
        );
    }
}
