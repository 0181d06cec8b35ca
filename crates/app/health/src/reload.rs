//! `vere reload`: puts the edited settings in force and waits until the roles have applied them.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use vere_control::supervision::{
    Accepted, ProcessState, RoleState, SupervisorRequest, SystemState, ask_supervisor,
    supervisor_socket,
};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

use crate::figures::counted;
use crate::starting::OF_UNITS;

/// How long the supervisor may take to read and check the file.
const ANSWER: Duration = Duration::from_secs(30);
/// Pause between two looks at the roles.
const LOOK: Duration = Duration::from_millis(50);

/// Waits for a reload.
#[derive(Debug, Args)]
pub struct ReloadArgs {
    /// Wait for the roles for this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Print JSON: an object with `settings`, `changed`, and `roles` with `name`, `applied` and `complaint`.
    #[arg(long)]
    json: bool,
}

/// Runs the command. Exit code 1: a role keeps earlier settings or has not answered in time.
///
/// # Errors
/// When no system runs, or the settings are refused: the reason.
pub fn run(args: &ReloadArgs, settings: &Settings) -> Result<Outcome, Failure> {
    let socket = supervisor_socket(settings);
    let accepted: Accepted = asked(&socket, SupervisorRequest::Reload, ANSWER)?;
    let until = Instant::now() + Duration::from_secs(args.timeout);
    let roles = loop {
        let state: SystemState = asked(&socket, SupervisorRequest::Status, ANSWER)?;
        if state.roles.iter().all(|role| is_settled(role, &accepted)) || Instant::now() >= until {
            break state.roles;
        }
        thread::sleep(LOOK);
    };
    let text = match args.json {
        true => in_json(&accepted, &roles),
        false => in_text(&accepted, &roles),
    };
    let is_applied =
        |role: &RoleState| role.settings >= accepted.settings && role.complaint.is_none();
    let code = ExitCode::from(u8::from(!roles.iter().all(is_applied)));
    Ok(Outcome::Report(text, code))
}

/// Asks a supervisor that has to be there.
fn asked<T: serde::de::DeserializeOwned>(
    socket: &Path,
    request: SupervisorRequest,
    patience: Duration,
) -> Result<T, Failure> {
    ask_supervisor(socket, request, patience)?.ok_or_else(|| {
        Failure::new(format!(
            "no system is running (nobody listens on {}): start it with: systemctl start vere, or, for other settings than \
             {OF_UNITS}: vere serve -c FILE",
            socket.display()
        ))
    })
}

/// Whether the role has applied or refused the settings.
fn is_settled(role: &RoleState, accepted: &Accepted) -> bool {
    role.settings >= accepted.settings
}

fn in_json(accepted: &Accepted, roles: &[RoleState]) -> String {
    let role = |role: &RoleState| {
        json!({
            "name": role.name,
            "applied": is_settled(role, accepted) && role.complaint.is_none(),
            "complaint": role.complaint,
        })
    };
    let value = json!({
        "settings": accepted.settings,
        "changed": accepted.changed,
        "roles": roles.iter().map(role).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn in_text(accepted: &Accepted, roles: &[RoleState]) -> String {
    let mut text = match accepted.changed.as_slice() {
        [] => "no setting changed; files that the settings name are read again\n".to_owned(),
        changed => format!(
            "{} changed: {}\n",
            counted(changed.len() as u64, "setting"),
            changed.join(", ")
        ),
    };
    let mut applied = 0;
    for role in roles {
        match (&role.complaint, is_settled(role, accepted)) {
            (Some(complaint), true) => {
                let _ = writeln!(
                    text,
                    "{} keeps its earlier settings: {complaint}",
                    role.name
                );
            }
            (_, true) => applied += 1,
            (_, false) if role.state == ProcessState::Down => {
                let _ = writeln!(
                    text,
                    "{} is down; its next start applies the settings",
                    role.name
                );
            }
            (_, false) => {
                let _ = writeln!(
                    text,
                    "{} has not answered yet; look again with: vere status",
                    role.name
                );
            }
        }
    }
    let _ = writeln!(
        text,
        "applied by {} of {}",
        applied,
        counted(roles.len() as u64, "role")
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, settings: u64, complaint: Option<&str>) -> RoleState {
        RoleState {
            name: name.to_owned(),
            state: ProcessState::Ready,
            pid: Some(7),
            uptime_seconds: Some(1),
            restarts: 0,
            last_end: None,
            settings,
            complaint: complaint.map(str::to_owned),
        }
    }

    #[test]
    fn each_role_that_did_not_follow_is_named() {
        let accepted = Accepted {
            settings: 3,
            changed: vec!["limits.recipients_max".to_owned()],
        };
        let mut down = role("store", 2, None);
        down.state = ProcessState::Down;
        let roles = [
            role("gateway", 3, None),
            role("front", 3, Some("no certificate")),
            role("signer", 2, None),
            down,
        ];
        let expected = "1 setting changed: limits.recipients_max\n\
                        front keeps its earlier settings: no certificate\n\
                        signer has not answered yet; look again with: vere status\n\
                        store is down; its next start applies the settings\n\
                        applied by 1 of 4 roles\n";
        assert_eq!(in_text(&accepted, &roles), expected);
        let json: serde_json::Value = serde_json::from_str(&in_json(&accepted, &roles)).unwrap();
        assert_eq!(json["roles"][0]["applied"], true);
        assert_eq!(json["roles"][1]["applied"], false);
        assert_eq!(json["roles"][1]["complaint"], "no certificate");
    }

    #[test]
    fn without_a_system_nothing_is_reloaded() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "version = 1\nhostname = \"mx.example.org\"\ndata = {:?}\n",
            folder.path()
        );
        let settings = Settings::parse(&text, "vere.toml").unwrap();
        let args = ReloadArgs {
            timeout: 1,
            json: false,
        };
        let failure = run(&args, &settings).unwrap_err().to_string();
        assert!(failure.starts_with("no system is running"), "{failure}");
        assert!(failure.contains("systemctl start vere"), "{failure}");
    }
}
