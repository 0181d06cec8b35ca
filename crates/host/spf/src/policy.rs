//! Policies as text (RFC 7208 section 12).
//!
//! ```text
//! record    = "v=spf1" *( 1*SP ( directive / modifier ) ) *SP
//! directive = [ "+" / "-" / "?" / "~" ] ( "all" / "include:" spec / "a" [":" spec] [dual] / "mx" [":" spec] [dual]
//!             / "ptr" [":" spec] / "ip4:" address ["/" number] / "ip6:" address ["/" number] / "exists:" spec )
//! dual      = ["/" number] ["//" number]
//! modifier  = ( "redirect=" spec ) / ( "exp=" spec ) / ( name "=" macro-string )
//! ```
//!
//! A policy is understood as a whole before its evaluation begins (section 4.6): one wrong term is a permerror.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::macros::{DomainSpec, is_macro_string};

/// The beginning of a policy (RFC 7208 section 4.5).
const VERSION: &str = "v=spf1";

/// A text with the version of a policy that breaks the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// A parsed policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) directives: Vec<Directive>,
    pub(super) redirect: Option<DomainSpec>,
}

/// A mechanism and the result of its match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) qualifier: Qualifier,
    pub(super) mechanism: Mechanism,
}

/// The result that a match leads to (RFC 7208 section 4.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Qualifier {
    Pass,
    Fail,
    SoftFail,
    Neutral,
}

/// Mechanisms (RFC 7208 section 5). Without a name, the domain of the policy is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mechanism {
    All,
    Include(DomainSpec),
    A(Option<DomainSpec>, Prefixes),
    Mx(Option<DomainSpec>, Prefixes),
    Ptr(Option<DomainSpec>),
    Ip4(Ipv4Addr, u32),
    Ip6(Ipv6Addr, u32),
    Exists(DomainSpec),
}

/// The bits in which the client has to agree with an address of each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefixes {
    pub(super) v4: u32,
    pub(super) v6: u32,
}

/// Returns whether a text record is a policy: the version, and then the end or a space.
pub(super) fn is_policy(text: &[u8]) -> bool {
    let version = text.split_at_checked(VERSION.len());
    version.is_some_and(|(version, rest)| {
        version.eq_ignore_ascii_case(VERSION.as_bytes())
            && matches!(rest.first(), None | Some(b' '))
    })
}

/// The most octets of a policy; RFC 7208 section 3.4 asks for 450 at most.
const POLICY_OCTETS_MAX: usize = 8_192;

impl Policy {
    /// Parses a text for which [`is_policy`] is true.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Malformed> {
        if text.len() > POLICY_OCTETS_MAX {
            return Err(Malformed);
        }
        let text = std::str::from_utf8(text).map_err(|_| Malformed)?;
        let terms = text.split(' ').skip(1).filter(|term| !term.is_empty());
        let mut policy = Self::default();
        let mut has_explanation = false;
        for term in terms {
            match modifier(term) {
                Some((name, value)) if name.eq_ignore_ascii_case("redirect") => {
                    let redirect = DomainSpec::parse(value).ok_or(Malformed)?;
                    // RFC 7208 section 6: two of a kind are an error.
                    if policy.redirect.replace(redirect).is_some() {
                        return Err(Malformed);
                    }
                }
                Some((name, value)) if name.eq_ignore_ascii_case("exp") => {
                    let is_second = std::mem::replace(&mut has_explanation, true);
                    if is_second || DomainSpec::parse(value).is_none() {
                        return Err(Malformed);
                    }
                }
                Some((_, value)) if is_macro_string(value) => {}
                Some(_) => return Err(Malformed),
                None => policy
                    .directives
                    .push(Directive::parse(term).ok_or(Malformed)?),
            }
        }
        Ok(policy)
    }
}

/// Takes a modifier apart; `None` for a directive.
fn modifier(term: &str) -> Option<(&str, &str)> {
    let (name, value) = term.split_once('=')?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|octet| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet));
    is_name.then_some((name, value))
}

impl Directive {
    fn parse(term: &str) -> Option<Self> {
        let qualifier = match term.bytes().next()? {
            b'+' => Some(Qualifier::Pass),
            b'-' => Some(Qualifier::Fail),
            b'~' => Some(Qualifier::SoftFail),
            b'?' => Some(Qualifier::Neutral),
            _ => None,
        };
        let mechanism = match qualifier {
            Some(_) => term.get(1..)?,
            None => term,
        };
        Some(Self {
            qualifier: qualifier.unwrap_or(Qualifier::Pass),
            mechanism: Mechanism::parse(mechanism)?,
        })
    }
}

