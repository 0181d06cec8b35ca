//! From files to the data of a zone.

use std::io::BufRead;
use std::sync::Arc;

use super::ZoneData;
use super::dataset::Reading;
use super::error::{DataError, Reason};
use super::head::Head;
use super::kind::Kind;
use super::lines::each_line;

/// Reads the files of a zone, one after the other.
#[derive(Debug, Default)]
pub struct Builder {
    head: Head,
    datasets: Vec<Reading>,
    apart: bool,
}

impl Builder {
    /// Begins another dataset, even if the next file has the format of the last.
    #[must_use]
    pub fn next_dataset(mut self) -> Self {
        self.apart = true;
        self
    }

    /// Reads a file. Files of one format in a row are one dataset, as if they were one file.
    ///
    /// # Errors
    /// The first line that is not as the format has it, or a failure of the reader.
    pub fn add(&mut self, kind: Kind, file: &str, input: impl BufRead) -> Result<(), DataError> {
        self.add_with(kind, file, input, Err)
    }

    /// Reads a file, and asks a function about each refused line: the line is left out, or the reading ends.
    ///
    /// # Errors
    /// What the function returns; a line that is too long and a failure of the reader in any case.
    pub fn add_with(
        &mut self,
        kind: Kind,
        file: &str,
        input: impl BufRead,
        mut refused: impl FnMut(DataError) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let same = self.datasets.last().is_some_and(|last| last.kind == kind);
        if !same || std::mem::take(&mut self.apart) {
            self.datasets.push(Reading::new(kind));
        }
        if let Some(dataset) = self.datasets.last_mut() {
            dataset.begin_file();
        }
        each_line(file, input, |line, text| {
            self.line(text).or_else(|reason| {
                let file = file.into();
                refused(DataError { file, line, reason })
            })
        })
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Reason> {
        let line = line.trim_ascii_start();
        let Some(dataset) = self.datasets.last_mut() else {
            return Ok(());
        };
        match line {
            [] => Ok(()),
            [b'$', special @ ..] => {
                let taken = special_line(&mut self.head, dataset, special)?;
                taken.ok_or_else(|| Reason::syntax("a known keyword after the dollar sign", line))
            }
            // Files for other servers have special entries in comments; an unknown one is a comment.
            [b'#' | b';' | b':', b'$', special @ ..] => {
                special_line(&mut self.head, dataset, special).map(|_| ())
            }
            [b'#' | b';', ..] => Ok(()),
            line => dataset.line(line),
        }
    }

    /// The data of the zone.
    #[must_use]
    pub fn finish(self) -> ZoneData {
        let datasets = self.datasets.into_iter();
        ZoneData {
            head: self.head,
            datasets: datasets.map(|dataset| Arc::new(dataset.finish())).collect(),
            subzones: Vec::new(),
        }
    }
}

fn special_line(head: &mut Head, dataset: &mut Reading, line: &[u8]) -> Result<Option<()>, Reason> {
    let end = line.iter().position(u8::is_ascii_whitespace);
    let (keyword, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_ascii();
    if let Some(()) = dataset.special(keyword, rest)? {
        head.ttl = head.ttl.or(dataset.scope.ttl);
        return Ok(Some(()));
    }
    head.line(keyword, rest)
}
