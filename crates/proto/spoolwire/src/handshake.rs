//! The beginning of a connection: GREETING, HELLO, WELCOME.
//!
//! Both sides know the secret, 32 octets, of the account that the peer names. Each side sends a fresh random number
//! and proves the secret by keyed BLAKE3 over all agreed values, so that a recorded HELLO or a false node is of no
//! use to an attacker. Later frames have a checksum, but no encryption; between machines the connection belongs
//! inside mutual TLS.

use vere_units::{Incarnation, Secret, Txn};

use crate::NodeRefusal;
use crate::charter::{Charter, Grants, account};
use crate::frame::{
    FLAG_INCOMPLETE, FLAG_NO_LOG, FLAG_SYNCED, Fields, Frame, Op, WireError, write_frame,
};
use crate::types::{NAME_MAX, WINDOW_TXNS_MAX};

/// The version described here. Version 1 had no accounts, version 2 the CRC-32 of gzip as checksum, version 3 did
/// not say how full a node is, version 4 had no accounts of single queues; no release spoke them.
pub const VERSION: u16 = 5;
/// The first version with the checksum of today.
const CHECKSUM_SINCE: u16 = 3;
/// Octets of the shared secret, of challenges and of proofs.
pub const SECRET_LEN: usize = 32;
/// The longest frame before the WELCOME; the WELCOME may be longer.
pub const HANDSHAKE_FRAME_MAX: usize = 1024;
/// The longest WELCOME: the refusals of a whole window.
pub const WELCOME_FRAME_MAX: usize = 128 + 16 * 65_536;

const MAGIC: &[u8; 8] = b"VERESPL\0";
const OWNER_PROOF: &[u8] = b"vere spool v3 owner proves to node";
const NODE_PROOF: &[u8] = b"vere spool v3 node proves to owner";

/// A secret shared by nodes and owners.
pub type SharedSecret = Secret<[u8; SECRET_LEN]>;

/// The role of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Changes the group. A group has one owner; a new owner takes over.
    Owner,
    /// Reads figures and records.
    Reader,
    /// A further connection of the owner, ready to become the active connection by ATTACH.
    Standby,
}

/// The node's first frame.
///
/// ```text
/// number = incarnation
/// 16  magic "VERESPL" 0 (8) | version least u16 | version most u16 | 0 u32 | challenge (32)   64
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// The life of the node's memory.
    pub incarnation: Incarnation,
    /// Oldest version served.
    pub version_min: u16,
    /// Newest version served.
    pub version_max: u16,
    /// 32 unpredictable octets.
    pub challenge: [u8; SECRET_LEN],
}

impl Greeting {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        write_frame(out, Op::Greeting, 0, self.incarnation.0, |out| {
            out.extend_from_slice(MAGIC);
            out.extend_from_slice(&self.version_min.to_le_bytes());
            out.extend_from_slice(&self.version_max.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&self.challenge);
        });
    }

    /// Reads the payload of a GREETING.
    ///
    /// # Errors
    ///
    /// [`WireError::Operation`] for another frame, [`WireError::Layout`] for another protocol.
    pub fn decode(frame: &Frame<'_>) -> Result<Self, WireError> {
        expect(frame, Op::Greeting, 0)?;
        let mut fields = Fields(frame.payload);
        let mut read = || {
            (fields.array()? == MAGIC).then_some(())?;
            let (version_min, version_max) = (fields.u16()?, fields.u16()?);
            fields.zero()?;
            let challenge = *fields.array()?;
            fields.end()?;
            let incarnation = Incarnation(frame.header.number);
            Some(Self {
                incarnation,
                version_min,
                version_max,
                challenge,
            })
        };
        read().ok_or_else(|| frame.layout())
    }
}

/// Whether the payload is a GREETING of an earlier version, with a different checksum.
pub(crate) fn is_earlier(payload: &[u8]) -> bool {
    let mut fields = Fields(payload);
    let mut read = || {
        (fields.array()? == MAGIC).then_some(())?;
        fields.u16()?;
        fields.u16()
    };
    read().is_some_and(|most| most < CHECKSUM_SINCE)
}

/// The answer to a GREETING.
///
/// ```text
/// number = last acknowledgement seen, 0 for none
/// flags: 0x01 a group that is made here is to live in memory only
/// 16  version u16 | role u8 | account length u8 | group length u32 | owner u64 | epoch u64
/// 40  nonce (32) | proof (32)
/// 104 octets at most u64 | group (1..255) | account (1..32) | grants up to the end
/// ```
/// The capacity and the grants apply to an owner; other roles ignore both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The last acknowledgement the owner has seen; refusals after it are listed in the WELCOME.
    pub acknowledged: Txn,
    /// The version chosen.
    pub version: u16,
    /// The role of the peer.
    pub role: Role,
    /// The life of the owner's memory: a new number after the owner lost its send history. 0 for a reader.
    pub owner: u64,
    /// Grows with every takeover of the group: a node refuses an owner with an earlier epoch. 0 for a reader, and for
    /// an owner without fencing.
    pub epoch: u64,
    /// Whether a new group is kept in the node's log, if the node has a log. The value has no effect on an existing
    /// group.
    pub logged: bool,
    /// The group: UTF-8, 1 to [`NAME_MAX`] octets.
    pub group: &'a str,
    /// The account of the peer, whose secret the peer proves.
    pub account: &'a str,
    /// The charter of a new group, and the new charter of an existing group made by this account.
    pub charter: Charter<'a>,
    /// 32 unpredictable octets.
    pub nonce: [u8; SECRET_LEN],
    /// See [`Hello::sign`].
    pub proof: [u8; SECRET_LEN],
}

