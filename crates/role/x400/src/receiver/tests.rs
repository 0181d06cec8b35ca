//! Units over associations in memory, with an MTA that is no more than a count.

use std::cell::Cell;
use std::time::Duration;

use tokio::io::duplex;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep, timeout};
use vere_associations::{
    Begun, Decision, Lent, Names, Next, Outcome, Peer, Remote, Responder, introduction, open_over,
    respond,
};
use vere_osi::rtse::Broken;
use vere_x400::MtaBindResult;

use super::*;
use crate::answered;
use crate::budget::{Bounds, Shortage};

const JEOPARDIZED: Exception = Exception::ReceivingAbilityJeopardized;

struct Counts {
    budget: Rc<Budget>,
    kept: Kept,
    history: Rc<RefCell<History>>,
    ready: Cell<bool>,
    /// A spool that makes one unit safe at a time.
    spool: Semaphore,
    taken: Cell<usize>,
}

impl Counts {
    fn new() -> Self {
        let budget = Rc::<Budget>::default();
        budget.set_bounds(Bounds {
            all: 2_000_000,
            unit: 1_000_000,
        });
        Self {
            budget,
            kept: Kept::default(),
            history: Rc::new(RefCell::new(History::new(8))),
            ready: Cell::new(true),
            spool: Semaphore::new(1),
            taken: Cell::new(0),
        }
    }

    /// A unit of somebody else that is complete, and not safe yet.
    fn complete(&self, of: &str, octets: u64) -> Share {
        let share = self.budget.share(of);
        share.hold(octets);
        share.rest();
        share
    }
}

impl Host for Counts {
    fn budget(&self) -> &Rc<Budget> {
        &self.budget
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }

    fn history(&self, peer: &str) -> Rc<RefCell<History>> {
        assert_eq!(peer, "theirs");
        Rc::clone(&self.history)
    }

    fn octets_max(&self) -> u64 {
        1_000_000
    }

    fn ready(&self) -> Result<(), &'static str> {
        self.ready.get().then_some(()).ok_or("not now")
    }

    async fn take(&self, _: Origin<'_>, _: Vec<Bytes>) -> Result<(), NotTaken> {
        let _safe = self.spool.acquire().await;
        self.taken.set(self.taken.get() + 1);
        Ok(())
    }

    fn refused(&self) {}

    fn not_taken(&self, _: Origin<'_>, why: &NotTaken) {
        panic!("{why}");
    }
}

fn remote() -> Remote {
    Remote {
        address: SocketAddr::from(([192, 0, 2, 1], 102)),
        tls: None,
    }
}

/// The peer's end of an association that this MTA has opened. The peer has the turn.
async fn associate(host: &Rc<Counts>) -> OpenAssociation {
    let (near, far) = duplex(65_536);
    let peer = Peer::new(Vec::new(), introduction("ours", b"").unwrap());
    let responder = Responder::default();
    let accepted = async {
        let caller = respond(&responder, Box::new(far), remote()).await.unwrap();
        let decision = Decision::Accept(MtaBindResult::default());
        caller.answer(async { decision }).await.unwrap()
    };
    let session = Names::new("ours").next();
    let opened = open_over(&peer, Box::new(near), remote(), session);
    let (opened, mut theirs) = tokio::join!(opened, accepted);
    let (mut ours, _) = opened.unwrap();
    let gives = spawn_local(async move {
        assert!(matches!(ours.next().await, Next::TurnWanted(_)));
        ours.give_turn().await.unwrap();
        ours
    });
    theirs.please_turn(0).await.unwrap();
    assert!(matches!(theirs.next().await, Next::Turn));
    let ours = tokio::select! {
        ours = gives => ours.unwrap(),
        next = theirs.next() => panic!("{next:?}"),
    };
    let host = Rc::clone(host);
    spawn_local(async move { lane(&host, ours).await });
    theirs
}

/// Drives an association as the lane of a pool does.
async fn lane(host: &Counts, mut ours: OpenAssociation) {
    loop {
        let begun = match ours.next().await {
            Next::Incoming(activity) => Begun::Transfer(activity),
            Next::Resume(resumption) => Begun::Rest(resumption),
            Next::Ended(_) => return,
            _ => continue,
        };
        let (back, given_back) = oneshot::channel();
        let open = ours;
        let lent = Lent { open, begun, back };
        answered::receive_one(host, "theirs", lent).await;
        ours = given_back.await.unwrap();
    }
}

/// Octets that are an EXTERNAL's content as good as a unit.
fn unit(octets: u32) -> Vec<Bytes> {
    let mut unit = vec![0xA0, 0x84];
    unit.extend((octets - 6).to_be_bytes());
    unit.resize(usize::try_from(octets).unwrap(), 0);
    vec![unit.into()]
}

fn local(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test);
}

