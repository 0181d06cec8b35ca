//! Numbers from a seed, alike on every machine.

use crate::load::scatter;

/// The step of the counter: 2^64 divided by the golden ratio, as in splitmix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(scatter(seed))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        let number = scatter(self.0);
        self.0 = self.0.wrapping_add(STEP);
        number
    }

    /// A number below a limit, which must not be 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    /// A number from 0 to 1, without 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number between two limits, whose logarithm is uniform.
    pub(crate) fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    /// A number of the normal distribution with mean 0 and deviation 1, by the method of Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.unit(), self.unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Puts `count` items, chosen at random, in front of the others.
    pub(crate) fn choose<T>(&mut self, items: &mut [T], count: usize) {
        for place in 0..count.min(items.len()) {
            let other = place + self.below(items.len() - place);
            items.swap(place, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_numbers() {
        let mut random = Random::new(1);
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        let mut again = Random::new(1);
        assert_eq!(first, [again.next(), again.next(), again.next()]);
        assert_ne!(first[0], Random::new(2).next());
        assert!(first[0] != first[1] && first[1] != first[2]);
    }

    #[test]
    fn numbers_stay_within_their_limits_and_have_their_means() {
        let mut random = Random::new(7);
        let mut sums = [0.0; 3];
        const COUNT: usize = 20_000;
        for _ in 0..COUNT {
            let below = random.below(10);
            assert!(below < 10);
            let spread = random.log_uniform(1.0, 100.0);
            assert!((1.0..=100.0).contains(&spread));
            let normal = random.normal();
            sums[0] += below as f64;
            sums[1] += spread.log10();
            sums[2] += normal * normal;
        }
        let means = sums.map(|sum| sum / COUNT as f64);
        assert!((means[0] - 4.5).abs() < 0.1, "{means:?}");
        assert!((means[1] - 1.0).abs() < 0.02, "{means:?}");
        assert!((means[2] - 1.0).abs() < 0.05, "{means:?}");
    }

    #[test]
    fn a_choice_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(3).choose(&mut items, 10);
        let is_low = |item: &&u32| **item < 10;
        assert!(items[..10].iter().filter(is_low).count() < 10);
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
