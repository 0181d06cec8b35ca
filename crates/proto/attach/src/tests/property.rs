//! Values of any content come back, and any octets are survived.

use proptest::prelude::*;

use super::script::BOUNDS;
use crate::frame::{Reply, Request};
use crate::output::encode;
use crate::reader::Reader;
use crate::{Client, Done, Fate, Refused, Server};

proptest! {
    #[test]
    fn any_text_comes_back(text in any::<String>(), said in any::<String>()) {
        let done = Request::Done(Done { said, ..Done::all(&text, Fate::Failed) });
        let mut reader = Reader::<Request>::new(0);
        reader.receive(&encode(&done));
        let (read, octets) = reader.next().unwrap().unwrap();
        prop_assert_eq!((read, octets.len()), (done, 0));
        let refused = Reply::Refused(Refused { tag: None, temporary: true, error: text });
        let mut reader = Reader::<Reply>::new(0);
        reader.receive(&encode(&refused));
        prop_assert_eq!(reader.next().unwrap().unwrap().0, refused);
    }

    #[test]
    fn any_octets_end_a_connection_at_most(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut server = Server::new(BOUNDS);
        server.receive(&octets);
        while server.event().is_some() {}
        let mut client = Client::new(BOUNDS);
        client.attach(None, 1).unwrap();
        client.receive(&octets);
        while client.event().is_some() {}
    }
}
