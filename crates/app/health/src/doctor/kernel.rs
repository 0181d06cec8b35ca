//! Features of the kernel, compared with the needs of the settings.

use std::fs;

use vere_settings::Settings;

use crate::row::Row;

const CHECK: &str = "kernel";
/// The first version with all parts of Landlock for sandboxes (Linux 6.12, landlock(7)).
const WHOLE: (u32, u32) = (6, 12);
/// The first version with Landlock.
const LANDLOCK: (u32, u32) = (5, 13);

/// Facts about the kernel from `/proc` and `/sys`.
#[derive(Debug, Default)]
struct Facts {
    release: String,
    /// Active security modules; empty when the list cannot be read.
    modules: String,
    seccomp: bool,
    /// Loaded protocols above TCP.
    upper: String,
}

impl Facts {
    fn read() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            release: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            modules: read("/sys/kernel/security/lsm"),
            seccomp: read("/proc/self/status")
                .lines()
                .any(|line| line.starts_with("Seccomp:")),
            upper: read("/proc/sys/net/ipv4/tcp_available_ulp"),
        }
    }

    /// Major and minor number.
    fn version(&self) -> Option<(u32, u32)> {
        let mut parts = self.release.split(|letter: char| !letter.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

/// Whether the kernel can confine parsers and workers, and whether the kernel encrypts connections on demand of the settings.
pub(super) fn rows(settings: Option<&Settings>) -> Vec<Row> {
    let kernel_tls = settings.and_then(|settings| settings.front.as_ref());
    of(
        &Facts::read(),
        kernel_tls.is_some_and(|front| front.kernel_tls),
    )
}

fn of(facts: &Facts, kernel_tls: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    if !facts.seccomp {
        rows.push(Row::warning(
            CHECK,
            "no seccomp: parsers and workers run without a list of system calls",
            "boot a kernel with CONFIG_SECCOMP_FILTER",
        ));
    }
    let landlock = facts
        .modules
        .split(',')
        .any(|module| module.trim() == "landlock");
    let version = facts.version().unwrap_or_default();
    if version < LANDLOCK || !(landlock || facts.modules.is_empty()) {
        rows.push(Row::warning(
            CHECK,
            format!(
                "no Landlock in Linux {}: parsers and workers can open files",
                facts.release
            ),
            "boot Linux 5.13 or later with lsm=landlock,... on the kernel's command line",
        ));
    }
    if kernel_tls && !facts.upper.split_whitespace().any(|name| name == "tls") {
        rows.push(Row::warning(
            CHECK,
            "front.kernel_tls is on, and the module tls is not loaded",
            "load it with: modprobe tls, and name it in /etc/modules-load.d/tls.conf",
        ));
    }
    if rows.is_empty() {
        let part = match version < WHOLE {
            true => "; sandboxes lack the parts of Landlock of Linux 6.12",
            false => "",
        };
        rows.push(Row::ok(CHECK, format!("Linux {}{part}", facts.release)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    fn facts() -> Facts {
        Facts {
            release: "6.12.48+deb13-amd64".to_owned(),
            modules: "capability,landlock,yama\n".to_owned(),
            seccomp: true,
            upper: "espintcp tls mptcp\n".to_owned(),
        }
    }

    #[test]
    fn missing_features_have_remedies() {
        let levels = |facts: Facts, tls| -> Vec<Level> {
            of(&facts, tls).iter().map(|row| row.level).collect()
        };
        assert_eq!(facts().version(), Some((6, 12)));
        assert_eq!(levels(facts(), true), [Level::Ok]);
        let old = Facts {
            release: "5.10.0-1".to_owned(),
            modules: String::new(),
            ..facts()
        };
        assert_eq!(levels(old, false), [Level::Warning]);
        let without = Facts {
            modules: "yama".to_owned(),
            seccomp: false,
            upper: String::new(),
            ..facts()
        };
        assert_eq!(levels(without, true), [Level::Warning; 3]);
        let hidden = Facts {
            modules: String::new(),
            ..facts()
        };
        assert_eq!(levels(hidden, false), [Level::Ok]);
    }
}
