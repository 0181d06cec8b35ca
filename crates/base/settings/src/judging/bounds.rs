//! Bounds of scores.

/// The bound of weights and thresholds, in points.
pub(crate) const SCORE_POINTS_MAX: i64 = 1_000;
