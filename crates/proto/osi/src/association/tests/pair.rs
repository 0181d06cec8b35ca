//! Two associations and the wire between them.

use bytes::Bytes;

use crate::Limits;
use crate::association::*;
use crate::rtse::*;

pub(super) fn identifier(number: u32) -> SessionConnectionIdentifier {
    SessionConnectionIdentifier {
        calling: Bytes::from(format!("mta{number}.example")),
        common: Bytes::from_static(b"261129190000Z"),
        additional: None,
    }
}

pub(super) fn request(mode: Mode) -> OpenRequest {
    let called = Addresses {
        transport: Some(Bytes::from_static(b"mta")),
        session: Some(Bytes::from_static(b"s")),
        presentation: Some(Bytes::from_static(b"p")),
    };
    OpenRequest {
        mode,
        checkpoint_size: 1,
        data: ConnectionData::Open(Some(crate::testing::hex("b009 a007 a005 8003 6d7461"))),
        ..OpenRequest::new(called, identifier(1))
    }
}

pub(super) fn accepting() -> AcceptRequest {
    AcceptRequest {
        checkpoint_size: 64,
        window_size: 3,
        user_data: Some(crate::testing::hex("b105 a003 800161")),
        ..AcceptRequest::default()
    }
}

pub(super) const X410: Mode = Mode::X410(12);

/// A side with its events, and its own actions.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) association: Association,
    pub(super) events: Vec<Event>,
    pub(super) received: Vec<u8>,
    pub(super) closed: bool,
    /// Secures checkpoints and confirms APDUs at once.
    pub(super) willing: bool,
}

impl Side {
    fn new(association: Association) -> Self {
        Self {
            association,
            events: Vec::new(),
            received: Vec::new(),
            closed: false,
            willing: true,
        }
    }

    fn take(&mut self, event: Event) {
        match &event {
            Event::Apdu(octets) => return self.received.extend_from_slice(octets),
            Event::Checkpoint(point) if self.willing => {
                self.association.secured(point.serial).unwrap()
            }
            Event::Received(_) if self.willing => self.association.confirm().unwrap(),
            _ => {}
        }
        self.events.push(event);
    }

    pub(super) fn told(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

/// Two sides. Octets go over the wire `chunk` at a time.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) a: Side,
    pub(super) b: Side,
    pub(super) chunk: usize,
    /// Octets that may still go over the wire.
    pub(super) left: usize,
    /// Octets that went over the wire, each with whether the initiator sent them.
    pub(super) wire: Vec<(bool, Bytes)>,
}

impl Pair {
    pub(super) fn new(limits: Limits, config: ResponderConfig, chunk: usize) -> Self {
        Self {
            a: Side::new(Association::initiator(limits.clone())),
            b: Side::new(Association::responder(limits, config)),
            chunk,
            left: usize::MAX,
            wire: Vec::new(),
        }
    }

    pub(super) fn plain(chunk: usize) -> Self {
        let config = ResponderConfig::new(Profile::mts_transfer());
        Self::new(Limits::default(), config, chunk)
    }

    /// An open association.
    pub(super) fn open(mode: Mode, chunk: usize) -> Self {
        Self::open_with(request(mode), Self::plain(chunk))
    }

    pub(super) fn open_with(request: OpenRequest, mut pair: Self) -> Self {
        pair.a.association.open(request).unwrap();
        pair.run();
        assert!(
            matches!(&pair.b.told()[..], [Event::OpenIndication(_)]),
            "{pair:?}"
        );
        pair.b.association.accept(accepting()).unwrap();
        pair.run();
        assert!(matches!(&pair.a.told()[..], [Event::Opened(_)]), "{pair:?}");
        pair
    }

    /// Lets both sides speak until they are silent, or the wire is cut.
    pub(super) fn run(&mut self) {
        while self.step(true) | self.step(false) {}
    }

    fn step(&mut self, from_a: bool) -> bool {
        let (from, to) = match from_a {
            true => (&mut self.a, &mut self.b),
            false => (&mut self.b, &mut self.a),
        };
        let mut spoken = false;
        while let Some(output) = from.association.poll() {
            spoken = true;
            match output {
                Output::Event(event) => from.take(event),
                Output::Close => {
                    from.closed = true;
                    if !to.closed && self.left > 0 {
                        to.association.ended();
                    }
                }
                Output::Write(pieces) => {
                    let octets = pieces.into_bytes();
                    let octets = octets.slice(..octets.len().min(self.left));
                    self.left -= octets.len();
                    self.wire.push((from_a, octets.clone()));
                    for piece in octets.chunks(self.chunk) {
                        to.association.receive(Bytes::copy_from_slice(piece));
                        while to.association.wants_octets()
                            && let Some(output) = to.association.poll_events()
                        {
                            to.take(output);
                        }
                    }
                }
            }
        }
        spoken
    }

    /// Transfers an APDU from one side and gives it to the end.
    pub(super) fn transfer(&mut self, from_a: bool, apdu: &[u8]) {
        let side = if from_a { &mut self.a } else { &mut self.b };
        side.association
            .transfer(u64::try_from(apdu.len()).unwrap())
            .unwrap();
        self.supply(from_a, apdu);
    }

    pub(super) fn supply(&mut self, from_a: bool, apdu: &[u8]) {
        let mut rest = Bytes::copy_from_slice(apdu);
        while !rest.is_empty() {
            let side = if from_a { &mut self.a } else { &mut self.b };
            let taken = side.association.supply(&mut rest).unwrap();
            let before = self.left;
            self.run();
            if taken == 0 && before == self.left {
                return;
            }
        }
    }
}

/// An APDU with an order that shows what is lost.
pub(super) fn apdu(length: usize) -> Vec<u8> {
    (0..length)
        .map(|place| u8::try_from(place % 251).unwrap())
        .collect()
}
