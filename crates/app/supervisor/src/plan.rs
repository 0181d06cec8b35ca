//! Makes the processes of the roles from the table and the bound sockets.

use std::path::{Path, PathBuf};
use std::process::Command;

use vere_process::settings::ACCEPTED_SETTINGS;

use crate::listeners::{Bound, Opened};
use crate::role::{Listener, Readiness, Role};
use crate::roles::OTLP;
use crate::snapshot::path_for;

/// Builds the roles in the given order, the start order.
pub(super) fn roles(
    executable: &Path,
    config_path: &Path,
    accepted: &Path,
    Bound { opened, log }: Bound,
) -> Vec<Role> {
    let program = Program {
        executable: executable.to_owned(),
        config: config_path.to_owned(),
        accepted: accepted.to_owned(),
    };
    let role = |opened: Opened| {
        let instance = opened.instance.as_deref();
        let (name, arguments) = (
            opened.spec.process(instance),
            opened.spec.arguments(instance),
        );
        let accepted = path_for(opened.spec.name, &program.accepted);
        // The process that sends the log would feed itself.
        let log = log.clone().filter(|_| opened.spec.name != OTLP);
        Role {
            log,
            ..program.role(name, arguments, accepted, opened.listeners)
        }
    };
    opened.into_iter().map(role).collect()
}

/// The binary itself, as every role is started from it.
#[derive(Debug, Clone)]
struct Program {
    executable: PathBuf,
    config: PathBuf,
    accepted: PathBuf,
}

impl Program {
    fn role(
        &self,
        name: String,
        arguments: Vec<String>,
        accepted: PathBuf,
        listeners: Vec<Listener>,
    ) -> Role {
        let program = self.clone();
        let command = move || {
            let mut command = Command::new(&program.executable);
            command
                .arg("role")
                .args(&arguments)
                .arg("-c")
                .arg(&program.config);
            command.env(ACCEPTED_SETTINGS, &accepted);
            command
        };
        Role {
            name,
            command: Box::new(command),
            listeners,
            log: None,
            readiness: Readiness::Notified,
            reloads: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use vere_settings::Settings;

    use super::*;
    use crate::roles::instances;

    #[test]
    fn nodes_signer_and_store_come_before_the_gateway() {
        let text = "version = 1\nhostname = \"mx.example.org\"\n[dkim]\n\
                    [[spool.node]]\nname = \"a\"\nlisten = \"127.0.0.1:2600\"\n";
        let settings = Settings::parse(text, "vere.toml").unwrap();
        let opened = instances(&settings).map(|(spec, instance)| Opened {
            spec,
            instance: instance.name,
            listeners: Vec::new(),
        });
        let roles = roles(
            Path::new("/usr/bin/vere"),
            Path::new("/etc/vere/vere.toml"),
            Path::new("/var/lib/vere/accepted.toml"),
            Bound {
                opened: opened.collect(),
                log: None,
            },
        );
        let lines: Vec<String> = roles
            .iter()
            .map(|role| format!("{}: {:?}", role.name, (role.command)()))
            .collect();
        let names: Vec<_> = lines
            .iter()
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(names, ["spool-a", "signer", "store", "gateway"]);
        assert!(lines[0].contains(r#""role" "spool" "--node" "a" "-c" "/etc/vere/vere.toml""#));
        assert!(lines[3].contains(r#""role" "gateway" "-c" "/etc/vere/vere.toml""#));
    }
}
