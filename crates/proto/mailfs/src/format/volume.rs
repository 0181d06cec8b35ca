//! Facts of a volume: the frame of a mail of kind volume, which every account has.
//!
//! ```text
//! volume   0  version u8 = 1 | 0 (3) | features that readers must know u32 | features that writers must know u32
//!         12  created i64 (ms) | newest generation known u64 | lead epoch u32 | lead account u16
//!         34  name: v length, octets | rows: v count x { key v length, octets | value v length, octets }
//! ```

use super::bounds::{LABEL_OCTETS_MAX, ROWS_MAX};
use super::error::FormatError;
use super::rows::Budget;
use super::wire::{Reader, put_counted, put_v, within};

/// Features that this reader knows.
const READ_FEATURES: u32 = 0;
/// Features that this writer knows.
const WRITE_FEATURES: u32 = 0;

/// What every account knows of the volume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Features that readers must know.
    pub read_features: u32,
    /// Features that writers must know.
    pub write_features: u32,
    /// The time of creation, in ms since 1970.
    pub created: i64,
    /// The newest generation known at writing.
    pub generation: u64,
    /// The epoch of the lead.
    pub lead_epoch: u32,
    /// The account of the lead.
    pub lead_account: u16,
    /// The name of the volume.
    pub name: String,
    /// All rows of facts: keys and values.
    pub rows: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Facts {
    /// The octets.
    ///
    /// # Errors
    ///
    /// If the name, the rows, a key or a value is beyond its bound.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        let mut out = vec![1, 0, 0, 0];
        out.extend_from_slice(&self.read_features.to_le_bytes());
        out.extend_from_slice(&self.write_features.to_le_bytes());
        out.extend_from_slice(&self.created.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.lead_epoch.to_le_bytes());
        out.extend_from_slice(&self.lead_account.to_le_bytes());
        within("octets of a name", self.name.len(), LABEL_OCTETS_MAX)?;
        put_counted(&mut out, self.name.as_bytes());
        Budget::count(self.rows.len())?;
        put_v(&mut out, self.rows.len() as u64);
        let mut budget = Budget::default();
        for (key, value) in &self.rows {
            budget.put_key(&mut out, key)?;
            budget.put_value(&mut out, value)?;
        }
        Ok(out)
    }

    /// Reads facts.
    ///
    /// # Errors
    ///
    /// If the octets are not exactly facts of a known version, need a feature that this reader does not know, or have a list,
    /// key or value beyond its bound.
    pub fn decode(octets: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new("facts of a volume", octets);
        reader.version("format of a volume's facts")?;
        reader.zeros(3)?;
        let read_features = reader.u32()?;
        known(
            "features that readers must know",
            read_features,
            READ_FEATURES,
        )?;
        let mut facts = Self {
            read_features,
            write_features: reader.u32()?,
            created: reader.i64()?,
            generation: reader.u64()?,
            lead_epoch: reader.u32()?,
            lead_account: reader.u16()?,
            ..Self::default()
        };
        let name = reader.counted("octets of a name", LABEL_OCTETS_MAX)?;
        let name = std::str::from_utf8(name).map_err(|_| FormatError::Form {
            what: "name of a volume",
            expected: "UTF-8",
        })?;
        facts.name = name.into();
        let count = reader.v_within("rows", ROWS_MAX)?;
        let mut budget = Budget::default();
        for _ in 0..count {
            let key = budget.key(&mut reader)?;
            facts.rows.push((key, budget.value(&mut reader)?));
        }
        reader.end()?;
        Ok(facts)
    }

    /// Whether this version may write to the volume.
    ///
    /// # Errors
    ///
    /// If a writer must know a feature that this version does not know.
    pub const fn check_writable(&self) -> Result<(), FormatError> {
        known(
            "features that writers must know",
            self.write_features,
            WRITE_FEATURES,
        )
    }
}

