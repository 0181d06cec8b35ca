//! From files to the data of a zone.

use std::io::BufRead;
use std::sync::Arc;

use super::dataset::Dataset;
use super::error::{DataError, Reason};
use super::head::{Head, words};
use super::kind::Kind;
use super::lines::each_line;
use super::name;
use super::reading::Reading;
use super::records::{Record, Records};
use super::zone::ZoneData;

/// Datasets of a zone at most.
const DATASETS_MAX: usize = 4096;
/// Subzones of a dataset at most.
const SUBZONES_MAX: usize = 256;

/// Reads the files of a zone, in turn.
#[derive(Debug, Default)]
pub struct Builder {
    head: Head,
    datasets: Vec<Placed>,
    /// The common section of the combined dataset that the last file belongs to.
    common: Option<Reading>,
    /// Whether the next line belongs to the common section.
    in_common: bool,
    apart: bool,
}

/// A dataset with its zones: names in wire form without the root, the empty name for the zone
/// of the files.
#[derive(Debug)]
struct Placed {
    reading: Reading,
    zones: Vec<Vec<u8>>,
}

impl Builder {
    /// Begins another dataset with the next file, whatever the format.
    pub fn next_dataset(&mut self) {
        self.apart = true;
    }

    /// Reads a file. Files of equal format in a row make a dataset together, as a single file would.
    ///
    /// # Errors
    /// The first line with an error, or a failure of the reader.
    pub fn add(&mut self, kind: Kind, file: &str, input: impl BufRead) -> Result<(), DataError> {
        self.add_with(kind, file, input, Err)
    }

    /// Reads a file, and asks a function about each refused line: the line is left out, or the reading ends.
    ///
    /// # Errors
    /// The error from the function; in any case a line above the bound, and a failure of the reader.
    pub fn add_with(
        &mut self,
        kind: Kind,
        file: &str,
        input: impl BufRead,
        mut refused: impl FnMut(DataError) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        self.begin_file(kind);
        each_line(file, input, |line, text| {
            self.line(text).or_else(|reason| {
                let file = file.into();
                refused(DataError { file, line, reason })
            })
        })
    }

    fn begin_file(&mut self, kind: Kind) {
        let apart = std::mem::take(&mut self.apart);
        self.in_common = kind == Kind::Combined;
        if self.in_common {
            if apart || self.common.is_none() {
                self.common = Some(Reading::new(kind));
            }
            return;
        }
        let combined = self.common.take().is_some();
        let last = self.datasets.last().map(|last| last.reading.kind);
        if apart || combined || last != Some(kind) {
            self.datasets.push(Placed {
                reading: Reading::new(kind),
                zones: vec![Vec::new()],
            });
        }
        if let Some(placed) = self.datasets.last_mut() {
            placed.reading.begin_file();
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Reason> {
        let line = line.trim_ascii_start();
        let (special, in_comment) = match line {
            [] => return Ok(()),
            [b'$', special @ ..] => (special, false),
            // Files for other servers have special entries in comments; an unknown one is a comment.
            [b'#' | b';' | b':', b'$', special @ ..] => (special, true),
            [b'#' | b';', ..] => return Ok(()),
            line => {
                return match self.current() {
                    Some(reading) => reading.line(line),
                    None => Ok(()),
                };
            }
        };
        let end = special.iter().position(u8::is_ascii_whitespace);
        let (keyword, rest) = special.split_at(end.unwrap_or(special.len()));
        match self.special(keyword, rest.trim_ascii())? {
            None if !in_comment => Err(Reason::syntax(
                "$SOA, $NS, $TTL, $TIMESTAMP, $MAXRANGE4, $DATASET, $0 to $9 or $=",
                line,
            )),
            _ => Ok(()),
        }
    }

    /// The dataset that the next line belongs to.
    fn current(&mut self) -> Option<&mut Reading> {
        match self.in_common {
            true => self.common.as_mut(),
            false => self.datasets.last_mut().map(|placed| &mut placed.reading),
        }
    }

    fn special(&mut self, keyword: &[u8], rest: &[u8]) -> Result<Option<()>, Reason> {
        if keyword == b"DATASET" {
            return self.begin_dataset(rest).map(Some);
        }
        if let Some(current) = self.current()
            && let Some(()) = current.special(keyword, rest)?
        {
            let ttl = current.scope.ttl;
            self.head.ttl = self.head.ttl.or(ttl);
            return Ok(Some(()));
        }
        self.head.line(keyword, rest)
    }

    /// `$DATASET type[:name] subzone subzone...`
    fn begin_dataset(&mut self, rest: &[u8]) -> Result<(), Reason> {
        let Some(common) = &self.common else {
            let expected = "$DATASET in a file of the format combined alone";
            return Err(Reason::syntax(expected, rest));
        };
        let mut words = words(rest);
        let kind = words.next().unwrap_or_default();
        let kind = kind.split(|octet| *octet == b':').next();
        let known = kind.and_then(|name| std::str::from_utf8(name).ok()?.parse().ok());
        let kind = match known {
            Some(Kind::Combined) | None => {
                let expected = "a dataset type other than combined behind $DATASET";
                return Err(Reason::syntax(expected, rest));
            }
            Some(kind) => kind,
        };
        let zones: Vec<Vec<u8>> = words
            .map(|zone| name::relative(&zone.to_ascii_lowercase()))
            .collect::<Result<_, _>>()?;
        if zones.is_empty() || zones.len() > SUBZONES_MAX {
            let expected = format!("1 to {SUBZONES_MAX} subzones behind the dataset type");
            return Err(Reason::syntax(expected, rest));
        }
        if self.datasets.len() >= DATASETS_MAX {
            return Err(Reason::bound(
                format!("at most {DATASETS_MAX} datasets"),
                "more",
            ));
        }
        let reading = common.inside(kind);
        self.datasets.push(Placed { reading, zones });
        self.in_common = false;
        Ok(())
    }

    /// The number of entries that were read.
    #[must_use]
    pub fn entries(&self) -> u64 {
        let datasets = self.datasets.iter();
        datasets.map(|placed| placed.reading.entries).sum()
    }

    /// The data of the zone.
    #[must_use]
    pub fn finish(self) -> ZoneData {
        let mut zone = ZoneData {
            head: self.head,
            ..ZoneData::default()
        };
        for Placed { reading, zones } in self.datasets {
            let dataset = Arc::new(reading.finish());
            for name in zones {
                zone.place(name, &dataset);
            }
        }
        zone.collect_records();
        zone
    }
}

impl ZoneData {
    /// Begins to read files.
    #[must_use]
    pub fn build() -> Builder {
        Builder::default()
    }

    fn place(&mut self, name: Vec<u8>, dataset: &Arc<Dataset>) {
        let datasets = match self.subzones.iter_mut().find(|(zone, _)| **zone == *name) {
            _ if name.is_empty() => &mut self.datasets,
            Some((_, zone)) => &mut zone.datasets,
            None => {
                let zone = Self {
                    datasets: vec![Arc::clone(dataset)],
                    ..Self::default()
                };
                self.subzones.push((name.into(), zone));
                return;
            }
        };
        datasets.push(Arc::clone(dataset));
    }

    fn collect_records(&mut self) {
        let records = self
            .datasets
            .iter()
            .flat_map(|dataset| dataset.records.all());
        let records: Vec<Record> = records.cloned().collect();
        self.records = Records::of(records);
        for (_, zone) in &mut self.subzones {
            zone.collect_records();
        }
    }
}
