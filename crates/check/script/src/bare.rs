//! The bare machine as subject: no sockets, virtual time, and a small made-up world.
//!
//! The world is the domain `demo.test` with the mailboxes `alice`, `bob` and `postmaster`, who log in
//! as `alice@demo.test` and `bob@demo.test` with the password `demo`. Other names there do not exist,
//! except `full` (mailbox full) and `later` (try later). Clients that may relay or have logged in can
//! send to other domains. The sender `refused@evil.test` is refused, and so is a message with a line
//! `X-Refuse: content` or, for lack of space, `X-Refuse: full`. A client at 192.0.2.66 named by
//! XCLIENT or PROXY may relay.

mod host;
mod imap;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use vere_units::{ByteSize, Timestamp};

use crate::parse::{Requirement, Script};
use crate::runner::{Failure, Heard, Subject, SubjectError, Verdict, run as run_script};

use host::Connection;
pub use world::World;

/// The pieces in which the client's octets reach the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// Octets sent together arrive together.
    Whole,
    /// Octet by octet.
    Octets,
}

/// Runs a script against new machines.
///
/// # Errors
///
/// [`Failure`] at the first line at which a machine does something else.
pub fn run(script: &Script, pieces: Pieces) -> Result<Verdict, Failure> {
    let failure = |problem| Failure {
        script: script.name.clone(),
        line: 0,
        problem,
        transcript: Vec::new(),
    };
    if script.requirements.contains(&Requirement::Imap) {
        let mut bare = imap::BareImap::new(script, pieces).map_err(failure)?;
        return run_script(script, &mut bare);
    }
    let mut bare = Bare::new(script, pieces).map_err(failure)?;
    run_script(script, &mut bare)
}

/// The machines and their world.
#[derive(Debug)]
struct Bare {
    world: World,
    pieces: Pieces,
    now: Timestamp,
    connections: BTreeMap<u32, Connection>,
}

impl Bare {
    fn new(script: &Script, pieces: Pieces) -> Result<Self, String> {
        let mut world = World::new();
        for requirement in &script.requirements {
            match requirement {
                Requirement::Submission => world.config.role = vere_smtp::server::Role::Submission,
                Requirement::Right { right, has } => world.grant(right, *has),
                Requirement::Limit { name, value } => limit(&mut world, name, *value)?,
                Requirement::Switch(name) => switch(&mut world, name)?,
                Requirement::Imap | Requirement::Bare(_) | Requirement::Together(_) => {}
            }
        }
        let now = Timestamp::from_millis(1_750_000_000_000);
        Ok(Self {
            world,
            pieces,
            now,
            connections: BTreeMap::new(),
        })
    }

    fn connection(&mut self, number: u32) -> &mut Connection {
        let (world, now) = (&self.world, self.now);
        self.connections
            .entry(number)
            .or_insert_with(|| Connection::new(world, now))
    }

    /// Lets a connection run until no step is left.
    fn settle(&mut self, number: u32) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.settle(&mut self.world, self.now);
        }
    }
}

impl Subject for Bare {
    fn lacks(&self, requirement: &Requirement) -> Option<String> {
        match requirement {
            Requirement::Together(reason) if self.pieces != Pieces::Whole => Some(reason.clone()),
            _ => None,
        }
    }

    fn lacks_wait(&self, _: Duration) -> Option<String> {
        None
    }

    fn send(&mut self, connection: u32, octets: &[u8]) -> Result<(), SubjectError> {
        self.connection(connection);
        if let Some(open) = self.connections.get_mut(&connection) {
            open.arrive(octets, self.pieces, &mut self.world, self.now);
        }
        Ok(())
    }

    fn hear(&mut self, connection: u32) -> Result<Heard, SubjectError> {
        self.connection(connection);
        self.settle(connection);
        Ok(self.connection(connection).hear())
    }

    fn has_more(&mut self, connection: u32) -> bool {
        self.settle(connection);
        self.connection(connection).has_more()
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        for connection in self.connections.values_mut() {
            connection.pass_time(self.now);
        }
    }

    fn start_tls(&mut self, connection: u32) -> Result<(), SubjectError> {
        self.settle(connection);
        self.connection(connection).start_tls()
    }

    fn close(&mut self, connection: u32) {
        self.connections.remove(&connection);
    }

    fn shut_down(&mut self) -> bool {
        self.connections
            .values_mut()
            .for_each(Connection::shut_down);
        true
    }

    fn message(&mut self) -> Option<String> {
        Some(self.world.last_message())
    }
}

/// Sets a limit by name.
fn limit(world: &mut World, name: &str, value: u64) -> Result<(), String> {
    let limits = &mut world.config.limits;
    let count = usize::try_from(value).map_err(|error| error.to_string())?;
    match name {
        "message_size_max" => limits.message_size_max = ByteSize::new(value),
        "refused_size_max" => limits.refused_size_max = ByteSize::new(value),
        "recipients_max" => limits.recipients_max = count,
        "refusals_max" => limits.refusals_max = count,
        "transactions_max" => limits.transactions_max = count,
        "errors_max" => limits.errors_max = count,
        "idle_commands_max" => limits.idle_commands_max = count,
        "auth_failures_max" => limits.auth_failures_max = count,
        "command_octets_max" => limits.command_octets_max = count,
        "mail_octets_max" => limits.mail_octets_max = count,
        "rcpt_octets_max" => limits.rcpt_octets_max = count,
        "auth_octets_max" => limits.auth_octets_max = count,
        "text_line_octets_max" => limits.text_line_octets_max = count,
        "output_octets_max" => limits.output_octets_max = count,
        "command_timeout" => limits.command_timeout = Duration::from_millis(value),
        "data_timeout" => limits.data_timeout = Duration::from_millis(value),
        "data_octets_per_second_min" => limits.data_octets_per_second_min = value,
        "data_time_max" => limits.data_time_max = Duration::from_millis(value),
        _ => return Err(format!("unknown limit {name}")),
    }
    Ok(())
}

/// Turns a switch on by name.
fn switch(world: &mut World, name: &str) -> Result<(), String> {
    let config = &mut world.config;
    match name {
        "tls_required" => config.tls_required = true,
        "strict_pipelining" => config.strict_pipelining = true,
        "space_before_path" => config.workarounds.space_before_path = true,
        "path_without_brackets" => config.workarounds.path_without_brackets = true,
        "underscore_in_helo" => config.workarounds.underscore_in_helo = true,
        "no_tls" => world.peer.tls_available = false,
        "no_auth" => config.auth = None,
        "no_chunking" => config.extensions.chunking = false,
        "no_smtputf8" => config.extensions.smtputf8 = false,
        "no_dsn" => config.extensions.dsn = false,
        _ => return Err(format!("unknown switch {name}")),
    }
    Ok(())
}
