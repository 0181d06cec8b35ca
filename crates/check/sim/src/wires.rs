//! How octets travel between the hosts: sending, arriving, connecting, cutting.

use vere_owner::Link;

use crate::net::Chunk;
use crate::schedule::{Event, MILLI, Micros, SECOND};
use crate::world::{Broken, World};

impl World {
    fn delay(&mut self) -> Micros {
        let usual = self.scenario.delay;
        let slowness = self.network.slowness;
        let extra = if slowness > 0 {
            self.random.range(0..2 * slowness)
        } else {
            0
        };
        usual / 2 + self.random.range(0..usual) + extra
    }

    /// Sends something over a connection, in pieces as a network likes them.
    pub(crate) fn send(&mut self, conn: u64, up: bool, chunk: Chunk) {
        let at = self.schedule.now() + self.delay();
        let octets = matches!(chunk, Chunk::Octets(_));
        if self.broken == Broken::HoleyNetwork && octets && !up && self.random.percent(5) {
            return;
        }
        let cut = self.random.percent(20);
        let piece = self.random.span(1..2_000) as usize;
        let Some(link) = self.network.conns.get_mut(&conn) else {
            return;
        };
        let pipe = link.pipe(up);
        match chunk {
            Chunk::Octets(octets) if cut && octets.len() > piece => {
                let (first, rest) = octets.split_at(piece);
                pipe.send(Chunk::Octets(first.to_vec()), at);
                pipe.send(Chunk::Octets(rest.to_vec()), at + MILLI);
            }
            chunk => pipe.send(chunk, at),
        }
        self.pump(conn, up);
    }

    /// Schedules the next arrival of a direction, unless its way is blocked.
    fn pump(&mut self, conn: u64, up: bool) {
        let Some(link) = self.network.conns.get(&conn) else {
            return;
        };
        if self.network.is_blocked(link.way(up)) {
            return;
        }
        let Some(link) = self.network.conns.get_mut(&conn) else {
            return;
        };
        let pipe = link.pipe(up);
        if let Some(at) = pipe.next_arrival()
            && !std::mem::replace(&mut pipe.scheduled, true)
        {
            self.schedule.at(at, Event::Deliver { conn, up });
        }
    }

    /// Ways are open again.
    pub(crate) fn pump_all(&mut self) {
        for conn in self.network.conns.keys().copied().collect::<Vec<_>>() {
            self.pump(conn, true);
            self.pump(conn, false);
        }
    }

    /// The first chunk on the way arrives.
    pub(crate) fn deliver(&mut self, conn: u64, up: bool) {
        let now = self.schedule.now();
        let Some(link) = self.network.conns.get_mut(&conn) else {
            return;
        };
        let way = link.way(up);
        link.pipe(up).scheduled = false;
        if self.network.is_blocked(way) {
            return;
        }
        let Some(link) = self.network.conns.get_mut(&conn) else {
            return;
        };
        link.pipe(up).arrive(now);
        let (owner, node, boot) = (link.owner, link.link.node, link.boot);
        let open = if up { link.id.is_some() } else { link.owned };
        if open {
            if up {
                self.wake_node(node);
            } else {
                self.wake_owner(owner);
            }
        } else if link.made {
            // The reader is gone; the sender is told, if the sender still exists.
            let octets = link.pipe(up).read_all();
            let ended = link.pipe(up).ended;
            let powered = self.nodes[node].powered || self.nodes[node].boot == boot;
            if !octets.is_empty() && !ended && (!up || powered) {
                self.send(conn, !up, Chunk::End);
            }
        }
        self.pump(conn, up);
        self.network.forget(conn);
    }

    /// Tries to make a connection.
    pub(crate) fn try_connect(&mut self, owner: usize, link: Link) {
        let host = self.owners[owner].host;
        let conn = self.network.add(owner, host, link);
        self.owners[owner].conns.insert(link, conn);
        let delay = self.delay() * 2;
        self.schedule.after(delay, Event::Connect { conn });
    }

    /// A connection attempt succeeds or fails.
    pub(crate) fn connect(&mut self, conn: u64) {
        let Some(link) = self.network.conns.get(&conn) else {
            return;
        };
        let (owner, to, owned) = (link.owner, link.link, link.owned);
        if !owned {
            self.network.conns.remove(&conn);
            return;
        }
        let blocked =
            self.network.is_blocked(link.way(true)) || self.network.is_blocked(link.way(false));
        let powered = self.nodes[to.node].powered;
        let now = self.clock(self.nodes[to.node].skew);
        let challenge = self.random.octets32();
        let paused = self.nodes[to.node].paused_until > self.schedule.now();
        let process = self.nodes[to.node].process.as_mut().filter(|_| !blocked);
        let id = process.and_then(|process| process.accept(challenge, now));
        let Some(id) = id else {
            // Either refused at once, or without an answer.
            let delay = if powered && !blocked {
                50 * MILLI
            } else {
                SECOND
            };
            let again = self.schedule.now() + self.random.range(delay / 2..delay);
            self.network.conns.remove(&conn);
            self.owners[owner].conns.remove(&to);
            self.owners[owner].retry.insert(to, again);
            self.schedule.at(again, Event::OwnerTurn { owner });
            return;
        };
        let boot = self.nodes[to.node].boot;
        if let Some(link) = self.network.conns.get_mut(&conn) {
            (link.id, link.boot, link.made) = (Some(id), boot, true);
        }
        let nonce = self.random.octets32();
        let time = self.owner_time(owner);
        if self.owners[owner].alive {
            self.owners[owner].machine.connected(to, nonce, time);
        }
        if !paused {
            self.wake_node(to.node);
        }
        self.wake_owner(owner);
    }

    /// A connection breaks. With `reply_lost` the octets towards the node arrive, but none of the
    /// octets back.
    pub(crate) fn cut(&mut self, conn: u64, reply_lost: bool) {
        let Some(link) = self.network.conns.get_mut(&conn) else {
            return;
        };
        if !link.made {
            return;
        }
        let (to, owner) = (link.link, link.owner);
        self.note(6, || {
            format!("connection of o{owner} to {to:?} breaks, reply lost: {reply_lost}")
        });
        let Some(link) = self.network.conns.get_mut(&conn) else {
            return;
        };
        link.down.lose();
        if !reply_lost {
            link.up.lose();
        }
        self.send(conn, false, Chunk::End);
        self.send(conn, true, Chunk::End);
    }
}
