use super::*;

fn client(address: [u8; 4]) -> Client {
    Client::at(address.into())
}

const ALICE: Account = 1;
const BOB: Account = 2;

fn begin(throttle: &Throttle, client: Client, now: Instant) -> Result<u64, Duration> {
    begin_at(throttle, client, ALICE, now)
}

fn begin_at(
    throttle: &Throttle,
    client: Client,
    account: Account,
    now: Instant,
) -> Result<u64, Duration> {
    throttle.try_begin(client, account, now, now + EXCHANGE_PATIENCE)
}

/// An attempt that has waited as long as it had to.
fn attempt(
    throttle: &Throttle,
    client: Client,
    account: Account,
    outcome: Outcome,
    now: &mut Instant,
) -> Duration {
    let wait = wait_of(throttle, client, account, *now);
    *now += wait;
    let id = begin_at(throttle, client, account, *now).expect("it has waited");
    throttle.settle(client, account, id, outcome, *now);
    wait
}

/// How long one would have to wait.
fn wait_of(throttle: &Throttle, client: Client, account: Account, now: Instant) -> Duration {
    match begin_at(throttle, client, account, now) {
        Ok(id) => {
            throttle.settle(client, account, id, Outcome::Unknown, now);
            Duration::ZERO
        }
        Err(wait) => wait,
    }
}

#[test]
fn a_success_forgives_no_failures_at_other_accounts() {
    let throttle = Throttle::default();
    let one = client([192, 0, 2, 1]);
    let mut now = Instant::now();
    let mut waits = Vec::new();
    for _ in 0..8 {
        attempt(&throttle, one, BOB, Outcome::Succeeded, &mut now);
        waits.push(attempt(&throttle, one, ALICE, Outcome::Failed, &mut now));
    }
    assert_eq!(waits[..3], [Duration::ZERO, WAIT_MIN, WAIT_MIN * 2]);
    assert_eq!(waits[7], WAIT_MAX);
    // Nor does it let anybody guess at many accounts in turn.
    assert_eq!(wait_of(&throttle, one, 3, now), WAIT_MAX);
    attempt(&throttle, one, ALICE, Outcome::Succeeded, &mut now);
    assert_eq!(wait_of(&throttle, one, 3, now), Duration::ZERO);
}

#[test]
fn an_account_that_is_used_from_there_does_not_wait_for_others() {
    let throttle = Throttle::default();
    let one = client([192, 0, 2, 1]);
    let mut now = Instant::now();
    attempt(&throttle, one, BOB, Outcome::Succeeded, &mut now);
    for _ in 0..8 {
        attempt(&throttle, one, ALICE, Outcome::Failed, &mut now);
    }
    assert_eq!(wait_of(&throttle, one, BOB, now), Duration::ZERO);
    // Guessing at it is slowed by itself, and an attempt under way elsewhere does not count.
    now += WAIT_MAX;
    begin(&throttle, one, now).expect("it has waited");
    assert_eq!(
        attempt(&throttle, one, BOB, Outcome::Failed, &mut now),
        Duration::ZERO
    );
    assert_eq!(wait_of(&throttle, one, BOB, now), WAIT_MIN);
    now += KNOWN;
    attempt(&throttle, one, ALICE, Outcome::Failed, &mut now);
    assert_eq!(wait_of(&throttle, one, BOB, now), WAIT_MIN * 2, "forgotten");
}

#[test]
fn failures_at_more_accounts_than_are_told_apart_count() {
    let throttle = Throttle::default();
    let one = client([192, 0, 2, 1]);
    let mut now = Instant::now();
    let told_apart = ACCOUNTS_MAX as u64;
    for account in 0..told_apart + 84 {
        attempt(&throttle, one, account, Outcome::Failed, &mut now);
    }
    // Not of so many that failures are forgotten meanwhile.
    for account in told_apart - 6..told_apart + 4 {
        attempt(&throttle, one, account, Outcome::Succeeded, &mut now);
    }
    let clients = throttle.0.clients.borrow();
    let kept = &clients[&one];
    assert_eq!(kept.accounts.len(), ACCOUNTS_MAX);
    // Four that were not told apart took the places of others.
    assert_eq!(kept.others, 84 + 4);
    drop(clients);
    assert_eq!(
        wait_of(&throttle, one, 10_000, now + FORGET),
        Duration::ZERO
    );
}

#[test]
fn only_the_guesser_waits() {
    let throttle = Throttle::default();
    let (one, other) = (client([192, 0, 2, 1]), client([192, 0, 2, 2]));
    let mut now = Instant::now();
    let mut waits = Vec::new();
    for _ in 0..8 {
        let id = begin(&throttle, one, now).expect("it has waited");
        throttle.settle(one, ALICE, id, Outcome::Failed, now);
        let wait = begin(&throttle, one, now).expect_err("it has to wait");
        waits.push(wait);
        now += wait;
    }
    assert_eq!(waits[..2], [WAIT_MIN, WAIT_MIN * 2]);
    assert_eq!(waits[7], WAIT_MAX);
    assert!(begin(&throttle, other, now).is_ok());
    let id = begin(&throttle, one, now).expect("it has waited");
    throttle.settle(one, ALICE, id, Outcome::Succeeded, now);
    assert!(begin(&throttle, one, now).is_ok());
}

