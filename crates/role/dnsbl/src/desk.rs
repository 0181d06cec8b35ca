//! One query, from the packet to the answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use vere_dns::{CookieState, Cookies, Labels, Query, Rcode, Received, Response, Type, read};
use vere_dnsbl::limit::{AnswerKind, Limiter, Rates, Verdict};
use vere_settings::{Dnsbl, Networks};

use crate::figures::{Counts, Kind};
use crate::shared::{InForce, SLOTS, Shared};

/// What a desk has beside the settings.
pub(crate) struct Terms {
    pub(crate) cookies: Cookies,
    /// The secret of the table of networks.
    pub(crate) secret: [u8; 16],
    /// The number of desks among which the kernel spreads clients.
    pub(crate) share: usize,
}

/// Answers the queries of a thread.
pub(crate) struct Desk {
    in_force: InForce,
    cookies: Cookies,
    limiter: Limiter,
    exempt: Networks,
    counts: Arc<Counts>,
    log_every: u32,
    /// Queries until the next is logged.
    until_log: u32,
    clock: Clock,
}

/// Clocks that are read at most once for a batch, and not at all for most queries.
struct Clock {
    start: Instant,
    millis: Option<u32>,
    seconds: Option<u64>,
}

impl Clock {
    /// Milliseconds since the start, which wrap.
    fn millis(&mut self) -> u32 {
        let start = self.start;
        *self
            .millis
            .get_or_insert_with(|| start.elapsed().as_millis() as u32)
    }

    /// Seconds since 1970.
    fn seconds(&mut self) -> u64 {
        let read = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.map_or(0, |since| since.as_secs())
        };
        *self.seconds.get_or_insert_with(read)
    }
}

impl Desk {
    pub(crate) fn new(
        dnsbl: &Dnsbl,
        terms: Terms,
        shared: Arc<Shared>,
        counts: Arc<Counts>,
    ) -> Self {
        let number = u128::from_ne_bytes(terms.secret);
        Self {
            in_force: InForce::new(shared),
            cookies: terms.cookies,
            limiter: Limiter::new(
                rates(dnsbl, terms.share),
                ((number >> 64) as u64, number as u64),
            ),
            exempt: dnsbl.rate.exempt.clone(),
            counts,
            log_every: dnsbl.log_every,
            until_log: dnsbl.log_every,
            clock: Clock {
                start: Instant::now(),
                millis: None,
                seconds: None,
            },
        }
    }

    /// Begins a batch: takes new zones, if any, and forgets what time it was.
    pub(crate) fn begin(&mut self) {
        self.in_force.look();
        (self.clock.millis, self.clock.seconds) = (None, None);
    }

    /// Answers a datagram; returns the octets of the answer, 0 for none.
    pub(crate) fn datagram(
        &mut self,
        client: SocketAddr,
        packet: &[u8],
        memory: &mut [u8],
    ) -> usize {
        match read(packet) {
            Received::Query(query) => {
                let limit = query.datagram_max();
                self.query(client, &query, packet.len(), (memory, limit), true)
            }
            Received::Error(reply) => {
                self.counts.query(SLOTS, Kind::Other, AnswerKind::Error);
                let answer = reply.write(memory);
                match self.verdict(client.ip(), AnswerKind::Error, (packet.len(), answer)) {
                    Verdict::Send => answer,
                    // The stub of an error would be the error.
                    Verdict::Slip | Verdict::Drop => {
                        self.counts.dropped();
                        0
                    }
                }
            }
            Received::NoQuery => {
                self.counts.ignored();
                0
            }
        }
    }

    /// Answers a message of a connection; returns the octets of the answer, 0 for none.
    pub(crate) fn message(
        &mut self,
        client: SocketAddr,
        packet: &[u8],
        memory: &mut [u8],
    ) -> usize {
        match read(packet) {
            Received::Query(query) => {
                let limit = memory.len();
                self.query(client, &query, packet.len(), (memory, limit), false)
            }
            Received::Error(reply) => {
                self.counts.query(SLOTS, Kind::Other, AnswerKind::Error);
                reply.write(memory)
            }
            Received::NoQuery => {
                self.counts.ignored();
                0
            }
        }
    }

    fn query(
        &mut self,
        client: SocketAddr,
        query: &Query<'_>,
        length: usize,
        (memory, limit): (&mut [u8], usize),
        limited: bool,
    ) -> usize {
        let address = client.ip().to_canonical();
        let cookies = match query.cookies() {
            None => CookieState::Absent,
            Some((own, shown)) => {
                let now = self.clock.seconds() as u32;
                self.cookies.check(own, shown, address, now)
            }
        };
        let now = match self.in_force.loaded().expires {
            true => self.clock.seconds(),
            false => 0,
        };
        let loaded = self.in_force.loaded();
        let (mut response, answered) = loaded.zones.answer(query, memory, limit, now);
        let slot = answered.zone.and_then(|place| loaded.slots.get(place));
        let slot = slot.copied().unwrap_or(SLOTS);
        self.counts
            .query(slot, question(query.kind()), answered.kind);
        if response.is_truncated() {
            self.counts.truncated();
        }
        if self.log_every > 0 {
            self.log(client, query, &response);
        }
        if limited && !cookies.is_proven() {
            let sizes = (length, response.length());
            match self.verdict(address, answered.kind, sizes) {
                Verdict::Send => {}
                Verdict::Slip => {
                    self.counts.slipped();
                    response.truncate();
                }
                Verdict::Drop => {
                    self.counts.dropped();
                    return 0;
                }
            }
        }
        response.finish(cookies.answer())
    }

    fn verdict(&mut self, client: IpAddr, kind: AnswerKind, sizes: (usize, usize)) -> Verdict {
        match self.exempt.contains(client) {
            true => Verdict::Send,
            false => self.limiter.check(client, kind, sizes, self.clock.millis()),
        }
    }

    /// Logs every Nth query.
    fn log(&mut self, client: SocketAddr, query: &Query<'_>, response: &Response<'_, '_>) {
        self.until_log = self.until_log.saturating_sub(1);
        if self.until_log > 0 {
            return;
        }
        self.until_log = self.log_every;
        let labels = Labels::of(query.name()).map(|label| label.escape_ascii().to_string());
        let name = labels.collect::<Vec<_>>().join(".");
        let kind = match question(query.kind()) {
            Kind::Other => format!("TYPE{}", query.kind().0),
            kind => kind.value().to_owned(),
        };
        let result = match response.rcode() {
            Rcode::NoError if response.answers() == 0 => "nodata",
            Rcode::NoError => "positive",
            Rcode::NxDomain => "nxdomain",
            Rcode::Refused => "refused",
            _ => "error",
        };
        tracing::info!(peer = %client, name, kind, result, "query answered");
    }
}

const fn question(kind: Type) -> Kind {
    match kind {
        Type::A => Kind::A,
        Type::AAAA => Kind::Aaaa,
        Type::TXT => Kind::Txt,
        _ => Kind::Other,
    }
}

/// The bounds for one of `share` desks, at least 1 where there are any.
fn rates(dnsbl: &Dnsbl, share: usize) -> Rates {
    let rate = &dnsbl.rate;
    let share = u32::try_from(share).unwrap_or(u32::MAX).max(1);
    let surplus = u32::try_from(rate.surplus.as_u64()).unwrap_or(u32::MAX);
    Rates {
        per_network: [rate.positive, rate.negative, rate.errors].map(|rate| rate.div_ceil(share)),
        surplus: surplus.div_ceil(share),
        slip: rate.slip,
        networks: usize::try_from(rate.networks).unwrap_or(usize::MAX),
    }
}
