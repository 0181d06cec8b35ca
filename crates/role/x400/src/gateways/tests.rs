//! The socket with an MTA that is no more than a list.

mod memory;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::advance;
use vere_attach::{Deliver, Fate, PeerRow, Recipient};
use vere_mta400::{Mta, Peers, Routes, Site, Source};
use vere_x400::{Apdu, GlobalDomainIdentifier};

use super::connection::Connection;
use super::{Accepted, Desk, Unaccepted};
use crate::attached::Gateways;
use crate::budget::{Bounds, Budget};
use crate::kept::Kept;

/// An MTA that accepts all but probes, and notes what happened.
struct Listed {
    mta: Rc<Mta>,
    notes: RefCell<Vec<String>>,
    budget: Rc<Budget>,
    kept: Kept,
    ready: Cell<bool>,
    /// A spool that makes one unit safe at a time.
    spool: Semaphore,
}

impl Desk for Listed {
    fn mta(&self) -> Rc<Mta> {
        Rc::clone(&self.mta)
    }

    fn window(&self, name: &str) -> Option<u32> {
        (name == "aftn").then_some(2)
    }

    fn octets_max(&self) -> u64 {
        10_000_000
    }

    fn budget(&self) -> &Rc<Budget> {
        &self.budget
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }

    fn identifier(&self) -> String {
        "id-1".to_owned()
    }

    fn ready(&self) -> Result<(), &'static str> {
        self.ready.get().then_some(()).ok_or("the queues are full")
    }

    async fn accept(&self, unit: Apdu, source: Source<'_>) -> Result<Accepted, Unaccepted> {
        self.notes.borrow_mut().push(format!("{source:?}"));
        let _safe = self.spool.acquire().await;
        match unit {
            Apdu::Probe(_) => Err(Unaccepted {
                temporary: true,
                error: "the queues are full".to_owned(),
            }),
            unit => Ok(Accepted {
                identifier: unit.identifier().to_string(),
                id: "01HXYZ0000000".to_owned(),
            }),
        }
    }

    fn peers(&self, after: Option<&str>) -> Vec<PeerRow> {
        vec![PeerRow {
            name: format!("after {}", after.unwrap_or("nothing")),
            ..PeerRow::default()
        }]
    }

    fn attached(self: &Rc<Self>, name: &str) {
        self.notes.borrow_mut().push(format!("attached {name}"));
    }
}

/// A connection, and the client's end.
struct Talk {
    desk: Rc<Listed>,
    gateways: Rc<Gateways>,
    stop: watch::Sender<bool>,
    client: BufReader<UnixStream>,
}

impl Talk {
    fn new() -> Self {
        let domain = GlobalDomainIdentifier::new("GB", "Carrier", Some("Acme")).unwrap();
        let mta = Mta {
            site: Site::new(domain, "mta1").unwrap(),
            peers: Peers::default(),
            routes: Routes::default(),
        };
        let desk = Rc::new(Listed {
            mta: Rc::new(mta),
            notes: RefCell::default(),
            budget: Rc::default(),
            kept: Kept::default(),
            ready: Cell::new(true),
            spool: Semaphore::new(1),
        });
        desk.budget.set_bounds(Bounds {
            all: 20_000_000,
            unit: 10_000_000,
        });
        let gateways = Rc::<Gateways>::default();
        let (stop, stopping) = watch::channel(false);
        let (client, server) = UnixStream::pair().unwrap();
        spawn_local(Connection::new(&desk, &gateways, server, stopping).run());
        Self {
            desk,
            gateways,
            stop,
            client: BufReader::new(client),
        }
    }

