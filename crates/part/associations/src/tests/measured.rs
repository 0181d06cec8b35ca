//! Speeds over loopback, beside a raw TCP stream. Run with `--release -- --ignored --nocapture`.

use std::time::Instant;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::help::*;
use crate::*;

/// Receives and confirms without a look at the octets.
async fn swallow(mut open: OpenAssociation) {
    loop {
        match open.next().await {
            Next::Incoming(_) => loop {
                match open.part().await {
                    Part::Checkpoint(point) => open.secured(point).unwrap(),
                    Part::Complete(_) => break open.confirm().await.unwrap(),
                    Part::Octets(_) => {}
                    other => panic!("{other:?}"),
                }
            },
            Next::Ended(_) => return,
            other => panic!("{other:?}"),
        }
    }
}

/// Seconds of so many transfers over each of so many associations. The receivers are in a thread of their own.
async fn transfers(associations: usize, count: usize, length: usize) -> f64 {
    let (ready, address) = std::sync::mpsc::channel();
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (listener, address) = listen().await;
            ready.send(address).unwrap();
            let mut all = tokio::task::JoinSet::new();
            for _ in 0..associations {
                all.spawn(swallow(
                    accept(&listener, &responder(&patient())).await.unwrap(),
                ));
            }
            all.join_all().await;
        });
    });
    let peer = peer(address.recv().unwrap(), NORMAL, &patient());
    let names = Names::new("mta-a");
    let mut lines = Vec::new();
    for _ in 0..associations {
        lines.push(initiate(&peer, names.next()).await.unwrap().0);
    }
    let message = apdu(1, length);
    let begun = Instant::now();
    let mut all = tokio::task::JoinSet::new();
    for mut line in lines {
        let message = message.clone();
        all.spawn(async move {
            for _ in 0..count {
                assert!(line.transfer(&message).await.is_transferred());
            }
            line.release().await;
        });
    }
    all.join_all().await;
    let took = begun.elapsed().as_secs_f64();
    serving.join().unwrap();
    took
}

/// Octets a second of one TCP stream with writes of this size.
async fn raw(octets: usize, size: usize) -> f64 {
    let (listener, address) = listen().await;
    let std_listener = listener.into_std().unwrap();
    let reading = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(std_listener).unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = vec![0; 262_144];
            while stream.read(&mut buffer).await.unwrap() > 0 {}
        });
    });
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let piece = Bytes::from(vec![7; size]);
    let begun = Instant::now();
    for _ in 0..octets / size {
        stream.write_all(&piece).await.unwrap();
    }
    drop(stream);
    reading.join().unwrap();
    octets as f64 / begun.elapsed().as_secs_f64()
}

#[tokio::test]
#[ignore = "a measurement"]
async fn speeds() {
    let raw_speed = raw(2_000_000_000, 65_531).await / 1e6;
    println!("raw TCP stream, writes of 65,531 octets: {raw_speed:.0} MB/s");
    for (length, count) in [(1_000, 20_000), (10_000, 10_000)] {
        for associations in [1, 4, 40] {
            let each = count / associations * associations.min(4);
            let took = transfers(associations, each, length).await;
            let rate = (each * associations) as f64 / took;
            println!("{length} octets, {associations} associations: {rate:.0} messages/s");
        }
    }
    for (length, count) in [(1_000_000, 1_000), (10_000_000, 100)] {
        for associations in [1, 4] {
            let took = transfers(associations, count, length).await;
            let speed = (length * count * associations) as f64 / took / 1e6;
            let part = 100.0 * speed / raw_speed;
            println!(
                "{length} octets, {associations} associations: {speed:.0} MB/s, {part:.0} % of the raw stream"
            );
        }
    }
}
