//! Items of an archive, as in a trace file.

use std::collections::BTreeMap;

use downbeat_clock_core::spline::SplineKnot;
use downbeat_clock_core::{Global, Timestamp};
use downbeat_otf2::MetricValue;
use rustc_hash::FxHashMap;

use super::stream::EventSink;
use super::teams::Otf2Teams;
use super::{Archive, Otf2Error, PartRead, ReadOptions};
use crate::definitions::Definitions;
use crate::formats::Item;
use crate::formats::definitions::valid_name;
use crate::{Event, LocationId, Quantity, TraceBuilder};

/// Conversion of an archive to [`Item`]s.
struct Items<'a, F> {
    archive: &'a Archive,
    /// Numbers of regions.
    regions: FxHashMap<u32, u32>,
    /// First number of the metrics of a class or instance, by its reference, and their factors.
    metrics: FxHashMap<u32, (u32, Vec<f64>)>,
    /// Number of communicators that have members.
    with_members: u32,
    /// Numbers of the communicators of one location alone that are used, by the
    /// communicator of all of them and the location.
    own: FxHashMap<(u32, u32), u32>,
    /// Numbers of events for which there is no item, by their kinds.
    left_out: BTreeMap<String, u64>,
    take: F,
}

impl Archive {
    /// Passes the items of the archive to `take`, all definitions first. Only a chunk of
    /// one location's file, and events whose meaning depends on later ones, are in memory
    /// at a time. Returns the numbers of events and definitions of unsupported kinds,
    /// which are left out, by the names of the kinds in OTF2, and what was only counted.
    ///
    /// Regions keep the names of the archive. Events without a meaning for other locations, such as
    /// the test of a request, become notes. Clock offsets that are not added to times become
    /// [sessions](Self::sessions). Values of metrics are in their units. Unmatched events are passed on
    /// as well.
    ///
    /// # Errors
    /// When a file is damaged, when events are not valid in a trace, or when `take` returns an
    /// error.
    pub fn for_each_item<E: From<Otf2Error>>(
        &self,
        reading: &ReadOptions,
        take: impl FnMut(&Item<'_>) -> Result<(), E>,
    ) -> Result<(BTreeMap<String, u64>, PartRead), E> {
        let mut builder = TraceBuilder::new(reading.matching);
        let teams = Otf2Teams::new(self, &mut builder)?;
        let mut items = Items {
            archive: self,
            regions: FxHashMap::default(),
            metrics: FxHashMap::default(),
            with_members: teams.with_members,
            own: FxHashMap::default(),
            left_out: self.definitions.left_out.clone(),
            take,
        };
        let locations = self.in_trace(&teams.locations);
        items.add_locations(&builder.definitions, &locations)?;
        items.add_definitions()?;
        if !self.adds_offsets(reading) {
            items.add_sessions(&locations)?;
        }
        let mut read = PartRead::default();
        for index in 0..self.locations.len() {
            read.merge(self.read_location(index, reading, &teams, &mut items)?);
        }
        Ok((items.left_out, read))
    }
}

impl<E: From<Otf2Error>, F: FnMut(&Item<'_>) -> Result<(), E>> Items<'_, F> {
    fn take(&mut self, item: &Item<'_>) -> Result<(), E> {
        (self.take)(item)
    }

    fn take_event(
        &mut self,
        (location, time): (u32, Timestamp<Global>),
        event: Event<'_>,
    ) -> Result<(), E> {
        self.take(&Item::Event {
            location,
            time,
            event,
        })
    }

    /// Counts an event of this kind that is left out.
    fn leave_out(&mut self, kind: &str) {
        match self.left_out.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.left_out.insert(kind.to_owned(), 1)),
        }
    }

    /// Passes the locations of the trace, which have these indices in the archive, and
    /// the communicators.
    fn add_locations(&mut self, known: &Definitions, locations: &[usize]) -> Result<(), E> {
        for (number, index) in (0..).zip(locations) {
            let found = &self.archive.locations[*index];
            let name = &valid_name(&found.name, "location", found.id);
            let (place, rank) = (known.places[number], known.processes[number]);
            self.take(&match rank as usize == number {
                true => Item::Location { place, name },
                false => Item::Thread { rank, name },
            })?;
        }
        let with_members = &known.teams[..self.with_members as usize];
        with_members
            .iter()
            .try_for_each(|members| self.take(&Item::Communicator { members }))
    }

    /// Passes regions, metrics, and the location of the master's clock.
    fn add_definitions(&mut self) -> Result<(), E> {
        let definitions = &self.archive.definitions;
        for (region, name) in &definitions.region_names {
            self.add_region(*region, definitions.string(*name))?;
        }
        self.add_metrics()?;
        match self.archive.master() {
            Some(location) => self.take(&Item::Master { location }),
            None => Ok(()),
        }
    }

