//! Connections between MTAs: ordered protocol data units in both directions, delayed, and cut at any unit.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::{Buf, Bytes, BytesMut};

use crate::random::Random;
use crate::schedule::{MILLI, Micros, SECOND};

/// Octets of the header of a TPKT (RFC 1006), with the length in the last two.
const HEADER: usize = 4;

/// Where a cut lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Nothing of the unit arrives.
    Before,
    /// The first half of the unit arrives.
    Within,
    /// The unit arrives, and nothing behind it.
    After,
}

/// A cut of a connection at a protocol data unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The MTA that sends the unit.
    pub from: usize,
    /// The MTA that receives the unit.
    pub to: usize,
    /// The number of the unit among all of this direction, from 1.
    pub pdu: u64,
    /// The side of the unit.
    pub side: Side,
}

/// How connections are cut.
#[derive(Debug)]
pub(super) enum Plan {
    Once(Option<Cut>),
    /// Cuts at a unit of so many, on any side. The ends of a connection notice a cut up to this much later.
    Often(u64, Micros),
}

/// A direction of a connection.
#[derive(Debug, Default)]
struct Way {
    /// Octets of a unit that is not complete yet.
    begun: BytesMut,
    on_the_way: VecDeque<Bytes>,
    arrived: BytesMut,
    reader: Option<Waker>,
    /// Octets that were written.
    written: u64,
    /// Nothing follows the units on the way.
    finished: bool,
    /// The reader sees the end behind the octets that have arrived.
    ended: bool,
    /// When the last unit arrives.
    last_at: Micros,
}

#[derive(Debug)]
struct Wire {
    /// The MTAs at both ends; the first has opened the connection.
    mtas: [usize; 2],
    /// From each end to the opposite end.
    ways: [Way; 2],
    /// Cut: octets written from now on are lost.
    severed: bool,
    /// A cut is an error for readers, and no plain end.
    resets: bool,
}

/// All connections of a run.
#[derive(Debug)]
pub(super) struct Network {
    random: Random,
    plan: Plan,
    wires: Vec<Wire>,
    /// Units, or ends, that are on the way and have no time yet.
    moved: Vec<(usize, usize)>,
    counts: BTreeMap<(usize, usize), u64>,
    pub(super) cuts: u64,
}

/// The connections, for streams that may be sent between threads.
pub(super) type SharedNetwork = Arc<Mutex<Network>>;

pub(super) fn locked(network: &SharedNetwork) -> MutexGuard<'_, Network> {
    network.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a read.
pub(super) enum Read {
    Octets(Bytes),
    End,
    Reset,
    /// Nothing yet.
    Nothing,
}

impl Network {
    pub(super) fn new(random: Random, plan: Plan) -> SharedNetwork {
        Arc::new(Mutex::new(Self {
            random,
            plan,
            wires: Vec::new(),
            moved: Vec::new(),
            counts: BTreeMap::new(),
            cuts: 0,
        }))
    }

    /// A connection between two MTAs.
    pub(super) fn connect(&mut self, from: usize, to: usize) -> usize {
        self.wires.push(Wire {
            mtas: [from, to],
            ways: [Way::default(), Way::default()],
            severed: false,
            resets: self.random.percent(50),
        });
        self.wires.len() - 1
    }

    /// Octets that an end has written.
    pub(super) fn written(&self, wire: usize, end: usize) -> u64 {
        self.wires[wire].ways[end].written
    }

    /// Protocol data units of all connections.
    pub(super) fn pdus(&self) -> u64 {
        self.counts.values().sum()
    }

    /// No more cuts.
    pub(super) fn calm(&mut self) {
        self.plan = Plan::Once(None);
    }

    /// A cut on each side of each unit that was sent.
    pub(super) fn all_cuts(&self) -> Vec<Cut> {
        let mut all = Vec::new();
        for (&(from, to), &count) in &self.counts {
            for pdu in 1..=count {
                for side in [Side::Before, Side::Within, Side::After] {
                    all.push(Cut {
                        from,
                        to,
                        pdu,
                        side,
                    });
                }
            }
        }
        all
    }

    /// Takes octets of an end. False: the other end is gone.
    pub(super) fn write(&mut self, wire: usize, end: usize, octets: &[u8]) -> bool {
        let one = &mut self.wires[wire];
        if one.severed {
            // The system of the writer may not have noticed yet.
            return !one.resets;
        }
        let way = &mut one.ways[end];
        if way.finished {
            return false;
        }
        way.written += octets.len() as u64;
        way.begun.extend_from_slice(octets);
        while let Some(unit) = unit(&mut self.wires[wire].ways[end].begun) {
            if !self.send(wire, end, unit) {
                break;
            }
        }
        true
    }

