//! The filter of system calls: seccomp(2).

use std::collections::BTreeMap;

use nix::libc;
use nix::unistd::getpid;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, apply_filter_all_threads,
};

use super::calls::{Call, Only};
use super::layers::Missing;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Loads the filter into all threads of the process. There are two programs, because a program has one action for what
/// matches: the first ends the process at calls of no list, the second refuses. The kernel obeys the stricter one.
pub(super) fn load(allowed: &[&[Call]], refused: &[Call]) -> Result<(), Missing> {
    let known = allowed.iter().copied().flatten().chain(refused);
    let kill = program(known, SeccompAction::KillProcess, SeccompAction::Allow)?;
    let refusal = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let refuse = program(refused, SeccompAction::Allow, refusal)?;
    apply(&refuse)?;
    // Loading a program is in no list.
    apply(&kill)
}

/// An entry without rules allows every argument.
fn rules<'a>(calls: impl IntoIterator<Item = &'a Call>) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    for call in calls {
        let each = rules.entry(call.number).or_default();
        if let Some(only) = call.only {
            each.push(SeccompRule::new(vec![condition(only)?])?);
        }
    }
    Ok(rules)
}

fn condition(only: Only) -> Result<SeccompCondition, BackendError> {
    let (argument, comparison, value) = match only {
        Only::Is(argument, value) => (argument, SeccompCmpOp::Eq, value),
        Only::Without(argument, bits) => (argument, SeccompCmpOp::MaskedEq(bits), 0),
        Only::OwnProcess(argument) => {
            let own = getpid().as_raw().unsigned_abs();
            (argument, SeccompCmpOp::Eq, own.into())
        }
    };
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)
}

fn program<'a>(
    calls: impl IntoIterator<Item = &'a Call>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, Missing> {
    let compiled = || {
        let target = TargetArch::try_from(std::env::consts::ARCH)?;
        let filter = SeccompFilter::new(rules(calls)?, otherwise, matched, target)?;
        BpfProgram::try_from(filter)
    };
    compiled().map_err(|error: BackendError| Missing::Failed(error.to_string()))
}

fn apply(program: &BpfProgram) -> Result<(), Missing> {
    apply_filter_all_threads(program).map_err(|error| match error {
        Error::Seccomp(error) | Error::Prctl(error) if is_unsupported(&error) => {
            Missing::Unsupported
        }
        other => Missing::Failed(other.to_string()),
    })
}

/// What a kernel says that was built without filters, or without waiting for all threads.
fn is_unsupported(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL))
}
