//! `vere dnsbl map`: a picture of the listed addresses.

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write};
use std::path::PathBuf;

use clap::Args;
use ratatui::crossterm::terminal;
use vere_process::failure::Failure;

use super::picture::Picture;
use super::source::SourceArgs;
use super::stats::Blocks;
use super::stopped::Stopped;

/// Columns of a terminal whose size is unknown, and of any other output.
const COLUMNS: usize = 80;

/// Draw the listed IPv4 addresses: 256 by 256 pixels, one for each /24 of a /8, or for each /16 of all addresses.
///
/// The colour is the number of listed addresses, from black over blue, red and yellow to white, on a logarithmic scale.
/// Without --output, the terminal shows the picture.
///
/// Example: vere dnsbl map addresses.ip4set --network 192.0.0.0/8 --output map.png
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct MapArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Draw this /8 alone, with a pixel for each /24.
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    network: Option<u8>,
    /// Lay the networks along a Hilbert curve, so that neighbours lie together; otherwise 256 networks are a row.
    #[arg(long)]
    hilbert: bool,
    /// Write a PNG file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The first octet of a /8, such as `192.0.0.0/8` or `192/8`.
fn network(text: &str) -> Result<u8, String> {
    let octet = text.strip_suffix("/8").and_then(|address| {
        let octet = address.strip_suffix(".0.0.0").unwrap_or(address);
        octet.parse().ok()
    });
    octet.ok_or_else(|| format!("expected a /8 such as 192.0.0.0/8; found {text}"))
}

/// Runs the command.
///
/// # Errors
/// When a file cannot be read, written, or has an error.
pub(super) fn run(args: &MapArgs, output: &mut impl Write) -> Result<(), Stopped> {
    let zone = args.source.read()?;
    // Below a pixel, bits of the address; the first network of the picture.
    let (below, start) = match args.network {
        Some(octet) => (8, u32::from(octet) << 16),
        None => (16, 0),
    };
    let mut picture = Picture::new(1 << below, args.hilbert);
    let mut blocks = Blocks::new(below, |network, count| {
        if let Some(network) = network.checked_sub(start) {
            picture.add(network as usize, count);
        }
    });
    zone.each_v4(|first, last, _| blocks.range(first.to_bits(), last.to_bits()));
    blocks.close();
    if let Some(path) = &args.output {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(format!("cannot write {}: {error}", path.display()))
        };
        let file = File::create(path).map_err(|error| failed(&error))?;
        let mut file = BufWriter::new(file);
        picture.png(&mut file).map_err(|error| failed(&error))?;
        file.flush().map_err(|error| failed(&error))?;
        return Ok(());
    }
    let colours = std::io::stdout().is_terminal();
    let columns = match colours {
        true => terminal::size().map_or(COLUMNS, |(columns, _)| columns.into()),
        false => COLUMNS,
    };
    Ok(picture.text(output, columns, colours)?)
}
