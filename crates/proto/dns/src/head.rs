//! What reading and writing share: the parts of a query that return in its answer.

use crate::cookie::{ClientCookie, ServerCookie};
use crate::{DATAGRAM_MAX, DATAGRAM_MIN};

/// What of a query returns in its answer.
#[derive(Debug, Clone)]
pub(crate) struct Head<'a> {
    pub(crate) id: [u8; 2],
    pub(crate) flags: u8,
    /// Name, type and class, as they came: also in the same case, which some clients choose at random.
    pub(crate) question: &'a [u8],
    pub(crate) name_length: usize,
    pub(crate) edns: Option<Edns<'a>>,
}

/// The options of EDNS in a query (RFC 6891 section 6.1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edns<'a> {
    pub(crate) payload: u16,
    pub(crate) dnssec_ok: bool,
    pub(crate) cookies: Option<ShownCookies<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownCookies<'a> {
    pub(crate) client: &'a ClientCookie,
    pub(crate) server: Option<&'a ServerCookie>,
}

impl Head<'_> {
    pub(crate) fn datagram_max(&self) -> usize {
        match &self.edns {
            Some(edns) => usize::from(edns.payload).clamp(DATAGRAM_MIN, DATAGRAM_MAX),
            None => DATAGRAM_MIN,
        }
    }
}
