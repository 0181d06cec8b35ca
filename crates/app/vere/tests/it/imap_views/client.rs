//! A client: the times of its commands, and its reading of the answers.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::Random;
use super::view::{Left, Saying, View};
use super::wire::{Response, Wire};
use super::world::{World, copy_uids};

/// The capability that a client has enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Rev2,
    Condstore,
    Qresync,
}

/// The kind of a command, as far as its answer depends on the kind.
#[derive(Debug)]
pub(super) enum Asked {
    Append {
        mailbox: String,
        text: u32,
        deleted: bool,
    },
    Copy {
        to: String,
    },
    Open {
        mailbox: String,
        /// The greatest UID given before.
        last_uid: u32,
    },
    Close,
    Noop,
    /// A change of flags without a response.
    Silent {
        uids: Vec<u32>,
    },
    Search,
    Other,
}

#[derive(Debug)]
pub(super) struct Pending {
    tag: String,
    pub(super) command: String,
    saying: Saying,
    asked: Asked,
}

/// The open mailbox.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) mailbox: String,
    pub(super) read_only: bool,
    pub(super) view: View,
}

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    wire: Wire,
    pub(super) kind: Kind,
    pub(super) open: Option<Open>,
    /// Mailboxes in the state of their last visit.
    left: HashMap<String, Left>,
    /// The tag of an IDLE under way.
    idle: Option<String>,
    pending: Option<Pending>,
}

impl Client {
    pub(super) fn new(address: SocketAddr, kind: Kind) -> Self {
        let mut client = Self {
            wire: Wire::connect(address),
            kind,
            open: None,
            left: HashMap::new(),
            idle: None,
            pending: None,
        };
        let enable = match kind {
            Kind::Plain => "NOOP",
            Kind::Rev2 => "ENABLE IMAP4rev2",
            Kind::Condstore => "ENABLE CONDSTORE",
            Kind::Qresync => "ENABLE QRESYNC",
        };
        for command in ["LOGIN alice@example.org secret", enable] {
            client.send(command.to_owned(), Saying::All, Asked::Other);
            client.finish(&mut World::new(Vec::new()));
        }
        client
    }

    pub(super) fn has_mod_seqs(&self) -> bool {
        matches!(self.kind, Kind::Condstore | Kind::Qresync)
    }

    pub(super) fn send(&mut self, command: String, saying: Saying, asked: Asked) {
        let tag = self.wire.send(&command);
        self.pending = Some(Pending {
            tag,
            command,
            saying,
            asked,
        });
    }

    /// Begins something; whether there is an answer to be read.
    pub(super) fn begin(&mut self, random: &mut Random, world: &mut World) -> bool {
        if self.idle.is_some() {
            if random.percent(60) {
                return false;
            }
            self.end_idle();
            return true;
        }
        if self.open.is_none() || random.percent(6) {
            self.select(random, world);
            return true;
        }
        match random.below(100) {
            0..25 => self.append(random, world),
            25..45 => self.store(random, world),
            45..57 => self.expunge(random, world),
            57..69 => self.copy(random, world),
            69..79 => self.fetch(random),
            79..84 => self.search(random),
            84..92 => self.send("NOOP".to_owned(), Saying::All, Asked::Noop),
            92..97 => {
                self.begin_idle();
                world.count("IDLE");
                return false;
            }
            _ => self.close(random),
        }
        if let Some(pending) = &self.pending {
            let words: Vec<&str> = pending.command.split(' ').take(2).collect();
            let by_uid = words[0] == "UID";
            world.count(&words[..if by_uid { 2 } else { 1 }].join(" "));
        }
        self.pending.is_some()
    }

    fn select(&mut self, random: &mut Random, world: &mut World) {
        self.leave();
        let mailbox = random.one_of(&world.mailboxes).clone();
        let read_only = random.percent(10);
        let verb = if read_only { "EXAMINE" } else { "SELECT" };
        let left = self.left.get(&mailbox).cloned();
        let left = left.filter(|_| self.kind == Kind::Qresync && random.percent(80));
        let mut known_only = false;
        let command = match &left {
            None => format!("{verb} {mailbox}"),
            Some(left) => {
                let uids: Vec<String> = left.uids().iter().map(u32::to_string).collect();
                known_only = !uids.is_empty() && random.percent(50);
                let known = match known_only {
                    false => String::new(),
                    true => format!(" {}", uids.join(",")),
                };
                format!(
                    "{verb} {mailbox} (QRESYNC ({} {}{known}))",
                    left.uid_validity, left.mod_seq
                )
            }
        };
        world.count(if left.is_some() { "resumed" } else { "SELECT" });
        self.open = Some(Open {
            mailbox: mailbox.clone(),
            read_only,
            view: View::new(self.kind == Kind::Qresync, left, known_only),
        });
        let last_uid = world.last_uid(&mailbox);
        self.send(command, Saying::All, Asked::Open { mailbox, last_uid });
    }

    /// Remembers the state of the open mailbox.
    fn leave(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        if self.kind == Kind::Qresync {
            // Without a state of this time the earlier state does as well.
            self.left
                .extend(open.view.leave().map(|left| (open.mailbox, left)));
        }
    }

