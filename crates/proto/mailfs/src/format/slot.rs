//! Key slots: the volume keys, sealed with a key from a passphrase or from a key file.
//!
//! ```text
//! slot    68  slot u8 | method u8: 1 passphrase, 2 key file | 0 u16 | memory KiB u32 | passes u32 | lanes u32
//!         84  salt (16) | nonce (24) | sealed length u16
//!        126  sealed with the slot key: keys u16 x { epoch u16 | volume key (32) } | label
//! slot key    passphrase: argon2id(salt, memory, passes, lanes), 32 octets
//!             key file: BLAKE3 keyed(derive_key("key file", file)) over the salt; memory, passes, lanes are 0
//! associated data: octets 0..126 with zeros for mail id and checksum, since the mail id is a hash over the sealed octets
//! mail id     BLAKE3 of octets 68 to the end, without a key, cut to 16 octets
//! ```

use super::bounds::{EPOCHS_MAX, LABEL_OCTETS_MAX};
use super::error::FormatError;
use super::head::{HEAD_OCTETS, Head, Kind};
use super::ids::{MailId, PackNumber, VolumeId};
use super::keys::{VolumeKey, cut, derive};
use super::seal::{TAG, seal, unseal};
use super::wire::{Reader, within};

/// Octets before the sealed ones.
const OPEN_OCTETS: usize = 126;
/// Octets of a key with its epoch.
const KEY_OCTETS: usize = 34;
/// The longest sealed octets.
const SEALED_MAX: usize = 2 + EPOCHS_MAX * KEY_OCTETS + LABEL_OCTETS_MAX + TAG;
const MEMORY_KIB_MAX: u32 = 1 << 20;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 16;
/// KiB that argon2id needs for each lane.
const LANE_KIB: u32 = 8;
/// Octets of the shortest key file.
pub const KEY_FILE_OCTETS_MIN: usize = 32;

/// What opens a slot.
#[derive(Clone, Copy)]
pub enum SlotSecret<'a> {
    /// A passphrase, as typed.
    Passphrase(&'a [u8]),
    /// The octets of a key file, at least [`KEY_FILE_OCTETS_MIN`].
    KeyFile(&'a [u8]),
}

impl std::fmt::Debug for SlotSecret<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Passphrase(_) => "Passphrase([redacted])",
            Self::KeyFile(_) => "KeyFile([redacted])",
        })
    }
}

/// The cost of argon2id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Memory in KiB, at most 1 GiB.
    pub memory_kib: u32,
    /// Passes, at most 16.
    pub passes: u32,
    /// Lanes, at most 16.
    pub lanes: u32,
}

impl Cost {
    /// The second recommended option of RFC 9106 section 4.
    pub const DEFAULT: Self = Self {
        memory_kib: 64 << 10,
        passes: 3,
        lanes: 4,
    };

    fn check(self) -> Result<Self, FormatError> {
        let bounds = [
            ("lanes of argon2id", self.lanes, 1, LANES_MAX),
            ("passes of argon2id", self.passes, 1, PASSES_MAX),
            (
                "memory of argon2id in KiB",
                self.memory_kib,
                self.lanes.saturating_mul(LANE_KIB),
                MEMORY_KIB_MAX,
            ),
        ];
        for (what, found, min, max) in bounds {
            let found = u64::from(found);
            if found > u64::from(max) {
                let max = max.into();
                return Err(FormatError::Above { what, max, found });
            }
            if found < u64::from(min) {
                let min = min.into();
                return Err(FormatError::Below { what, min, found });
            }
        }
        Ok(self)
    }
}

/// How the key of a slot comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By argon2id from a passphrase.
    Passphrase(Cost),
    /// From a key file.
    KeyFile,
}

/// What a slot seals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotKeys {
    /// The volume keys with their epochs, in rising order.
    pub keys: Vec<(u16, VolumeKey)>,
    /// A name for people.
    pub label: String,
}

/// A slot, not opened: everything that can be checked without a secret is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The head; the epoch is the newest one in the slot.
    pub head: Head,
    /// The number of the slot.
    pub number: u8,
    /// How the key comes about.
    pub method: Method,
    salt: [u8; 16],
    nonce: [u8; 24],
    sealed: Vec<u8>,
}

/// What a new slot is made of, besides keys and secret.
#[derive(Debug, Clone, Copy)]
pub struct NewSlot {
    /// The volume.
    pub volume: VolumeId,
    /// The number of the mail.
    pub pack: PackNumber,
    /// The number of the slot.
    pub number: u8,
    /// The cost, for a passphrase.
    pub cost: Cost,
    /// Random octets, never used before.
    pub salt: [u8; 16],
    /// Random octets, never used before.
    pub nonce: [u8; 24],
}

