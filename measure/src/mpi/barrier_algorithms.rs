//! Barrier algorithms of the MPI library, selected one after the other in one job.

use core::ffi::c_int;

use downbeat_sync::MpiError;

use super::control_variable::{ControlVariable, NamedValue};

/// Barrier algorithms among which the MPI library chooses by itself, and the variable by which one is selected.
///
/// Open MPI and MPICH have such a variable. Selecting one that another component of the library overrides (as vendors' offloaded
/// collectives do) has no effect, which the library does not tell.
#[derive(Debug)]
pub struct BarrierAlgorithms {
    variable: ControlVariable,
    algorithms: Vec<NamedValue>,
}

/// Variables that hold the algorithm: Open MPI's and MPICH's.
const VARIABLES: [&str; 2] = [
    "coll_tuned_barrier_algorithm",
    "MPIR_CVAR_BARRIER_INTRA_ALGORITHM",
];

/// Names of the value with which libraries choose by themselves.
const AUTOMATIC: [&str; 2] = ["ignore", "auto"];

/// Parameter of Open MPI that must be true when MPI is initialized, otherwise the selected algorithm is ignored.
const OPEN_MPI_SWITCH: &str = "OMPI_MCA_coll_tuned_use_dynamic_rules";

impl BarrierAlgorithms {
    /// Makes selections effective: sets a variable of the environment, which Open MPI reads when it is initialized.
    ///
    /// # Safety
    /// No other thread uses the environment meanwhile; MPI is not initialized yet.
    #[expect(unsafe_code, reason = "the environment is shared by all threads")]
    pub unsafe fn enable() {
        // SAFETY: guaranteed by the caller.
        unsafe { std::env::set_var(OPEN_MPI_SWITCH, "1") };
    }

    /// Finds the algorithms; `None` if the library does not offer their selection.
    ///
    /// # Errors
    /// If MPI fails.
    pub fn find() -> Result<Option<Self>, MpiError> {
        let Some(variable) = ControlVariable::find(&VARIABLES)? else {
            return Ok(None);
        };
        let mut algorithms = variable.facts.values.clone();
        if algorithms.is_empty() {
            algorithms = listed_values(&variable.facts.description);
        }
        let is_automatic = |(name, _): &NamedValue| AUTOMATIC.contains(&name.as_str());
        // Without it, these are no algorithms.
        let Some(automatic) = algorithms.iter().position(is_automatic) else {
            return Ok(None);
        };
        algorithms.remove(automatic);
        Ok(Some(Self {
            variable,
            algorithms,
        }))
    }

    /// Returns the names of the algorithms in the library.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.algorithms.iter().map(|(name, _)| name.as_str())
    }

    /// Selects an algorithm for communicators that are created afterwards, until the selection is dropped; `None` if the library has
    /// none of this name. All ranks do the same.
    ///
    /// # Errors
    /// If MPI fails.
    pub fn select(&self, name: &str) -> Result<Option<SelectedBarrier<'_>>, MpiError> {
        let Some((_, value)) = self.algorithms.iter().find(|(known, _)| known == name) else {
            return Ok(None);
        };
        let before = self.variable.read()?;
        self.variable.write(*value)?;
        Ok(Some(SelectedBarrier {
            variable: &self.variable,
            before,
        }))
    }
}

/// Barrier algorithm that is in use.
#[derive(Debug)]
pub struct SelectedBarrier<'a> {
    variable: &'a ControlVariable,
    /// Selection of the user, or the library's own.
    before: c_int,
}

impl Drop for SelectedBarrier<'_> {
    fn drop(&mut self) {
        // It was written to before; a failure now could not be reported.
        let _ = self.variable.write(self.before);
    }
}

/// Returns the values that a description of MPICH lists, whose headers name no values: "NAME - explanation" in the order of the values
/// from 0, often without any separator behind an explanation, which ends with "algorithm" or ")".
fn listed_values(description: &str) -> Vec<NamedValue> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let items = description.split(" - ");
    let mut names: Vec<&str> = items
        .map(|item| {
            let item = item.trim_end();
            let before = item.trim_end_matches(is_word);
            let word = &item[before.len()..];
            word.strip_prefix("algorithm").unwrap_or(word)
        })
        .collect();
    // The last explanation is followed by no item.
    names.pop();
    names.into_iter().map(str::to_owned).zip(0..).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_of_mpich_lists_values() {
        let joined = "Variable to select barrier algorithmauto - Internal algorithm selection (can be overridden with \
                      MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE)nb            - Force nonblocking algorithmsmp           - \
                      Force smp algorithmdissemination - Force dissemination algorithm";
        let lines = "Variable to select barrier algorithm\nauto - Internal algorithm selection\nnb - Force nonblocking algorithm\n\
                     smp - Force smp algorithm\ndissemination - Force dissemination algorithm";
        for description in [joined, lines] {
            let names: Vec<_> = listed_values(description);
            let expected = ["auto", "nb", "smp", "dissemination"].map(str::to_owned);
            assert_eq!(names, expected.into_iter().zip(0..).collect::<Vec<_>>());
        }
        assert_eq!(listed_values("Number of algorithms"), []);
    }
}
