//! The charters of groups and queues: capacity, and the rights of accounts.

use vere_units::Txn;

use crate::frame::{Fields, Frame, Op, WireError, write_frame};
use crate::handshake::expect;
use crate::types::QueueLimits;

/// The account of peers configured with a secret alone.
pub const DEFAULT_ACCOUNT: &str = "default";
/// Longest name of an account, in octets.
pub const ACCOUNT_MAX: usize = 32;
/// The most accounts in the grants of a group, beside the creator, and in the grants of a queue.
pub const GRANTS_MAX: usize = 16;

/// A right of an account in a group made by another account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// The right to take over and own the group, and to read the group.
    Adopt,
    /// Read figures and records.
    Read,
}

impl Right {
    const fn code(self) -> u8 {
        match self {
            Self::Adopt => 1,
            Self::Read => 2,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Adopt),
            2 => Some(Self::Read),
            _ => None,
        }
    }
}

/// Accounts and their rights, in encoded form.
///
/// ```text
/// up to 16 x { right u8: 1 adopt, 2 read | name length u8 | name (1..32) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grants<'a>(&'a [u8]);

impl<'a> Grants<'a> {
    /// No account but the creator of the group has rights.
    pub const NONE: Self = Self(&[]);

    /// Writes accounts down; `None` when there are more than [`GRANTS_MAX`], or a name is empty or over
    /// [`ACCOUNT_MAX`].
    #[must_use]
    pub fn encode<'n>(grants: impl IntoIterator<Item = (&'n str, Right)>) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for (account, right) in grants {
            let len = u8::try_from(account.len()).ok()?;
            out.extend_from_slice(&[right.code(), len]);
            out.extend_from_slice(account.as_bytes());
        }
        Grants::read(&out).is_some().then_some(out)
    }

    /// Decodes the output of [`Grants::encode`].
    #[must_use]
    pub fn read(octets: &'a [u8]) -> Option<Self> {
        let mut rest = octets;
        for _ in 0..=GRANTS_MAX {
            if rest.is_empty() {
                return Some(Self(octets));
            }
            rest = entry(rest)?.1;
        }
        None
    }

    /// Its octets.
    #[must_use]
    pub const fn octets(self) -> &'a [u8] {
        self.0
    }

    /// Accounts and their rights.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Right)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (grant, after) = entry(rest)?;
            rest = after;
            Some(grant)
        })
    }

    /// Decodes the grants of a queue: [`Grants::read`] without the right to adopt.
    pub(crate) fn read_of_queue(octets: &'a [u8]) -> Option<Self> {
        let grants = Self::read(octets)?;
        grants.only_read().then_some(grants)
    }

    /// Whether the grants are valid for a queue: ownership and adoption apply to a whole group.
    #[must_use]
    pub fn only_read(self) -> bool {
        self.iter().all(|(_, right)| right == Right::Read)
    }

    /// Whether no account has a right.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Whether an account has this right. The right to adopt includes the right to read.
    #[must_use]
    pub fn allow(self, account: &str, right: Right) -> bool {
        self.iter()
            .any(|(named, given)| named == account && (given == right || given == Right::Adopt))
    }
}

/// Owned [`Grants`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptGrants(Box<[u8]>);

impl KeptGrants {
    /// The grants in encoded form.
    #[must_use]
    pub const fn get(&self) -> Grants<'_> {
        Grants(&self.0)
    }
}

impl From<Grants<'_>> for KeptGrants {
    fn from(grants: Grants<'_>) -> Self {
        Self(grants.octets().into())
    }
}

/// The properties of a new queue beside the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueCharter<'a> {
    /// The capacity of the queue.
    pub limits: QueueLimits,
    /// The accounts that may read the queue, beside the accounts that may own the group. Empty: the accounts
    /// that may read the group. Not empty: exactly these accounts, regardless of their other rights in the
    /// group. [`Right::Read`] only.
    pub readers: Grants<'a>,
}

impl From<QueueLimits> for QueueCharter<'_> {
    fn from(limits: QueueLimits) -> Self {
        let readers = Grants::NONE;
        Self { limits, readers }
    }
}

fn entry(octets: &[u8]) -> Option<((&str, Right), &[u8])> {
    let (&[right, len], rest) = octets.split_first_chunk::<2>()?;
    let (name, rest) = rest.split_at_checked(usize::from(len))?;
    Some(((account(name)?, Right::from_code(right)?), rest))
}

/// A name of an account.
pub(crate) fn account(octets: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(octets).ok()?;
    (1..=ACCOUNT_MAX).contains(&text.len()).then_some(text)
}

/// The properties of a new group beside the creating account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charter<'a> {
    /// Capacity of all queues of the group together, in octets of metadata and bodies; a PUT above the
    /// capacity is refused with `GROUP_FULL`.
    pub bytes_max: u64,
    /// The rights of other accounts.
    pub grants: Grants<'a>,
}

