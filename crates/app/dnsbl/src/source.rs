//! Which files a command reads, and in which format.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use clap::Args;
use vere_dnsbl::data::{Builder, DataError, Kind, ZoneData};
use vere_process::failure::Failure;

/// Octets that are read at once.
const BUFFER_OCTETS: usize = 256 << 10;

/// Files of one zone.
#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// The files of the list, `-` for standard input, or zones as `vere dnsbl serve --zone` has them.
    #[arg(value_name = "FILE|ZONE:FORMAT:FILE,...", required = true)]
    source: Vec<String>,
    /// The format of files: cidr, ip4set, ip4trie, ip4tset, ip6trie, ip6tset, dnset, generic or combined.
    ///
    /// Without the option, the ending of a file's name is its format (`list.ip4set`), and any other file is cidr: one
    /// address, network or range a line.
    #[arg(long)]
    format: Option<Kind>,
}

/// A file to read.
#[derive(Debug)]
pub(super) struct Source {
    zone: Option<String>,
    pub(super) kind: Kind,
    pub(super) file: String,
    /// Whether the file begins a dataset.
    first: bool,
}

impl SourceArgs {
    /// The files, in order.
    pub(super) fn files(&self) -> Vec<Source> {
        let sources = self.source.iter();
        sources.flat_map(|source| self.of(source)).collect()
    }

    fn of(&self, source: &str) -> Vec<Source> {
        let mut parts = source.splitn(3, ':');
        if let (Some(zone), Some(kind), Some(files)) = (parts.next(), parts.next(), parts.next())
            && let Ok(kind) = kind.parse()
        {
            let files = files.split(',').enumerate();
            return files
                .map(|(place, file)| Source {
                    zone: Some(zone.to_owned()),
                    kind,
                    file: file.to_owned(),
                    first: place == 0,
                })
                .collect();
        }
        let ending = Path::new(source)
            .extension()
            .and_then(|ending| ending.to_str());
        let kind = ending.and_then(|ending| ending.parse().ok());
        vec![Source {
            zone: None,
            kind: self.format.or(kind).unwrap_or(Kind::Cidr),
            file: source.to_owned(),
            first: false,
        }]
    }

    /// The name of the zone, if the first source has one.
    pub(super) fn zone(&self) -> Option<String> {
        self.files().into_iter().next()?.zone
    }

    /// Reads all files; the first error ends the reading.
    pub(super) fn read(&self) -> Result<ZoneData, Failure> {
        let mut builder = ZoneData::build();
        for source in self.files() {
            source.read(&mut builder, &mut Err)?;
        }
        Ok(builder.finish())
    }
}

impl Source {
    /// Reads the file; `refused` says whether a refused line ends the reading.
    pub(super) fn read(
        &self,
        builder: &mut Builder,
        refused: &mut dyn FnMut(DataError) -> Result<(), DataError>,
    ) -> Result<(), Failure> {
        if self.first {
            builder.next_dataset();
        }
        if self.file == "-" {
            let input = BufReader::with_capacity(BUFFER_OCTETS, io::stdin().lock());
            return Ok(builder.add_with(self.kind, "standard input", input, refused)?);
        }
        let file = File::open(&self.file)
            .map_err(|error| Failure::new(format!("cannot read {}: {error}", self.file)))?;
        let input = BufReader::with_capacity(BUFFER_OCTETS, file);
        Ok(builder.add_with(self.kind, &self.file, input, refused)?)
    }
}