    /// Sends a unit. False: the connection was cut at the unit.
    fn send(&mut self, wire: usize, end: usize, unit: Bytes) -> bool {
        let one = &self.wires[wire];
        let direction = (one.mtas[end], one.mtas[1 - end]);
        let count = self.counts.entry(direction).or_default();
        *count += 1;
        let pdu = *count;
        let Some(side) = self.side(direction, pdu) else {
            self.push(wire, end, unit);
            return true;
        };
        match side {
            Side::Before => {}
            Side::Within => self.push(wire, end, unit.slice(..unit.len() / 2)),
            Side::After => self.push(wire, end, unit),
        }
        self.sever(wire, end);
        false
    }

    fn push(&mut self, wire: usize, end: usize, unit: Bytes) {
        self.wires[wire].ways[end].on_the_way.push_back(unit);
        self.moved.push((wire, end));
    }

    /// Where the plan has a cut at a unit.
    fn side(&mut self, (from, to): (usize, usize), pdu: u64) -> Option<Side> {
        match &self.plan {
            Plan::Once(cut) => {
                let cut = cut.filter(|cut| (cut.from, cut.to, cut.pdu) == (from, to, pdu));
                cut.map(|cut| cut.side)
            }
            Plan::Often(every, _) => {
                let cut = self.random.range(0..*every) == 0;
                let sides = [Side::Before, Side::Within, Side::After];
                cut.then(|| self.random.pick(&sides)).flatten()
            }
        }
    }

    /// Cuts a connection while an end writes.
    fn sever(&mut self, wire: usize, writer: usize) {
        self.cuts += 1;
        let lost = self.random.percent(50);
        let one = &mut self.wires[wire];
        one.severed = true;
        for end in 0..2 {
            let way = &mut one.ways[end];
            if end != writer && lost {
                way.on_the_way.clear();
            }
            way.finished = true;
            self.moved.push((wire, end));
        }
    }

    /// An end writes no more.
    pub(super) fn finish(&mut self, wire: usize, end: usize) {
        let way = &mut self.wires[wire].ways[end];
        if !way.finished {
            way.finished = true;
            self.moved.push((wire, end));
        }
    }

    /// An end is gone: octets written to the end are lost.
    pub(super) fn close(&mut self, wire: usize, end: usize) {
        self.finish(wire, end);
        self.wires[wire].ways[1 - end].finished = true;
    }

    /// The times at which units and ends arrive without a time so far.
    pub(super) fn arrivals(&mut self, now: Micros) -> Vec<(Micros, usize, usize)> {
        let mut times = Vec::new();
        for (wire, end) in std::mem::take(&mut self.moved) {
            let one = &mut self.wires[wire];
            let late = match self.plan {
                Plan::Often(_, late) if one.severed => self.random.span(1..late),
                _ => 0,
            };
            let delay = self.random.range(50..3 * MILLI) + late.min(30 * SECOND);
            let way = &mut one.ways[end];
            way.last_at = way.last_at.max(now) + delay;
            times.push((way.last_at, wire, end));
        }
        times
    }

    /// A unit arrives, or the end of a direction.
    pub(super) fn arrive(&mut self, wire: usize, end: usize) {
        let way = &mut self.wires[wire].ways[end];
        match way.on_the_way.pop_front() {
            Some(unit) => way.arrived.extend_from_slice(&unit),
            None if way.finished => way.ended = true,
            None => {}
        }
        if let Some(reader) = way.reader.take() {
            reader.wake();
        }
    }

    /// Reads octets that have arrived at an end, at most so many.
    pub(super) fn read(&mut self, wire: usize, end: usize, most: usize, waker: &Waker) -> Read {
        let one = &mut self.wires[wire];
        let resets = one.severed && one.resets;
        let way = &mut one.ways[1 - end];
        if !way.arrived.is_empty() {
            let most = most.min(way.arrived.len());
            return Read::Octets(way.arrived.split_to(most).freeze());
        }
        if way.ended {
            return if resets { Read::Reset } else { Read::End };
        }
        way.reader = Some(waker.clone());
        Read::Nothing
    }
}

/// Takes a whole unit off: a TPKT (RFC 1006).
fn unit(octets: &mut BytesMut) -> Option<Bytes> {
    let header = octets.get(..HEADER)?;
    let mut length = &header[HEADER - 2..];
    let length = usize::from(length.get_u16());
    (octets.len() >= length.max(HEADER)).then(|| octets.split_to(length.max(HEADER)).freeze())
}