impl Mechanism {
    fn parse(text: &str) -> Option<Self> {
        let end = text.find([':', '/']).unwrap_or(text.len());
        let (name, rest) = text.split_at_checked(end)?;
        let value = rest.strip_prefix(':');
        match name.to_ascii_lowercase().as_str() {
            "all" => rest.is_empty().then_some(Self::All),
            "include" => Some(Self::Include(DomainSpec::parse(value?)?)),
            "exists" => Some(Self::Exists(DomainSpec::parse(value?)?)),
            "ptr" => Some(Self::Ptr(optional_spec(rest)?)),
            "a" => with_prefixes(rest).map(|(spec, prefixes)| Self::A(spec, prefixes)),
            "mx" => with_prefixes(rest).map(|(spec, prefixes)| Self::Mx(spec, prefixes)),
            "ip4" => {
                let (address, prefix) = with_prefix(value?, 32)?;
                Some(Self::Ip4(address.parse().ok()?, prefix))
            }
            "ip6" => {
                let (address, prefix) = with_prefix(value?, 128)?;
                Some(Self::Ip6(address.parse().ok()?, prefix))
            }
            _ => None,
        }
    }
}

/// `[":" spec]`
fn optional_spec(text: &str) -> Option<Option<DomainSpec>> {
    match text {
        "" => Some(None),
        text => Some(Some(DomainSpec::parse(text.strip_prefix(':')?)?)),
    }
}

/// `[":" spec] ["/" number] ["//" number]`. A name may contain slashes, so that numbers are looked for at the end.
fn with_prefixes(text: &str) -> Option<(Option<DomainSpec>, Prefixes)> {
    let (text, v6) = match text.rsplit_once("//").filter(|(_, end)| is_number(end)) {
        Some((before, end)) => (before, number(end, 128)?),
        None => (text, 128),
    };
    let (text, v4) = with_prefix(text, 32)?;
    Some((optional_spec(text)?, Prefixes { v4, v6 }))
}

/// `text ["/" number]`
fn with_prefix(text: &str, max: u32) -> Option<(&str, u32)> {
    match text.rsplit_once('/').filter(|(_, end)| is_number(end)) {
        Some((before, end)) => Some((before, number(end, max)?)),
        None => Some((text, max)),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit())
}

/// A number without leading zeros.
fn number(text: &str, max: u32) -> Option<u32> {
    let has_zero = text.len() > 1 && text.starts_with('0');
    let number = text.parse().ok()?;
    (!has_zero && number <= max).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_the_version_and_an_end() {
        for (text, expected) in [
            ("v=spf1", true),
            ("V=SPF1 -all", true),
            ("v=spf10 -all", false),
            ("v=spf1-all", false),
            ("v=spf", false),
        ] {
            assert_eq!(is_policy(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn slashes_are_part_of_names_or_begin_prefixes() {
        let prefixes = |text: &str| {
            let (spec, prefixes) = with_prefixes(text)?;
            Some((spec.is_some(), prefixes.v4, prefixes.v6))
        };
        for (text, expected) in [
            ("", Some((false, 32, 128))),
            ("/24", Some((false, 24, 128))),
            ("//64", Some((false, 32, 64))),
            ("/0//0", Some((false, 0, 0))),
            (":a.b/c.example/24//64", Some((true, 24, 64))),
            (":a.b/c.example", Some((true, 32, 128))),
            ("/24/64", None),
            ("/33", None),
            ("//129", None),
            ("/024", None),
            ("/", None),
            (":a.example/", None),
            (":/24", None),
        ] {
            assert_eq!(prefixes(text), expected, "{text}");
        }
    }

    #[test]
    fn one_wrong_term_makes_the_policy_wrong() {
        for text in [
            "v=spf1 a b",
            "v=spf1 all:x.example",
            "v=spf1 all/8",
            "v=spf1 include",
            "v=spf1 ip4:192.0.2.1/33",
            "v=spf1 ip4:192.0.2",
            "v=spf1 ip6:2001:db8::/129",
            "v=spf1 -redirect=a.example",
            "v=spf1 redirect=a.example redirect=a.example",
            "v=spf1 exp=a.example exp=a.example",
            "v=spf1 1x=y",
            "v=spf1 x=%{z}",
            "v=spf1 a\t-all",
            "v=spf1 -",
            "v=spf1 \u{e9}=x",
            "v=spf1 \u{e9}",
        ] {
            assert_eq!(Policy::parse(text.as_bytes()), Err(Malformed), "{text}");
        }
        assert_eq!(Policy::parse(b"v=spf1 \xff"), Err(Malformed));
    }

    #[test]
    fn policies_that_cost_too_much_are_wrong() {
        let of = |term: &str, count: usize| format!("v=spf1 {}", term.repeat(count));
        for (text, is_right) in [
            (of("ip4:192.0.2.1 ", 500), true),
            (of("ip4:192.0.2.1 ", 600), false),
            (
                format!("v=spf1 include:{}.example", "%{s}".repeat(32)),
                true,
            ),
            (
                format!("v=spf1 include:{}.example", "%{s}".repeat(33)),
                false,
            ),
            (format!("v=spf1 exists:{}examples", "a.".repeat(508)), true),
            (format!("v=spf1 exists:{}example", "a.".repeat(509)), false),
        ] {
            assert_eq!(
                Policy::parse(text.as_bytes()).is_ok(),
                is_right,
                "{}",
                text.len()
            );
        }
    }
}