impl Slot {
    /// Makes a slot. For a passphrase the call takes the time and memory of argon2id.
    ///
    /// # Errors
    ///
    /// If the cost is beyond a limit, the key file is too short, or keys and label are beyond a bound or out of order.
    pub fn make(
        new: &NewSlot,
        content: &SlotKeys,
        secret: SlotSecret<'_>,
    ) -> Result<Self, FormatError> {
        let mut sealed = content.encode()?;
        let method = match secret {
            SlotSecret::Passphrase(_) => Method::Passphrase(new.cost.check()?),
            SlotSecret::KeyFile(_) => Method::KeyFile,
        };
        let mut slot = Self {
            head: Head {
                kind: Kind::Slot,
                volume: new.volume,
                mail: MailId::NONE,
                epoch: content.keys.last().map_or(0, |(epoch, _)| *epoch),
                group: 0,
                frames: 0,
                last_sealed_len: 0,
                pack: new.pack,
            },
            number: new.number,
            method,
            salt: new.salt,
            nonce: new.nonce,
            sealed: Vec::new(),
        };
        let key = slot.key(secret)?;
        let associated = slot.associated(sealed.len().saturating_add(TAG));
        let tag = seal(&key, &slot.nonce, &associated, &mut sealed).ok_or(REFUSED)?;
        sealed.extend_from_slice(&tag);
        slot.sealed = sealed;
        let body = slot.encode();
        slot.head.mail = mail_id(&body);
        Ok(slot)
    }

    /// The body of the mail, decoded form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.head.encode().to_vec();
        self.put_open(self.sealed.len(), &mut out);
        out.extend_from_slice(&self.sealed);
        out
    }

    /// Reads a slot. Memory and time of argon2id are not spent before [`Self::open`].
    ///
    /// # Errors
    ///
    /// If the body is no slot, was damaged, or has parameters beyond a limit.
    pub fn decode(body: &[u8]) -> Result<Self, FormatError> {
        let head = Head::decode(body)?;
        if head.kind != Kind::Slot {
            return Err(FormatError::Unknown {
                what: "kind of mail",
                expected: "2 (key slot)",
                found: head.kind as u64,
            });
        }
        if (head.group, head.frames, head.last_sealed_len) != (0, 0, 0) {
            return Err(FormatError::Form {
                what: "head of a key slot",
                expected: "no group and no frames",
            });
        }
        let mut reader = Reader::new("key slot", body);
        reader.octets(HEAD_OCTETS)?;
        let (number, method) = (reader.u8()?, reader.u8()?);
        reader.zeros(2)?;
        let cost = Cost {
            memory_kib: reader.u32()?,
            passes: reader.u32()?,
            lanes: reader.u32()?,
        };
        let (salt, nonce) = (reader.array()?, reader.array()?);
        let sealed_len = usize::from(reader.u16()?);
        within("sealed length of a key slot", sealed_len, SEALED_MAX)?;
        let sealed = reader.octets(sealed_len)?.to_vec();
        reader.end()?;
        let found = mail_id(body);
        if found != head.mail {
            let expected = head.mail;
            return Err(FormatError::Mail { expected, found });
        }
        Ok(Self {
            head,
            number,
            method: method_of(method, cost)?,
            salt,
            nonce,
            sealed,
        })
    }

    /// Opens the slot. For a passphrase the call takes the time and memory of argon2id.
    ///
    /// # Errors
    ///
    /// If the secret is another one, or of another kind than the slot's method.
    pub fn open(&self, secret: SlotSecret<'_>) -> Result<SlotKeys, FormatError> {
        let key = self.key(secret)?;
        let associated = self.associated(self.sealed.len());
        let mut octets = self.sealed.clone();
        let plain = unseal(&key, &self.nonce, &associated, &mut octets).ok_or(REFUSED)?;
        SlotKeys::decode(plain)
    }

    fn key(&self, secret: SlotSecret<'_>) -> Result<[u8; 32], FormatError> {
        match (secret, self.method) {
            (SlotSecret::Passphrase(passphrase), Method::Passphrase(cost)) => {
                stretch(passphrase, &self.salt, cost)
            }
            (SlotSecret::KeyFile(file), Method::KeyFile) => {
                if file.len() < KEY_FILE_OCTETS_MIN {
                    return Err(FormatError::Below {
                        what: "octets of a key file",
                        min: KEY_FILE_OCTETS_MIN as u64,
                        found: file.len() as u64,
                    });
                }
                let key = derive("key file", file);
                Ok(*blake3::keyed_hash(&key, &self.salt).as_bytes())
            }
            (SlotSecret::Passphrase(_), Method::KeyFile) => {
                Err(wrong_secret("a key file for this slot"))
            }
            (SlotSecret::KeyFile(_), Method::Passphrase(_)) => {
                Err(wrong_secret("a passphrase for this slot"))
            }
        }
    }

    /// Octets 68 to 126.
    fn put_open(&self, sealed_len: usize, out: &mut Vec<u8>) {
        let (method, numbers) = match self.method {
            Method::Passphrase(cost) => (1, [cost.memory_kib, cost.passes, cost.lanes]),
            Method::KeyFile => (2, [0; 3]),
        };
        out.extend_from_slice(&[self.number, method, 0, 0]);
        for number in numbers {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.salt);
        out.extend_from_slice(&self.nonce);
        let sealed_len = u16::try_from(sealed_len).unwrap_or(u16::MAX);
        out.extend_from_slice(&sealed_len.to_le_bytes());
    }

    fn associated(&self, sealed_len: usize) -> Vec<u8> {
        let unnamed = Head {
            mail: MailId::NONE,
            ..self.head
        };
        let mut out = Vec::with_capacity(OPEN_OCTETS);
        out.extend_from_slice(&unnamed.covered());
        out.resize(HEAD_OCTETS, 0);
        self.put_open(sealed_len, &mut out);
        out
    }
}

