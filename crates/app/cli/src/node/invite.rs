//! `vere node invite`.

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use vere_enrolment::message::{Account, Membership};
use vere_enrolment::{
    Authority, Ending, Invitation, Limits, Machine, Owner, Token, is_node_name, probe,
};
use vere_process::failure::Failure;
use vere_settings::{Durability, Settings};
use vere_units::Span;

use super::edit::{NewNode, add};
use super::{address, show, spool_key};
use crate::config_arg::ConfigArg;
use crate::difference::difference;
use crate::settings_file::SettingsFile;

/// The port of nodes, if the command line has none.
const NODE_PORT: u16 = 2600;
/// The port of invitations, if the command line has none.
const INVITATION_PORT: u16 = 2610;
/// Time limit of a connection to the own invitation.
const PROBE: Duration = Duration::from_secs(3);
/// The longest time that an invitation may be valid.
const VALID_MAX: Span = Span::from_millis(7 * 24 * 3600 * 1000);

/// The invited machine, and where this machine listens for it.
#[derive(Debug, Args)]
pub(crate) struct InviteArgs {
    /// A name for the node: lower-case letters, digits and hyphens, such as the machine's name.
    name: String,
    /// The address of the other machine on which its node listens, and to which this gateway connects; port 2600 unless
    /// given.
    #[arg(long, value_name = "IP[:PORT]")]
    address: String,
    /// An address of this machine that the other machine reaches, for the time of the invitation; by default the address
    /// that leads to the other machine, and port 2610.
    #[arg(long, value_name = "IP[:PORT]")]
    listen: Option<String>,
    /// The address in the token, if not the address of --listen: behind a NAT the outside address with a port that leads to this
    /// machine. --listen may be 0.0.0.0 then.
    #[arg(long, value_name = "IP[:PORT]")]
    advertise: Option<String>,
    /// How long the invitation is valid, at most `7d`.
    #[arg(long, value_name = "SPAN", default_value = "1h")]
    valid: Span,
    /// Invite a machine anew whose node is in the settings already, such as after the loss of the machine; also for a name
    /// that a removed node had.
    #[arg(long)]
    again: bool,
    /// Print the change of the settings and do nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command and returns the text to print at the end.
///
/// # Errors
/// When the name is taken, the settings cannot be changed, no address is free, or nobody joined.
pub(super) fn run(args: &InviteArgs, config: &ConfigArg) -> Result<String, Failure> {
    let (path, settings) = config.load()?;
    let plan = Plan::new(args, &path, &settings)?;
    let file = SettingsFile::read(&path)?;
    let changed = plan.change(&file)?;
    show(&describe(&path, &file.text, &changed));
    if args.dry_run {
        return Ok(String::new());
    }
    let owner = Owner::of(&settings.data)?;
    let authority = plan.authority(owner)?;
    plan.refuse_old_name(args.again)?;
    let membership = plan.membership(owner)?;
    let limits = Limits {
        valid: args.valid.min(VALID_MAX).duration(),
        ..Limits::default()
    };
    let advertised = args.advertise.as_deref();
    let advertised = advertised.map(|text| address(text, INVITATION_PORT));
    let advertised = advertised.transpose()?;
    let listener = listen(args.listen.as_deref(), plan.node.listen, advertised)?;
    let mut invitation = Invitation::new(listener, authority, membership, limits)?;
    if let Some(advertised) = advertised {
        invitation.advertise(advertised);
    }
    show(&instruction(&invitation, args));
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let record = || plan.record(&path).map_err(|failure| failure.to_string());
    let token = invitation.token().clone();
    let ending = std::thread::scope(|scope| {
        scope.spawn(|| warn_if_unreachable(&token));
        invitation.serve(&stop, &record)
    })?;
    finish(ending, &plan)
}

/// Connects to the invitation as the other machine will.
fn warn_if_unreachable(token: &Token) {
    let Err(error) = probe(token, PROBE) else {
        return;
    };
    show(&format!(
        "\nWarning: this machine cannot connect to its own invitation: {}\nThe other machine may still reach it. If the join \
         fails: let the firewall admit the other machine to port {} here; behind a NAT forward the port, and give the \
         outside address with --advertise; if {} is another machine, give an address of this one with --listen.\n",
        Failure::from(error),
        token.address.port(),
        token.address.ip()
    ));
}

/// The plan of an invitation, made before the first change.
struct Plan<'a> {
    settings: &'a Settings,
    node: NewNode<'a>,
    /// Whether the settings have the node already.
    known: bool,
    machine: Machine,
}

