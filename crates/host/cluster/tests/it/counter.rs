//! A value that counts how often it was replaced: what is lost or done twice shows in it.

use vere_cluster::{Register, RegisterError, Swap, Versioned};

pub(crate) const KEY: &str = "group/counter";

/// The number in a value; no value counts as 0.
pub(crate) fn number(there: Option<&Versioned>) -> u64 {
    there.map_or(0, |there| {
        let octets = there.value.as_slice().try_into();
        u64::from_le_bytes(octets.expect("eight octets"))
    })
}

/// Adds one to what is there, until that succeeds; gives the version and the new number.
pub(crate) async fn increment(register: &Register) -> Result<(u64, u64), RegisterError> {
    let mut there = register.read(KEY).await?;
    loop {
        let next = number(there.as_ref()) + 1;
        let expected = there.as_ref().map(|there| there.version);
        match register.swap(KEY, expected, &next.to_le_bytes()).await? {
            Swap::Done(version) => return Ok((version, next)),
            Swap::Conflict(now) => there = now,
        }
    }
}
