//! A connection: the machine, its unread input, and its unread output.

use std::sync::Arc;

use vere_smtp::proxy::{Decoder, Header};
use vere_smtp::server::{Peer, Server, ServerConfig, Step, TlsInfo};
use vere_units::Timestamp;

use super::Pieces;
use super::world::World;
use crate::runner::{Heard, SubjectError};

#[derive(Debug)]
pub(super) struct Connection {
    stage: Stage,
    /// Octets that the machine has not consumed yet.
    waiting: Vec<u8>,
    /// Output of the machine that the script has not read.
    said: Vec<u8>,
    closed: bool,
}

#[derive(Debug)]
enum Stage {
    /// Before the end of the PROXY header.
    Proxy(Box<(Decoder, Arc<ServerConfig>, Peer)>),
    Smtp(Box<Server>),
    /// Closed before there was a session.
    Dropped,
}

impl Connection {
    pub(super) fn new(world: &World, now: Timestamp) -> Self {
        let (config, peer) = (Arc::new(world.config.clone()), world.peer.clone());
        let stage = if world.proxy {
            Stage::Proxy(Box::new((Decoder::default(), config, peer)))
        } else {
            Stage::Smtp(Box::new(Server::new(config, peer, now)))
        };
        Self {
            stage,
            waiting: Vec::new(),
            said: Vec::new(),
            closed: false,
        }
    }

    /// Receives octets that the client sent together.
    pub(super) fn arrive(
        &mut self,
        octets: &[u8],
        pieces: Pieces,
        world: &mut World,
        now: Timestamp,
    ) {
        match pieces {
            Pieces::Whole => self.waiting.extend_from_slice(octets),
            // All pieces before any output: the machine must see that the octets came together.
            Pieces::Octets => {
                for octet in octets {
                    self.waiting.push(*octet);
                    self.feed(now);
                    if matches!(&self.stage, Stage::Smtp(server) if server.output().is_empty()) {
                        self.settle(world, now);
                    }
                }
            }
        }
        self.settle(world, now);
    }

    /// Gives the machine waiting octets, and returns whether the machine consumed any.
    fn feed(&mut self, now: Timestamp) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let taken = match &mut self.stage {
            Stage::Dropped => self.waiting.len(),
            Stage::Smtp(server) => server.input(&self.waiting, now),
            Stage::Proxy(proxy) => {
                let (decoder, config, peer) = &mut **proxy;
                match decoder.input(&self.waiting) {
                    Err(_) => {
                        self.closed = true;
                        self.stage = Stage::Dropped;
                        0
                    }
                    Ok((taken, None)) => taken,
                    Ok((taken, Some(header))) => {
                        if let Header::Proxied {
                            source,
                            destination,
                        } = header
                        {
                            peer.may_relay = World::rights_of(source.ip()).may_relay;
                            (peer.address, peer.local) = (source, destination);
                        }
                        let server = Server::new(config.clone(), peer.clone(), now);
                        self.stage = Stage::Smtp(Box::new(server));
                        taken
                    }
                }
            }
        };
        self.waiting.drain(..taken);
        taken > 0
    }

    /// Carries out the machine's steps until the machine needs input.
    pub(super) fn settle(&mut self, world: &mut World, now: Timestamp) {
        loop {
            let fed = self.feed(now);
            let Stage::Smtp(server) = &mut self.stage else {
                return;
            };
            match server.step() {
                Step::Send => {
                    self.said.extend_from_slice(server.output());
                    server.sent(server.output().len());
                }
                Step::Ask(question) => {
                    let answer = world.answer(question, server);
                    server.answer(answer, now);
                }
                Step::NeedInput if fed => {}
                Step::NeedInput | Step::NeedAnswer | Step::StartTls => return,
                Step::Close => {
                    self.closed = true;
                    return;
                }
            }
        }
    }

    /// The next line said.
    pub(super) fn hear(&mut self) -> Heard {
        let Some(end) = self.said.windows(2).position(|pair| pair == b"\r\n") else {
            if self.said.is_empty() {
                return if self.closed {
                    Heard::Closed
                } else {
                    Heard::Nothing
                };
            }
            return Heard::Line(std::mem::take(&mut self.said));
        };
        let line = self.said.drain(..end + 2).take(end).collect();
        Heard::Line(line)
    }

    pub(super) fn has_more(&self) -> bool {
        !self.said.is_empty()
    }

    pub(super) fn pass_time(&mut self, now: Timestamp) {
        if let Stage::Smtp(server) = &mut self.stage
            && server.deadline() <= now
        {
            server.timed_out();
        }
    }

    pub(super) fn start_tls(&mut self) -> Result<(), SubjectError> {
        if let Stage::Smtp(server) = &mut self.stage
            && matches!(server.step(), Step::StartTls)
        {
            server.tls_started(TlsInfo {
                version: "TLSv1.3".to_owned(),
                cipher: "TLS13_AES_256_GCM_SHA384".to_owned(),
                sni: None,
            });
            return Ok(());
        }
        Err(SubjectError(
            "the server is not ready for the handshake".to_owned(),
        ))
    }

    pub(super) fn shut_down(&mut self) {
        if let Stage::Smtp(server) = &mut self.stage {
            server.shut_down();
        }
    }
}
