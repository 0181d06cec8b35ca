//! Rights to files, ports and other processes: landlock(7).

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};

use super::layers::{Layer, Missing, Standing};

/// The newest interface whose rights are given up. The library leaves out what an older kernel does not know.
const NEWEST: ABI = ABI::V7;
/// The interfaces since which there are rights to ports, and scopes.
const PORTS_SINCE: ABI = ABI::V4;
const SCOPE_SINCE: ABI = ABI::V6;

/// Gives up all rights but that to read files below `readable`.
pub(super) fn give_up(standing: &mut Standing, readable: &[PathBuf]) {
    let interface = match restrict(readable) {
        Err(error) => Err(Missing::Failed(error.to_string())),
        Ok(status) => match status.landlock {
            LandlockStatus::Available { effective_abi, .. } => Ok(effective_abi),
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => {
                Err(Missing::Unsupported)
            }
        },
    };
    let since = |first: ABI| match &interface {
        Ok(has) if *has >= first => Ok(()),
        Ok(_) => Err(Missing::Unsupported),
        Err(why) => Err(why.clone()),
    };
    standing.note(Layer::Files, since(ABI::V1));
    standing.note(Layer::Ports, since(PORTS_SINCE));
    standing.note(Layer::Scope, since(SCOPE_SINCE));
}

/// Handles every right and allows none but reading below `readable`; a folder that does not exist is left out.
fn restrict(readable: &[PathBuf]) -> Result<RestrictionStatus, RulesetError> {
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(readable, reading))?
        .restrict_self()
}
