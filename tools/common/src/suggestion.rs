//! The name that was probably meant, where one is not known.

use clap::error::{ContextKind, ContextValue, Error};

/// Phrases before the names that a message lists.
const BEFORE_NAMES: [&str; 3] = [" are ", "there is ", "expected "];

/// Commands with another name than before, which none resembles.
const RENAMED: [(&str, &str); 1] = [("clocks", "nodes")];

/// Returns the option, command or value that resembles the one that clap or a parser of values refused with this message.
pub(crate) fn suggestion(error: &Error, message: &str) -> Option<String> {
    let unknown = error.get(ContextKind::InvalidSubcommand).and_then(best);
    let renamed = RENAMED
        .iter()
        .find(|(before, _)| unknown.as_deref() == Some(*before));
    if let Some((_, now)) = renamed {
        return Some((*now).to_owned());
    }
    let known = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ];
    known
        .into_iter()
        .find_map(|kind| best(error.get(kind)?))
        .or_else(|| listed(&best(error.get(ContextKind::InvalidValue)?)?, message))
}

/// Asks for a name that was probably meant, behind what is wrong; empty without one.
pub fn did_you_mean(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

/// Returns the text, or that which clap found most similar: the last one.
fn best(value: &ContextValue) -> Option<String> {
    match value {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.last().cloned(),
        _ => None,
    }
}

/// Returns the name of those that a message lists that resembles a part of the refused value most.
fn listed(value: &str, message: &str) -> Option<String> {
    let list = BEFORE_NAMES
        .iter()
        .find_map(|phrase| Some(message.rsplit_once(phrase)?.1))?;
    let part_of_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let names = |text| -> Vec<&str> {
        str::split(text, |c| !part_of_name(c))
            .filter(|name| name.len() > 1)
            .collect()
    };
    let known = names(list);
    let unknown = names(value)
        .into_iter()
        .filter(|name| !known.contains(name));
    unknown
        .flat_map(|name| nearest(name, known.iter().copied(), 1))
        .next()
        .map(str::to_owned)
}

/// Returns at most `most` of the names, the ones with the fewest differences from `wanted` first.
/// Names that differ in more than a third of their letters are left out.
pub fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    // Longer names, which files may contain, resemble nothing.
    const LONGEST: usize = 200;
    let letters = |text: &str| {
        text.to_lowercase()
            .chars()
            .take(LONGEST)
            .collect::<String>()
    };
    let wanted = letters(wanted);
    let mut found: Vec<(usize, usize, &str)> = vec![];
    for name in names {
        let other = letters(name);
        let distance = strsim::osa_distance(&wanted, &other);
        let [length, of_other] = [&wanted, &other].map(|text| text.chars().count());
        if 3 * distance <= length.max(of_other) {
            found.push((distance, length.abs_diff(of_other), name));
        }
    }
    found.sort_unstable();
    found.dedup();
    let found = found.into_iter().map(|(.., name)| name);
    found.take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let names = [
            "MPI_Send",
            "MPI_Allreduce",
            "MPI_Reduce",
            "main",
            "MPI_Allreduce",
        ];
        assert_eq!(
            nearest("MPI_AllReduce", names, 3),
            ["MPI_Allreduce", "MPI_Reduce"]
        );
        assert_eq!(nearest("mpi_sent", names, 1), ["MPI_Send"]);
        assert_eq!(nearest("zzz", names, 3), [""; 0]);
    }

    #[test]
    fn a_name_that_a_message_lists_is_suggested() {
        let algorithms = "there is no algorithm \"hac3\"; the algorithms are none, jk, hca, hca2, hca3 and h2hca(...)";
        assert_eq!(listed("hac3/100/skampi/10", algorithms).unwrap(), "hca3");
        let offsets = "the offset algorithms are skampi, mean-rtt and trace-collector";
        assert_eq!(listed("hca3/100/skamp/10", offsets).unwrap(), "skampi");
        assert_eq!(listed("mean-rt", offsets).unwrap(), "mean-rtt");
        assert_eq!(listed("xyz", offsets), None);
        assert_eq!(listed("hca3/0", "must be at least 1"), None);
        let form = "expected a name and a number from 1, as MPI_Allreduce:1234";
        assert_eq!(listed("MPI_Allreduce:NaN", form), None);
    }
}