    fn begin_idle(&mut self) {
        let tag = self.wire.send("IDLE");
        loop {
            let response = self.wire.response();
            if response.text.starts_with("+ ") {
                break;
            }
            self.hear(&response, Saying::All);
        }
        self.idle = Some(tag);
    }

    fn end_idle(&mut self) {
        if let Some(tag) = self.idle.take() {
            self.wire.say("DONE\r\n");
            self.pending = Some(Pending {
                tag,
                command: "IDLE".to_owned(),
                saying: Saying::All,
                asked: Asked::Other,
            });
        }
    }

    fn hear(&mut self, response: &Response, saying: Saying) {
        if let Some(open) = &mut self.open {
            open.view.hear(response, saying);
        }
    }

    /// Reads the answer to the begun command.
    pub(super) fn finish(&mut self, world: &mut World) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let Pending {
            tag,
            command,
            saying,
            asked,
        } = pending;
        loop {
            let response = self.wire.response();
            if let Some(end) = response.text.strip_prefix(&format!("{tag} ")) {
                // Messages removed by other clients are left out.
                let is_fine = end.starts_with("OK") || end.starts_with("NO [EXPUNGEISSUED]");
                assert!(is_fine, "{command}: {end}");
                self.answered(&asked, &response, world);
                return;
            }
            assert!(response.text.starts_with("* "), "{command}: {response:?}");
            self.hear(&response, saying);
            self.heard(&asked, &response, world);
        }
    }

    /// The relevant parts of an untagged response beyond the view.
    fn heard(&self, asked: &Asked, response: &Response, world: &mut World) {
        if let Asked::Copy { to } = asked {
            self.copied(to, response, world);
        }
        let Some(open) = &self.open else { return };
        if let (Some(literal), Some(uid)) = (response.literals.first(), response.number("UID")) {
            let uid = u32::try_from(uid).expect("32 bits");
            let text = String::from_utf8_lossy(literal).into_owned();
            world.read((open.mailbox.clone(), uid), text);
        }
        if let (Asked::Search, Some(found)) = (asked, response.text.strip_prefix("* SEARCH")) {
            for number in found.split_whitespace().map_while(|word| word.parse().ok()) {
                let number: usize = number;
                assert!(number <= open.view.messages.len(), "{response:?}");
            }
        }
    }

    fn copied(&self, to: &str, response: &Response, world: &mut World) {
        let (Some(words), Some(open)) = (response.code("COPYUID"), &self.open) else {
            return;
        };
        let (from, uids) = copy_uids(&words);
        for (from, uid) in from.into_iter().zip(uids) {
            world.copied((open.mailbox.clone(), from), (to.to_owned(), uid));
        }
    }

    fn answered(&mut self, asked: &Asked, response: &Response, world: &mut World) {
        match asked {
            Asked::Append {
                mailbox,
                text,
                deleted,
            } => {
                let words = response.code("APPENDUID").expect("an APPENDUID");
                let uid = words[1].parse().expect("a UID");
                world.appended((mailbox.clone(), uid), *text, *deleted);
            }
            Asked::Copy { to } => self.copied(to, response, world),
            Asked::Open { mailbox, last_uid } => {
                if let Some(open) = &mut self.open {
                    open.view.opened();
                    world.validity(mailbox, open.view.uid_validity);
                    let next = open.view.uid_next;
                    assert!(next > *last_uid, "UIDNEXT {next} after {last_uid}");
                }
                // A resumed mailbox must be known whole.
                if self.kind == Kind::Qresync {
                    self.learn(world);
                }
            }
            Asked::Close => self.leave(),
            Asked::Noop => {
                if let Some(open) = &mut self.open {
                    open.view.synced();
                }
            }
            Asked::Silent { uids } => {
                if let Some(open) = &mut self.open {
                    open.view.forget_flags(uids);
                }
            }
            Asked::Search | Asked::Other => {}
        }
    }

    /// Asks for the unknown attributes of messages.
    pub(super) fn learn(&mut self, world: &mut World) {
        let Some(open) = self.open.as_ref().filter(|_| self.idle.is_none()) else {
            return;
        };
        if let Some((first, last)) = open.view.unknown() {
            let mod_seq = if self.has_mod_seqs() { " MODSEQ" } else { "" };
            let command = format!("FETCH {first}:{last} (UID FLAGS{mod_seq})");
            self.send(command, Saying::Numbered, Asked::Other);
            self.finish(world);
        }
    }

    /// Ends the current command.
    pub(super) fn rest(&mut self, world: &mut World) {
        self.end_idle();
        self.finish(world);
    }

    /// Looks whether there is something new.
    pub(super) fn noop(&mut self, world: &mut World) {
        self.send("NOOP".to_owned(), Saying::All, Asked::Noop);
        self.finish(world);
    }

    /// Whether the belief equals the mailbox.
    pub(super) fn agrees(&self, world: &World) -> bool {
        self.open
            .as_ref()
            .is_none_or(|open| open.view.belief().as_ref() == Some(world.there(&open.mailbox)))
    }
}