impl Charter<'_> {
    /// No limit but the node's, and no rights for other accounts.
    pub const OWN: Self = Self {
        bytes_max: u64::MAX,
        grants: Grants::NONE,
    };
}

impl Default for Charter<'_> {
    fn default() -> Self {
        Self::OWN
    }
}

/// Appends a CHARTERED: records the owner account and the charter of the group from here on.
///
/// ```text
/// number = last transaction before it
/// 16  octets at most u64 | account length u32 | 0 u32 | account | grants up to the end
/// ```
pub fn encode_chartered(out: &mut Vec<u8>, txn: Txn, account: &str, charter: Charter<'_>) {
    write_frame(out, Op::Chartered, 0, txn.0, |out| {
        write_chartered(out, account, charter);
    });
}

/// Reads a CHARTERED: transaction, account, charter.
///
/// # Errors
///
/// [`WireError::Operation`] for another frame, [`WireError::Layout`].
pub fn decode_chartered<'a>(frame: &Frame<'a>) -> Result<(Txn, &'a str, Charter<'a>), WireError> {
    expect(frame, Op::Chartered, 0)?;
    let (account, charter) = read_chartered(frame.payload).ok_or_else(|| frame.layout())?;
    Ok((Txn(frame.header.number), account, charter))
}

/// Appends the payload of a CHARTERED, which a log's segment head has as well.
pub fn write_chartered(out: &mut Vec<u8>, account: &str, charter: Charter<'_>) {
    out.extend_from_slice(&charter.bytes_max.to_le_bytes());
    let len = u32::try_from(account.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(account.as_bytes());
    out.extend_from_slice(charter.grants.octets());
}

/// Decodes the output of [`write_chartered`], up to the end.
#[must_use]
pub fn read_chartered(payload: &[u8]) -> Option<(&str, Charter<'_>)> {
    let mut fields = Fields(payload);
    let (bytes_max, len) = (fields.u64()?, fields.u32()?);
    fields.zero()?;
    let account = account(fields.slice(len)?)?;
    let grants = Grants::read(fields.0)?;
    Some((account, Charter { bytes_max, grants }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_read_back_and_bounded() {
        let octets = Grants::encode([("west", Right::Adopt), ("watch", Right::Read)]).unwrap();
        let grants = Grants::read(&octets).unwrap();
        assert_eq!(
            grants.iter().collect::<Vec<_>>(),
            [("west", Right::Adopt), ("watch", Right::Read)]
        );
        for (account, adopt, read) in [
            ("west", true, true),
            ("watch", false, true),
            ("other", false, false),
        ] {
            assert_eq!(grants.allow(account, Right::Adopt), adopt, "{account}");
            assert_eq!(grants.allow(account, Right::Read), read, "{account}");
        }
        let many = |count| Grants::encode(std::iter::repeat_n(("a", Right::Read), count));
        assert!(many(GRANTS_MAX).is_some());
        assert_eq!(many(GRANTS_MAX + 1), None);
        let long = "n".repeat(ACCOUNT_MAX + 1);
        for bad in ["", &long] {
            assert_eq!(Grants::encode([(bad, Right::Read)]), None, "{bad}");
        }
        for cut in 1..octets.len() {
            let whole = cut == 6;
            assert_eq!(Grants::read(&octets[..cut]).is_some(), whole, "{cut}");
        }
        assert_eq!(Grants::read(&[3, 1, b'a']), None, "an unknown right");
    }

    #[test]
    fn nobody_adopts_a_single_queue() {
        let read = Grants::encode([("watch", Right::Read), ("bill", Right::Read)]).unwrap();
        let adopt = Grants::encode([("watch", Right::Read), ("west", Right::Adopt)]).unwrap();
        let given = Grants::read_of_queue(&read).unwrap();
        assert_eq!(KeptGrants::from(given).get(), given);
        assert_eq!(Grants::read_of_queue(&[]), Some(Grants::NONE));
        assert!(Grants::read(&adopt).is_some());
        assert_eq!(Grants::read_of_queue(&adopt), None);
    }

    #[test]
    fn a_charter_in_the_log_is_read_back() {
        let grants = Grants::encode([("west", Right::Adopt)]).unwrap();
        for charter in [
            Charter::OWN,
            Charter {
                bytes_max: 1 << 30,
                grants: Grants::read(&grants).unwrap(),
            },
        ] {
            let mut octets = Vec::new();
            encode_chartered(&mut octets, Txn(7), "east", charter);
            let frame = Frame::read(&octets, octets.len()).unwrap().unwrap();
            assert_eq!(decode_chartered(&frame), Ok((Txn(7), "east", charter)));
        }
    }
}
