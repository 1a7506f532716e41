//! Names that resemble one that is not known.

/// Returns at most `most` of the names, those with the fewest differences from `wanted` first. Names that differ in more
/// than half of their letters are left out.
pub fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    // Longer names, which files may contain, resemble nothing.
    const LONGEST: usize = 200;
    let letters = |text: &str| -> Vec<char> { text.to_lowercase().chars().take(LONGEST).collect() };
    let wanted = letters(wanted);
    let mut found: Vec<(usize, usize, &str)> = vec![];
    for name in names {
        let other = letters(name);
        let distance = distance(&wanted, &other);
        if 2 * distance <= wanted.len().max(other.len()) {
            found.push((distance, wanted.len().abs_diff(other.len()), name));
        }
    }
    found.sort_unstable();
    found.dedup();
    let found = found.into_iter().map(|(.., name)| name);
    found.take(most).collect()
}

/// Returns the number of letters that are changed, added or removed between two words.
fn distance(one: &[char], two: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, letter) in (1..).zip(one) {
        let mut before = std::mem::replace(&mut row[0], i);
        for (j, other) in (1..).zip(two) {
            let changed = before + usize::from(letter != other);
            before = row[j];
            row[j] = changed.min(row[j] + 1).min(row[j - 1] + 1);
        }
    }
    row[two.len()]
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
        let count = |one: &str, two: &str| {
            let [one, two] = [one, two].map(|text| text.chars().collect::<Vec<_>>());
            distance(&one, &two)
        };
        assert_eq!(
            [
                count("kitten", "sitting"),
                count("", "abc"),
                count("a", "a")
            ],
            [3, 3, 0]
        );
    }
}
