//! The connection breaks: at the end of every PDU, and some octets before and behind. Hosts with a disk resume; nothing is lost and nothing doubled.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::pair::{Pair, X410, accepting, apdu, identifier, request};
use crate::association::*;
use crate::rtse::*;
use crate::session::Exception;

type Key = (SessionConnectionIdentifier, Bytes);

/// The disk of the receiver.
#[derive(Debug, Default)]
struct Inbox {
    messages: Vec<Vec<u8>>,
    /// Positions of secured checkpoints and the octets before the last.
    partial: HashMap<Key, (Vec<Checkpoint>, Vec<u8>)>,
    completed: HashSet<Key>,
    /// How often a transfer was continued, begun again, and known as complete.
    ways: [usize; 3],
    /// The transfer in progress, which is not on disk.
    current: Option<(Key, Vec<u8>)>,
}

impl Inbox {
    fn take(
        &mut self,
        event: &Event,
        name: &SessionConnectionIdentifier,
        association: &mut Association,
    ) {
        match event {
            Event::TransferBegins(activity) => {
                self.current = Some(((name.clone(), activity.clone()), Vec::new()));
            }
            Event::Apdu(octets) => self.current.as_mut().unwrap().1.extend_from_slice(octets),
            Event::Checkpoint(point) => {
                let (key, octets) = self.current.clone().unwrap();
                let position = usize::try_from(point.position).unwrap();
                let (points, kept) = self.partial.entry(key).or_default();
                points.push(*point);
                *kept = octets[..position].to_vec();
                association.secured(point.serial).unwrap();
            }
            Event::Received(length) => {
                let (key, octets) = self.current.take().unwrap();
                assert_eq!(octets.len(), usize::try_from(*length).unwrap());
                self.completed.insert(key);
                self.messages.push(octets);
                association.confirm().unwrap();
            }
            Event::ResumeIndication(resume) => self.resume(resume, name, association),
            _ => {}
        }
    }

    fn resume(
        &mut self,
        resume: &ResumeIndication,
        name: &SessionConnectionIdentifier,
        association: &mut Association,
    ) {
        let old = (
            resume.session.clone().unwrap_or_else(|| name.clone()),
            resume.old_activity.clone(),
        );
        let new = (name.clone(), resume.activity.clone());
        if self.completed.contains(&old) {
            self.completed.insert(new);
            self.ways[2] += 1;
            return association.already_received().unwrap();
        }
        let (points, octets) = self.partial.get(&old).cloned().unwrap_or_default();
        let point = points
            .iter()
            .find(|point| point.serial == resume.checkpoint);
        let position = match (point, resume.checkpoint) {
            (Some(point), _) => point.position,
            (None, 0) => 0,
            (None, _) => {
                return association
                    .refuse_transfer(Exception::UnrecoverableProceduralError)
                    .unwrap();
            }
        };
        self.ways[usize::from(resume.checkpoint == 0)] += 1;
        let octets = octets[..usize::try_from(position).unwrap()].to_vec();
        let points = points
            .into_iter()
            .filter(|point| point.position <= position)
            .collect();
        self.partial.insert(new.clone(), (points, octets.clone()));
        self.current = Some((new, octets));
        association.continue_from(position).unwrap();
    }
}

/// The disk of the sender.
#[derive(Debug)]
struct Outbox {
    messages: Vec<Vec<u8>>,
    sent: usize,
    broken: Option<Broken>,
    /// Whether it keeps what is left of a transfer only when a checkpoint is confirmed, as after a crash.
    forgets: bool,
}

struct World {
    mode: Mode,
    inbox: Inbox,
    outbox: Outbox,
    connections: u32,
    /// Octets over all connections.
    octets: usize,
    boundaries: Vec<usize>,
}

impl World {
    fn new(mode: Mode, forgets: bool) -> Self {
        let messages = vec![apdu(3500), apdu(400), apdu(2048)];
        Self {
            mode,
            inbox: Inbox::default(),
            outbox: Outbox {
                messages,
                sent: 0,
                broken: None,
                forgets,
            },
            connections: 0,
            octets: 0,
            boundaries: Vec::new(),
        }
    }

    /// One connection, which breaks after this many octets; true when all messages are sent and the association is released.
    fn connect(&mut self, left: usize) -> bool {
        self.connections += 1;
        let name = identifier(self.connections);
        let mut pair = Pair::plain(97);
        pair.left = left;
        pair.b.willing = false;
        let open = OpenRequest {
            identifier: name.clone(),
            ..request(self.mode)
        };
        pair.a.association.open(open).unwrap();
        let mut supplied = (0, Bytes::new());
        loop {
            self.poll_sender(&mut pair, &mut supplied);
            let moved = self.exchange(&mut pair, &name);
            if pair.a.closed || pair.left == 0 {
                break;
            }
            assert!(moved, "the associations are stuck: {pair:?}");
        }
        let released = pair.a.events.contains(&Event::Released);
        if !pair.a.closed {
            pair.a.association.ended();
        }
        if !pair.b.closed {
            pair.b.association.ended();
        }
        self.exchange(&mut pair, &name);
        self.poll_sender(&mut pair, &mut supplied);
        self.count(&pair);
        released
    }

    fn count(&mut self, pair: &Pair) {
        for (_, octets) in &pair.wire {
            let mut at = 0;
            while at + 4 <= octets.len() {
                at += usize::from(u16::from_be_bytes([octets[at + 2], octets[at + 3]]));
                self.boundaries.push(self.octets + at);
            }
            self.octets += octets.len();
        }
    }