    /// Returns the number of a region, which is defined here if it is not yet.
    fn region(&mut self, region: u32) -> Result<u32, E> {
        match self.regions.get(&region) {
            Some(known) => Ok(*known),
            None => self.add_region(region, ""),
        }
    }

    fn add_region(&mut self, region: u32, text: &str) -> Result<u32, E> {
        let number = self.regions.len() as u32;
        self.regions.insert(region, number);
        self.take(&Item::Region {
            name: &valid_name(text, "region", region.into()),
        })?;
        Ok(number)
    }

    fn add_metrics(&mut self) -> Result<(), E> {
        let mut number = 0;
        for (reference, metrics) in self.archive.definitions.metrics() {
            for metric in &metrics {
                self.take(&Item::Metric {
                    name: &valid_name(&metric.name, "metric", number.into()),
                    unit: metric.unit,
                })?;
            }
            let scales: Vec<f64> = metrics.iter().map(|metric| metric.scale).collect();
            let first = number;
            number += scales.len() as u32;
            self.metrics.insert(reference, (first, scales));
        }
        Ok(())
    }

    /// Passes clock samples that correspond to the clock offsets of the archive.
    fn add_sessions(&mut self, locations: &[usize]) -> Result<(), E> {
        for (location, index) in (0..).zip(locations) {
            for (session, samples) in (0..).zip(self.archive.sessions_of(*index)) {
                for SplineKnot {
                    at: local,
                    image: master,
                } in samples
                {
                    self.take(&Item::Sample {
                        location,
                        session,
                        local,
                        master,
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Returns a message with the number of its communicator among the items: a
    /// communicator of one location alone is defined when it is used.
    fn with_own_communicator<'e>(&mut self, mut event: Event<'e>) -> Result<Event<'e>, E> {
        let (Event::Send {
            to: process,
            communicator,
            ..
        }
        | Event::Receive {
            from: process,
            communicator,
            ..
        }) = &mut event
        else {
            return Ok(event);
        };
        if *communicator >= self.with_members {
            let of = (*communicator, *process);
            if !self.own.contains_key(&of) {
                let next = self.with_members + self.own.len() as u32;
                self.own.insert(of, next);
                let members = &[*process];
                self.take(&Item::Communicator { members })?;
            }
            *communicator = self.own[&of];
        }
        Ok(event)
    }
}

impl<E: From<Otf2Error>, F: FnMut(&Item<'_>) -> Result<(), E>> EventSink for Items<'_, F> {
    type Error = E;

    fn values(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        metric: u32,
        values: &mut dyn Iterator<Item = MetricValue>,
    ) -> Result<(), E> {
        let Some((first, scales)) = self.metrics.get(&metric) else {
            self.leave_out("Metric");
            return Ok(());
        };
        for ((metric, scale), value) in (*first..).zip(scales).zip(values) {
            let value = quantity(value, *scale);
            (self.take)(&Item::Event {
                location: location.0,
                time,
                event: Event::Metric { metric, value },
            })?;
        }
        Ok(())
    }

    fn event(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        event: Event<'_>,
        meaning: Option<Event<'_>>,
    ) -> Result<(), E> {
        let at = (location.0, time);
        let meaning = meaning.map(|event| self.with_own_communicator(event));
        let meaning = meaning.transpose()?;
        // Some regions are also operations, such as barriers of threads: the operation is inside of
        // the region.
        match (event, meaning) {
            (Event::Enter { region }, _) => {
                let region = self.region(region)?;
                self.take_event(at, Event::Enter { region })?;
                meaning.map_or(Ok(()), |event| self.take_event(at, event))
            }
            (Event::Leave { region }, _) => {
                let region = self.region(region)?;
                meaning.map_or(Ok(()), |event| self.take_event(at, event))?;
                self.take_event(at, Event::Leave { region })
            }
            (Event::Note(_), Some(event)) => self.take_event(at, event),
            (Event::Note(text), None) => {
                self.take_event(at, Event::Note(&valid_name(text, "note", 0)))
            }
            (Event::Opaque(kind), _) => {
                if !kind.is_empty() {
                    self.leave_out(kind);
                }
                Ok(())
            }
            (event, _) => self.take_event(at, event),
        }
    }
}

/// Returns a value in the unit of its metric.
fn quantity(value: MetricValue, scale: f64) -> Quantity {
    let (whole, real) = match value {
        MetricValue::I64(value) => (Some(value), value as f64),
        MetricValue::U64(value) | MetricValue::Other(_, value) => {
            (i64::try_from(value).ok(), value as f64)
        }
        MetricValue::F64(value) => (None, value),
    };
    match whole {
        Some(value) if scale == 1.0 => Quantity::Whole(value),
        _ => Quantity::Real(real * scale),
    }
}
