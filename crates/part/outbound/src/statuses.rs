//! The status codes of destinations that never take mail (RFC 3463).

/// A domain with a null MX (RFC 7505 section 4).
pub const NO_MAIL: &str = "5.1.10";
/// A domain that does not exist.
pub const NO_DOMAIN: &str = "5.1.2";
/// Mail that leads back here.
pub(super) const LOOP: &str = "5.4.6";
/// A message that needs REQUIRETLS where no host offers it (RFC 8689 section 4.2.1).
pub(super) const NO_REQUIRE_TLS: &str = "5.7.30";

/// All statuses. The place in the list is the number by which a process tells another.
pub const STATUSES: [&str; 4] = [NO_MAIL, NO_DOMAIN, LOOP, NO_REQUIRE_TLS];
