//! Bare IMAP over the same distance: the limit of any file system on mail accounts, and the thesis's Figures 4.1 to 4.5.

mod load;

use std::net::SocketAddr;
use std::time::Duration;

use super::accounts::{ACCOUNTS, Accounts};
use super::content::Encoding;
use super::distance::Distance;
use super::plan::Plan;
use super::results::{Results, at, milliseconds};
use crate::error::BenchError;
use crate::process::guard;

use load::{Load, Writing};

/// The name of bare IMAP among the systems.
pub(super) const IMAP: &str = "imap";

pub(super) const APPEND_ONE: &str = "512 KB mails, APPEND pipelined, 1 connection";
/// A large file's octets in mails as the product makes them. The bars of large files stand beside these figures.
pub(super) const APPEND_LARGE: &str = "a large file's mails, APPEND pipelined, 8 connections";
pub(super) const FETCH_LARGE: &str = "a large file's mails, FETCH pipelined, 8 connections";
const APPEND_ALL: &str = "512 KB mails, APPEND pipelined, 8 connections";
pub(super) const FETCH_ONE: &str = "512 KB mails, FETCH pipelined, 1 connection";
const FETCH_ALL: &str = "512 KB mails, FETCH pipelined, 8 connections";
const ALONE: &str = "512 KB mails, APPEND one by one, 1 connection";
const JOINED: &str = "512 KB mails, MULTIAPPEND, 1 connection";
const COMMIT_ALONE: &str = "a commit of 2 KB";
const COMMIT_JOINED: &str = "a commit of 2 KB among 64 pipelined";

/// The block size of the thesis's comparisons.
const BLOCK: usize = 512 * KB;

/// Mails of a connection where ways to write are compared.
const MAILS: usize = 16;

const COMMITS: usize = 64;

const KB: usize = 1024;
const MB: usize = 1024 * KB;

/// Measures bare IMAP at a distance.
pub(super) fn measure(
    plan: &Plan,
    round_trip: u64,
    accounts: &Accounts,
    results: &mut Results,
) -> Result<(), BenchError> {
    let far = Distance::to(accounts.address, Duration::from_millis(round_trip));
    let far = far.map_err(BenchError::io("start the relay"))?;
    let mut bare = Bare {
        way: far.address(),
        round_trip,
        results,
    };
    for _ in 0..plan.rounds {
        bare.ways()?;
        bare.large(plan)?;
        bare.commits()?;
        if guard::is_stopped() {
            return Err(BenchError::Stopped);
        }
    }
    bare.sizes(plan)?;
    bare.blocks(plan)?;
    bare.stripes(plan)
}

struct Bare<'a> {
    way: SocketAddr,
    round_trip: u64,
    results: &'a mut Results,
}

