//! The steps that may be reported as "not run". Any other step that cannot run fails.

use downbeat_launch::command::succeeds_quietly;

/// Commands that fail on some machines, with the reasons; below each the steps that need
/// what it needs.
const LIST: &str = include_str!("may_not_run.txt");

/// Returns why some machines cannot run the step, and the command that fails there.
pub(crate) fn requirement(step: &str) -> Option<(&'static str, String)> {
    let mut group = None;
    for line in LIST.lines() {
        let Some(listed) = line.strip_prefix("    ") else {
            group = line.split_once(" = ");
            continue;
        };
        let rest = match listed.strip_suffix('*') {
            Some(beginning) => step.strip_prefix(beginning),
            None => (step == listed).then_some(""),
        };
        if let (Some(rest), Some((probe, reason))) = (rest, group) {
            return Some((reason, probe.replace('*', rest)));
        }
    }
    None
}

/// Returns the reason if this machine cannot run the step and the step is listed.
pub(crate) fn reason_not_to_run(step: &str) -> Option<&'static str> {
    let (reason, probe) = requirement(step)?;
    (!succeeds_quietly(&probe)).then_some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Depth;
    use crate::checks;
    use crate::workspace::Workspace;

    #[test]
    fn requirements_of_steps_are_found() {
        let target = "target: thumbv7em-none-eabihf";
        let (reason, probe) = requirement(target).unwrap();
        assert_eq!(probe, "rustup target add thumbv7em-none-eabihf");
        assert!(reason.starts_with("needs the standard library"));
        let (_, probe) = requirement("OTF2's Python module").unwrap();
        assert!(probe.ends_with("otf2==3.2"), "{probe}");
        assert_eq!(requirement("fmt"), None);
    }

    #[test]
    fn every_listed_step_is_one_of_a_long_run() {
        let workspace = Workspace::read().unwrap();
        let steps = checks::all(&workspace, Depth::Long);
        let listed = LIST.lines().filter_map(|line| line.strip_prefix("    "));
        for listed in listed {
            let beginning = listed.trim_end_matches('*');
            let mut names = steps.iter().map(|step| &step.place.name);
            assert!(names.any(|name| name.starts_with(beginning)), "{listed}");
        }
    }
}
