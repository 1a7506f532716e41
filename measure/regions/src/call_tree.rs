//! Call tree of a report: each region inside the regions that call it.

use std::collections::BTreeMap;

use super::paths::PathReport;
use super::report::ProfileReport;

/// A region inside others, in a call tree.
#[derive(Clone, Copy, Debug)]
pub struct CallTreeEntry<'a> {
    /// Name of the region.
    pub name: &'a str,
    /// Number of regions around it.
    pub depth: usize,
    /// Its events there; `None` if none has ended, but those of regions inside it have.
    pub path: Option<&'a PathReport>,
}

#[derive(Default)]
struct Branch<'a> {
    path: Option<&'a PathReport>,
    inside: BTreeMap<&'a str, Branch<'a>>,
}

impl ProfileReport {
    /// Returns the call tree, each region before those inside it, the longest first; it is empty if no region is inside another.
    pub fn call_tree(&self) -> Vec<CallTreeEntry<'_>> {
        let mut root = Branch::default();
        for region in &self.regions {
            for path in &region.paths {
                let names = path.callers.iter().chain([&region.name]);
                let branch = names.fold(&mut root, |branch, name| {
                    branch.inside.entry(name).or_default()
                });
                branch.path = Some(path);
            }
        }
        let mut entries = vec![];
        root.list(0, &mut entries);
        if entries.iter().all(|entry| entry.depth == 0) {
            entries.clear();
        }
        entries
    }
}

impl<'a> Branch<'a> {
    fn list(&self, depth: usize, entries: &mut Vec<CallTreeEntry<'a>>) {
        let mut inside: Vec<_> = self.inside.iter().collect();
        // What is still running encloses all others.
        inside.sort_by_key(|(_, branch)| {
            let total = branch.path.map_or(u64::MAX, |path| path.greatest_total);
            core::cmp::Reverse(total)
        });
        for (name, branch) in inside {
            let path = branch.path;
            entries.push(CallTreeEntry { name, depth, path });
            branch.list(depth + 1, entries);
        }
    }
}
