//! Recommendation of a time source.

use super::report::{OrderingReport, Recommendation, SourceReport};

/// Recommends the cheapest source that has ordered reads, never steps and agrees on all cores.
///
/// A source whose rate is adjusted is only recommended if there is no other. `trusted` returns an error for a source, given
/// by name, that must not be recommended.
pub(crate) fn recommend(
    sources: &[SourceReport],
    trusted: impl Fn(&str) -> Result<(), String>,
) -> Recommendation {
    let mut objections = Vec::new();
    let mut candidates: Vec<(&SourceReport, f64, bool)> = Vec::new();
    for source in sources {
        let Some(found) = &source.found else { continue };
        if found.ordering != OrderingReport::Ordered || found.can_step {
            continue;
        }
        let backwards = found.backwards;
        let ran_backwards =
            || (backwards > 0).then(|| format!("it ran backwards {backwards} times"));
        let objection = match found.cores.objection().or_else(ran_backwards) {
            Some(why) => Err(why),
            None => trusted(&source.name),
        };
        match objection {
            Ok(()) => candidates.push((source, found.read_cost_median_ns, found.slewed)),
            Err(why) => objections.push(format!("{}: {why}", source.name)),
        }
    }
    candidates.sort_by(|a, b| a.2.cmp(&b.2).then(a.1.total_cmp(&b.1)));
    let Some((best, _, slewed)) = candidates.first() else {
        let why = format!("no source can be trusted: {}", objections.join("; "));
        return Recommendation {
            source: "none".to_owned(),
            why,
        };
    };
    let mut why = "cheapest source that has ordered reads, never steps, ".to_owned();
    why += if *slewed {
        "(although its rate is adjusted) "
    } else {
        "runs at a rate of its own "
    };
    why += "and agrees on all cores";
    for objection in objections {
        why += &format!("; not {objection}");
    }
    Recommendation {
        source: best.name.clone(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::{CoreAgreement, SourceProperties};
    use super::*;

    fn source(name: &str, cost: f64, change: impl Fn(&mut SourceProperties)) -> SourceReport {
        let mut found = SourceProperties {
            ordering: OrderingReport::Ordered,
            read_cost_median_ns: cost,
            read_cost_p99_ns: cost,
            resolution_ns: Some(1.0),
            grain_ns: Some(1.0),
            backwards: 0,
            can_step: false,
            slewed: false,
            cores: CoreAgreement::Same {
                within_ns: 50,
                pairs: 1,
            },
        };
        change(&mut found);
        SourceReport {
            name: name.to_owned(),
            unavailable: None,
            found: Some(found),
        }
    }

    fn chosen(sources: &[SourceReport]) -> String {
        recommend(sources, |_| Ok(())).source
    }

    #[test]
    fn the_cheapest_suitable_source_is_recommended() {
        let raw = || source("raw", 20.0, |_| {});
        assert_eq!(chosen(&[source("tsc", 15.0, |_| {}), raw()]), "tsc");
        assert_eq!(
            chosen(&[
                source("tsc", 15.0, |f| f.ordering = OrderingReport::Unordered),
                raw()
            ]),
            "raw"
        );
        assert_eq!(
            chosen(&[source("tsc", 15.0, |f| f.can_step = true), raw()]),
            "raw"
        );
        assert_eq!(
            chosen(&[source("tsc", 15.0, |f| f.backwards = 1), raw()]),
            "raw"
        );
        assert_eq!(
            chosen(&[source("mono", 15.0, |f| f.slewed = true), raw()]),
            "raw"
        );
        let apart = CoreAgreement::Differ {
            core: 1,
            reference: 0,
            offset_ns: 500,
            half_width_ns: 40,
        };
        let found = recommend(
            &[source("tsc", 15.0, |f| f.cores = apart.clone()), raw()],
            |_| Ok(()),
        );
        assert_eq!(found.source, "raw");
        assert!(
            found
                .why
                .ends_with("not tsc: it differs between cores 0 and 1"),
            "{}",
            found.why
        );
    }

    #[test]
    fn a_source_that_is_not_trusted_is_named_and_not_recommended() {
        let sources = [source("tsc", 15.0, |_| {}), source("raw", 20.0, |_| {})];
        let found = recommend(&sources, |name| {
            if name == "tsc" {
                Err("the kernel".into())
            } else {
                Ok(())
            }
        });
        assert_eq!(found.source, "raw");
        assert!(found.why.contains("not tsc: the kernel"), "{}", found.why);
        assert_eq!(recommend(&[], |_| Ok(())).source, "none");
    }
}
