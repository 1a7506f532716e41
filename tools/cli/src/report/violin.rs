//! Violin plots of the observations of every launch, with Tukey's box in each.

use downbeat_records::stats::Sample;

use super::launch_places::{self, LaunchPlace};
use super::smooth;
use downbeat_common::page::axis::{Axis, range};
use downbeat_common::page::frame::Frame;
use downbeat_common::page::style;
use downbeat_common::page::svg::Picture;
use downbeat_common::units::{self, joined};

/// Violin of one launch.
#[derive(Debug)]
pub(crate) struct Violin<'a> {
    pub(crate) of: LaunchPlace,
    /// Observations without outliers.
    pub(crate) kept: Sample<'a>,
}

/// Number of points of the outline of a violin.
const POINTS: usize = 64;
/// Minimum width of a violin; launches with less space have boxes only.
const NARROWEST: f64 = 5.0;

/// Draws the launches; `None` if there are none. `outliers` is the number of observations that are not drawn, which the plot
/// names.
pub(crate) fn picture(
    title: String,
    names: &[String],
    violins: &[Violin<'_>],
    outliers: usize,
) -> Option<Picture> {
    let ends = |violin: &Violin<'_>| [0.0, 1.0].map(|share| violin.kept.quantile(share));
    let [low, high] = range(violins.iter().flat_map(ends))?;
    let label = match outliers {
        0 => "launch".to_owned(),
        more => format!(
            "launch ({} not shown)",
            units::counted(more, "outlier", "outliers")
        ),
    };
    let x = Axis::exact(&label, 0.0, violins.len() as f64, Vec::new());
    let mut frame = Frame::new(x, Axis::times("run-time", low, high, 5), names, 210.0);
    let slot = frame.at_x(1.0) - frame.at_x(0.0);
    for (place, violin) in violins.iter().enumerate() {
        let text = describe_one(names, violin);
        draw(&mut frame, place as f64 + 0.5, slot, violin, &text);
    }
    let places: Vec<LaunchPlace> = violins.iter().map(|violin| violin.of).collect();
    launch_places::label(&mut frame, &places);
    if names.len() > 1 {
        launch_places::mark(&mut frame, &places);
    }
    let described = violins.iter();
    let described = described.map(|violin| describe_one(names, violin) + ".");
    Some(frame.finish(title, joined(described, " ")))
}

fn draw(frame: &mut Frame, place: f64, slot: f64, violin: &Violin<'_>, text: &str) {
    let (x, kept) = (frame.at_x(place), &violin.kept);
    let (low, high) = (kept.quantile(0.0), kept.quantile(1.0));
    let density = if slot < NARROWEST {
        None
    } else {
        smooth::launch_density(kept, POINTS)
    };
    let outline = density.map(|density| {
        let widest = density.heights.iter().copied().fold(0.0, f64::max);
        let half = (0.45 * slot).min(22.0);
        let inside = density.points().filter(|(at, _)| (low..=high).contains(at));
        let right: Vec<_> = inside
            .map(|(at, height)| (x + half * height / widest, frame.at_y(at)))
            .collect();
        let left = right.iter().rev().map(|(right, y)| (2.0 * x - right, *y));
        right.iter().copied().chain(left).collect::<Vec<_>>()
    });
    let [low, first, median, third, high] =
        [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| frame.at_y(kept.quantile(share)));
    let half = (0.16 * slot).clamp(0.8, 7.0);
    frame.canvas.titled(text, |canvas| {
        canvas.rectangle(
            "hit",
            (x - 0.5 * slot, high - 2.0),
            (slot, low - high + 4.0),
        );
        if let Some(outline) = outline {
            canvas.path(
                &format!("area {}", style::colour(violin.of.series)),
                &outline,
            );
        }
        canvas.line("axis", (x, low), (x, high));
        canvas.rectangle("box", (x - half, third), (2.0 * half, first - third));
        canvas.line("median", (x - half, median), (x + half, median));
    });
}

fn describe_one(names: &[String], violin: &Violin<'_>) -> String {
    let name = names.get(violin.of.series).map_or("", String::as_str);
    let [low, first, median, third, high] =
        [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| units::time(violin.kept.quantile(share)));
    format!(
        "{name}, launch {}: median {median}, quartiles {first} and {third}, from {low} to {high}, {}",
        violin.of.launch,
        units::counted(violin.kept.len(), "observation", "observations")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_launch_has_a_violin_a_box_and_a_number() {
        let mut data: Vec<Vec<f64>> = (0..6)
            .map(|launch| {
                (0..50)
                    .map(|i| f64::from(400 + launch + i * i % 17))
                    .collect()
            })
            .collect();
        let violins: Vec<_> = data
            .iter_mut()
            .enumerate()
            .map(|(i, nanos)| Violin {
                of: LaunchPlace {
                    series: i / 3,
                    launch: i % 3 + 1,
                },
                kept: Sample::new(nanos).unwrap(),
            })
            .collect();
        let names = ["one".to_owned(), "two".to_owned()];
        let drawn = picture("launches".into(), &names, &violins, 12)
            .unwrap()
            .inline(1);
        assert_eq!(drawn.matches("class=\"area c0\"").count(), 3);
        assert_eq!(drawn.matches("class=\"area c1\"").count(), 3);
        assert_eq!(drawn.matches("class=\"box\"").count(), 6);
        assert_eq!(drawn.matches("class=\"border\"").count(), 1);
        // Above the violins, and in the legend.
        assert_eq!(drawn.matches("class=\"m c0\"").count(), 2);
        assert_eq!(drawn.matches(">3</text>").count(), 2);
        assert!(
            drawn.contains("launch (12 outliers not shown)")
                && drawn.contains("two, launch 3: median ")
        );
        assert!(picture("none".into(), &names, &[], 0).is_none());
    }

    #[test]
    fn equal_observations_are_a_line() {
        let mut same = [5.0; 9];
        let violins = [Violin {
            of: LaunchPlace {
                series: 0,
                launch: 1,
            },
            kept: Sample::new(&mut same).unwrap(),
        }];
        let drawn = picture("same".into(), &["one".to_owned()], &violins, 0)
            .unwrap()
            .inline(1);
        assert!(!drawn.contains("area") && drawn.contains("class=\"box\""));
        // Without a legend, a mark of the experiment would mean nothing.
        assert!(!drawn.contains("class=\"m c0\""), "{drawn}");
    }
}
