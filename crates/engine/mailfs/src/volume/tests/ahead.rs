//! Reads ahead of a program that reads in order: what is asked at once, and in which bounds.

use super::*;

const ROOT: Inode = Inode::ROOT;
const MIB: u64 = 1 << 20;

/// A world over 8 accounts with an open file of so many MiB, mounted by a machine that has no content; and the file's octets.
fn stored(mebibytes: usize) -> (World, Handle, Vec<u8>) {
    let mut world = World::new(8);
    let data = noise(3, mebibytes << 20);
    world.put(ROOT, "long", &data);
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    let inode = world.lookup(ROOT, "long").unwrap().inode;
    let handle = world.open(inode);
    (world, handle, data)
}

fn reads_data(request: &Request) -> bool {
    matches!(request, Request::Read { mailbox, .. } if mailbox.starts_with("data"))
}

impl World {
    /// Carries out every step, and answers the waiting requests of a kind, oldest first, until none is left.
    fn answer_all(&mut self, mut may: impl FnMut(AccountId, &Request) -> bool) {
        loop {
            self.take_steps();
            let mut waiting = self.waiting.iter();
            let Some(place) = waiting.position(|(_, account, request)| may(*account, request))
            else {
                return;
            };
            let (id, account, request) = self.waiting.remove(place).unwrap();
            let answer = self.carry_out(account, &request);
            let now = self.moment();
            self.volume().answered(now, id, answer);
        }
    }

    /// Begins a read of 1 MiB; requests for content wait.
    fn begin_read(&mut self, handle: Handle, mebibyte: u64) -> CallId {
        let call = Call::Read {
            handle,
            offset: mebibyte * MIB,
            size: 1 << 20,
        };
        let id = self.begin(call);
        self.answer_all(|_, request| !reads_data(request));
        id
    }

    /// The accounts that are asked for content and have not answered.
    fn asked(&self) -> Vec<u16> {
        let waiting = self.waiting.iter();
        let data = waiting.filter(|(_, _, request)| reads_data(request));
        data.map(|(_, account, _)| account.0).collect()
    }

    fn has_octets(&mut self, id: CallId, data: &[u8], mebibyte: u64) -> bool {
        let from = usize::try_from(mebibyte * MIB).unwrap();
        match self.replies.remove(&id) {
            Some(Ok(Reply::Octets(octets))) => octets == data[from..][..1 << 20],
            None => false,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn two_reads_in_order_have_mails_on_the_way_from_every_account() {
    let (mut world, handle, _) = stored(40);
    world.begin_read(handle, 0);
    world.begin_read(handle, 1);
    let asked = world.asked();
    for account in 1..=8 {
        let count = asked.iter().filter(|of| **of == account).count();
        assert!(count >= 2, "{count} mails of account {account}: {asked:?}");
    }
}

#[test]
fn no_more_chunks_are_on_the_way_than_the_terms_allow() {
    let (mut world, handle, data) = stored(40);
    world.volume().terms.fetches_max = 6;
    for mebibyte in 0..40 {
        let id = world.begin_read(handle, mebibyte);
        loop {
            // A pack is asked for whole, and a read asks for its own chunks in any case.
            let fetching = world.volume().reads.fetching();
            assert!(fetching <= 6 + 16, "{fetching} chunks");
            if world.has_octets(id, &data, mebibyte) {
                break;
            }
            let mut is_first = true;
            world.answer_all(|_, request| !reads_data(request) || std::mem::take(&mut is_first));
        }
    }
    assert_eq!(world.notices, []);
}

/// A window is for a reader that goes on: what one has asked for without reading on stays within the window.
#[test]
fn no_more_octets_are_read_ahead_than_the_window_has() {
    let (mut world, handle, data) = stored(60);
    let ids = [0, 1, 2].map(|mebibyte| world.begin_read(handle, mebibyte));
    world.answer_all(|_, _| true);
    for (mebibyte, id) in ids.into_iter().enumerate() {
        assert!(world.has_octets(id, &data, mebibyte as u64));
    }
    let most = 3 * MIB + crate::volume::state::reads::AHEAD_MAX + 4 * MIB;
    let octets = world.volume().cache.octets() as u64;
    assert!((20 * MIB..=most).contains(&octets), "{octets}");
}

/// While a program waits for the first chunk, further ones take the places of those that came.
#[test]
fn a_slow_account_does_not_hold_up_the_others() {
    let (mut world, handle, data) = stored(40);
    world.volume().terms.fetches_max = 8;
    let id = world.begin_read(handle, 0);
    world.begin_read(handle, 1);
    let slow = world.asked()[0];
    world.answer_all(|account, request| !reads_data(request) || account.0 != slow);
    assert!(!world.has_octets(id, &data, 0));
    let octets = world.volume().cache.octets() as u64;
    assert!(octets > 12 * MIB, "{octets} octets beside the slow account");
    world.answer_all(|_, _| true);
    assert!(world.has_octets(id, &data, 0));
}

#[test]
fn a_reader_that_jumps_asks_for_no_more_than_its_chunks() {
    let (mut world, handle, data) = stored(60);
    for mebibyte in 0..3 {
        world.begin_read(handle, mebibyte);
    }
    world.answer_all(|_, _| true);
    let id = world.begin_read(handle, 55);
    assert!(world.asked().len() <= 4, "{:?}", world.asked());
    world.answer_all(|_, _| true);
    assert!(world.has_octets(id, &data, 55));
}