#[test]
fn a_unit_over_an_association_of_this_mta_counts_until_it_is_safe() {
    local(async {
        let host = Rc::new(Counts::new());
        let mut theirs = associate(&host).await;
        let busy = host.spool.acquire().await.unwrap();
        let sent = spawn_local(async move { theirs.transfer(&unit(400_000)).await });
        sleep(Duration::from_secs(1)).await;
        let held = host.budget.held();
        assert!((400_000..401_000).contains(&held), "{held}");
        // The units of a peer count together, whichever side has opened the association.
        let other = host.budget.share("theirs");
        assert_eq!(other.grow(600_001), Err(Shortage::Own));
        drop(busy);
        assert!(sent.await.unwrap().is_transferred());
        assert_eq!((host.budget.held(), host.taken.get()), (0, 1));
    });
}

#[test]
fn a_unit_without_room_is_held_and_then_refused_for_now() {
    local(async {
        let host = Rc::new(Counts::new());
        let mut theirs = associate(&host).await;
        let complete = host.complete("others", 1_900_000);
        let begun = Instant::now();
        let message = unit(900_000);
        let outcome = theirs.transfer(&message).await;
        assert!(
            matches!(&outcome, Outcome::Refused(why, _) if *why == JEOPARDIZED),
            "{outcome:?}"
        );
        assert!(begun.elapsed() >= Duration::from_secs(45));
        assert_eq!(host.budget.held(), 1_900_000);
        drop(complete);
        // The association goes on.
        let outcome = theirs.transfer(&message).await;
        assert!(outcome.is_transferred(), "{outcome:?}");
        assert_eq!((host.budget.held(), host.taken.get()), (0, 1));
    });
}

#[test]
fn a_peer_that_drips_gives_way_to_others() {
    local(async {
        let host = Rc::new(Counts::new());
        let mut theirs = associate(&host).await;
        let message = unit(900_000);
        // The peer holds still amid its unit.
        let sent = timeout(Duration::ZERO, theirs.transfer(&message)).await;
        assert!(sent.is_err());
        sleep(Duration::from_secs(1)).await;
        assert!(host.budget.held() > 0);
        let others = ["a", "b"].map(|peer| host.budget.share(peer));
        assert_eq!(others[0].grow(1_000_000), Ok(()));
        let begun = Instant::now();
        assert!(others[1].grow_in_turn(900_000, |_| false).await);
        assert!(begun.elapsed() >= Duration::from_secs(20));
        assert_eq!(host.budget.held(), 1_900_000);
    });
}

/// Half a unit, whose association is lost.
async fn half(host: &Rc<Counts>, message: &[Bytes]) -> Broken {
    let mut theirs = associate(host).await;
    let full = host.complete("others", 1_500_000);
    let sent = timeout(Duration::from_secs(5), theirs.transfer(message)).await;
    assert!(sent.is_err());
    let broken = theirs.broken().unwrap();
    drop((theirs, full));
    sleep(Duration::from_secs(1)).await;
    broken
}

#[test]
fn octets_that_wait_for_a_resumption_count_until_it_comes() {
    local(async {
        let host = Rc::new(Counts::new());
        let message = unit(900_000);
        let broken = half(&host, &message).await;
        let held = host.budget.held();
        assert!((100_000..900_000).contains(&held), "{held}");
        let outcome = associate(&host).await.settle(&broken, &message).await;
        assert!(outcome.is_transferred(), "{outcome:?}");
        assert_eq!((host.budget.held(), host.taken.get()), (0, 1));
    });
}

#[test]
fn a_resumption_that_is_refused_for_now_holds_nothing() {
    local(async {
        let host = Rc::new(Counts::new());
        let message = unit(900_000);
        let broken = half(&host, &message).await;
        host.ready.set(false);
        let mut theirs = associate(&host).await;
        let outcome = theirs.settle(&broken, &message).await;
        assert!(
            matches!(&outcome, Outcome::Refused(why, None) if *why == JEOPARDIZED),
            "{outcome:?}"
        );
        assert_eq!(host.budget.held(), 0);
        host.ready.set(true);
        let outcome = theirs.transfer(&message).await;
        assert!(outcome.is_transferred(), "{outcome:?}");
        assert_eq!((host.budget.held(), host.taken.get()), (0, 1));
    });
}

#[test]
fn octets_up_to_a_checkpoint_that_is_not_known_are_free() {
    local(async {
        let host = Rc::new(Counts::new());
        let message = unit(900_000);
        let mut broken = half(&host, &message).await;
        assert!(host.budget.held() > 100_000);
        broken.checkpoint.serial += 5;
        let outcome = associate(&host).await.settle(&broken, &message).await;
        let unknown = Exception::UnrecoverableProceduralError;
        assert!(
            matches!(&outcome, Outcome::Refused(why, _) if *why == unknown),
            "{outcome:?}"
        );
        assert_eq!(host.budget.held(), 0);
    });
}