    async fn say(&mut self, line: &str) {
        let line = line.to_owned() + "\n";
        self.client.write_all(line.as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.client.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    async fn attached() -> Self {
        let mut talk = Self::new();
        talk.say(r#"{"attach":{"version":1,"name":"aftn","window":9}}"#)
            .await;
        let said = talk.hear().await;
        assert_eq!(said["attached"]["mta"], "mta1", "{said}");
        assert_eq!(said["attached"]["octets_max"], 10_000_000);
        talk
    }

    /// The reason of the end of the connection, after which nothing follows.
    async fn end(&mut self) -> String {
        let said = self.hear().await;
        assert_eq!(said["refused"].get("tag"), None, "{said}");
        let mut rest = Vec::new();
        self.client.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "{rest:?}");
        said["refused"]["error"].as_str().unwrap().to_owned()
    }
}

fn local(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(LocalSet::new().run_until(test));
}

fn delivery() -> Deliver {
    Deliver {
        trace: "01HXYZ0000000".to_owned(),
        recipients: vec![Recipient {
            place: 3,
            address: "S=Smith;C=GB".to_owned(),
        }],
        ..Deliver::default()
    }
}

#[test]
fn submissions_are_made_and_accepted() {
    local(async {
        let mut talk = Talk::attached().await;
        talk.say(r#"{"submit":{"tag":"a","message":{"originator":"S=J;A=A;C=GB","recipients":["S=S;A=A;C=GB"]},"octets":2}}"#).await;
        talk.client.write_all(b"hi").await.unwrap();
        assert_eq!(
            talk.hear().await,
            json!({"submitted": {"tag": "a", "identifier": "[/PRMD=Acme/ADMD=Carrier/C=GB/;id-1]", "id": "01HXYZ0000000"}})
        );
        talk.say(
            r#"{"probe":{"tag":"b","originator":"S=J;A=A;C=GB","recipients":["S=S;A=A;C=GB"]}}"#,
        )
        .await;
        assert_eq!(
            talk.hear().await,
            json!({"refused": {"tag": "b", "temporary": true, "error": "the queues are full"}})
        );
        talk.say(r#"{"submit":{"tag":"c","octets":1}}"#).await;
        talk.client.write_all(b"x").await.unwrap();
        assert_eq!(talk.hear().await["refused"]["tag"], "c");
        talk.say(r#"{"submit":{"tag":"d","message":{},"octets":0}}"#)
            .await;
        let said = talk.hear().await;
        assert_eq!(
            said["refused"]["error"].as_str().unwrap().split(';').next(),
            Some("originator: expected an O/R address such as G=John")
        );
        talk.say(r#"{"ask":{"tag":"e","peers":true,"after":"mta2"}}"#)
            .await;
        assert_eq!(
            talk.hear().await["answer"]["peers"][0]["name"],
            "after mta2"
        );
        talk.say(r#"{"ask":{"tag":"f"}}"#).await;
        assert_eq!(talk.hear().await["refused"]["tag"], "f");
        let notes = talk.desk.notes.borrow().join(", ");
        assert_eq!(notes, "attached aftn, Gateway(\"aftn\"), Gateway(\"aftn\")");
    });
}

#[test]
fn a_delivery_waits_for_its_answer() {
    local(async {
        let mut talk = Talk::attached().await;
        assert_eq!(talk.gateways.attached("AFTN"), 1);
        let slot = talk.gateways.slot("aftn").unwrap();
        let other = talk.gateways.slot("aftn").unwrap();
        // The settings bound the window that the client wants.
        assert!(talk.gateways.slot("aftn").is_none());
        drop(other);
        assert!(talk.gateways.slot("aftn").is_some());
        let apdu = vec![Bytes::from_static(b"AB"), Bytes::from_static(b"C")];
        let results = spawn_local(async move {
            let results = slot.deliver(delivery(), apdu).await;
            (results, slot)
        });
        let said = talk.hear().await;
        assert_eq!(
            (
                &said["deliver"]["octets"],
                &said["deliver"]["recipients"][0]["place"]
            ),
            (&json!(3), &json!(3))
        );
        let mut octets = [0; 3];
        talk.client.read_exact(&mut octets).await.unwrap();
        assert_eq!(&octets, b"ABC");
        let id = said["deliver"]["id"].as_str().unwrap();
        talk.say(&json!({"done": {"id": id, "result": "failed", "said": "no"}}).to_string())
            .await;
        let (results, slot) = results.await.unwrap();
        let results = results.unwrap();
        let one = &results.results[0];
        assert_eq!((one.place, one.result, &*one.said), (3, Fate::Failed, "no"));
        assert!(slot.is_open());

        // The end of the connection is the end of its deliveries.
        let lost = spawn_local(async move {
            let results = slot.deliver(delivery(), Vec::new()).await;
            slot.closed().await;
            (results.is_none(), slot.is_open())
        });
        talk.hear().await;
        drop(talk.client);
        assert_eq!(lost.await.unwrap(), (true, false));
        assert_eq!(talk.gateways.attached("aftn"), 0);
    });
}

#[test]
fn long_frames_of_both_sides_cross() {
    local(async {
        let mut talk = Talk::attached().await;
        let slot = talk.gateways.slot("aftn").unwrap();
        let apdu = vec![Bytes::from(vec![7; 5_000_000])];
        let _results = spawn_local(async move { slot.deliver(delivery(), apdu).await.is_some() });
        // The client writes all of its frame before it reads, as a simple program does.
        talk.say(r#"{"submit":{"tag":"a","octets":5000000}}"#).await;
        talk.client.write_all(&vec![0; 5_000_000]).await.unwrap();
        let said = talk.hear().await;
        assert_eq!(said["deliver"]["octets"], 5_000_000);
        let mut octets = vec![0; 5_000_000];
        talk.client.read_exact(&mut octets).await.unwrap();
        assert_eq!(talk.hear().await["refused"]["tag"], "a");
    });
}

#[test]
fn answers_come_after_the_client_has_ended_its_side() {
    local(async {
        let mut talk = Talk::new();
        talk.say(r#"{"attach":{"version":1}}"#).await;
        talk.say(r#"{"submit":{"tag":"a","message":{"originator":"S=J;A=A;C=GB","recipients":["S=S;A=A;C=GB"]},"octets":0}}"#).await;
        talk.client.shutdown().await.unwrap();
        assert_eq!(talk.hear().await["attached"]["version"], 1);
        assert_eq!(talk.hear().await["submitted"]["tag"], "a");
        assert_eq!(*talk.desk.notes.borrow(), ["Local"]);
        let mut rest = Vec::new();
        assert_eq!(talk.client.read_to_end(&mut rest).await.unwrap(), 0);
    });
}

#[test]
fn unknown_gateways_and_a_stop_are_told() {
    local(async {
        let mut talk = Talk::new();
        talk.say(r#"{"attach":{"version":1,"name":"other"}}"#).await;
        assert_eq!(
            talk.end().await,
            "expected a gateway of the settings; found other"
        );
        let mut talk = Talk::attached().await;
        talk.stop.send_replace(true);
        assert_eq!(talk.end().await, "the MTA stops");
        let mut talk = Talk::attached().await;
        talk.say("hello").await;
        assert!(talk.end().await.starts_with("frame: expected JSON"));
    });
}

#[test]
fn every_wait_has_an_end() {
    local(async {
        let mut talk = Talk::new();
        assert_eq!(talk.end().await, "expected attach within 10 s");
        let mut talk = Talk::attached().await;
        talk.say(r#"{"submit":{"tag":"a","octets":9}}"#).await;
        assert_eq!(
            talk.end().await,
            "expected the rest of a frame; found nothing for 60 s"
        );

        // An attached client may be silent for ever, but owes answers.
        let mut talk = Talk::attached().await;
        advance(Duration::from_secs(100_000)).await;
        let slot = talk.gateways.slot("aftn").unwrap();
        let lost = spawn_local(async move { slot.deliver(delivery(), Vec::new()).await.is_none() });
        let said = talk.hear().await;
        let id = said["deliver"]["id"].as_str().unwrap();
        assert_eq!(
            talk.end().await,
            format!("expected done for delivery {id} within 600 s")
        );
        assert!(lost.await.unwrap());
    });
}

#[test]
fn a_client_that_reads_nothing_is_let_go() {
    local(async {
        let talk = Talk::attached().await;
        let slot = talk.gateways.slot("aftn").unwrap();
        let apdu = vec![Bytes::from(vec![7; 5_000_000])];
        assert!(slot.deliver(delivery(), apdu).await.is_none());
        slot.closed().await;
        assert_eq!(talk.gateways.attached("aftn"), 0);
    });
}
