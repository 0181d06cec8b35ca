//! The bundled sink as next hop.

use std::net::SocketAddr;

use vere_bench::sink::{RunningSink, SinkOptions};

use super::{free_address, raise_descriptor_limit, read_all, wait_for};

/// A bundled sink that keeps every message as a file.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    pub(crate) directory: tempfile::TempDir,
    _running: RunningSink,
}

impl Sink {
    /// Starts a sink on a free port.
    pub(crate) fn start() -> Self {
        Self::with_faults(&[])
    }

    /// Starts a sink with faults.
    pub(crate) fn with_faults(faults: &[&str]) -> Self {
        Self::start_at(free_address(), faults)
    }

    /// Starts a sink at an address.
    pub(crate) fn start_at(address: SocketAddr, faults: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        raise_descriptor_limit();
        let rules = faults.iter().map(|fault| fault.parse().expect("a rule"));
        let running = RunningSink::start(SinkOptions {
            listen: address,
            save: Some(directory.path().to_owned()),
            faults: rules.collect(),
            ..SinkOptions::default()
        });
        let running = running.expect("a sink");
        Self {
            address,
            directory,
            _running: running,
        }
    }

    /// The messages so far.
    pub(crate) fn mail(&self) -> Vec<String> {
        read_all(self.directory.path())
    }

    /// The messages so far, in the order of arrival.
    pub(crate) fn in_order(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).expect("the sink's folder");
        let names = entries.flatten().map(|entry| entry.path());
        let mut names: Vec<_> = names
            .filter_map(|path| {
                let stem = path.file_stem()?.to_str()?.to_owned();
                let (time, number) = stem.split_once('-')?;
                let key: (u64, u64) = (time.parse().ok()?, number.parse().ok()?);
                Some((key, path))
            })
            .collect();
        names.sort();
        let text = |(_, path)| std::fs::read(path).expect("a message");
        let texts = names.into_iter().map(text);
        texts
            .map(|octets| String::from_utf8_lossy(&octets).into_owned())
            .collect()
    }

    /// Waits for exactly `count` messages and returns their texts.
    pub(crate) fn wait_mail(&self, count: usize) -> Vec<String> {
        wait_for(&format!("{count} messages in the sink"), || {
            let texts = self.mail();
            (texts.len() == count).then_some(texts)
        })
    }
}
