//! Two associations and the octets between them.

use bytes::Bytes;
use vere_osi::association::{
    AcceptRequest, Addresses, Association, Event, Mode, OpenRequest, Output, Profile,
    RejectRequest, ResponderConfig,
};
use vere_osi::rtse::{
    ConnectionData, RefuseReason, SessionConnectionIdentifier, Unwrapper, wrapper,
};
use vere_osi::session::Exception;
use vere_osi::{Limits, names};

pub(super) const X410: Mode = Mode::X410(12);

/// A side: its association, the octets of an APDU, the events.
#[derive(Debug)]
struct Side {
    association: Association,
    received: Vec<u8>,
    events: Vec<Event>,
}

/// Both sides; the caller is first.
#[derive(Debug)]
pub(super) struct Line {
    sides: [Side; 2],
    /// The side with the turn.
    sender: usize,
    mode: Mode,
    /// The octets in order, each with whether the caller sent them.
    wire: Vec<(bool, Bytes)>,
}

/// A request with names and selectors that differ by place.
pub(super) fn request(mode: Mode, place: u64, bind: Bytes) -> OpenRequest {
    let selector = |text: &str| Some(Bytes::from(format!("{text}{}", place % 10)));
    let addresses = Addresses {
        transport: selector("t"),
        session: selector("s").filter(|_| place.is_multiple_of(2)),
        presentation: selector("p").filter(|_| place.is_multiple_of(3)),
    };
    let identifier = SessionConnectionIdentifier {
        calling: Bytes::from(format!("mta{place}.example")),
        common: Bytes::from_static(b"261129190000Z"),
        additional: None,
    };
    OpenRequest {
        mode,
        data: ConnectionData::Open(Some(bind)),
        ..OpenRequest::new(addresses, identifier)
    }
}

impl Line {
    pub(super) fn new(tpdu_size: u32) -> Self {
        let limits = Limits {
            tpdu_size,
            ..Limits::default()
        };
        let config = ResponderConfig::new(Profile::mts_transfer());
        let sides = [
            Association::initiator(limits.clone()),
            Association::responder(limits, config),
        ];
        Self {
            sides: sides.map(|association| Side {
                association,
                received: Vec::new(),
                events: Vec::new(),
            }),
            sender: 0,
            mode: Mode::Normal,
            wire: Vec::new(),
        }
    }

    pub(super) fn wire(&self) -> &[(bool, Bytes)] {
        &self.wire
    }

    /// All events of both sides.
    pub(super) fn events(&self) -> Vec<&Event> {
        self.sides.iter().flat_map(|side| &side.events).collect()
    }

    pub(super) fn open(&mut self, request: OpenRequest) {
        self.mode = request.mode;
        self.sides[0].association.open(request).unwrap();
        self.run();
    }

    pub(super) fn accept(&mut self, bind: Bytes) {
        let request = AcceptRequest {
            checkpoint_size: 2,
            window_size: 3,
            user_data: Some(bind),
            ..AcceptRequest::default()
        };
        self.sides[1].association.accept(request).unwrap();
        self.run();
        assert!(
            matches!(&self.sides[0].events[..], [Event::Opened(_)]),
            "{:?}",
            self.sides[0].events
        );
    }

    pub(super) fn refuse(&mut self, bind: Bytes) {
        let request = RejectRequest {
            user_data: Some(bind),
            ..RejectRequest::because(RefuseReason::RtsBusy)
        };
        self.sides[1].association.reject(&request).unwrap();
        self.run();
        assert!(
            matches!(&self.sides[0].events[..], [Event::Rejected(_)]),
            "{:?}",
            self.sides[0].events
        );
    }

    /// Transfers an APDU in these pieces from the side with the turn.
    pub(super) fn transfer(&mut self, apdu: &[Bytes]) {
        let pieces = self.announce(apdu);
        self.supply(pieces);
        let done = self.sides[self.sender].events.last();
        assert!(matches!(done, Some(Event::Transferred(_))), "{done:?}");
    }