impl<'a> Plan<'a> {
    fn new(args: &'a InviteArgs, path: &Path, settings: &'a Settings) -> Result<Self, Failure> {
        if !is_node_name(&args.name) {
            return Err(Failure::new(format!(
                "expected a name of lower-case letters, digits and hyphens; found {:?}",
                args.name
            )));
        }
        let listen = address(&args.address, NODE_PORT)?;
        let ip = listen.ip().to_canonical();
        if ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() {
            return Err(Failure::new(format!(
                "expected an address of the other machine; found {ip}"
            )));
        }
        let known = settings
            .spool
            .nodes
            .iter()
            .find(|node| node.name == args.name);
        match known {
            Some(node) if !args.again => {
                let again = if node.remote { "; or add --again" } else { "" };
                return Err(Failure::new(format!(
                    "{} has a node {} already: choose another name{again}",
                    path.display(),
                    args.name
                )));
            }
            Some(node) if !node.remote || node.listen != listen => {
                return Err(Failure::new(format!(
                    "node {} is at {} in {}: an invitation anew is for the same address of another machine",
                    args.name,
                    node.listen,
                    path.display()
                )));
            }
            _ => {}
        }
        let name = args.name.as_str();
        Ok(Self {
            settings,
            node: NewNode { name, listen },
            known: known.is_some(),
            machine: Machine::below(&settings.data),
        })
    }

    /// The changed settings file, which was checked.
    fn change(&self, file: &SettingsFile) -> Result<String, Failure> {
        let settings = file.parse(&file.text)?;
        if settings
            .spool
            .tls
            .as_ref()
            .is_some_and(|tls| tls.ca_key.is_none())
        {
            return Err(Failure::new(format!(
                "[spool.tls] in {} has no ca_key: add the file of the CA's key, or invite from the machine that has \
                 the key",
                file.path.display()
            )));
        }
        if self.known
            || settings
                .spool
                .nodes
                .iter()
                .any(|node| node.name == self.node.name)
        {
            return Ok(file.text.clone());
        }
        let changed = add(&file.text, &settings, self.node, &self.machine)?;
        file.parse(&changed)?;
        Ok(changed)
    }

    /// Puts the node into the settings file as the file is now.
    fn record(&self, path: &Path) -> Result<(), Failure> {
        let file = SettingsFile::read(path)?;
        let changed = self.change(&file)?;
        if changed == file.text {
            return Ok(());
        }
        file.write(&changed)
    }

    /// The CA of the settings, or of this machine; made with the certificate of this machine where missing.
    fn authority(&self, owner: Owner) -> Result<Authority, Failure> {
        let own = &self.settings.spool.tls;
        if let Some(tls) = own
            && let Some(key) = &tls.ca_key
        {
            return Ok(Authority::open(&tls.ca, key)?);
        }
        let authority = Authority::open_or_create(&self.machine, owner)?;
        let nodes = self.settings.spool.nodes.iter().filter(|node| !node.remote);
        let names = nodes.map(|node| node.name.clone());
        let names: Vec<String> = names.chain([self.settings.gateway.name.clone()]).collect();
        authority.certify_own(&self.machine, &names, owner)?;
        Ok(authority)
    }

    /// A certificate of a removed node is good for its name until its end.
    fn refuse_old_name(&self, again: bool) -> Result<(), Failure> {
        match self.machine.removed_until(self.node.name) {
            Some(end) if !again && !self.known => Err(Failure::new(format!(
                "a node {} was removed earlier, and its certificate is valid until {end}: choose another name; or, if \
                 nobody else has its key, add --again",
                self.node.name
            ))),
            _ => Ok(()),
        }
    }

