//! Cookies (RFC 7873), in the form that servers of one address can share (RFC 9018).

use std::fmt;
use std::hash::Hasher as _;
use std::net::IpAddr;

use siphasher::sip::SipHasher24;

/// What a client chose for a server (RFC 7873 section 4.1).
pub type ClientCookie = [u8; 8];
/// What the server gave a client: version, three reserved octets, the time of issue, the hash (RFC 9018 section 4).
pub type ServerCookie = [u8; 16];

/// The version of server cookies (RFC 9018 section 4.1).
const VERSION: u8 = 1;
/// Seconds for which a cookie is good (RFC 9018 section 4.3).
const AGE_MAX: u32 = 3_600;
/// Seconds after which a good cookie is replaced by a fresh one (RFC 9018 section 4.3).
const AGE_FRESH: u32 = 1_800;
/// Seconds that a cookie may come from the future, for other servers' clocks (RFC 9018 section 4.3).
const AHEAD_MAX: u32 = 300;

/// What the cookies of a query prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieState {
    /// The query has no cookie.
    Absent,
    /// The query asks for a server cookie, or has one that proves nothing. The answer gives this one.
    Unproven(ServerCookie),
    /// The client has received an earlier answer at its address. The answer gives this cookie.
    Proven(ServerCookie),
}

impl CookieState {
    /// The cookie for the answer.
    #[must_use]
    pub const fn answer(self) -> Option<ServerCookie> {
        match self {
            Self::Absent => None,
            Self::Unproven(cookie) | Self::Proven(cookie) => Some(cookie),
        }
    }

    /// Whether the address of the client is its own.
    #[must_use]
    pub const fn is_proven(self) -> bool {
        matches!(self, Self::Proven(_))
    }
}

/// The secret that makes and checks server cookies.
#[derive(Clone)]
pub struct Cookies {
    secret: [u8; 16],
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookies").finish_non_exhaustive()
    }
}

impl Cookies {
    /// Makes cookies from a random secret (RFC 9018 section 5).
    #[must_use]
    pub const fn new(secret: [u8; 16]) -> Self {
        Self { secret }
    }

    /// Checks the cookies of a client; `now` is in seconds since 1970, modulo 2^32 (RFC 9018 section 4.3).
    #[must_use]
    pub fn check(
        &self,
        client: &ClientCookie,
        server: Option<&ServerCookie>,
        address: IpAddr,
        now: u32,
    ) -> CookieState {
        let fresh = || self.issue(client, address, now);
        let Some(shown) = server else {
            return CookieState::Unproven(fresh());
        };
        let [version, _, _, _, a, b, c, d, ..] = *shown;
        let issued = u32::from_be_bytes([a, b, c, d]);
        // The difference is in serial arithmetic (RFC 1982): times of issue wrap in 2106.
        let age = now.wrapping_sub(issued);
        let is_due = age <= AGE_MAX || age >= 0_u32.wrapping_sub(AHEAD_MAX);
        let expected = self.cookie(client, address, shown);
        if version != VERSION || !is_due || expected != *shown {
            return CookieState::Unproven(fresh());
        }
        match age <= AGE_FRESH {
            true => CookieState::Proven(*shown),
            false => CookieState::Proven(fresh()),
        }
    }

    /// Issues a cookie (RFC 9018 section 4).
    #[must_use]
    pub fn issue(&self, client: &ClientCookie, address: IpAddr, now: u32) -> ServerCookie {
        let [a, b, c, d] = now.to_be_bytes();
        let form = [VERSION, 0, 0, 0, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0];
        self.cookie(client, address, &form)
    }

