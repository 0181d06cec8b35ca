//! Results of SPF, in the form of the crate `vere_spf` and in the form for other processes.

use vere_auth::SpfResult;
use vere_handoff::question::Spf;

/// The result in the form for other processes.
#[must_use]
pub const fn told(result: SpfResult) -> Spf {
    match result {
        SpfResult::None => Spf::None,
        SpfResult::Neutral => Spf::Neutral,
        SpfResult::Pass => Spf::Pass,
        SpfResult::Fail => Spf::Fail,
        SpfResult::SoftFail => Spf::SoftFail,
        SpfResult::TempError => Spf::TempError,
        SpfResult::PermError => Spf::PermError,
    }
}

/// The result as the evaluation of DMARC has it.
pub(crate) const fn found(result: Spf) -> SpfResult {
    match result {
        Spf::None => SpfResult::None,
        Spf::Neutral => SpfResult::Neutral,
        Spf::Pass => SpfResult::Pass,
        Spf::Fail => SpfResult::Fail,
        Spf::SoftFail => SpfResult::SoftFail,
        Spf::TempError => SpfResult::TempError,
        Spf::PermError => SpfResult::PermError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_the_same_on_both_sides() {
        for result in Spf::ALL {
            assert_eq!(told(found(*result)), *result);
        }
    }
}
