//! An interval for a mean of numbers from 0 to 1, from some of them, by betting.

/// Shares of the capital that are bet. The best share is between two of them, or nearly nothing.
const BETS: [f64; 14] = [
    1.0,
    0.9,
    0.7,
    0.5,
    0.25,
    0.125,
    1.0 / 16.0,
    1.0 / 32.0,
    1.0 / 64.0,
    1.0 / 128.0,
    1.0 / 256.0,
    1.0 / 512.0,
    1.0 / 1024.0,
    1.0 / 2048.0,
];
/// Halvings of an interval: more than a float has digits.
const HALVINGS: usize = 60;

/// The interval that the mean of a distribution on \[0, 1\] lies in, except with probability `error`, from
/// independent draws of it.
///
/// If the mean is μ, the capital Π(1 - t + t·x/μ) of who bets the share t of it at each draw is 1 in
/// expectation; so is the mean capital over some t. By Markov's inequality it reaches 2/error with
/// probability error/2 at most, so every μ at which it does is left out: those too small. Those too
/// large are left out by the same bets on 1 - x. (Waudby-Smith and Ramdas 2024, "Estimating means of
/// bounded random variables by betting", for a fixed number of draws.)
///
/// As the logarithm is concave, a bet wins at least x·ln(1 - t + t/μ) + (1 - x)·ln(1 - t). At the best t
/// that adds up to m·D(mean‖μ), D being the relative entropy of coins. So the interval is about Chernoff's,
/// D ≤ ln(2/error)/m, for coins (14 bets in the place of the best one add ln 14 to the logarithm), and
/// shorter for numbers that vary less than coins do.
pub(super) fn interval_of_mean(draws: &[f64], error: f64) -> (f64, f64) {
    let mean = draws.iter().sum::<f64>() / draws.len() as f64;
    let others: Vec<f64> = draws.iter().map(|x| 1.0 - x).collect();
    let low = least_mean(draws, mean, error / 2.0);
    let high = 1.0 - least_mean(&others, 1.0 - mean, error / 2.0);
    (low.clamp(0.0, mean), high.clamp(mean, 1.0))
}

/// The smallest mean at which bets on larger draws do not win 1/error.
fn least_mean(draws: &[f64], mean: f64, error: f64) -> f64 {
    let enough = -error.ln();
    let (mut low, mut high) = (0.0, mean);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        // The capital falls as the mean grows.
        match middle > 0.0 && log_capital(draws, middle) >= enough {
            true => low = middle,
            false => high = middle,
        }
        if high - low <= 1e-6 * high {
            break;
        }
    }
    low
}

/// ln of the mean capital of the bets, if the mean is so much.
fn log_capital(draws: &[f64], mean: f64) -> f64 {
    let of_bet = |share: f64| {
        let gain = |x: &f64| (share * (x / mean - 1.0)).ln_1p();
        draws.iter().map(gain).sum::<f64>()
    };
    let logs = BETS.map(of_bet);
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most.is_infinite() {
        return most;
    }
    let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    most + (sum / BETS.len() as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::{Randomness, uniform_below_u128};

    /// D(p‖q) between coins.
    fn divergence(p: f64, q: f64) -> f64 {
        let part = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
        part(p, q) + part(1.0 - p, 1.0 - q)
    }

    #[test]
    fn it_is_at_most_the_chernoff_interval_of_the_relative_entropy() {
        let error = 0.0027;
        for m in [64, 512, 4096] {
            let enough = (2.0 * BETS.len() as f64 / error).ln() / f64::from(m);
            for ones in [0, 1, m / 50, m / 4, m / 2, m - 1, m] {
                let draws: Vec<f64> = (0..m).map(|i| f64::from(u8::from(i < ones))).collect();
                let mean = f64::from(ones) / f64::from(m);
                let (low, high) = interval_of_mean(&draws, error);
                // The best share is none of those that are bet.
                for end in [low, high] {
                    let apart = divergence(mean, end);
                    assert!(
                        apart <= 1.2 * enough + 1e-9,
                        "{m} {ones} {end} {apart} {enough}"
                    );
                }
                assert!(low <= mean && mean <= high);
            }
        }
    }

    #[test]
    fn numbers_that_hardly_vary_say_more_than_coins() {
        let draws: Vec<f64> = (0..4096)
            .map(|i| 1e-3 * (0.5 + f64::from(i) / 4096.0))
            .collect();
        let (low, high) = interval_of_mean(&draws, 0.0027);
        assert!(low > 0.9e-3 && high < 4e-3, "{low} {high}");
        // Another share of large numbers than 7/4096 is not refuted by any method.
        assert!(high > 1.7e-3);
    }

    /// A mean, and what makes a number with that mean of a uniform one.
    type Law = (f64, fn(f64) -> f64);

    const LAWS: [Law; 4] = [
        (0.01, |u| f64::from(u8::from(u < 0.01))),
        (0.5, |u| u),
        (1.0 / 21.0, |u| u.powi(20)),
        (0.05 + 0.95 * 0.001, |u| if u < 0.05 { 1.0 } else { 0.001 }),
    ];

    fn uniform() -> impl FnMut() -> f64 {
        let mut rng = Randomness::new(Some(7)).next_key().unwrap().stream(0);
        move || (uniform_below_u128(&mut rng, 1 << 53) as f64) / (1u64 << 53) as f64
    }

    /// 400 intervals at 97%: more than 35 miss the mean with a probability below 10⁻⁷.
    #[test]
    fn it_misses_the_mean_as_rarely_as_it_says() {
        let mut one = uniform();
        for (mean, of) in LAWS {
            let mut missed = 0;
            for _ in 0..400 {
                let draws: Vec<f64> = (0..200).map(|_| of(one())).collect();
                let (low, high) = interval_of_mean(&draws, 0.03);
                missed += u32::from(!(low..=high).contains(&mean));
            }
            assert!(missed <= 35, "{missed} of 400 miss {mean}");
        }
    }

    /// Than that of Audibert, Munos and Szepesvári 2009, theorem 1.
    #[test]
    fn it_is_shorter_than_the_empirical_bernstein_interval() {
        let mut one = uniform();
        for (_, of) in LAWS {
            for m in [128, 1024, 8192] {
                let draws: Vec<f64> = (0..m).map(|_| of(one())).collect();
                let (low, high) = interval_of_mean(&draws, 0.0027);
                let m = f64::from(m);
                let mean = draws.iter().sum::<f64>() / m;
                let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / m;
                let log = (3.0f64 / 0.0027).ln();
                let half = (2.0 * variance * log / m).sqrt() + 3.0 * log / m;
                let (least, most) = ((mean - half).max(0.0), (mean + half).min(1.0));
                assert!(
                    high - low < most - least,
                    "{m}: {low} to {high}, {least} to {most}"
                );
            }
        }
    }

    #[test]
    fn equal_numbers_and_few_of_them() {
        assert_eq!(interval_of_mean(&[0.0; 9], 0.01).0, 0.0);
        assert_eq!(interval_of_mean(&[1.0; 9], 0.01).1, 1.0);
        let (low, high) = interval_of_mean(&[0.3], 0.01);
        assert!((0.0..0.3).contains(&low) && (0.3..=1.0).contains(&high));
    }
}
