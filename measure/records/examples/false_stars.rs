//! Rate of stars when two equal experiments are compared, by clocks that count in steps, and when they differ by 5 %:
//! `cargo run --release -p downbeat-records --example false_stars -- 10000`.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]

use std::error::Error;

use downbeat_records::stats::{MannWhitney, Sample};
use fastrand::Rng;

const LAUNCHES: [usize; 5] = [3, 4, 5, 10, 30];
const STEPS: [f64; 4] = [0.0, 1.0, 10.0, 100.0];
const LEVEL: f64 = 0.05;

/// Medians of launches around 1 us with 3 % of noise, as a clock with this step shows them.
fn medians(random: &mut Rng, launches: usize, nanos: f64, step: f64) -> Vec<f64> {
    let noise = |random: &mut Rng| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    let median = |random: &mut Rng| {
        let median = nanos * (1.0 + 0.03 * noise(random));
        if step > 0.0 {
            (median / step).floor() * step
        } else {
            median
        }
    };
    (0..launches).map(|_| median(random)).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let comparisons: u32 = match std::env::args().nth(1) {
        Some(number) => number.parse()?,
        None => 20,
    };
    let mut random = Rng::with_seed(1);
    println!(
        "{comparisons} comparisons each\n\n| launches | step, ns | false stars | stars if 5 % apart |\n|---|---|---|---|"
    );
    for launches in LAUNCHES {
        for step in STEPS {
            let mut rate = |shift: f64| -> Result<f64, Box<dyn Error>> {
                let mut stars = 0;
                for _ in 0..comparisons {
                    let mut a = medians(&mut random, launches, 1_000.0, step);
                    let mut b = medians(&mut random, launches, 1_000.0 * (1.0 + shift), step);
                    let found = MannWhitney::new(&Sample::new(&mut a)?, &Sample::new(&mut b)?);
                    stars += u32::from(found.p.two_sided <= LEVEL);
                }
                Ok(100.0 * f64::from(stars) / f64::from(comparisons))
            };
            let (equal, apart) = (rate(0.0)?, rate(0.05)?);
            println!("| {launches} + {launches} | {step} | {equal:.2} % | {apart:.1} % |");
            // Three standard deviations of the rate.
            let most = 100.0 * (LEVEL + 3.0 * (LEVEL / f64::from(comparisons)).sqrt());
            if equal > most {
                return Err(format!("more than {most:.2} % false stars").into());
            }
        }
    }
    Ok(())
}