    /// Transfers an APDU, but interrupts the transfer at a checkpoint in the middle, and resumes it there. tshark keeps
    /// the octets behind a checkpoint that an interruption makes void, so there are none.
    pub(super) fn transfer_in_two(&mut self, apdu: &[Bytes]) {
        let checkpoint = self.checkpoint_size();
        let half = apdu.iter().map(Bytes::len).sum::<usize>() / 2;
        if checkpoint == 0 || half < checkpoint {
            return self.transfer(apdu);
        }
        let whole = Bytes::from(self.announce(apdu).concat());
        let cut = half - half % checkpoint;
        self.supply(vec![whole.slice(..cut)]);
        let sender = &mut self.sides[self.sender];
        sender
            .association
            .interrupt(Exception::NonSpecific)
            .unwrap();
        self.run();
        let sender = &mut self.sides[self.sender];
        let Some(Event::NotTransferred(Some(broken))) = sender.events.pop() else {
            panic!("{:?}", sender.events)
        };
        sender.association.resume(&broken).unwrap();
        self.run();
        let position = broken.checkpoint.position;
        assert_eq!(usize::try_from(position), Ok(cut));
        let receiver = &mut self.sides[1 - self.sender];
        receiver.association.continue_from(position).unwrap();
        self.supply(vec![whole.slice(cut..)]);
        let done = self.sides[self.sender].events.last();
        assert!(matches!(done, Some(Event::Transferred(_))), "{done:?}");
    }

    /// Octets of a checkpoint; 0 for none.
    fn checkpoint_size(&self) -> usize {
        let opened = self.sides[0].events.first();
        let Some(Event::Opened(opened)) = opened else {
            panic!("{opened:?}")
        };
        usize::try_from(opened.checkpoint_size).unwrap() * 1024
    }

    /// Begins a transfer. Returns the pieces of the APDU as the mode has it.
    fn announce(&mut self, apdu: &[Bytes]) -> Vec<Bytes> {
        let length: usize = apdu.iter().map(Bytes::len).sum();
        let mut pieces = apdu.to_vec();
        let side = &mut self.sides[self.sender];
        if self.mode == Mode::Normal {
            let context = side.association.context(&names::MTSE).unwrap();
            pieces.insert(0, wrapper(context, u64::try_from(length).unwrap()));
        }
        let total: usize = pieces.iter().map(Bytes::len).sum();
        let total = u64::try_from(total).unwrap();
        side.association.transfer(total).unwrap();
        pieces
    }

    fn supply(&mut self, pieces: Vec<Bytes>) {
        for mut piece in pieces {
            while !piece.is_empty() {
                let association = &mut self.sides[self.sender].association;
                association.supply(&mut piece).unwrap();
                self.run();
            }
        }
        self.run();
    }

    /// The APDU that the other side has received.
    pub(super) fn arrived(&mut self) -> Bytes {
        let received = Bytes::from(std::mem::take(&mut self.sides[1 - self.sender].received));
        if self.mode != Mode::Normal {
            return received;
        }
        let mut unwrapper = Unwrapper::new();
        unwrapper.push(received);
        let mut apdu = Vec::new();
        while let Some(octets) = unwrapper.read().unwrap() {
            apdu.extend_from_slice(&octets);
        }
        unwrapper.end().unwrap();
        apdu.into()
    }

    /// The other side asks for the turn and gets it.
    pub(super) fn pass_turn(&mut self) {
        let other = 1 - self.sender;
        self.sides[other].association.please_turn(1).unwrap();
        self.run();
        self.sides[self.sender].association.give_turn().unwrap();
        self.run();
        self.sender = other;
    }

    pub(super) fn release(&mut self) {
        self.sides[self.sender].association.release().unwrap();
        self.run();
        assert!(self.events().contains(&&Event::Released));
    }

    pub(super) fn abort(&mut self) {
        self.sides[self.sender].association.abort(None);
        self.run();
    }

    /// Lets both sides speak until they are silent.
    fn run(&mut self) {
        while self.step(0) | self.step(1) {}
    }

    fn step(&mut self, from: usize) -> bool {
        let mut spoken = false;
        while let Some(output) = self.sides[from].association.poll() {
            spoken = true;
            match output {
                Output::Write(pieces) => {
                    let octets = pieces.into_bytes();
                    self.wire.push((from == 0, octets.clone()));
                    self.sides[1 - from].association.receive(octets);
                }
                Output::Close => self.sides[1 - from].association.ended(),
                Output::Event(event) => self.sides[from].take(event),
            }
        }
        spoken
    }
}

impl Side {
    /// Does as a host that keeps what it gets at once.
    fn take(&mut self, event: Event) {
        match &event {
            Event::Apdu(octets) => return self.received.extend_from_slice(octets),
            Event::Checkpoint(point) => self.association.secured(point.serial).unwrap(),
            Event::Received(_) => self.association.confirm().unwrap(),
            Event::ReleaseIndication => self.association.accept_release().unwrap(),
            _ => {}
        }
        self.events.push(event);
    }
}