const fn known(what: &'static str, found: u32, known: u32) -> Result<(), FormatError> {
    if found & !known == 0 {
        return Ok(());
    }
    Err(FormatError::Unknown {
        what,
        expected: "none (0)",
        found: found as u64,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts() -> Facts {
        Facts {
            read_features: 0,
            write_features: 0x0102_0304,
            created: 0x0506_0708_090a_0b0c,
            generation: 0x0d0e_0f10_1112_1314,
            lead_epoch: 0x1516_1718,
            lead_account: 0x191a,
            name: "photos".into(),
            rows: vec![
                (b"\x01\x02".to_vec(), b"account".to_vec()),
                (b"k".to_vec(), Vec::new()),
            ],
        }
    }

    #[test]
    fn octets_of_facts() {
        let octets = facts().encode().unwrap();
        assert_eq!(
            octets,
            b"\x01\0\0\0\0\0\0\0\x04\x03\x02\x01\x0c\x0b\x0a\x09\x08\x07\x06\x05\x14\x13\x12\x11\x10\x0f\x0e\x0d\x18\x17\x16\x15\x1a\x19\x06photos\x02\x02\x01\x02\x07account\x01k\0"
        );
        assert_eq!(Facts::decode(&octets), Ok(facts()));
        for cut in 0..octets.len() {
            assert!(Facts::decode(&octets[..cut]).is_err(), "{cut} octets");
        }
        assert!(Facts::decode(&[&octets[..], b"\0"].concat()).is_err());
    }

    #[test]
    fn unknown_features_are_refused_by_name() {
        let text = |found: Result<(), FormatError>| found.unwrap_err().to_string();
        assert_eq!(
            text(facts().check_writable()),
            "features that writers must know: expected none (0); found 16909060"
        );
        assert_eq!(Facts::default().check_writable(), Ok(()));
        let newer = Facts {
            read_features: 4,
            ..facts()
        };
        let found = Facts::decode(&newer.encode().unwrap()).map(drop);
        assert_eq!(
            text(found),
            "features that readers must know: expected none (0); found 4"
        );
    }

    #[test]
    fn facts_have_bounds() {
        let refused = |facts: Facts| facts.encode().unwrap_err().to_string();
        let of_rows = |rows: Vec<(Vec<u8>, Vec<u8>)>| Facts {
            rows,
            ..Facts::default()
        };
        assert_eq!(
            refused(Facts {
                name: "n".repeat(256),
                ..facts()
            }),
            "octets of a name: expected at most 255; found 256"
        );
        assert_eq!(
            refused(of_rows(vec![Default::default(); 16_385])),
            "rows: expected at most 16384; found 16385"
        );
        assert_eq!(
            refused(of_rows(vec![(vec![0; 301], Vec::new())])),
            "octets of a key: expected at most 300; found 301"
        );
        assert_eq!(
            refused(of_rows(vec![(Vec::new(), vec![0; 73_729])])),
            "octets of a value: expected at most 73728; found 73729"
        );
        let all = vec![(Vec::new(), vec![0; 65_536]); 28];
        let fits = of_rows(all.clone());
        assert_eq!(Facts::decode(&fits.encode().unwrap()), Ok(fits));
        let more = [all, vec![(vec![0], Vec::new())]].concat();
        assert_eq!(
            refused(of_rows(more)),
            "octets of rows: expected at most 1835008; found 1835009"
        );
    }

    /// Octets as a hostile writer with the key would send them.
    #[test]
    fn bounds_hold_on_reading() {
        let refused = |tail: &[u8]| {
            let octets = [&facts().encode().unwrap()[..34], tail].concat();
            Facts::decode(&octets).unwrap_err().to_string()
        };
        assert_eq!(
            refused(b"\x80\x02"),
            "octets of a name: expected at most 255; found 256"
        );
        assert_eq!(
            refused(b"\x01\xff\0"),
            "name of a volume: expected UTF-8; found other octets"
        );
        assert_eq!(
            refused(b"\0\x81\x80\x01"),
            "rows: expected at most 16384; found 16385"
        );
        assert_eq!(
            refused(b"\0\x01\xad\x02"),
            "octets of a key: expected at most 300; found 301"
        );
        assert_eq!(
            refused(b"\0\x01\0\x81\xc0\x04"),
            "octets of a value: expected at most 73728; found 73729"
        );
        let mut rows = b"\0\x1d".to_vec();
        for _ in 0..29 {
            rows.extend_from_slice(b"\0\x80\x80\x04");
            rows.extend_from_slice(&[0; 65_536]);
        }
        assert_eq!(
            refused(&rows),
            "octets of rows: expected at most 1835008; found 1900544"
        );
    }

    proptest! {
        #[test]
        fn octets_that_read_have_one_form(octets: Vec<u8>) {
            if let Ok(facts) = Facts::decode(&octets) {
                prop_assert_eq!(facts.encode(), Ok(octets));
            }
        }
    }
}