    fn membership(&self, owner: Owner) -> Result<Membership, Failure> {
        let spool = &self.settings.spool;
        let accounts = spool.accounts.iter().map(|account| {
            Ok(Account {
                name: account.name.clone(),
                makes_groups: account.makes_groups,
                key: spool_key(&account.secret, owner)?,
            })
        });
        Ok(Membership {
            node: self.node.name.to_owned(),
            listen: self.node.listen,
            gateway: self.settings.gateway.name.clone(),
            certificate: String::new(),
            ca: String::new(),
            key: spool_key(&spool.secret, owner)?,
            durability: match spool.durability {
                Durability::Synced => "synced".to_owned(),
                Durability::Replicated => "replicated".to_owned(),
            },
            queues_max: spool.queues_max,
            groups_max: spool.groups_max,
            accounts: accounts.collect::<Result<_, Failure>>()?,
        })
    }
}

/// Listens on the given address, or on the address of the route to the other machine.
fn listen(
    given: Option<&str>,
    node: SocketAddr,
    advertised: Option<SocketAddr>,
) -> Result<TcpListener, Failure> {
    let place = match given {
        Some(text) => address(text, INVITATION_PORT)?,
        None => SocketAddr::new(own_address(node)?, INVITATION_PORT),
    };
    let for_token = advertised.unwrap_or(place);
    if for_token.ip().is_unspecified() || for_token.ip().is_multicast() {
        return Err(Failure::new(format!(
            "expected one address that the other machine reaches, since the token has it; found {}: give --listen or --advertise",
            for_token.ip()
        )));
    }
    TcpListener::bind(place).map_err(|error| {
        Failure::new(format!(
            "cannot listen on {place}: {error}; choose another place with --listen"
        ))
    })
}

/// The address of this machine on the way to another machine. No packet is sent.
fn own_address(node: SocketAddr) -> Result<IpAddr, Failure> {
    let any = if node.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let found = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(node)?;
        socket.local_addr()
    });
    found.map(|address| address.ip()).map_err(|error| {
        Failure::new(format!(
            "this machine has no way to {}: {error}; give an address of this machine with --listen",
            node.ip()
        ))
    })
}

fn describe(path: &Path, old: &str, new: &str) -> String {
    let path = path.display();
    match difference(old, new) {
        lines if lines.is_empty() => format!("{path} has the node already and stays as it is.\n\n"),
        lines => format!("Once the other machine has joined, {path} changes:\n\n{lines}\n"),
    }
}

fn instruction(invitation: &Invitation, args: &InviteArgs) -> String {
    let token = invitation.token();
    format!(
        "Run on the other machine, as root, within {}:\n\n    vere node join {}\n\nWhoever has this line can become the \
         node. Waiting at {} (Ctrl-C ends the invitation) ...\n",
        args.valid.min(VALID_MAX),
        token.reveal(),
        token.address
    )
}

fn finish(ending: Ending, plan: &Plan<'_>) -> Result<String, Failure> {
    let (name, listen) = (plan.node.name, plan.node.listen);
    let nothing = "the settings are unchanged";
    match ending {
        Ending::Joined(peer) => Ok(format!(
            "\n{name} joined from {}.\n\nNext:\n  1. Start the node on its machine, as the command there says, and let its \
             firewall admit this machine to {listen}.\n  2. Then restart this system: systemctl restart vere\n     Until then \
             no message goes to {name}, and vere status lists its keys as edited and not in force.\n  3. Look: vere \
             node list; `sync` means that the node has every message.\nFurther gateways need the same [[spool.node]], \
             and a certificate of this CA (docs/guides/machines.md).\n",
            peer.ip()
        )),
        Ending::Expired => Err(Failure::new(format!("nobody joined in time; {nothing}"))),
        Ending::Stopped => Err(Failure::new(format!("invitation ended; {nothing}"))),
    }
}
