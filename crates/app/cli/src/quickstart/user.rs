//! The user of a system that was started as root.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::User;

/// The name of the user.
const USER: &str = "vere";
/// Places of the package's description of the user (sysusers.d(5)).
const DESCRIPTIONS: [&str; 3] = [
    "/etc/sysusers.d/vere.conf",
    "/usr/lib/sysusers.d/vere.conf",
    "/usr/local/lib/sysusers.d/vere.conf",
];
/// Longest wait for the program that creates the user.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two looks whether the program has ended.
const LOOK: Duration = Duration::from_millis(20);
/// The command for machines without the package's description.
const BY_HAND: &str =
    "useradd --system --user-group --home-dir /var/lib/vere --shell /usr/sbin/nologin vere";

/// The user of a system, or the reason why the system runs as root.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) user: Option<User>,
    /// For the operator: a user that was created, or what to do.
    pub(crate) note: Option<String>,
}

/// The user of a system in this directory; created by the description of the package where missing.
pub(crate) fn find(dir: &Path) -> Found {
    if !reachable(dir) {
        let note = format!(
            "the system will run as root, since no other user can reach {}",
            dir.display()
        );
        return Found {
            user: None,
            note: Some(note),
        };
    }
    if let Some(user) = known() {
        return Found {
            user: Some(user),
            note: None,
        };
    }
    let description = DESCRIPTIONS
        .map(Path::new)
        .into_iter()
        .find(|path| path.exists());
    let Some(description) = description else {
        return Found {
            user: None,
            note: Some(by_hand("", BY_HAND)),
        };
    };
    let made = create(Path::new("systemd-sysusers"), description);
    match (made, known()) {
        (Ok(()), Some(user)) => Found {
            user: Some(user),
            note: Some(format!("created the user {USER} by systemd-sysusers")),
        },
        (made, _) => {
            let why = made.err().unwrap_or_else(|| "no user".to_owned());
            let command = format!("systemd-sysusers {}", description.display());
            Found {
                user: None,
                note: Some(by_hand(&format!(" ({why})"), &command)),
            }
        }
    }
}

fn known() -> Option<User> {
    User::from_name(USER).ok().flatten()
}

fn by_hand(why: &str, command: &str) -> String {
    format!(
        "the system will run as root, since there is no user {USER}{why}; to avoid that: {command}, then this command \
         again with --force"
    )
}

/// Whether a user other than root can reach a directory: a directory below a home directory is mostly closed.
fn reachable(dir: &Path) -> bool {
    !dir.starts_with("/root") && !dir.starts_with("/home")
}

/// Creates the users of a description; complaints of the program go to standard error. The error is the reason.
fn create(program: &Path, description: &Path) -> Result<(), String> {
    let name = program.display();
    let failed = |error| format!("{name}: {error}");
    let mut command = Command::new(program);
    command
        .arg(description)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("{name} failed: {status}")),
            None if Instant::now() >= end => {
                // The program may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{name} did not end within {PATIENCE:?}"));
            }
            None => std::thread::sleep(LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_program_gets_the_description_and_a_failure_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let script = |text: &str| {
            let path = folder.path().join("program");
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
            path
        };
        let given = folder.path().join("vere.conf");
        let copy = folder.path().join("copy");
        let program = script(&format!("printf %s \"$1\" > '{}'", copy.display()));
        assert_eq!(create(&program, &given), Ok(()));
        let said = std::fs::read_to_string(&copy).unwrap();
        assert_eq!(Path::new(&said), given);
        let failed = create(&script("exit 1"), &given).unwrap_err();
        assert!(failed.contains("failed: exit status: 1"), "{failed}");
        assert!(create(&folder.path().join("none"), &given).is_err());
    }

    #[test]
    fn a_system_in_a_home_directory_runs_as_root_and_says_so() {
        let found = find(Path::new("/root/mail"));
        assert!(found.user.is_none());
        assert!(found.note.unwrap().contains("can reach /root/mail"));
        let note = by_hand("", BY_HAND);
        assert!(
            note.contains("useradd --system") && note.contains("--force"),
            "{note}"
        );
    }
}
