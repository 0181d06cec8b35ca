//! The reverse name of a client (RFC 8601 section 2.7.3).

use std::fmt;
use std::net::IpAddr;

use futures_util::future::join_all;
use vere_spf::Family;

use crate::dns::Dns;
use crate::name;
use crate::questions::Questions;

/// Most names of a client that are looked up; RFC 8601 section 2.7.3 leaves the bound to the host.
const NAMES_MAX: usize = 5;

/// The result for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IprevResult {
    /// A name of the address has the address.
    Pass,
    /// No name of the address has the address.
    Fail,
    /// The DNS did not answer.
    TempError,
    /// The address has no name.
    PermError,
}

impl IprevResult {
    /// Returns the word of RFC 8601 section 2.7.3.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        }
    }
}

impl fmt::Display for IprevResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The check of the client's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iprev {
    /// The result.
    pub result: IprevResult,
    /// The name that has the address.
    pub name: Option<String>,
}

/// Looks up the names of an address, and their addresses.
pub(crate) async fn check(questions: &Questions<'_, impl Dns>, client: IpAddr) -> Iprev {
    let client = client.to_canonical();
    let without = |result| Iprev { result, name: None };
    let Ok(names) = questions.names(client).await else {
        return without(IprevResult::TempError);
    };
    let names = names
        .iter()
        .filter_map(|name| name::domain(name.as_bytes()));
    let names: Vec<_> = names.take(NAMES_MAX).collect();
    if names.is_empty() {
        return without(IprevResult::PermError);
    }
    let family = match client {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    };
    let answers = join_all(names.iter().map(|name| questions.addresses(name, family))).await;
    let mut result = IprevResult::Fail;
    for (name, answer) in names.into_iter().zip(answers) {
        match answer {
            Ok(addresses) if addresses.contains(&client) => {
                return Iprev {
                    result: IprevResult::Pass,
                    name: Some(name),
                };
            }
            Ok(_) => {}
            Err(_) => result = IprevResult::TempError,
        }
    }
    without(result)
}