#[test]
fn guesses_at_the_same_time_are_bounded_and_one_after_a_failure() {
    let throttle = Throttle::default();
    let one = client([192, 0, 2, 1]);
    let now = Instant::now();
    let open: Vec<_> = std::iter::from_fn(|| begin(&throttle, one, now).ok()).collect();
    assert_eq!(open.len(), PARALLEL_MAX);
    throttle.settle(one, ALICE, open[0], Outcome::Failed, now);
    assert!(
        begin(&throttle, one, now + WAIT_MAX).is_err(),
        "seven are open"
    );
    for id in &open[1..] {
        throttle.settle(one, ALICE, *id, Outcome::Unknown, now);
    }
    assert_eq!(begin(&throttle, one, now), Err(WAIT_MIN));
    let next = now + WAIT_MIN;
    assert!(begin(&throttle, one, next).is_ok());
    assert!(
        begin(&throttle, one, next + WAIT_MAX).is_err(),
        "one is open"
    );
}

#[test]
fn who_leaves_an_exchange_open_has_failed_and_holds_nobody_back_for_long() {
    let throttle = Throttle::default();
    let one = client([192, 0, 2, 1]);
    let now = Instant::now();
    let open: Vec<_> = std::iter::from_fn(|| begin(&throttle, one, now).ok()).collect();
    assert_eq!(begin(&throttle, one, now), Err(EXCHANGE_PATIENCE));
    let later = now + EXCHANGE_PATIENCE;
    assert_eq!(
        begin(&throttle, one, later),
        Err(WAIT_MAX),
        "eight failures"
    );
    throttle.settle(one, ALICE, open[0], Outcome::Failed, later);
    assert!(begin(&throttle, one, later + WAIT_MAX).is_ok());
    let idle = later + WAIT_MAX + FORGET + EXCHANGE_PATIENCE;
    assert_eq!(begin(&throttle, one, idle), Err(WAIT_MIN), "the last one");
    assert!(begin(&throttle, one, idle + FORGET).is_ok(), "forgotten");
}

#[test]
fn memory_is_bounded() {
    let throttle = Throttle::default();
    let now = Instant::now();
    for number in 0..20_000_u32 {
        let (one, now) = (
            client(number.to_be_bytes()),
            now + Duration::from_micros(number.into()),
        );
        // Each at another account: at one they would wait for each other.
        let account = number.into();
        let id = begin_at(&throttle, one, account, now).expect("a new client");
        throttle.settle(one, account, id, Outcome::Failed, now);
    }
    let clients = throttle.0.clients.borrow();
    assert!((CLIENTS_KEPT..=CLIENTS_MAX).contains(&clients.len()));
    // The newest are among them.
    assert!(clients.contains_key(&client(19_999_u32.to_be_bytes())));
    assert!(!clients.contains_key(&client([0; 4])));
}

#[test]
fn who_guesses_from_many_addresses_is_slowed_and_the_owner_is_not() {
    let throttle = Throttle::default();
    let home = client([192, 0, 2, 1]);
    let mut now = Instant::now();
    attempt(&throttle, home, ALICE, Outcome::Succeeded, &mut now);
    let mut guesses = 0;
    let begun = now;
    // Each address guesses once: none of them has to wait for itself.
    for address in 0..2_000_u32 {
        let [_, _, high, low] = address.to_be_bytes();
        let bot = client([198, 51, high, low]);
        attempt(&throttle, bot, ALICE, Outcome::Failed, &mut now);
        guesses += 1;
    }
    let took = now.duration_since(begun);
    assert!(took >= Duration::from_secs(4) * (guesses - 25), "{took:?}");
    assert_eq!(wait_of(&throttle, home, ALICE, now), Duration::ZERO);
    assert_eq!(
        wait_of(&throttle, client([203, 0, 113, 1]), BOB, now),
        Duration::ZERO
    );
    // What fails where the account is used slows no stranger.
    let before = wait_of(&throttle, client([203, 0, 113, 1]), ALICE, now);
    attempt(&throttle, home, ALICE, Outcome::Failed, &mut now);
    assert!(wait_of(&throttle, client([203, 0, 113, 1]), ALICE, now) <= before);
}

#[test]
fn an_exchange_of_a_stranger_left_open_counts_at_the_account() {
    let throttle = Throttle::default();
    let mut now = Instant::now();
    for address in 0..40 {
        let bot = client([198, 51, 100, address]);
        if begin(&throttle, bot, now).is_err() {
            now += WAIT_MAX;
            begin(&throttle, bot, now).expect("it has waited");
        }
        // It comes back only when its exchange is over.
        now += EXCHANGE_PATIENCE;
        let _ = begin_at(&throttle, bot, BOB, now);
    }
    assert!(throttle.0.strangers.borrow_mut().begin(ALICE, now).is_err());
}
