//! The memory bounds of the roles, role by role, and the drop-in for systemd.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use vere_settings::Settings;
use vere_supervisor::memory::{MemoryBounds, MemoryPart, RoleMemory};
use vere_supervisor::roles::memory_bounds;
use vere_units::ByteSize;

use vere_process::failure::Failure;

/// Where the drop-in of the unit belongs.
pub(crate) const DROP_IN: &str = "/etc/systemd/system/vere.service.d/memory.conf";

/// The output of `vere config memory`.
pub(super) fn print(settings: &Settings, path: &Path, systemd: bool, as_json: bool) -> String {
    let bounds = memory_bounds(settings);
    match (systemd, as_json) {
        (true, _) => drop_in(&bounds, path),
        (false, true) => format!("{:#}\n", json(&bounds)),
        (false, false) => parts(&bounds),
    }
}

/// The line of each role and of the sum, as `check-config` prints the lines.
pub(super) fn roles(bounds: &MemoryBounds) -> String {
    let mut text = format!("{:<12}{} at most\n", "memory", rounded(bounds.max()));
    for role in &bounds.roles {
        let _ = writeln!(text, "  {:<14}{}", role.role, rounded(role.max()));
    }
    text
}

/// Every part of every role, the sum, and the limit that follows from the sum.
fn parts(bounds: &MemoryBounds) -> String {
    let mut text = String::new();
    for role in &bounds.roles {
        let _ = writeln!(text, "{:<14}{:>10}", role.role, rounded(role.max()));
        for part in &role.parts {
            let by = match part.setting {
                "" => String::new(),
                setting => format!(" ({setting})"),
            };
            let _ = writeln!(text, "  {:>22}  {}{by}", rounded(part.max), part.what);
        }
    }
    let _ = writeln!(text, "{:<14}{:>10}", "sum", rounded(bounds.max()));
    let _ = writeln!(text, "{:<14}{:>10}", "MemoryMax", rounded(bounds.limit()));
    text
}

/// The bounds in JSON, in bytes.
pub(super) fn json(bounds: &MemoryBounds) -> Value {
    let part = |part: &MemoryPart| {
        let setting = (!part.setting.is_empty()).then_some(part.setting);
        json!({ "what": part.what, "setting": setting, "bytes": part.max.as_u64() })
    };
    let role = |role: &RoleMemory| {
        let parts: Vec<Value> = role.parts.iter().map(part).collect();
        json!({ "role": role.role, "bytes": role.max().as_u64(), "parts": parts })
    };
    json!({
        "bytes": bounds.max().as_u64(),
        "limit_bytes": bounds.limit().as_u64(),
        "roles": bounds.roles.iter().map(role).collect::<Vec<_>>(),
    })
}

/// The drop-in that keeps the whole service within its bounds.
fn drop_in(bounds: &MemoryBounds, path: &Path) -> String {
    let path = path.display();
    format!(
        "# Made by: vere config memory --systemd -c {path}\n\
         # The bounds of all roles are {} together; the limit is a fifth above that. Make this file again and run\n\
         # systemctl daemon-reload when limits change, then restart vere.\n\
         [Service]\n\
         MemoryMax={}\n",
        rounded(bounds.max()),
        bounds.limit().as_u64(),
    )
}

/// Writes the drop-in for the settings in `path` to the file `to`.
///
/// # Errors
/// When the drop-in cannot be written.
pub(crate) fn write_drop_in(settings: &Settings, path: &Path, to: &Path) -> Result<(), Failure> {
    let text = drop_in(&memory_bounds(settings), path);
    let folder = to.parent().unwrap_or(Path::new("/"));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(to, text));
    written.map_err(|error| Failure::new(format!("cannot write {}: {error}", to.display())))
}

/// A size for people, in the largest unit below the size.
fn rounded(size: ByteSize) -> String {
    let octets = size.as_u64() as f64;
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB")];
    let unit = units.iter().find(|(unit, _)| size.as_u64() >= *unit);
    let (unit, name) = unit.unwrap_or(&(1 << 20, "MiB"));
    format!("{:.1} {name}", octets / *unit as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(rest: &str) -> Settings {
        let text = format!("version = 1\nhostname = \"mx.example.org\"\n{rest}");
        Settings::parse(&text, "/etc/vere/vere.toml").unwrap()
    }

    #[test]
    fn the_sum_is_told_role_by_role_and_part_by_part() {
        let settings = settings("");
        let said = roles(&memory_bounds(&settings));
        for role in ["supervisor", "spool-a", "spool-b", "store", "gateway"] {
            assert!(said.contains(&format!("\n  {role:<14}")), "{said}");
        }
        let said = print(&settings, "/etc/vere/vere.toml".as_ref(), false, false);
        let part = "256.0 MiB  messages that arrive (limits.body_memory_max)\n";
        assert!(said.contains(part), "{said}");
        let value = json(&memory_bounds(&settings));
        let roles = value["roles"].as_array().unwrap();
        let sum: u64 = roles.iter().filter_map(|role| role["bytes"].as_u64()).sum();
        assert_eq!(value["bytes"], sum);
    }

    #[test]
    fn the_drop_in_follows_the_settings() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("vere.service.d/memory.conf");
        let limit = |rest: &str| {
            let path = Path::new("/etc/vere/vere.toml");
            write_drop_in(&settings(rest), path, &to).unwrap();
            let text = std::fs::read_to_string(&to).unwrap();
            assert!(text.contains("\n[Service]\nMemoryMax="), "{text}");
            let line = text.lines().last().unwrap();
            line.rsplit('=').next().unwrap().parse::<u64>().unwrap()
        };
        let (before, after) = (limit(""), limit("[spool]\nmemory_max = \"2 GiB\"\n"));
        assert_eq!(before, memory_bounds(&settings("")).limit().as_u64());
        assert!(after > before + (2 << 30), "{before} {after}");
    }
}
