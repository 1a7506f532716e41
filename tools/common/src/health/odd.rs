//! Nodes that differ from most others.

use super::ClockHealth;
use crate::output::count;

/// Property of a node, with its name.
struct Property<T> {
    name: &'static str,
    of: fn(&ClockHealth) -> T,
}

/// Properties that are equal on the nodes of a homogeneous cluster.
const EQUAL: [Property<String>; 5] = [
    Property {
        name: "node",
        of: |node| node.kind.clone(),
    },
    Property {
        name: "hypervisor",
        of: |node| node.hypervisor.clone().unwrap_or_default(),
    },
    Property {
        name: "counter",
        of: |node| match &node.counter {
            Ok(counter) => match &counter.doubt {
                Some(doubt) => format!("{}, but {doubt}", counter.name),
                None => counter.name.clone(),
            },
            Err(why) => why.clone(),
        },
    },
    Property {
        name: "system time",
        of: |node| match &node.system_time {
            Ok(found) if found.synchronized => "synchronized".to_owned(),
            Ok(_) => "NOT synchronized".to_owned(),
            Err(why) => why.clone(),
        },
    },
    Property {
        name: "PTP clocks",
        of: |node| {
            let names: Vec<&str> = node.ptp.iter().map(|one| one.clock.as_str()).collect();
            names.join(", ")
        },
    },
];

/// Properties that are near each other, in parts per million.
const NEAR: [Property<Option<f64>>; 2] = [
    Property {
        name: "counter's rate",
        // The logarithm, so that differences are relative.
        of: |node| Some(node.counter.as_ref().ok()?.ticks_per_second.ln() * 1e6),
    },
    Property {
        name: "adjustment of the system time",
        of: |node| Some(node.system_time.as_ref().ok()?.adjustment_ppm),
    },
];

/// Oscillators of one kind differ by some tens of ppm at most.
const UNUSUAL_PPM: f64 = 100.0;

/// Describes in one line each what sets a node apart from most others; empty if nothing does.
pub fn odd_nodes(nodes: &[ClockHealth]) -> Vec<String> {
    let different = EQUAL.iter().flat_map(|property| different(property, nodes));
    let distant = NEAR.iter().flat_map(|property| distant(property, nodes));
    different.chain(distant).collect()
}

fn different(property: &Property<String>, nodes: &[ClockHealth]) -> Vec<String> {
    let values: Vec<String> = nodes.iter().map(property.of).collect();
    let frequency = |value: &String| values.iter().filter(|other| *other == value).count();
    let Some(common) = values
        .iter()
        .find(|value| frequency(value) * 2 > values.len())
    else {
        return Vec::new();
    };
    let shown = |value: &str| match value {
        "" => "none".to_owned(),
        value => value.to_owned(),
    };
    let odd = nodes
        .iter()
        .zip(&values)
        .filter(|(_, value)| *value != common);
    let describe = |(node, value): (&ClockHealth, &String)| {
        let (value, common) = (shown(value), shown(common));
        format!(
            "{}: {} is {value}; most others: {common}",
            node.host, property.name
        )
    };
    odd.map(describe).collect()
}

fn distant(property: &Property<Option<f64>>, nodes: &[ClockHealth]) -> Vec<String> {
    let mut values: Vec<f64> = nodes.iter().filter_map(property.of).collect();
    values.sort_by(f64::total_cmp);
    let Some(&median) = values.get(values.len() / 2) else {
        return Vec::new();
    };
    let beyond = |node: &ClockHealth| Some((property.of)(node)? - median);
    let odd = nodes.iter().filter_map(|node| Some((node, beyond(node)?)));
    odd.filter(|(_, beyond)| beyond.abs() > UNUSUAL_PPM)
        .map(|(node, beyond)| {
            format!(
                "{}: {} is {beyond:+.1} ppm from the median of {}",
                node.host,
                property.name,
                count(values.len(), "node")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{sound, unsynchronized};
    use super::*;

    #[test]
    fn odd_nodes_are_those_that_differ_from_most() {
        let mut nodes = ["a", "b", "c"].map(sound);
        assert_eq!(odd_nodes(&nodes), Vec::<String>::new());
        nodes[1] = unsynchronized("b");
        if let Ok(counter) = &mut nodes[2].counter {
            counter.ticks_per_second *= 1.0 + 150e-6;
        }
        assert_eq!(
            odd_nodes(&nodes),
            [
                "b: system time is NOT synchronized; most others: synchronized",
                "c: counter's rate is +150.0 ppm from the median of 3 nodes"
            ]
        );
        // Neither is the odd one of two.
        assert_eq!(odd_nodes(&nodes[..2]), Vec::<String>::new());
        assert_eq!(odd_nodes(&[]), Vec::<String>::new());
        nodes[0].hypervisor = Some("KVM".to_owned());
        assert_eq!(
            odd_nodes(&nodes)[0],
            "a: hypervisor is KVM; most others: none"
        );
    }
}
