//! Policies of SPF from hostile domains: every check ends, after a bounded number of questions, with the same result for the
//! same records.

use std::cell::Cell;
use std::net::IpAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use vere_spf::{Dns, Family, Session, SpfResult, Unavailable, check};

/// The first line is the sender, the second the HELO name, the others are the records of every name.
pub(super) const SEEDS: &[&[u8]] = &[
    b"a@b.example\nmx.example\nv=spf1 a mx ptr ip4:192.0.2.0/24 ip6:2001:db8::/32 -all",
    b"a@b.example\nmx.example\nv=spf1 include:%{ir}.%{v}.%{d2} redirect=_spf.%{o}",
    b"a@b.example\nmx.example\nv=spf1 exists:%{l1r-}.%{S}.%{h}.%{p}.example ?all exp=%{d}.x",
    b"\nmx.example\nv=spf1 a:a/b.example/24//64 x=%%%_%- ~all\nv=spf1 -all",
];
/// The bound in the documentation of `vere_spf`.
const QUESTIONS_MAX: u32 = 122;

/// The same records for every name.
struct Everywhere<'a> {
    records: &'a [&'a [u8]],
    questions: Cell<u32>,
}

impl Everywhere<'_> {
    fn count(&self) -> Result<usize, Unavailable> {
        self.questions.set(self.questions.get() + 1);
        // A record that begins with "!" is a name server that does not answer.
        match self.records.iter().any(|record| record.starts_with(b"!")) {
            true => Err(Unavailable),
            false => Ok(self.records.len()),
        }
    }

    fn hosts(&self) -> Result<Vec<String>, Unavailable> {
        let count = self.count()?;
        let hosts = self.records.iter().take(count);
        Ok(hosts
            .map(|record| String::from_utf8_lossy(record).into_owned())
            .collect())
    }
}

impl Dns for Everywhere<'_> {
    async fn texts(&self, _: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        self.questions.set(self.questions.get() + 1);
        Ok(self.records.iter().map(|record| record.to_vec()).collect())
    }

    async fn addresses(&self, name: &str, family: Family) -> Result<Vec<IpAddr>, Unavailable> {
        assert!(!name.is_empty() && name.len() <= 253, "{name}");
        let count = self.count()?;
        Ok(match family {
            Family::V4 => vec![[192, 0, 2, 9].into(); count % 3],
            Family::V6 => Vec::new(),
        })
    }

    async fn exchangers(&self, _: &str) -> Result<Vec<String>, Unavailable> {
        self.hosts()
    }

    async fn names(&self, _: IpAddr) -> Result<Vec<String>, Unavailable> {
        self.hosts()
    }
}

/// Evaluates the octets twice.
pub(super) fn policies(octets: &[u8]) {
    let lines: Vec<&[u8]> = octets.split(|octet| *octet == b'\n').collect();
    let [sender, helo, records @ ..] = &lines[..] else {
        return;
    };
    let (Ok(sender), Ok(helo)) = (std::str::from_utf8(sender), std::str::from_utf8(helo)) else {
        return;
    };
    for client in [[192, 0, 2, 1].into(), IpAddr::from([0x20; 16])] {
        let session = Session {
            client,
            helo,
            reverse_path: sender,
        };
        assert_eq!(result(records, session), result(records, session));
    }
}

fn result(records: &[&[u8]], session: Session<'_>) -> SpfResult {
    let dns = Everywhere {
        records,
        questions: Cell::new(0),
    };
    let mut check = pin!(check(&dns, session));
    let Poll::Ready(result) = check.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("a check that waits for nothing");
    };
    assert!(
        dns.questions.get() <= QUESTIONS_MAX,
        "{}",
        dns.questions.get()
    );
    result
}