    /// The cookie with the version, the reserved octets and the time of another, and the hash that belongs to them
    /// (RFC 9018 section 4.4).
    fn cookie(&self, client: &ClientCookie, address: IpAddr, form: &ServerCookie) -> ServerCookie {
        let [v, r, s, t, a, b, c, d, ..] = *form;
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        hasher.write(client);
        hasher.write(&[v, r, s, t, a, b, c, d]);
        match address {
            IpAddr::V4(address) => hasher.write(&address.octets()),
            IpAddr::V6(address) => hasher.write(&address.octets()),
        }
        let [i, j, k, l, m, n, o, p] = hasher.finish().to_le_bytes();
        [v, r, s, t, a, b, c, d, i, j, k, l, m, n, o, p]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets<const N: usize>(text: &str) -> [u8; N] {
        std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
    }

    /// The secret of RFC 9018 appendices A.1 to A.3.
    const SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";

    /// RFC 9018 appendix A.1, "Learning a New Server Cookie".
    #[test]
    fn a_new_cookie_is_that_of_the_standard() {
        let cookies = Cookies::new(octets(SECRET));
        let address = "198.51.100.100".parse().unwrap();
        let client = octets("2464c4abcf10c957");
        let first = octets("010000005cf79f111f8130c3eee29480");
        assert_eq!(cookies.issue(&client, address, 1_559_731_985), first);
        let state = cookies.check(&client, None, address, 1_559_731_985);
        assert_eq!(state, CookieState::Unproven(first));
        let state = cookies.check(&client, Some(&first), address, 1_559_731_985);
        assert_eq!(state, CookieState::Proven(first));
    }

    /// RFC 9018 appendix A.2, "The Same Client Learning a Renewed (Fresh) Server Cookie".
    #[test]
    fn a_renewed_cookie_is_that_of_the_standard() {
        let cookies = Cookies::new(octets(SECRET));
        let address = "198.51.100.100".parse().unwrap();
        let client = octets("2464c4abcf10c957");
        let shown = octets("010000005cf79f111f8130c3eee29480");
        let fresh = octets("010000005cf7a871d4a564a1442aca77");
        let state = cookies.check(&client, Some(&shown), address, 1_559_734_385);
        assert_eq!(state, CookieState::Proven(fresh));
    }

    /// RFC 9018 appendix A.3, "Another Client Learning a Renewed Server Cookie": the hash covers the reserved octets.
    ///
    /// The example renews a cookie of almost two hours, which by section 4.3 is too old to prove anything.
    #[test]
    fn reserved_octets_are_part_of_the_hash_and_not_issued_again() {
        let cookies = Cookies::new(octets(SECRET));
        let address = "203.0.113.203".parse().unwrap();
        let client = octets("fc93fc62807ddb86");
        let shown = octets("01abcdef5cf78f71a314227b6679ebf5");
        let state = cookies.check(&client, Some(&shown), address, 1_559_727_985);
        assert_eq!(state, CookieState::Proven(shown));
        let fresh = octets("010000005cf7a9acf73a7810aca2381e");
        let state = cookies.check(&client, Some(&shown), address, 1_559_734_700);
        assert_eq!(state, CookieState::Unproven(fresh));
    }

    /// RFC 9018 appendix A.4, "IPv6 Query with Rolled Over Secret".
    #[test]
    fn an_ipv6_cookie_of_each_secret_is_that_of_the_standard() {
        let before = Cookies::new(octets("dd3bdf9344b678b185a6f5cb60fca715"));
        let after = Cookies::new(octets("445536bcd2513298075a5d379663c962"));
        let address = "2001:db8:220:1:59de:d0f4:8769:82b8".parse().unwrap();
        let client = octets("22681ab97d52c298");
        let shown = octets("010000005cf7c57926556bd0934c72f8");
        let fresh = octets("010000005cf7c609a6bb79d16625507a");
        let now = 1_559_741_961;
        let state = before.check(&client, Some(&shown), address, now);
        assert_eq!(state, CookieState::Proven(shown));
        let state = after.check(&client, Some(&shown), address, now);
        assert_eq!(state, CookieState::Unproven(fresh));
    }

    #[test]
    fn a_cookie_is_renewed_after_half_an_hour() {
        let cookies = Cookies::new([7; 16]);
        let (address, client) = ("192.0.2.1".parse().unwrap(), [1; 8]);
        let cookie = cookies.issue(&client, address, 1_000_000);
        let check = |now| cookies.check(&client, Some(&cookie), address, now);
        let renewed = |now| CookieState::Proven(cookies.issue(&client, address, now));
        assert_eq!(check(1_001_800), CookieState::Proven(cookie));
        assert_eq!(check(1_001_801), renewed(1_001_801));
        assert_eq!(check(1_001_801).answer(), renewed(1_001_801).answer());
        let unproven = cookies.check(&client, None, address, 1_000_000);
        assert_eq!(unproven.answer(), Some(cookie));
        assert_eq!(CookieState::Absent.answer(), None);
        assert!(!CookieState::Absent.is_proven());
    }

    /// A log with the secret would let its readers forge cookies.
    #[test]
    fn the_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Cookies::new([7; 16])), "Cookies { .. }");
    }

    #[test]
    fn another_address_or_client_an_old_or_a_forged_cookie_prove_nothing() {
        let cookies = Cookies::new([7; 16]);
        let (address, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let (client, now) = ([1; 8], 1_000_000);
        let cookie = cookies.issue(&client, address, now);
        let proven = |client: &ClientCookie, cookie: &ServerCookie, address, now| {
            cookies
                .check(client, Some(cookie), address, now)
                .is_proven()
        };
        assert!(proven(&client, &cookie, address, now + AGE_MAX));
        assert!(proven(&client, &cookie, address, now - AHEAD_MAX));
        assert!(!proven(&client, &cookie, address, now + AGE_MAX + 1));
        assert!(!proven(&client, &cookie, address, now - AHEAD_MAX - 1));
        assert!(!proven(&client, &cookie, other, now));
        assert!(!proven(&[2; 8], &cookie, address, now));
        for bit in 0..128 {
            let mut forged = cookie;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!proven(&client, &forged, address, now), "bit {bit}");
        }
        assert!(!cookies.check(&client, None, address, now).is_proven());
    }
}
