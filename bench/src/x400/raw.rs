//! The limit of the machine: one connection with packets of the transport (RFC 1006), written by one process and read by
//! another, which looks at the head of each packet and at nothing else.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use vere_osi::transport::{TPDU_SIZE_MAX, TPKT_LEN};

use super::child::Tally;

/// Octets of the head of a packet and of its data TPDU.
const HEAD_LEN: usize = TPKT_LEN + 3;

/// Octets read at once, as by an association.
const READ_MAX: usize = 262_144;

/// Writes messages as packets of the largest size, until the connection ends.
pub(super) async fn send(
    to: SocketAddr,
    content: Bytes,
    tally: Arc<Tally>,
    mut going: watch::Receiver<bool>,
) {
    let Ok(mut stream) = connect(to).await else {
        return tally.trouble();
    };
    let packets = packets(&content);
    let octets = u64::try_from(content.len()).unwrap_or(u64::MAX);
    while going.wait_for(|going| *going).await.is_ok() {
        for packet in &packets {
            if stream.write_all(packet).await.is_err() {
                return tally.trouble();
            }
        }
        tally.message(octets);
    }
}

async fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The packets of a message: all but the last with as much data as a TPDU holds.
fn packets(content: &Bytes) -> Vec<Vec<u8>> {
    let data = TPDU_SIZE_MAX as usize - 3;
    let count = content.len().div_ceil(data);
    let packet = |(number, piece): (usize, &[u8])| {
        let length = u16::try_from(piece.len() + HEAD_LEN).unwrap_or(u16::MAX);
        let [high, low] = length.to_be_bytes();
        let end = if number + 1 == count { 0x80 } else { 0 };
        let mut packet = vec![3, 0, high, low, 2, 0xF0, end];
        packet.extend_from_slice(piece);
        packet
    };
    content.chunks(data).enumerate().map(packet).collect()
}

/// Reads packets of all connections, and counts their data.
pub(super) async fn receive(listener: TcpListener, tally: Arc<Tally>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let tally = Arc::clone(&tally);
                tokio::spawn(async move {
                    // The end of a connection is the end of the measurement.
                    let _ = read(stream, &tally).await;
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn read(stream: TcpStream, tally: &Tally) -> io::Result<()> {
    let mut stream = BufReader::with_capacity(READ_MAX, stream);
    let mut data = vec![0; usize::from(u16::MAX)];
    loop {
        let mut head = [0; HEAD_LEN];
        stream.read_exact(&mut head).await?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let length = length.saturating_sub(HEAD_LEN);
        stream.read_exact(&mut data[..length]).await?;
        tally.octets(u64::try_from(length).unwrap_or(u64::MAX));
        if head[HEAD_LEN - 1] & 0x80 != 0 {
            tally.message(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_into_packets_of_the_largest_size() {
        let content = Bytes::from(vec![7; 140_000]);
        let packets = packets(&content);
        let ends: Vec<u8> = packets.iter().map(|packet| packet[6]).collect();
        assert_eq!(ends, [0, 0, 0x80]);
        let lengths = packets.iter().map(|packet| {
            assert_eq!(
                usize::from(u16::from_be_bytes([packet[2], packet[3]])),
                packet.len()
            );
            packet.len() - HEAD_LEN
        });
        assert_eq!(lengths.sum::<usize>(), content.len());
        assert!(packets[0].len() <= 65_535);
    }
}
