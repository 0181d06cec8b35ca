//! Submissions and the memory of all units.

use tokio::time::{Instant, sleep};

use super::*;
use crate::budget::Share;

const NO_ROOM: &str = "the memory for arriving units is short: submit again later";
/// How long the budget lets a unit wait, and how long the oldest may take while others wait.
const WAIT: Duration = Duration::from_secs(45);
const TURN: Duration = Duration::from_secs(20);

impl Talk {
    /// A unit of somebody else that is complete, and not safe yet.
    fn complete(&self, of: &str, octets: u64) -> Share {
        let share = self.desk.budget.share(of);
        share.hold(octets);
        share.rest();
        share
    }

    async fn submit(&mut self, tag: &str, text: &[u8]) {
        let frame = json!({"submit": {
            "tag": tag,
            "message": {"originator": "S=J;A=A;C=GB", "recipients": ["S=S;A=A;C=GB"]},
            "octets": text.len(),
        }});
        self.say(&frame.to_string()).await;
        self.client.write_all(text).await.unwrap();
    }
}

#[test]
fn a_unit_counts_until_it_is_safe() {
    local(async {
        let mut talk = Talk::attached().await;
        let desk = Rc::clone(&talk.desk);
        let busy = desk.spool.acquire().await.unwrap();
        for tag in ["a", "b"] {
            talk.submit(tag, &[b'x'; 70_000]).await;
        }
        sleep(Duration::from_secs(1)).await;
        let held = desk.budget.held();
        assert!((140_000..141_000).contains(&held), "{held}");
        drop(busy);
        for _ in 0..2 {
            talk.hear().await;
        }
        assert_eq!(desk.budget.held(), 0);
    });
}

#[test]
fn a_unit_without_room_is_refused_for_now() {
    local(async {
        let mut talk = Talk::attached().await;
        // One gateway has half of the memory, as a peer has.
        let other = talk.complete("gateway:other", 10_000_000);
        talk.submit("a", b"hi").await;
        assert_eq!(talk.hear().await["submitted"]["tag"], "a");
        drop(other);
        let own = talk.complete("gateway:aftn", 10_000_000);
        let begun = Instant::now();
        talk.submit("b", b"hi").await;
        let expected = json!({"tag": "b", "temporary": true, "error": NO_ROOM});
        assert_eq!(talk.hear().await, json!({ "refused": expected }));
        assert!(begun.elapsed() >= WAIT);
        // Where no unit is accepted, none waits.
        talk.desk.ready.set(false);
        talk.submit("c", b"hi").await;
        let expected = json!({"tag": "c", "temporary": true, "error": "the queues are full"});
        assert_eq!(talk.hear().await, json!({ "refused": expected }));
        assert!(begun.elapsed() < WAIT * 2);
        talk.desk.ready.set(true);
        drop(own);
        talk.submit("b", b"hi").await;
        assert_eq!(talk.hear().await["submitted"]["tag"], "b");
    });
}

#[test]
fn a_client_is_held_while_there_is_no_room_and_gets_deliveries() {
    local(async {
        let mut talk = Talk::attached().await;
        let other = talk.complete("peer", 19_000_000);
        let begun = Instant::now();
        talk.say(r#"{"submit":{"tag":"a","octets":5000000}}"#).await;
        let (reader, mut writer) = tokio::io::split(talk.client.into_inner());
        let mut reader = BufReader::new(reader);
        let written = spawn_local(async move {
            writer.write_all(&vec![0; 5_000_000]).await.unwrap();
            (Instant::now(), writer)
        });
        sleep(Duration::from_secs(30)).await;
        assert!(!written.is_finished());
        let held = talk.desk.budget.held();
        assert!((19_000_000..=20_000_000).contains(&held), "{held}");
        let slot = talk.gateways.slot("aftn").unwrap();
        let _results = spawn_local(async move { slot.deliver(delivery(), Vec::new()).await });
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        assert!(line.contains("deliver"), "{line}");
        drop(other);
        let (at, _writer) = written.await.unwrap();
        assert!(at - begun < WAIT);
        line.clear();
        // The octets are no unit of P1.
        reader.read_line(&mut line).await.unwrap();
        assert!(line.contains(r#""tag":"a""#), "{line}");
        assert_eq!(talk.desk.budget.held(), 0);
    });
}

#[test]
fn a_frame_that_finds_no_room_is_refused_for_now_and_its_rest_is_dropped() {
    local(async {
        let mut talk = Talk::attached().await;
        let other = talk.complete("peer", 19_000_000);
        let begun = Instant::now();
        // A simple program writes all of its frame before it reads.
        talk.say(r#"{"submit":{"tag":"a","octets":5000000}}"#).await;
        talk.client.write_all(&[0; 5_000_000]).await.unwrap();
        let expected = json!({"tag": "a", "temporary": true, "error": NO_ROOM});
        assert_eq!(talk.hear().await, json!({ "refused": expected }));
        assert!((WAIT..WAIT * 2).contains(&begun.elapsed()));
        assert_eq!(talk.desk.budget.held(), 19_000_000);
        drop(other);
        talk.submit("a", b"hi").await;
        assert_eq!(talk.hear().await["submitted"]["tag"], "a");
    });
}

#[test]
fn a_client_that_drips_gives_way_to_others() {
    local(async {
        let mut talk = Talk::attached().await;
        talk.say(r#"{"submit":{"tag":"a","octets":5000000}}"#).await;
        talk.client.write_all(&[0; 1_000]).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(talk.desk.budget.held(), 1_000);
        let others = ["a", "b"].map(|peer| talk.desk.budget.share(peer));
        assert_eq!(others[0].grow(10_000_000), Ok(()));
        let begun = Instant::now();
        let waits = spawn_local(async move { others[1].grow_in_turn(1_000_000, |_| false).await });
        assert_eq!(talk.hear().await["refused"]["tag"], "a");
        assert!((TURN..WAIT).contains(&begun.elapsed()));
        assert!(waits.await.unwrap());
    });
}

#[test]
fn answers_that_are_not_read_are_not_late() {
    local(async {
        let mut talk = Talk::attached().await;
        let own = talk.complete("gateway:aftn", 10_000_000);
        let slot = talk.gateways.slot("aftn").unwrap();
        let delivered = spawn_local(async move { slot.deliver(delivery(), Vec::new()).await });
        let said = talk.hear().await;
        // Fourteen units wait one behind the other, and the answer behind them.
        for number in 0..14 {
            talk.submit(&number.to_string(), b"hi").await;
        }
        let id = said["deliver"]["id"].as_str().unwrap();
        talk.say(&json!({"done": {"id": id, "result": "delivered"}}).to_string())
            .await;
        for number in 0..14 {
            assert_eq!(talk.hear().await["refused"]["tag"], number.to_string());
        }
        assert!(delivered.await.unwrap().is_some());
        drop(own);
    });
}