const REFUSED: FormatError = FormatError::Seal {
    what: "key slot",
    at: 126,
};

const fn wrong_secret(expected: &'static str) -> FormatError {
    FormatError::Form {
        what: "secret",
        expected,
    }
}

fn mail_id(body: &[u8]) -> MailId {
    let covered = body.get(HEAD_OCTETS..).unwrap_or_default();
    MailId(cut(&blake3::hash(covered)))
}

fn method_of(number: u8, cost: Cost) -> Result<Method, FormatError> {
    match number {
        1 => cost.check().map(Method::Passphrase),
        2 if (cost.memory_kib, cost.passes, cost.lanes) == (0, 0, 0) => Ok(Method::KeyFile),
        2 => Err(FormatError::Form {
            what: "key slot of a key file",
            expected: "zeros as parameters of argon2id",
        }),
        found => Err(FormatError::Unknown {
            what: "method of a key slot",
            expected: "1 (passphrase) or 2 (key file)",
            found: found.into(),
        }),
    }
}

/// The parameters were checked, so argon2id can only refuse a passphrase of 4 GiB.
fn stretch(passphrase: &[u8], salt: &[u8; 16], cost: Cost) -> Result<[u8; 32], FormatError> {
    const PARAMETERS: FormatError = FormatError::Form {
        what: "passphrase and parameters of argon2id",
        expected: "values that argon2id takes",
    };
    let mut key = [0; 32];
    let params = argon2::Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(key.len()))
        .map_err(|_| PARAMETERS)?;
    argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params)
        .hash_password_into(passphrase, salt, &mut key)
        .map_err(|_| PARAMETERS)?;
    Ok(key)
}

impl SlotKeys {
    fn encode(&self) -> Result<Vec<u8>, FormatError> {
        within("keys of a slot", self.keys.len(), EPOCHS_MAX)?;
        within(
            "octets of a slot's label",
            self.label.len(),
            LABEL_OCTETS_MAX,
        )?;
        self.check_order()?;
        let count = u16::try_from(self.keys.len()).unwrap_or(u16::MAX);
        let mut out = count.to_le_bytes().to_vec();
        for (epoch, key) in &self.keys {
            out.extend_from_slice(&epoch.to_le_bytes());
            out.extend_from_slice(&key.0);
        }
        out.extend_from_slice(self.label.as_bytes());
        Ok(out)
    }

    fn decode(plain: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new("keys of a slot", plain);
        let count = reader.u16()?;
        within("keys of a slot", count.into(), EPOCHS_MAX)?;
        let mut keys = Vec::new();
        for _ in 0..count {
            keys.push((reader.u16()?, VolumeKey(reader.array()?)));
        }
        let label = reader.rest();
        within("octets of a slot's label", label.len(), LABEL_OCTETS_MAX)?;
        let label = std::str::from_utf8(label).map_err(|_| FormatError::Form {
            what: "label of a slot",
            expected: "UTF-8",
        })?;
        let content = Self {
            keys,
            label: label.into(),
        };
        content.check_order()?;
        Ok(content)
    }

    fn check_order(&self) -> Result<(), FormatError> {
        if !self.keys.is_empty() && self.keys.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Ok(());
        }
        Err(FormatError::Form {
            what: "keys of a slot",
            expected: "one or more keys in order of their epochs",
        })
    }
}

#[cfg(test)]
mod tests;
