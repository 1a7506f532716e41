//! The reported figures of every preset, compared with hand calculations.

use super::Preset;
use super::recorded::measure;

/// Duration of a barrier, which only presets that time barriers include.
const BARRIER: i64 = 7;

/// Compares the first figures.
#[track_caller]
fn expect(preset: Preset, bytes: u64, times: &[&[i64]], expected: &[(&str, f64)]) {
    let (measured, _) = measure(preset, "bcast", bytes, BARRIER, times);
    assert!(
        measured.figures.len() >= expected.len(),
        "{preset}: {:?}",
        measured.figures
    );
    for (found, (name, nanos)) in measured.figures.iter().zip(expected) {
        assert_eq!(found.name, *name, "{preset}");
        assert!(
            (found.nanos - nanos).abs() <= 1e-9 * nanos,
            "{preset}: {name} is {}, not {nanos}",
            found.nanos
        );
    }
}

/// `first`, repeated `count` times, and then the rest.
fn after(count: usize, first: i64, rest: &[i64]) -> Vec<i64> {
    [vec![first; count], rest.to_vec()].concat()
}

#[test]
fn osu_averages_the_means_of_ranks() {
    // Means of 20 and 40, without barriers.
    expect(
        Preset::Osu,
        1 << 20,
        &[&[10, 30], &[20, 60]],
        &[("mean", 30.0), ("min", 20.0), ("max", 40.0)],
    );
}

#[test]
fn imb_averages_the_means_of_ranks() {
    // 40 MiB are four calls of this size, after one and four for the 10 s, and a single one for warm-up: means of 25 and 30.
    let (one, other) = (
        after(6, 1_000, &[10, 20, 30, 40]),
        after(6, 1_000, &[20, 20, 20, 60]),
    );
    let expected = [("mean", 27.5), ("min", 25.0), ("max", 30.0)];
    expect(Preset::Imb, 10 << 20, &[&one, &other], &expected);
}

#[test]
fn imb_4_averages_the_means_of_the_ranks_series() {
    // Four calls of this size, after two for warm-up and five for the 10 s: means of 25 and 30.
    let (one, other) = (
        after(7, 1_000, &[10, 20, 30, 40]),
        after(7, 1_000, &[20, 20, 20, 60]),
    );
    let expected = [("mean", 27.5), ("min", 25.0), ("max", 30.0)];
    expect(Preset::Imb4, 10 << 20, &[&one, &other], &expected);
}

#[test]
fn phloem_averages_calls_together_with_their_barriers() {
    // Two fit into 50 ms after 24 ms each: means of 20 and 40, and a barrier each.
    let (one, other) = (
        after(6, 24_000_000, &[10, 30]),
        after(6, 24_000_000, &[60, 20]),
    );
    expect(
        Preset::Phloem,
        8,
        &[&one, &other],
        &[("mean", 37.0), ("min", 27.0), ("max", 47.0)],
    );
}

#[test]
fn phloem_16_averages_calls_without_barriers() {
    // As above: means of 20 and 40.
    let (one, other) = (
        after(6, 24_000_000, &[10, 30]),
        after(6, 24_000_000, &[60, 20]),
    );
    let expected = [("mean", 30.0), ("min", 20.0), ("max", 40.0)];
    expect(Preset::Phloem16, 8, &[&one, &other], &expected);
}

#[test]
fn skampi_averages_the_slowest_rank_of_the_middle_half() {
    // The slowest ranks take 10.8, 11, 11, 11.2, 11.4, 11.6, 11.8 and 12 us, in another order: the middle half is 11,
    // 11.2, 11.4 and 11.6. Each time is 100 ns longer, as reading the clock takes that long.
    let one = after(
        32,
        10_000,
        &[11_400, 9_000, 11_000, 9_000, 12_000, 9_000, 9_000, 11_600],
    );
    let other = after(
        32,
        10_000,
        &[9_000, 10_800, 9_000, 11_000, 9_000, 11_200, 11_800, 9_000],
    );
    expect(Preset::Skampi, 8, &[&one, &other], &[("mean", 11_400.0)]);
}

#[test]
fn nbcbench_reports_the_greatest_median_of_a_rank() {
    // 100 ns more, as above. Rare longer calls on rank 0 do not count.
    let one = [9_000, 9_000, 15_000];
    expect(
        Preset::NbcBench,
        8,
        &[&one, &[10_000]],
        &[("max", 10_100.0)],
    );
}

#[test]
fn mpibench_leaves_out_times_above_twice_the_99th_percentile() {
    let other = after(999, 12, &[100]);
    let mean = (1_000.0 * 10.0 + 999.0 * 12.0) / 1_999.0;
    expect(
        Preset::MpiBench,
        8,
        &[&[10], &other],
        &[("mean", mean), ("min", 10.0), ("max", 12.0)],
    );
}

#[test]
fn mpiblib_averages_the_slowest_rank_of_each_call() {
    // Five calls are too few for an interval that allows for their dependence, which is not MPIBlib's.
    let expected = [("mean", 20.0), ("min", 20.0), ("max", 20.0)];
    expect(
        Preset::MpiBlib,
        8,
        &[&[10, 20, 10, 20, 20], &[20, 10, 20, 20, 10]],
        &expected,
    );
}

#[test]
fn mpicroscope_reports_the_extremes_of_the_slowest_rank_of_each_call() {
    let expected = [("mean", 25.0), ("min", 20.0), ("max", 30.0)];
    expect(Preset::Mpicroscope, 8, &[&[10, 30], &[20, 20]], &expected);
}

#[test]
fn mpptest_reports_the_least_mean_of_rank_0() {
    // The second series is shorter. The call before a series and the other rank do not count.
    let one = [after(1, 1_000, &[4; 50]), after(1, 1_000, &[3; 50])].concat();
    expect(Preset::Mpptest, 8, &[&one, &[2]], &[("min", 3.0)]);
}

#[test]
fn reprompi_reports_the_median_run_time() {
    // 100 ns more, as above.
    let seconds = [1_000_000_000, 500_000_000, 2_000_000_000];
    for preset in [Preset::ReproMpi, Preset::ReproMpi2018] {
        expect(preset, 8, &[&seconds], &[("median", 1_000_000_100.0)]);
    }
}
