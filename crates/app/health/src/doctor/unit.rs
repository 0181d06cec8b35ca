//! The unit of systemd and the user of the system.

use std::path::Path;
use std::time::Duration;

use nix::unistd::User;
use vere_settings::{Settings, SpoolNode};

use crate::nodes;
use crate::program::{output, property};
use crate::row::Row;
use crate::starting::OF_UNITS;

const CHECK: &str = "unit";
/// Exists where systemd is the init system (sd_booted(3)).
const BOOTED: &str = "/run/systemd/system";
const PATIENCE: Duration = Duration::from_secs(5);
const OUTPUT_MAX: u64 = 16 * 1024;

/// The unit of the system, or of a node alone, as systemd describes it. Limits are `None` without a limit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) loaded: bool,
    /// `enabled`, `disabled`, `masked`, ...
    pub(super) file_state: String,
    /// `active`, `failed`, ...
    pub(super) active: String,
    pub(super) user: Option<String>,
    pub(super) descriptors: Option<u64>,
    pub(super) memory: Option<u64>,
}

impl Unit {
    /// Asks systemd. `None` where systemd is not the init system, or does not answer.
    pub(super) fn asked(name: &str) -> Option<Self> {
        if !Path::new(BOOTED).exists() {
            return None;
        }
        let keys = "LoadState,UnitFileState,ActiveState,User,LimitNOFILE,MemoryMax";
        let name = format!("{name}.service");
        let words = ["systemctl", "show", &name, "-p", keys];
        output(&words, PATIENCE, OUTPUT_MAX)
            .ok()
            .map(|text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let word = |key| property(text, key).unwrap_or_default().to_owned();
        // `infinity` and absent values are no numbers.
        let number = |key| property(text, key).and_then(|value| value.parse().ok());
        Self {
            loaded: word("LoadState") == "loaded",
            file_state: word("UnitFileState"),
            active: word("ActiveState"),
            user: Some(word("User")).filter(|user| !user.is_empty()),
            descriptors: number("LimitNOFILE"),
            memory: number("MemoryMax").filter(|most| *most < u64::MAX),
        }
    }
}

/// The name of the unit: of the system, or of a node on a machine with nodes alone.
pub(super) fn name(node: Option<&&SpoolNode>) -> String {
    node.map_or_else(|| "vere".to_owned(), |node| nodes::unit(&node.name))
}

/// Whether the unit runs with these settings.
pub(super) fn is_unit_of(settings: &Path) -> bool {
    settings == Path::new(OF_UNITS)
}

/// The state of the unit of this name. `unit` is `None` without systemd.
pub(super) fn row(name: &str, unit: Option<&Unit>, settings: &Path) -> Row {
    let Some(unit) = unit else {
        return Row::ok(CHECK, "systemd is not the init system here");
    };
    if !is_unit_of(settings) {
        let text = format!(
            "{name}.service is for {OF_UNITS}, not for {}",
            settings.display()
        );
        return Row::ok(CHECK, text);
    }
    if !unit.loaded {
        // A template has no instance in its file's name.
        let file = name.split_inclusive('@').next().unwrap_or(name);
        return Row::warning(
            CHECK,
            format!("{name}.service is not installed"),
            format!(
                "install the package, or copy packaging/systemd/{file}.service to /etc/systemd/system"
            ),
        );
    }
    if unit.active == "failed" {
        return Row::critical(
            CHECK,
            format!("{name}.service has failed"),
            format!("see why with: journalctl -u {name} -b, then: systemctl restart {name}"),
        );
    }
    match unit.file_state.as_str() {
        "enabled" | "enabled-runtime" | "static" | "linked" | "generated" => Row::ok(
            CHECK,
            format!("{name}.service is {} and {}", unit.file_state, unit.active),
        ),
        state => Row::warning(
            CHECK,
            format!("{name}.service is {state}: it does not start with the machine"),
            format!("enable it with: systemctl enable {name}"),
        ),
    }
}

/// The user that the system runs as: of the settings, of the unit, or of this command.
pub(super) fn user(settings: Option<&Settings>, unit: Option<&Unit>) -> Option<String> {
    let named = settings.and_then(|settings| settings.user.clone());
    named.or_else(|| unit.and_then(|unit| unit.user.clone()))
}

/// Whether the user exists.
pub(super) fn user_row(name: Option<&str>) -> Row {
    const CHECK: &str = "user";
    let Some(name) = name else {
        return Row::ok(CHECK, "the system runs as the user who starts it");
    };
    match User::from_name(name) {
        Ok(Some(_)) => Row::ok(CHECK, format!("{name} exists")),
        Ok(None) => Row::critical(
            CHECK,
            format!("there is no user {name}"),
            "create the user with: systemd-sysusers, or: useradd --system vere",
        ),
        Err(error) => Row::critical(
            CHECK,
            format!("the user {name} cannot be looked up: {}", error.desc()),
            "see /etc/nsswitch.conf",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    const TEXT: &str = "LoadState=loaded\nUnitFileState=enabled\nActiveState=active\nUser=vere\n\
                        LimitNOFILE=65536\nMemoryMax=infinity\n";

    #[test]
    fn the_unit_is_read_with_its_limits() {
        let unit = Unit::parse(TEXT);
        assert_eq!((unit.descriptors, unit.memory), (Some(65_536), None));
        assert_eq!(user(None, Some(&unit)).as_deref(), Some("vere"));
        assert!(!Unit::parse("").loaded);
    }

    #[test]
    fn faults_of_the_unit_have_remedies() {
        let level = |from: &str, to: &str| {
            let unit = Unit::parse(&TEXT.replace(from, to));
            row("vere", Some(&unit), Path::new(OF_UNITS)).level
        };
        assert_eq!(level("", ""), Level::Ok);
        assert_eq!(level("enabled", "disabled"), Level::Warning);
        assert_eq!(level("=loaded", "=not-found"), Level::Warning);
        assert_eq!(level("=active", "=failed"), Level::Critical);
        let other = row("vere", Some(&Unit::default()), Path::new("/srv/vere.toml"));
        assert_eq!(other.level, Level::Ok);
        // A node alone has a unit of its own: to enable vere.service would start a mail system.
        let disabled = Unit::parse(&TEXT.replace("enabled", "disabled"));
        let node = |unit| row("vere-node@mail2", Some(unit), Path::new(OF_UNITS)).remedy;
        let enable = "enable it with: systemctl enable vere-node@mail2";
        assert_eq!(node(&disabled).as_deref(), Some(enable));
        let missing = node(&Unit::default()).unwrap();
        assert!(missing.contains("systemd/vere-node@.service"), "{missing}");
        assert_eq!(user_row(Some("no such user")).level, Level::Critical);
        assert_eq!(user_row(Some("root")).level, Level::Ok);
    }
}