    /// Moves octets and lets the receiver act.
    fn exchange(&mut self, pair: &mut Pair, name: &SessionConnectionIdentifier) -> bool {
        let mut moved = false;
        for from_a in [true, false] {
            let (from, to) = if from_a {
                (&mut pair.a, &mut pair.b)
            } else {
                (&mut pair.b, &mut pair.a)
            };
            while let Some(output) = from.association.poll() {
                moved = true;
                match output {
                    Output::Event(event) if from_a => from.events.push(event),
                    Output::Event(event) => {
                        if matches!(event, Event::OpenIndication(_)) {
                            from.association.accept(accepting()).unwrap();
                        }
                        if event == Event::ReleaseIndication {
                            from.association.accept_release().unwrap();
                        }
                        self.inbox.take(&event, name, &mut from.association);
                    }
                    Output::Close => {
                        from.closed = true;
                        to.association.ended();
                    }
                    Output::Write(pieces) => {
                        let octets = pieces.into_bytes();
                        let octets = octets.slice(..octets.len().min(pair.left));
                        pair.left -= octets.len();
                        pair.wire.push((from_a, octets.clone()));
                        to.association.receive(octets);
                    }
                }
            }
        }
        moved
    }

    /// Lets the sender act on what it was told.
    fn poll_sender(&mut self, pair: &mut Pair, supplied: &mut (usize, Bytes)) {
        for at in 0..pair.a.events.len() {
            match pair.a.events[at].clone() {
                Event::Opened(_) => self.begin(pair, supplied),
                Event::Transferred(_) => {
                    self.outbox.sent += 1;
                    self.outbox.broken = None;
                    self.begin(pair, supplied);
                }
                Event::NotTransferred(broken) => {
                    self.outbox.broken = broken;
                    self.begin(pair, supplied);
                }
                Event::CheckpointConfirmed(broken) => self.outbox.broken = Some(broken),
                Event::Aborted(_, Some(broken)) if !self.outbox.forgets => {
                    self.outbox.broken = Some(broken)
                }
                _ => {}
            }
        }
        let released = pair.a.events.contains(&Event::Released);
        pair.a.events.clear();
        if released {
            pair.a.events.push(Event::Released);
        }
        let _taken = pair.a.association.supply(&mut supplied.1);
    }

    fn begin(&mut self, pair: &mut Pair, supplied: &mut (usize, Bytes)) {
        let association = &mut pair.a.association;
        if !association.has_turn() {
            return;
        }
        let Some(message) = self.outbox.messages.get(self.outbox.sent) else {
            return association.release().unwrap();
        };
        let from = match &self.outbox.broken {
            Some(broken) if broken.is_resumable() => association.resume(broken).unwrap(),
            Some(broken) => return association.discard_broken(broken).unwrap(),
            None => association
                .transfer(u64::try_from(message.len()).unwrap())
                .unwrap(),
        };
        if self.outbox.broken.is_none() {
            // A crash is survived by what is written before the first octet.
            self.outbox.broken = association.broken();
        }
        let position = usize::try_from(from.checkpoint.position).unwrap();
        *supplied = (position, Bytes::copy_from_slice(&message[position..]));
    }

    fn check(&self, name: &str) {
        assert_eq!(self.outbox.sent, self.outbox.messages.len(), "{name}: lost");
        assert_eq!(
            self.inbox.messages, self.outbox.messages,
            "{name}: lost or doubled"
        );
    }
}

/// The places of cuts: at the end of every TPDU, and some octets before and behind.
fn cuts(mode: Mode) -> Vec<usize> {
    let mut world = World::new(mode, false);
    assert!(world.connect(usize::MAX));
    world.check("uncut");
    let around = |end: &usize| [end.saturating_sub(1), *end, end + 1];
    let mut cuts: Vec<usize> = world.boundaries.iter().flat_map(around).collect();
    cuts.extend((0..world.octets).step_by(41));
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

#[test]
fn a_break_anywhere_loses_and_doubles_nothing() {
    for mode in [Mode::Normal, X410] {
        for forgets in [false, true] {
            let mut ways = [0; 3];
            for cut in cuts(mode) {
                let mut world = World::new(mode, forgets);
                let name = format!("{mode:?}, cut after {cut} octets, forgets {forgets}");
                let mut done = world.connect(cut);
                for _ in 0..4 {
                    done = done || world.connect(usize::MAX);
                }
                assert!(done, "{name}");
                world.check(&name);
                for (sum, way) in ways.iter_mut().zip(world.inbox.ways) {
                    *sum += way;
                }
            }
            assert!(
                ways.iter().all(|way| *way > 5),
                "every way was gone: {ways:?}"
            );
        }
    }
}

#[test]
fn breaks_one_after_the_other_lose_and_double_nothing() {
    for mode in [Mode::Normal, X410] {
        for first in [900, 1900, 2500, 3900, 4300] {
            for second in (300..4000).step_by(97) {
                let mut world = World::new(mode, second % 2 == 0);
                let name = format!("{mode:?}, cut after {first} and {second} octets");
                let _released =
                    world.connect(first) || world.connect(second) || world.connect(second / 2);
                for _ in 0..4 {
                    if world.outbox.sent < world.outbox.messages.len() {
                        world.connect(usize::MAX);
                    }
                }
                world.check(&name);
            }
        }
    }
}
