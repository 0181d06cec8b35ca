//! Orders against an authority of this test, and against pebble where it is installed.

mod authority;
mod pebble;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::challenges::Answers;
use super::{
    Acme, AcmeError, AcmeOptions, Challenges, PAUSES, Proof, is_among, pause, serve_challenges,
};
use crate::tls::{Leaf, ServerTls, ServerTlsOptions};
use authority::{Authority, Behaviour};

fn options(dir: &Path, domains: &[&str]) -> AcmeOptions {
    AcmeOptions {
        directory: "https://authority.test/directory".to_owned(),
        contact: vec!["mailto:you@demo.test".to_owned()],
        domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        root: None,
        proof: Proof::Http,
        dir: dir.join("acme"),
    }
}

struct Setup {
    dir: tempfile::TempDir,
    authority: Authority,
    acme: Acme,
}

fn setup(behaviour: Behaviour) -> Setup {
    let dir = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(behaviour);
    let acme = authority.acme(options(dir.path(), &["mx.test", "mail.test"]));
    Setup {
        dir,
        authority,
        acme,
    }
}

impl Setup {
    fn certificate(&self) -> PathBuf {
        self.dir.path().join("acme/certificate.pem")
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_ordered_stored_and_served() {
    let setup = setup(Behaviour::Good);
    assert_eq!(setup.acme.due_in(SystemTime::now()), Duration::ZERO);
    let server = ServerTls::new(ServerTlsOptions {
        default: Some(setup.acme.files()),
        ..ServerTlsOptions::default()
    })
    .expect("nothing there yet is no error");
    setup.acme.obtain().await.expect("a good authority");
    server
        .keyring()
        .reload()
        .expect("chain and key in one file");
    assert!(server.keyring().has_certificate());

    let leaf = Leaf::of_file(&setup.certificate()).expect("a certificate");
    assert_eq!(leaf.names, ["mx.test", "mail.test"]);
    for entry in fs::read_dir(setup.dir.path().join("acme")).expect("ours") {
        let entry = entry.expect("ours");
        let mode = entry.metadata().expect("listed").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{entry:?}");
    }
    assert!(
        format!("{:?}", setup.acme.places().http()).contains("open: 0"),
        "answers withdrawn"
    );
}

#[tokio::test(start_paused = true)]
async fn the_account_is_kept() {
    let setup = setup(Behaviour::Good);
    setup.acme.obtain().await.expect("a good authority");
    let again = setup
        .authority
        .acme(options(setup.dir.path(), &["mx.test"]));
    again.obtain().await.expect("a good authority");
    assert_eq!(setup.authority.accounts(), 1);

    let account = setup
        .dir
        .path()
        .join("acme/account-authority_test_directory.json");
    fs::write(&account, "{}").expect("room");
    let error = again.obtain().await.expect_err("damaged");
    assert!(
        error
            .to_string()
            .contains("remove the file to make a new account"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_account_that_the_authority_lost_is_made_again() {
    let setup = setup(Behaviour::Good);
    setup.acme.obtain().await.expect("a good authority");
    setup.authority.forget_accounts();
    setup.acme.obtain().await.expect("once more");
    assert_eq!(setup.authority.accounts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_due_after_two_thirds_or_for_other_names() {
    let setup = setup(Behaviour::Good);
    setup.acme.obtain().await.expect("a good authority");
    let (now, day) = (SystemTime::now(), Duration::from_secs(86400));
    let due = setup.acme.due_in(now);
    assert!(due > 59 * day && due <= 60 * day, "{due:?} of 90 days");
    assert_eq!(setup.acme.due_in(now + 61 * day), Duration::ZERO);
    assert_eq!(setup.acme.due_in(now + 4000 * day), Duration::ZERO);
    let fewer = setup
        .authority
        .acme(options(setup.dir.path(), &["mail.test"]));
    assert!(!fewer.due_in(now).is_zero());
    let other = setup
        .authority
        .acme(options(setup.dir.path(), &["mx.test", "new.test"]));
    assert_eq!(other.due_in(now), Duration::ZERO);
    fs::write(setup.certificate(), "damaged").expect("room");
    assert_eq!(setup.acme.due_in(now), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_domain_and_keeps_the_old_certificate() {
    let setup = setup(Behaviour::Good);
    setup.acme.obtain().await.expect("a good authority");
    let before = fs::read(setup.certificate()).expect("stored");
    setup.authority.behave(Behaviour::Refuses);
    let error = setup.acme.obtain().await.expect_err("refused");
    let AcmeError::Refused { domain, reason } = &error else {
        panic!("{error}")
    };
    assert_eq!(domain, "mx.test");
    assert!(reason.contains("404"), "{reason}");

    setup.authority.behave(Behaviour::OffersDnsOnly);
    let error = setup.acme.obtain().await.expect_err("no way");
    assert!(matches!(error, AcmeError::NoChallenge { .. }), "{error}");

    setup.authority.behave(Behaviour::SignsAnotherKey);
    let error = setup.acme.obtain().await.expect_err("not ours");
    assert!(matches!(error, AcmeError::Certificate(_)), "{error}");
    assert_eq!(fs::read(setup.certificate()).expect("stored"), before);
}

#[tokio::test(start_paused = true)]
async fn a_refused_name_costs_the_others_nothing() {
    let setup = setup(Behaviour::Good);
    setup.acme.obtain().await.expect("a good authority");
    let first = fs::read(setup.certificate()).expect("stored");
    setup.authority.behave(Behaviour::RefusesBad);
    let path = setup.dir.path().join("acme/names/a.test.pem");
    let beside = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        setup.acme.beside(&path, names).expect("a folder")
    };
    let names = ["mta-sts.a.test", "bad.a.test", "autoconfig.a.test"];
    let refused = beside(&names).obtain_most().await.expect("two names");
    assert!(refused.is_new);
    let refused = refused.refused;
    let refused: Vec<_> = refused.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(refused, ["bad.a.test"]);
    let leaf = Leaf::of_file(&path).expect("a certificate");
    assert_eq!(leaf.names, ["mta-sts.a.test", "autoconfig.a.test"]);
    let now = SystemTime::now();
    assert_eq!(beside(&names).due_in(now), Duration::ZERO);
    assert!(beside(&["mta-sts.a.test"]).due_in(now) > Duration::ZERO);
    // Without any good name the stored certificate remains.
    let error = beside(&["bad.a.test"])
        .obtain_most()
        .await
        .expect_err("none");
    assert!(matches!(error, AcmeError::Refused { .. }), "{error}");
    assert_eq!(Leaf::of_file(&path).expect("kept").names.len(), 2);
    assert_eq!(fs::read(setup.certificate()).expect("stored"), first);
    assert!(setup.acme.beside(&path, Vec::new()).is_err());
}

/// One name did not resolve for a moment, and the order of the others replaced a valid certificate with all names.
#[tokio::test(start_paused = true)]
async fn a_certificate_with_more_names_stays_while_it_serves() {
    let setup = setup(Behaviour::Good);
    setup.acme.obtain().await.expect("a good authority");
    let path = setup.dir.path().join("acme/names/a.test.pem");
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let beside = |names: &[&str]| setup.acme.beside(&path, owned(names)).expect("a folder");
    let all = ["mta-sts.a.test", "bad.a.test"];
    beside(&all).obtain_most().await.expect("all names");
    let first = fs::read(&path).expect("stored");
    let (now, day) = (SystemTime::now(), Duration::from_secs(86_400));
    let fewer = beside(&["mta-sts.a.test", "new.a.test"]);
    assert!(fewer.lacks_a_name() && !beside(&all).lacks_a_name());
    assert!(fewer.would_lose(&owned(&all), now));
    assert!(fewer.would_lose(&owned(&all), now + 70 * day), "of 90 days");
    assert!(!fewer.would_lose(&owned(&all), now + 80 * day));
    assert!(!fewer.would_lose(&owned(&["mta-sts.a.test"]), now));
    // The CA refuses a name of the certificate: the others wait, and the name keeps its certificate.
    setup.authority.behave(Behaviour::RefusesBad);
    let most = beside(&["mta-sts.a.test", "bad.a.test", "new.a.test"]);
    let most = most.obtain_most().await.expect("an answer");
    assert!(!most.is_new && most.refused.len() == 1, "{most:?}");
    assert_eq!(fs::read(&path).expect("stored"), first);
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_ever_less_often() {
    let setup = setup(Behaviour::RateLimited);
    let limited = setup.acme.obtain().await.expect_err("too often");
    assert!(limited.asked_too_often(), "{limited}");
    assert_eq!(pause(0, &limited), Duration::from_secs(3600));
    let pauses = [0, 1, 2, 3, 4, 5, 100].map(|failures| pause(failures, &AcmeError::DueAgain));
    assert!(pauses.is_sorted());
    assert_eq!(pauses[0], PAUSES[0]);
    assert_eq!(pauses[6], Duration::from_secs(12 * 3600));
}

/// Runs the keeper for some virtual time; how often it had a new certificate.
async fn keep(setup: &Setup, time: Duration) -> usize {
    let renewed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&renewed);
    let running = setup.acme.run(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    tokio::time::timeout(time, running)
        .await
        .expect_err("it runs for ever");
    renewed.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn the_keeper_orders_when_due_and_goes_on_after_failures() {
    let setup = setup(Behaviour::RateLimited);
    assert_eq!(keep(&setup, Duration::from_secs(86400)).await, 0);
    let orders = setup.authority.orders();
    assert!((3..=10).contains(&orders), "{orders} orders in a day");
    setup.authority.behave(Behaviour::Good);
    assert_eq!(keep(&setup, Duration::from_secs(86400)).await, 1);
    assert_eq!(keep(&setup, Duration::from_secs(86400)).await, 0);
}

/// A clock far ahead makes every certificate look old: the authority must not be flooded.
#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_due_at_once_is_not_ordered_in_a_loop() {
    let setup = setup(Behaviour::SignsForThePast);
    let renewed = keep(&setup, Duration::from_secs(86400)).await;
    assert!((1..=10).contains(&renewed), "{renewed} orders in a day");
}

#[test]
fn there_must_be_a_name_and_a_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(Behaviour::Good);
    let error = authority
        .try_acme(options(dir.path(), &[]))
        .expect_err("no name");
    assert!(matches!(error, AcmeError::NoDomain), "{error}");
    fs::write(dir.path().join("acme"), "a file").expect("room");
    let error = authority
        .try_acme(options(dir.path(), &["mx.test"]))
        .expect_err("no folder");
    assert!(matches!(error, AcmeError::Storage { .. }), "{error}");
}

async fn request(address: std::net::SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("listening");
    stream.write_all(text.as_bytes()).await.expect("connected");
    let mut answer = Vec::new();
    // A reset after the answer is as good as an end.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).expect("text")
}

#[tokio::test]
async fn the_listener_answers_open_challenges_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    let challenges = Challenges::default();
    tokio::spawn(serve_challenges(listener, challenges.clone()));
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: mx.test\r\n\r\n");
    let mut answers = Answers::new(challenges);
    answers
        .add("token".to_owned(), "token.print".to_owned())
        .unwrap();
    let found = request(address, &get("/.well-known/acme-challenge/token")).await;
    assert!(
        found.starts_with("HTTP/1.1 200 ") && found.ends_with("\r\n\r\ntoken.print"),
        "{found}"
    );
    for path in [
        "/",
        "/.well-known/acme-challenge/",
        "/.well-known/acme-challenge/other",
        "/token",
    ] {
        assert!(
            request(address, &get(path))
                .await
                .starts_with("HTTP/1.1 404 "),
            "{path}"
        );
    }
    let post = get("/.well-known/acme-challenge/token").replace("GET", "POST");
    assert!(request(address, &post).await.starts_with("HTTP/1.1 404 "));
    assert!(
        request(address, "EHLO x\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 400 ")
    );
    drop(answers);
    let gone = request(address, &get("/.well-known/acme-challenge/token")).await;
    assert!(gone.starts_with("HTTP/1.1 404 "), "{gone}");
}

/// A CA that asks about other names gets nothing done for them.
#[test]
fn names_that_nobody_ordered_are_known() {
    let own = ["mx.demo.test".to_owned(), "*.Example.test".to_owned()];
    for (name, is) in [
        ("mx.demo.test", true),
        ("MX.demo.test", true),
        ("*.example.test", true),
        ("example.test", true),
        ("demo.test", false),
        ("mx.demo.test\n", false),
        ("-rf", false),
        ("", false),
    ] {
        assert_eq!(is_among(&own, name), is, "{name}");
    }
}
