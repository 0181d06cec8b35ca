//! `vere node join`.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use nix::unistd::geteuid;
use vere_enrolment::message::Membership;
use vere_enrolment::{Candidate, Machine, Owner, Token, is_node_name, join, write};
use vere_process::failure::Failure;
use vere_settings::Settings;

use crate::quickstart::files::old;
use crate::quickstart::user;

/// The mark of an unfinished join.
const UNFINISHED: &str = "joining";

/// The token, and where this machine keeps its files.
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// The token that `vere node invite` printed.
    token: String,
    /// The directory for the settings; `/etc/vere` as root (queues go to `/var/lib/vere`), `vere-data` below the working
    /// directory otherwise (queues go to its `data`).
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The name of this machine in the DNS; by default the node's name below `spool.invalid`, since a node sends no mail.
    #[arg(long)]
    hostname: Option<String>,
    /// Overwrite existing settings and keys; the old settings are kept beside the new file.
    #[arg(long)]
    force: bool,
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// When settings exist, the other machine cannot be reached or refuses, or files cannot be written. Then the invitation
/// is not used up.
pub(super) fn run(args: &JoinArgs) -> Result<String, Failure> {
    let token: Token = args.token.parse()?;
    let place = Place::new(args.dir.as_deref())?;
    if !args.force {
        place.refuse_existing()?;
    }
    let candidate = Candidate::new()?;
    let joining = join(&token, &candidate)?;
    let given = &joining.membership;
    check(given)?;
    let text = place.settings(given, args.hostname.as_deref())?;
    Settings::parse(&text, &place.config().to_string_lossy())?;
    let note = place.write(given, &candidate, &text)?;
    let (name, listen, gateway) = (given.node.clone(), given.listen, given.gateway.clone());
    joining.confirm().map_err(|error| {
        let text = Failure::from(error);
        Failure::new(format!(
            "the files are written, but the other machine has not recorded the node: {text}; run the same command again"
        ))
    })?;
    place.finish()?;
    let mut text = format!(
        "This machine is the node {name} of {gateway}. Its settings are in {}.\n",
        place.config().display()
    );
    if let Some(note) = note {
        let _ = writeln!(text, "Note: {note}");
    }
    let _ = write!(
        text,
        "\nNext:\n  1. Start the node: {}\n  2. Let the firewall admit the gateway ({}) to {listen}.\n  3. Restart the \
         gateway's system; `vere node list` there shows whether it reaches this node.\n",
        place.start(&name),
        token.address.ip()
    );
    Ok(text)
}

/// Names become parts of files and settings.
fn check(given: &Membership) -> Result<(), Failure> {
    let odd =
        |what: &str| Failure::new(format!("the other machine sent {what} that cannot be used"));
    if !is_node_name(&given.node) {
        return Err(odd("a name"));
    }
    let is_plain = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
    let names = given.accounts.iter().map(|account| account.name.as_str());
    if !names.chain([given.gateway.as_str()]).all(is_plain) {
        return Err(odd("a name of an account"));
    }
    if !matches!(given.durability.as_str(), "synced" | "replicated") {
        return Err(odd("a durability"));
    }
    // A node that cannot listen would be found out only by the gateway.
    match TcpListener::bind(given.listen) {
        Err(error) if error.kind() == ErrorKind::AddrNotAvailable => Err(Failure::new(format!(
            "{} is no address of this machine: invite again with an address that this machine has",
            given.listen.ip()
        ))),
        _ => Ok(()),
    }
}

/// Where the files of this machine are.
pub(super) struct Place {
    dir: PathBuf,
    data: PathBuf,
    machine: Machine,
}

impl Place {
    pub(super) fn new(dir: Option<&Path>) -> Result<Self, Failure> {
        let root = geteuid().is_root();
        let etc = Path::new("/etc/vere");
        let dir = dir.unwrap_or(if root { etc } else { Path::new("vere-data") });
        let dir = std::path::absolute(dir)?;
        let data = match dir == etc {
            true => PathBuf::from("/var/lib/vere"),
            false => dir.join("data"),
        };
        let machine = Machine::below(&data);
        Ok(Self { dir, data, machine })
    }

    fn config(&self) -> PathBuf {
        self.dir.join("vere.toml")
    }

    fn unfinished(&self) -> PathBuf {
        self.machine.folder.join(UNFINISHED)
    }

