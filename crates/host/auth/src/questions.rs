//! The questions of one message: each name once, many at the same time, and not more than a bound.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

use futures_util::future::join_all;
use vere_spf::{Family, Unavailable};

use crate::dns::Dns;
use crate::fault::Fault;
use crate::key::{self, Key};

/// Most questions of a message: 10 keys of DKIM, 51 of ARC, 16 names of two walks of DMARC, 6 of iprev, and some for further walks.
pub const QUESTIONS_MAX: u32 = 96;
/// Most records of a name that are kept, and most octets of one; longer ones are no keys and no policies.
const RECORDS_MAX: usize = 32;

type Texts = Result<Rc<Vec<Vec<u8>>>, Unavailable>;

/// The DNS, for one message.
#[derive(Debug)]
pub(crate) struct Questions<'a, D> {
    dns: &'a D,
    left: Cell<u32>,
    texts: RefCell<HashMap<String, Texts>>,
}

impl<'a, D: Dns> Questions<'a, D> {
    pub(crate) fn new(dns: &'a D) -> Self {
        Self {
            dns,
            left: Cell::new(QUESTIONS_MAX),
            texts: RefCell::default(),
        }
    }

    /// Counts a question; there is no answer to one beyond the bound.
    fn count(&self) -> Result<(), Unavailable> {
        let left = self.left.get().checked_sub(1).ok_or(Unavailable)?;
        self.left.set(left);
        Ok(())
    }

    /// Asks for the TXT records of all names at once.
    pub(crate) async fn prefetch(&self, names: impl IntoIterator<Item = String>) {
        let mut wanted = Vec::<String>::new();
        for name in names {
            let is_new = !self.texts.borrow().contains_key(&name) && !wanted.contains(&name);
            if is_new && self.count().is_ok() {
                wanted.push(name);
            }
        }
        let answers = join_all(wanted.iter().map(|name| self.dns.texts(name))).await;
        let mut texts = self.texts.borrow_mut();
        for (name, answer) in wanted.into_iter().zip(answers) {
            let answer = answer.map(|mut records| {
                records.truncate(RECORDS_MAX);
                Rc::new(records)
            });
            texts.insert(name, answer);
        }
    }

    /// Returns the TXT records of a name.
    pub(crate) async fn texts(&self, name: &str) -> Texts {
        self.prefetch([name.to_owned()]).await;
        let known = self.texts.borrow().get(name).cloned();
        known.unwrap_or(Err(Unavailable))
    }

    /// Returns the key with this name.
    pub(crate) async fn key(&self, name: &str) -> Result<Key, Fault> {
        let records = self.texts(name).await.map_err(|_| Fault::KeyUnavailable)?;
        key::of_records(&records)
    }

    pub(crate) async fn exists(&self, name: &str) -> Result<bool, Unavailable> {
        self.count()?;
        self.dns.exists(name).await
    }

    pub(crate) async fn names(&self, address: IpAddr) -> Result<Vec<String>, Unavailable> {
        self.count()?;
        self.dns.names(address).await
    }

    pub(crate) async fn addresses(
        &self,
        name: &str,
        family: Family,
    ) -> Result<Vec<IpAddr>, Unavailable> {
        self.count()?;
        self.dns.addresses(name, family).await
    }
}