impl Bare<'_> {
    fn time(&mut self, name: impl std::fmt::Display, took: Duration) {
        self.results.time(IMAP, at(self.round_trip, name), took);
    }

    fn rate(&mut self, name: &str, load: Load, took: Duration) {
        let name = at(self.round_trip, name);
        self.results.rate(IMAP, name, load.octets_of_all(), took);
    }

    /// Ways to write, and both directions over one connection and over eight.
    fn ways(&mut self) -> Result<(), BenchError> {
        let one = Load::of(MAILS, BLOCK);
        let (wrote, read) = one.run(self.way)?;
        self.rate(APPEND_ONE, one, wrote);
        self.rate(FETCH_ONE, one, read);
        for (name, writing) in [(ALONE, Writing::OneByOne), (JOINED, Writing::Joined)] {
            let load = one.by(writing);
            let (wrote, _) = load.run(self.way)?;
            self.rate(name, load, wrote);
        }
        let all = Load::of(MAILS * ACCOUNTS, BLOCK).over(ACCOUNTS, 1);
        let (wrote, read) = all.run(self.way)?;
        self.rate(APPEND_ALL, all, wrote);
        self.rate(FETCH_ALL, all, read);
        Ok(())
    }

    /// The octets of a large file in mails of 1 MB, each line as long as an encoded one: what a file system on the accounts sends
    /// and receives at least. The clients seal, encode and look at nothing; every octet passes the relay and is counted.
    fn large(&mut self, plan: &Plan) -> Result<(), BenchError> {
        let mails = usize::try_from(plan.large)
            .unwrap_or(usize::MAX)
            .div_ceil(MB);
        let load = Load::of(mails, MB)
            .over(ACCOUNTS, 1)
            .encoded(Encoding::Keyed);
        let (wrote, read) = load.run(self.way)?;
        self.rate(APPEND_LARGE, load, wrote);
        self.rate(FETCH_LARGE, load, read);
        Ok(())
    }

    /// Small mails that a call waits for.
    fn commits(&mut self) -> Result<(), BenchError> {
        let (alone, _) = Load::of(1, 2 * KB).run(self.way)?;
        self.time(COMMIT_ALONE, alone);
        let (joined, _) = Load::of(COMMITS, 2 * KB).run(self.way)?;
        let each = milliseconds(joined) / COMMITS as f64;
        let name = at(self.round_trip, COMMIT_JOINED);
        self.results.figures.add(IMAP, name, each, "ms");
        Ok(())
    }

    /// Figure 4.1: a single mail by its size, in a body and in an attachment.
    fn sizes(&mut self, plan: &Plan) -> Result<(), BenchError> {
        let whole = [2, 8, 32, 128, 512, 2_048, 8_192, 16_384];
        let short = [2, 32, 512, 4_096];
        let sizes: &[usize] = if plan.is_quick { &short } else { &whole };
        for (word, encoding) in [("body", Encoding::Eight), ("attachment", Encoding::Base64)] {
            for size in sizes {
                let load = Load::of(1, size * KB).encoded(encoding);
                let (sent, received) = load.run(self.way)?;
                self.time(format!("Figure 4.1: {word} of {size} KB sent"), sent);
                self.time(
                    format!("Figure 4.1: {word} of {size} KB received"),
                    received,
                );
            }
        }
        Ok(())
    }

    /// Figures 4.2 and 4.3: 4 MB by block size, over one connection and over two.
    fn blocks(&mut self, plan: &Plan) -> Result<(), BenchError> {
        for block in blocks(plan) {
            for connections in [1, 2] {
                let load = Load::of((4 * MB).div_ceil(*block), *block).over(1, connections);
                let (wrote, read) = load.run(self.way)?;
                let what = format!(
                    "4 MB in blocks of {} KB, {connections} connections",
                    block / KB
                );
                self.time(format!("Figure 4.2: {what}, read"), read);
                self.time(format!("Figure 4.3: {what}, written"), wrote);
            }
        }
        Ok(())
    }

    /// Figures 4.4 and 4.5: whole files by block size and number of accounts.
    fn stripes(&mut self, plan: &Plan) -> Result<(), BenchError> {
        let widths: &[usize] = if plan.is_quick {
            &[1, 8]
        } else {
            &[1, 2, 4, 8]
        };
        let few = [4 * KB, 16 * KB, 32 * KB];
        let small = few.iter().map(|block| ("4.4: 32 KB", 32 * KB, *block));
        let large = blocks(plan)
            .iter()
            .map(|block| ("4.5: 32 MB", 32 * MB, *block));
        for (figure, octets, block) in small.chain(large) {
            for width in widths {
                let load = Load::of(octets / block, block).over(*width, 1);
                let (wrote, read) = load.run(self.way)?;
                let what = format!("{figure} in blocks of {} KB, {width} accounts", block / KB);
                self.time(format!("Figure {what}, read"), read);
                self.time(format!("Figure {what}, written"), wrote);
            }
            if guard::is_stopped() {
                return Err(BenchError::Stopped);
            }
        }
        Ok(())
    }
}

/// The thesis's block sizes.
const fn blocks(plan: &Plan) -> &'static [usize] {
    match plan.is_quick {
        true => &[128 * KB, 512 * KB, 4 * MB],
        false => &[128 * KB, 256 * KB, 512 * KB, MB, 2 * MB, 4 * MB],
    }
}
