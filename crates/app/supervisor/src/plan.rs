//! Which roles the settings ask for.

use std::path::{Path, PathBuf};
use std::process::Command;

use vere_settings::Settings;

use super::listeners::Listeners;
use super::role::{Listener, Readiness, Role};
use vere_process::settings::ACCEPTED_SETTINGS;

/// Builds the roles in start order: the nodes, the signer and the mail store, then the gateway that needs
/// them.
pub(super) fn roles(
    settings: &Settings,
    executable: &Path,
    config_path: &Path,
    accepted: &Path,
    mut listeners: Listeners,
) -> Vec<Role> {
    let program = Program {
        executable: executable.to_owned(),
        config: config_path.to_owned(),
        accepted: accepted.to_owned(),
    };
    let mut roles = Vec::new();
    for node in settings.spool.nodes.iter().filter(|node| !node.remote) {
        let own = listeners.nodes.remove(&node.name).unwrap_or_default();
        let arguments = vec!["spool".to_owned(), "--node".to_owned(), node.name.clone()];
        roles.push(program.role(format!("spool-{}", node.name), arguments, own));
    }
    if settings.dkim.is_some() {
        let arguments = vec!["signer".to_owned()];
        roles.push(program.role("signer".to_owned(), arguments, Vec::new()));
    }
    if !listeners.store.is_empty() {
        let arguments = vec!["store".to_owned()];
        roles.push(program.role("store".to_owned(), arguments, listeners.store));
    }
    roles.push(program.role(
        "gateway".to_owned(),
        vec!["gateway".to_owned()],
        listeners.gateway,
    ));
    roles
}

/// The binary itself, as every role is started from it.
#[derive(Debug, Clone)]
struct Program {
    executable: PathBuf,
    config: PathBuf,
    accepted: PathBuf,
}

impl Program {
    fn role(&self, name: String, arguments: Vec<String>, listeners: Vec<Listener>) -> Role {
        let program = self.clone();
        let command = move || {
            let mut command = Command::new(&program.executable);
            command
                .arg("role")
                .args(&arguments)
                .arg("-c")
                .arg(&program.config);
            command.env(ACCEPTED_SETTINGS, &program.accepted);
            command
        };
        Role {
            name,
            command: Box::new(command),
            listeners,
            readiness: Readiness::Notified,
            reloads: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_signer_come_before_the_gateway() {
        let text = "version = 1\nhostname = \"mx.example.org\"\n[dkim]\n\
                    [[spool.node]]\nname = \"a\"\nlisten = \"127.0.0.1:2600\"\n";
        let settings = Settings::parse(text, "vere.toml").unwrap();
        let roles = roles(
            &settings,
            Path::new("/usr/bin/vere"),
            Path::new("/etc/vere/vere.toml"),
            Path::new("/var/lib/vere/accepted.toml"),
            Listeners::default(),
        );
        let lines: Vec<String> = roles
            .iter()
            .map(|role| format!("{}: {:?}", role.name, (role.command)()))
            .collect();
        let names: Vec<_> = lines
            .iter()
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(names, ["spool-a", "signer", "gateway"]);
        assert!(lines[0].contains(r#""role" "spool" "--node" "a" "-c" "/etc/vere/vere.toml""#));
    }
}
