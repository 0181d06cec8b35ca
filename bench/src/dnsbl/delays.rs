//! Times of block lists over the Internet: Figure 5 of Pathak et al.
//!
//! The text of the paper has two numbers: of the six lists, the fastest answered 16 % of the queries after more than
//! 100 ms, the slowest 50 %. The other four lie evenly between, and each list is log-normal. The deviation is a choice:
//! the plot is not public.

use std::time::Duration;

use super::random::Random;

/// The deviation of the logarithm of a time: two thirds of all answers lie within a factor of e of the median.
const DEVIATION: f64 = 1.0;

/// No answer takes longer: a resolver asks again.
const LONGEST: Duration = Duration::from_secs(5);

/// Medians of the six lists in ms: 100 ms times e to the power of minus the quantile of the normal distribution for
/// 50, 43.2, 36.4, 29.6, 22.8 and 16 %.
pub(super) const MEDIANS_MS: [f64; 6] = [100.0, 84.3, 70.6, 58.5, 47.5, 37.0];

/// The time of an answer of one of the six lists.
pub(super) fn delay(list: usize, random: &mut Random) -> Duration {
    let median = MEDIANS_MS[list % MEDIANS_MS.len()];
    let ms = median * (DEVIATION * random.normal()).exp();
    Duration::from_secs_f64(ms / 1e3).min(LONGEST)
}

/// The time until the last of the six lists has answered; all are asked at once.
pub(super) fn slowest(random: &mut Random) -> Duration {
    let delays = (0..MEDIANS_MS.len()).map(|list| delay(list, random));
    delays.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_above_100_ms_falls_from_a_half_to_16_percent() {
        let mut random = Random::new(11);
        let mut share = |list| {
            let above = (0..20_000).filter(|_| delay(list, &mut random).as_millis() >= 100);
            above.count() as f64 / 20_000.0
        };
        for (list, expected) in [0.5, 0.432, 0.364, 0.296, 0.228, 0.16]
            .into_iter()
            .enumerate()
        {
            let found = share(list);
            assert!((found - expected).abs() < 0.015, "{list}: {found}");
        }
    }

    #[test]
    fn the_slowest_of_all_is_slower_than_each() {
        let mut random = Random::new(12);
        let mean = |mut time: Box<dyn FnMut() -> Duration>| {
            (0..5_000).map(|_| time().as_secs_f64()).sum::<f64>()
        };
        let mut other = random.clone();
        let all = mean(Box::new(move || slowest(&mut random)));
        let one = mean(Box::new(move || delay(0, &mut other)));
        assert!(all > 1.2 * one, "{all} {one}");
    }
}
