//! `vere demo`: a whole system for evaluation, below a single directory; `make run` starts the demo.
//!
//! All traffic remains on loopback: mail for `demo.test` goes to alice and bob, all other mail to a sink that keeps
//! the mail in a directory. Existing files of the directory are never overwritten, so that a second start goes on
//! with the mail and the settings of the first.

mod banner;
mod files;

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::{Args, Subcommand};
use vere_net::listen::{ListenOptions, bind};
use vere_settings::{NextHop, RoutePattern, Settings};

use vere_process::config;
use vere_process::entry;
use vere_process::failure::Failure;
use vere_process::log::{self, Level};
use vere_process::outcome::Outcome;
use vere_supervisor::{self, Extra, Readiness, Role};

use super::bench;

/// Actions on a demo system.
#[derive(Debug, Subcommand)]
pub(crate) enum DemoCommand {
    /// Write settings, certificates and accounts, as far as missing.
    Init(DemoArgs),
    /// Write the missing files, then run the system with its sink until Ctrl-C.
    Run(DemoArgs),
    /// The sink's process, started by `vere demo run`.
    #[command(hide = true)]
    Sink {
        /// The arguments of `vere-bench sink`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

/// The directory of a demo system.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The directory.
    #[arg(long, default_value = "run", value_name = "DIR")]
    dir: PathBuf,
    /// Offset of every port when the settings are first written: 10000 makes 12525 of 2525.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    port_offset: u16,
}

/// Runs the command.
///
/// # Errors
/// When a file cannot be written or is invalid, or the system cannot start.
pub(crate) fn run(command: &DemoCommand) -> Result<Outcome, Failure> {
    match command {
        DemoCommand::Init(args) => {
            let (config, settings) = init(args)?;
            let sink = sink_address(&settings);
            let head = format!(
                "Ready in {}; start it with `vere demo run`.",
                args.dir.display()
            );
            Ok(Outcome::Print(banner::text(
                &head, &config, &settings, sink,
            )))
        }
        DemoCommand::Run(args) => serve(args),
        DemoCommand::Sink { words } => {
            // The signal that ends a role with its supervisor outlives the exec.
            if let Err(code) = entry::child_setup() {
                return Ok(Outcome::Exit(code));
            }
            bench::replace(std::iter::once("sink".into()).chain(words.clone()))
        }
    }
}

/// Creates the missing files; returns the path and the content of the settings.
fn init(args: &DemoArgs) -> Result<(PathBuf, Arc<Settings>), Failure> {
    let config = files::write(&args.dir, args.port_offset)?;
    let settings = config::read(&config)?;
    files::fill_directory(&settings)?;
    Ok((config, settings))
}

fn serve(args: &DemoArgs) -> Result<Outcome, Failure> {
    let (config, settings) = init(args)?;
    // Without a log the demo still serves.
    let log = log::start(&settings, "supervisor").ok();
    let address = sink_address(&settings);
    let roles = address
        .map(|address| sink(address, &args.dir))
        .transpose()?;
    let text = banner::text("Veredarius is running.", &config, &settings, address);
    let extra = Extra {
        level: log.as_ref().map(|log| Level::of(log, "supervisor")),
        roles: roles.into_iter().collect(),
        when_ready: Some(Box::new(move || {
            // A closed output is no reason not to run.
            let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
        })),
    };
    Ok(Outcome::Exit(vere_supervisor::run_with(
        settings, &config, extra,
    )?))
}

/// The sink is at the address of the settings for all other mail, if the address is local.
fn sink_address(settings: &Settings) -> Option<SocketAddr> {
    let all = settings
        .routes
        .iter()
        .find(|route| route.domain == RoutePattern::Any)?;
    let NextHop::Host { host, port } = &all.next_hop else {
        return None;
    };
    let address = SocketAddr::new(host.parse().ok()?, *port);
    address.ip().is_loopback().then_some(address)
}

/// Returns the sink as a role. The supervisor binds the port here, as for every role, so that a port in use is
/// reported at once.
fn sink(address: SocketAddr, dir: &Path) -> Result<Role, Failure> {
    let socket = bind(&[address], ListenOptions::default())?;
    let program = std::env::current_exe()?;
    bench::find()?;
    let folder = files::sink_folder(dir);
    Ok(Role {
        name: "sink".to_owned(),
        command: Box::new(move || {
            let mut command = Command::new(&program);
            command.args([
                "demo",
                "sink",
                "--inherit",
                "--listen",
                &address.to_string(),
                "--save",
            ]);
            command.arg(&folder);
            command.stdin(
                socket
                    .first()
                    .and_then(as_input)
                    .unwrap_or_else(Stdio::null),
            );
            command.stdout(Stdio::null());
            command
        }),
        listeners: Vec::new(),
        log: None,
        readiness: Readiness::Spawned,
        reloads: false,
    })
}

fn as_input(socket: &TcpListener) -> Option<Stdio> {
    Some(Stdio::from(OwnedFd::from(socket.try_clone().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(dir: &Path) -> DemoArgs {
        DemoArgs {
            dir: dir.join("run"),
            port_offset: 1000,
        }
    }

    #[test]
    fn a_new_demo_is_complete_and_a_second_start_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (config, settings) = init(&args(folder.path())).unwrap();
        assert_eq!(settings.smtp.listen, ["127.0.0.1:3525".parse().unwrap()]);
        assert_eq!(
            sink_address(&settings),
            Some("127.0.0.1:3526".parse().unwrap())
        );

        let names = [
            "vere.toml",
            "ca.pem",
            "server.pem",
            "server.key",
            "data/directory.toml",
        ];
        let read =
            |name: &str| std::fs::read_to_string(folder.path().join("run").join(name)).unwrap();
        let before: Vec<String> = names.iter().map(|name| read(name)).collect();
        assert!(before[4].contains("alice@demo.test") && before[4].contains("bob@demo.test"));
        init(&DemoArgs {
            port_offset: 0,
            ..args(folder.path())
        })
        .unwrap();
        let after: Vec<String> = names.iter().map(|name| read(name)).collect();
        assert_eq!(before, after);
        assert!(config.ends_with("run/vere.toml"));
    }

    #[test]
    fn the_private_key_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        init(&args(folder.path())).unwrap();
        let key = std::fs::metadata(folder.path().join("run/server.key")).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn ports_beyond_the_last_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let args = DemoArgs {
            port_offset: 64000,
            ..args(folder.path())
        };
        assert!(init(&args).unwrap_err().to_string().contains("port"));
    }

    #[test]
    fn the_banner_tells_what_a_newcomer_needs() {
        let folder = tempfile::tempdir().unwrap();
        let (config, settings) = init(&args(folder.path())).unwrap();
        let text = banner::text("Running.", &config, &settings, sink_address(&settings));
        for part in [
            "./vere spool stat",
            "a on 127.0.0.1:",
            "swaks --server 127.0.0.1:3525",
            "127.0.0.1:3587",
            "alice@demo.test",
            "sink",
            "ca.pem",
            "./vere trace",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