impl<'a> Hello<'a> {
    /// Fills in the proof, as the answer to `greeting`.
    #[must_use]
    pub fn sign(mut self, greeting: &Greeting, secret: &SharedSecret) -> Self {
        self.proof = *self.hash(OWNER_PROOF, greeting, secret).as_bytes();
        self
    }

    /// Whether the proof answers `greeting`; takes the same time either way.
    #[must_use]
    pub fn is_proven(&self, greeting: &Greeting, secret: &SharedSecret) -> bool {
        self.hash(OWNER_PROOF, greeting, secret) == blake3::Hash::from_bytes(self.proof)
    }

    /// The proof of the node's answer.
    #[must_use]
    pub fn answer(&self, greeting: &Greeting, secret: &SharedSecret) -> [u8; SECRET_LEN] {
        *self.hash(NODE_PROOF, greeting, secret).as_bytes()
    }

    fn hash(&self, context: &[u8], greeting: &Greeting, secret: &SharedSecret) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(secret.expose());
        hasher.update(context);
        hasher.update(&greeting.incarnation.0.to_le_bytes());
        hasher.update(&greeting.challenge);
        hasher.update(&[self.flags()]);
        hasher.update(&self.acknowledged.0.to_le_bytes());
        let mut payload = Vec::with_capacity(HANDSHAKE_FRAME_MAX);
        self.write(&mut payload, &[0; SECRET_LEN]);
        hasher.update(&payload);
        hasher.finalize()
    }

    const fn flags(&self) -> u8 {
        if self.logged { 0 } else { FLAG_NO_LOG }
    }

    /// Appends the frame. Names beyond the length limit are cut, and every node refuses a cut name.
    pub fn encode(&self, out: &mut Vec<u8>) {
        write_frame(out, Op::Hello, self.flags(), self.acknowledged.0, |out| {
            self.write(out, &self.proof);
        });
    }

    fn write(&self, out: &mut Vec<u8>, proof: &[u8; SECRET_LEN]) {
        let (group, account) = (self.group.as_bytes(), self.account.as_bytes());
        let group = group.get(..NAME_MAX).unwrap_or(group);
        let account = account.get(..NAME_MAX).unwrap_or(account);
        out.extend_from_slice(&self.version.to_le_bytes());
        let account_len = u8::try_from(account.len()).unwrap_or(u8::MAX);
        out.extend_from_slice(&[role_code(self.role), account_len]);
        let len = u32::try_from(group.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&self.owner.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&self.nonce);
        out.extend_from_slice(proof);
        out.extend_from_slice(&self.charter.bytes_max.to_le_bytes());
        out.extend_from_slice(group);
        out.extend_from_slice(account);
        out.extend_from_slice(self.charter.grants.octets());
    }

    /// Reads the payload of a HELLO.
    ///
    /// # Errors
    ///
    /// [`WireError::Operation`] for another frame, [`WireError::Layout`], [`WireError::Reserved`].
    pub fn decode(frame: &Frame<'a>) -> Result<Self, WireError> {
        expect(frame, Op::Hello, FLAG_NO_LOG)?;
        let mut fields = Fields(frame.payload);
        let mut read = || {
            let version = fields.u16()?;
            let role = match fields.u8()? {
                0 => Role::Owner,
                1 => Role::Reader,
                2 => Role::Standby,
                _ => return None,
            };
            let account_len = u32::from(fields.u8()?);
            let (len, owner) = (fields.u32()?, fields.u64()?);
            let epoch = fields.u64()?;
            let (nonce, proof) = (*fields.array()?, *fields.array()?);
            let bytes_max = fields.u64()?;
            let group = name(fields.slice(len)?)?;
            let account = account(fields.slice(account_len)?)?;
            let grants = Grants::read(fields.0)?;
            let acknowledged = Txn(frame.header.number);
            Some(Self {
                acknowledged,
                version,
                role,
                owner,
                epoch,
                logged: frame.header.flags & FLAG_NO_LOG == 0,
                group,
                account,
                charter: Charter { bytes_max, grants },
                nonce,
                proof,
            })
        };
        read().ok_or_else(|| frame.layout())
    }
}