    /// An unfinished join may be repeated; a machine with other settings may be a mail server.
    pub(super) fn refuse_existing(&self) -> Result<(), Failure> {
        if self.unfinished().exists() {
            return Ok(());
        }
        let files = [
            self.config(),
            self.data.join("spool.key"),
            self.machine.key.clone(),
        ];
        match files.into_iter().find(|path| path.exists()) {
            Some(path) => Err(Failure::new(format!(
                "{} exists already: --force overwrites settings and keys of this machine, and keeps the old settings as {}",
                path.display(),
                old(&self.config()).display()
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn settings(
        &self,
        given: &Membership,
        hostname: Option<&str>,
    ) -> Result<String, Failure> {
        let Membership {
            node,
            listen,
            durability,
            queues_max,
            groups_max,
            ..
        } = given;
        let hostname = hostname.map_or_else(|| format!("{node}.spool.invalid"), str::to_owned);
        let data = quoted(&self.data)?;
        let user = match user::find(&self.dir).user {
            Some(user) if geteuid().is_root() => format!("user = {:?}\n", user.name),
            _ => String::new(),
        };
        let Machine {
            ca,
            certificate,
            key,
            ..
        } = &self.machine;
        let (certificate, key, ca) = (quoted(certificate)?, quoted(key)?, quoted(ca)?);
        let mut text = format!(
            "# Made by: vere node join. All settings: vere config reference\nversion = 1\nhostname = \"{hostname}\"\n\
             data = {data}\n{user}\n[spool]\ndurability = \"{durability}\"\nreplicas_min = 1\nqueues_max = {queues_max}\ngroups_max = \
             {groups_max}\n\n[spool.tls]\ncertificate = {certificate}\nkey = {key}\nca = {ca}\n\n[[spool.node]]\nname = \
             \"{node}\"\nlisten = \"{listen}\"\n"
        );
        for (number, account) in given.accounts.iter().enumerate() {
            let secret = quoted(&self.account_key(number))?;
            let name = basic_string(&account.name);
            let groups = if account.makes_groups {
                "makes"
            } else {
                "none"
            };
            let _ = write!(
                text,
                "\n[[spool.account]]\nname = {name}\nsecret = {secret}\ngroups = \"{groups}\"\n"
            );
        }
        Ok(text)
    }

    fn account_key(&self, number: usize) -> PathBuf {
        self.machine
            .folder
            .join(format!("account-{}.key", number + 1))
    }

    /// Writes everything, the settings last: killed at any point, the command can be run again. Returns a note for the
    /// operator.
    pub(super) fn write(
        &self,
        given: &Membership,
        candidate: &Candidate,
        settings: &str,
    ) -> Result<Option<String>, Failure> {
        make_folder(&self.dir, 0o755)?;
        make_folder(&self.data, 0o700)?;
        let found = match geteuid().is_root() {
            true => user::find(&self.dir),
            false => user::Found::default(),
        };
        let mut owner = Owner::of(&self.data)?;
        if let Some(user) = &found.user {
            (owner.user, owner.group) = (user.uid.as_raw(), user.gid.as_raw());
            owner.give(&self.data)?;
        }
        self.machine.make_folder(owner)?;
        write(&self.unfinished(), "", 0o600, owner)?;
        let line = |key: &str| format!("{key}\n");
        write(
            &self.data.join("spool.key"),
            &line(&given.key),
            0o600,
            owner,
        )?;
        for (number, account) in given.accounts.iter().enumerate() {
            write(&self.account_key(number), &line(&account.key), 0o600, owner)?;
        }
        write(&self.machine.ca, &given.ca, 0o644, owner)?;
        write(&self.machine.key, &candidate.key_pem(), 0o600, owner)?;
        write(&self.machine.certificate, &given.certificate, 0o644, owner)?;
        let config = self.config();
        if config.exists() && !self.is_own(&config) {
            fs::copy(&config, old(&config))?;
        }
        let (user, mode) = match &found.user {
            Some(user) => (
                Owner {
                    group: user.gid.as_raw(),
                    ..Owner::of(&self.dir)?
                },
                0o640,
            ),
            None => (Owner::of(&self.dir)?, 0o600),
        };
        write(&config, settings, mode, user)?;
        Ok(found.note)
    }

    /// Whether a settings file is of an earlier join, of which nothing is lost.
    fn is_own(&self, config: &Path) -> bool {
        fs::read_to_string(config).is_ok_and(|text| text.starts_with("# Made by: vere node join."))
    }

    pub(super) fn finish(&self) -> Result<(), Failure> {
        Ok(fs::remove_file(self.unfinished())?)
    }

    /// The command that starts the node.
    fn start(&self, name: &str) -> String {
        let config = self.config();
        let has_unit = |folder: &&str| Path::new(folder).join("vere-node@.service").exists();
        let units = [
            "/etc/systemd/system",
            "/usr/lib/systemd/system",
            "/lib/systemd/system",
        ];
        if config == Path::new("/etc/vere/vere.toml") && units.iter().any(has_unit) {
            return format!("systemctl enable --now vere-node@{name}");
        }
        let command = format!("vere spool serve --node {name} -c {}", config.display());
        match Owner::of(&self.data) {
            Ok(owner) if geteuid().is_root() && owner.user != 0 => {
                format!(
                    "setpriv --reuid {} --regid {} --clear-groups {command}",
                    owner.user, owner.group
                )
            }
            _ => command,
        }
    }
}

fn make_folder(path: &Path, mode: u32) -> Result<(), Failure> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path);
    made.map_err(|error| Failure::new(format!("cannot create {}: {error}", path.display())))
}

fn quoted(path: &Path) -> Result<String, Failure> {
    let text = path
        .to_str()
        .filter(|text| !text.chars().any(char::is_control));
    let text = text.ok_or_else(|| {
        Failure::new(format!(
            "{} has characters that settings cannot name",
            path.display()
        ))
    })?;
    Ok(basic_string(text))
}

/// A basic string of TOML, for a text without control characters.
fn basic_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