/// The node's answer to a proven HELLO.
///
/// ```text
/// number = last transaction processed
/// flags: 0x01 acknowledgements wait for the disk, 0x02 the group is incomplete here
/// 16  proof (32)
/// 48  last transaction acknowledged u64 | owner before u64 | epoch before u64
/// 72  longest frame u32 | refused count u32 | count x { txn u64 | code u32 | 0 u32 }
/// ```
/// The list has the refusals after the owner's last acknowledgement seen, up to the last transaction acknowledged
/// here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// Last transaction processed; the owner goes on with the next one.
    pub processed: Txn,
    /// Last transaction acknowledged.
    pub acknowledged: Txn,
    /// The life of the last owner before this connection; 0 without an earlier owner.
    pub owner: u64,
    /// The group's epoch before this connection; 0 without fencing.
    pub epoch: u64,
    /// Whether acknowledgements wait for the disk.
    pub synced: bool,
    /// Whether the group is incomplete here: it is being rebuilt from another node.
    pub syncing: bool,
    /// The longest frame that the node accepts.
    pub frame_max: u32,
    /// See [`Hello::answer`].
    pub proof: [u8; SECRET_LEN],
    /// Refusals up to `acknowledged`.
    pub refused: Vec<(Txn, NodeRefusal)>,
}

impl Welcome {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let synced = if self.synced { FLAG_SYNCED } else { 0 };
        let syncing = if self.syncing { FLAG_INCOMPLETE } else { 0 };
        let flags = synced | syncing;
        write_frame(out, Op::Welcome, flags, self.processed.0, |out| {
            out.extend_from_slice(&self.proof);
            out.extend_from_slice(&self.acknowledged.0.to_le_bytes());
            out.extend_from_slice(&self.owner.to_le_bytes());
            out.extend_from_slice(&self.epoch.to_le_bytes());
            out.extend_from_slice(&self.frame_max.to_le_bytes());
            write_refused(out, &self.refused);
        });
    }

    /// Reads the payload of a WELCOME.
    ///
    /// # Errors
    ///
    /// [`WireError::Operation`] for another frame, [`WireError::Layout`], [`WireError::Reserved`].
    pub fn decode(frame: &Frame<'_>) -> Result<Self, WireError> {
        expect(frame, Op::Welcome, FLAG_SYNCED | FLAG_INCOMPLETE)?;
        let mut fields = Fields(frame.payload);
        let mut read = || {
            let proof = *fields.array()?;
            let (acknowledged, owner) = (Txn(fields.u64()?), fields.u64()?);
            let (epoch, frame_max) = (fields.u64()?, fields.u32()?);
            let refused = read_refused(&mut fields)?.collect::<Option<Vec<_>>>()?;
            let flags = frame.header.flags;
            Some(Self {
                processed: Txn(frame.header.number),
                acknowledged,
                owner,
                epoch,
                synced: flags & FLAG_SYNCED != 0,
                syncing: flags & FLAG_INCOMPLETE != 0,
                frame_max,
                proof,
                refused,
            })
        };
        read().ok_or_else(|| frame.layout())
    }
}

const fn role_code(role: Role) -> u8 {
    match role {
        Role::Owner => 0,
        Role::Reader => 1,
        Role::Standby => 2,
    }
}

/// A name of a group or a queue.
pub(crate) fn name(octets: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(octets).ok()?;
    (1..=NAME_MAX).contains(&text.len()).then_some(text)
}

pub(crate) const fn expect(frame: &Frame<'_>, op: Op, flags: u8) -> Result<(), WireError> {
    if frame.header.op as u8 != op as u8 {
        return Err(WireError::Operation(frame.header.op.code()));
    }
    if frame.header.flags & !flags != 0 {
        return Err(WireError::Reserved);
    }
    Ok(())
}

/// `count u32`, then the refusals. At most a window of refusals is written.
pub(crate) fn write_refused(out: &mut Vec<u8>, refused: &[(Txn, NodeRefusal)]) {
    let most = usize::try_from(WINDOW_TXNS_MAX).unwrap_or(usize::MAX);
    let refused = refused.get(..most).unwrap_or(refused);
    let count = u32::try_from(refused.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_le_bytes());
    for (txn, refusal) in refused {
        out.extend_from_slice(&txn.0.to_le_bytes());
        out.extend_from_slice(&refusal.code().to_le_bytes());
        out.extend_from_slice(&[0; 4]);
    }
}

/// Decodes the output of [`write_refused`], to the end of the payload; a malformed item is `None`. A refusal of a
/// later version counts as malformed: its meaning is unknown here.
pub(crate) fn read_refused<'a>(
    fields: &mut Fields<'a>,
) -> Option<impl Iterator<Item = Option<(Txn, NodeRefusal)>> + 'a> {
    let count = usize::try_from(fields.u32()?).ok()?;
    let (entries, rest) = fields.0.as_chunks::<16>();
    (entries.len() == count && rest.is_empty()).then_some(())?;
    Some(entries.iter().map(|entry| {
        let mut fields = Fields(entry);
        let (txn, code) = (Txn(fields.u64()?), fields.u32()?);
        fields.zero()?;
        Some((txn, NodeRefusal::from_code(code)?))
    }))
}
