//! Questions over sockets, against directories in memory and in files.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::LocalSet;
use vere_disk::directory::SqliteStore;
use vere_handoff::question::{Address, Answer, Question, Reader};
use vere_ports::directory::{AccountName, DirectoryStore, DomainName, MemoryStore};
use vere_smtp::refusal::Refusal;

use vere_net::resolver::{Resolver, Zone};

use super::*;

mod dns;
mod moody;

const ROUTES: &str = "[[route]]\ndomain = \"kept.example\"\nnext_hop = \"local\"\n";

fn settings(data: &Path, rest: &str) -> Settings {
    let head = "version = 1\nhostname = \"mx.example.org\"\n";
    let text = format!("{head}data = \"{}\"\n{rest}", data.display());
    Settings::parse(&text, "/etc/vere/vere.toml").unwrap()
}

/// A directory with ann@example.org, and the alias postmaster for her.
fn filled(store: Arc<dyn DirectoryStore>) -> Directory {
    let directory = Directory::new(store, Some('+'));
    let domain = DomainName::parse("example.org").unwrap();
    directory.add_domain(domain, None).unwrap();
    let name = |name: &str| AccountName::parse(name).unwrap();
    directory
        .add_account(name("ann@example.org"), None)
        .unwrap();
    directory
        .set_alias(name("postmaster@example.org"), ["ann@example.org"])
        .unwrap();
    directory
}

fn answers(directory: Directory) -> Rc<Answers> {
    asking(directory, Resolver::from_zone(Zone::default()))
}

fn asking(directory: Directory, resolver: Resolver) -> Rc<Answers> {
    let settings = Arc::new(settings(Path::new("/var/lib/vere"), ROUTES));
    Rc::new(Answers::new(Router::new(directory), settings, resolver).unwrap())
}

/// Runs a test beside a task that serves the other end of a connection.
fn connected<F: Future<Output = ()>>(answers: &Rc<Answers>, test: impl FnOnce(UnixStream) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let answers = Rc::clone(answers);
    let run = async move {
        let (ours, theirs) = UnixStream::pair().unwrap();
        spawn_local(async move {
            let _ = service::serve(theirs, &answers).await;
        });
        test(ours).await;
    };
    runtime.block_on(LocalSet::new().run_until(run));
}

fn recipient(text: &str, may_relay: bool, id: u64, out: &mut Vec<u8>) {
    let address = Address::new(text).unwrap();
    let question = Question::Recipient {
        address,
        client: [192, 0, 2, 1].into(),
        may_relay,
    };
    question.encode(id, out);
}

/// Asks about the recipient of a stranger.
async fn ask(stream: &mut UnixStream, text: &str) -> Answer {
    let mut octets = Vec::new();
    recipient(text, false, 1, &mut octets);
    stream.write_all(&octets).await.unwrap();
    read(stream, 1).await.remove(0).1
}

/// Reads answers until there are `count`, in order of arrival.
async fn read(stream: &mut UnixStream, count: usize) -> Vec<(u64, Answer)> {
    let mut reader = Reader::default();
    let mut answers = Vec::new();
    while answers.len() < count {
        let octets = stream.read(reader.space()).await.unwrap();
        assert_ne!(octets, 0, "closed after {} answers", answers.len());
        reader.filled(octets);
        while let Some(frame) = reader.frame().unwrap() {
            answers.push((frame.id, Answer::decode(&frame).unwrap()));
        }
    }
    answers
}

fn refused(refusal: &Refusal) -> Answer {
    Answer::Refused(refusal.number().unwrap())
}

#[test]
fn recipients_are_answered_as_the_gateway_does() {
    let answers = answers(filled(Arc::new(MemoryStore::default())));
    let cases = [
        ("ann@example.org", false, Answer::Accepted),
        ("Ann+news@Example.org", false, Answer::Accepted),
        ("postmaster", false, Answer::Accepted),
        ("x@kept.example", false, Answer::Accepted),
        ("x@far.example", true, Answer::Accepted),
        ("x@far.example", false, refused(&Refusal::RelayDenied)),
        ("bob@example.org", true, refused(&Refusal::MailboxUnknown)),
        ("no address", false, refused(&Refusal::LocalError)),
    ];
    connected(&answers, async move |mut stream| {
        let mut octets = Vec::new();
        for (id, (text, may_relay, _)) in (0..).zip(&cases) {
            recipient(text, *may_relay, id, &mut octets);
        }
        stream.write_all(&octets).await.unwrap();
        let read = read(&mut stream, cases.len()).await;
        let expected = (0..).zip(cases.map(|(_, _, answer)| answer));
        assert_eq!(read, expected.collect::<Vec<_>>());
    });
}

#[test]
fn an_unknown_kind_is_answered_and_a_malformed_frame_ends_the_connection() {
    let answers = answers(filled(Arc::new(MemoryStore::default())));
    connected(&answers, async move |mut stream| {
        let mut octets = Vec::new();
        recipient("ann@example.org", false, 1, &mut octets);
        let mut newer = octets.clone();
        newer[5] = 99;
        octets.extend_from_slice(&newer);
        stream.write_all(&octets).await.unwrap();
        let expected = [(1, Answer::Accepted), (1, Answer::Unknown)];
        assert_eq!(read(&mut stream, 2).await, expected);
        octets.clear();
        recipient("ann@example.org", false, 2, &mut octets);
        octets.extend_from_slice(&[0xff; 4]);
        stream.write_all(&octets).await.unwrap();
        // The question before the malformed frame is answered.
        assert_eq!(read(&mut stream, 1).await, [(2, Answer::Accepted)]);
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn other_settings_and_other_accounts_change_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory.sqlite");
    let answers = answers(filled(Arc::new(SqliteStore::create(&path).unwrap())));
    // Another process, such as a command, makes the changes.
    let other = Directory::new(Arc::new(SqliteStore::open(&path).unwrap()), Some('+'));
    let served = Rc::clone(&answers);
    connected(&answers, async move |mut stream| {
        let mut ask = async |text: &str| ask(&mut stream, text).await;
        let bob = AccountName::parse("bob@example.org").unwrap();
        let unknown = refused(&Refusal::MailboxUnknown);
        assert_eq!(ask("bob@example.org").await, unknown);
        other.add_account(bob.clone(), None).unwrap();
        assert_eq!(ask("bob@example.org").await, Answer::Accepted);
        other.remove_account(bob).unwrap();
        assert_eq!(ask("bob@example.org").await, unknown);
        assert_eq!(ask("x@kept.example").await, Answer::Accepted);
        let other = settings(Path::new("/var/lib/vere"), "");
        served.set_settings(other).unwrap();
        let denied = refused(&Refusal::RelayDenied);
        assert_eq!(ask("x@kept.example").await, denied);
    });
}

#[test]
fn a_directory_that_cannot_be_read_is_a_local_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::create(&folder.path().join("directory.sqlite")).unwrap();
    let answers = answers(filled(Arc::new(store)));
    for file in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::write(file.unwrap().path(), [0x55; 65_536]).unwrap();
    }
    connected(&answers, async move |mut stream| {
        let mut octets = Vec::new();
        recipient("ann@example.org", true, 5, &mut octets);
        stream.write_all(&octets).await.unwrap();
        let expected = [(5, refused(&Refusal::LocalError))];
        assert_eq!(read(&mut stream, 1).await, expected);
    });
}

#[test]
fn a_client_that_does_not_read_is_dropped_and_costs_bounded_memory() {
    let answers = answers(filled(Arc::new(MemoryStore::default())));
    connected(&answers, async move |mut stream| {
        tokio::time::pause();
        let mut octets = Vec::new();
        for id in 0..64 {
            recipient("ann@example.org", false, id, &mut octets);
        }
        // The sockets of both directions fill up; then the broker reads no more, and closes in the end.
        let mut written = 0;
        loop {
            let write = tokio::time::timeout(Duration::from_secs(60), stream.write(&octets));
            match write.await {
                Ok(Ok(count)) => written += count,
                Ok(Err(error)) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
                    break;
                }
                Err(_) => panic!("the broker keeps a client that does not read"),
            }
        }
        assert!(written < 16 << 20, "{written}");
    });
}

#[test]
fn the_socket_belongs_to_its_owner_alone() {
    let data = tempfile::tempdir().unwrap();
    let settings = settings(data.path(), "");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    std::fs::create_dir(settings.front_directory()).unwrap();
    let listener = listen(&settings).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&settings.front_directory()), 0o700);
    assert_eq!(mode(&settings.broker_socket()), SOCKET_MODE);
    assert!(matches!(listen(&settings), Err(BrokerError::Listen { .. })));
    drop(listener);
    listen(&settings).expect("the socket of a dead broker is replaced");
}

/// Prints how many questions a second a broker answers; run by hand with `--ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn questions_a_second() {
    for sqlite in [false, true] {
        for known in [true, false] {
            for batch in [1, 64] {
                let rate = rate(sqlite, known, batch);
                println!("sqlite={sqlite} known={known} batch={batch}: {rate:.0} a second");
            }
        }
    }
}

fn rate(sqlite: bool, known: bool, batch: usize) -> f64 {
    const ACCOUNTS: usize = 1_000;
    const TIME: Duration = Duration::from_secs(2);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("directory.sqlite");
    let store: Arc<dyn DirectoryStore> = match sqlite {
        true => Arc::new(SqliteStore::create(&file).unwrap()),
        false => Arc::new(MemoryStore::default()),
    };
    let path = folder.path().join("broker");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let (stop, stopping) = watch::channel(false);
    let broker = std::thread::spawn(move || {
        let directory = filled(store);
        for number in 0..ACCOUNTS {
            let name = AccountName::parse(&format!("u{number}@example.org")).unwrap();
            directory.add_account(name, None).unwrap();
        }
        let answers = answers(directory);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(LocalSet::new().run_until(async {
            let listener = UnixListener::from_std(listener).unwrap();
            clients(listener, answers, stopping).await;
        }));
    });
    let asked = ask_for(&path, TIME, known, batch, ACCOUNTS);
    stop.send(true).unwrap();
    broker.join().unwrap();
    asked
}

/// Asks one batch after another, by a blocking client.
fn ask_for(path: &Path, time: Duration, known: bool, batch: usize, accounts: usize) -> f64 {
    use std::io::{Read as _, Write as _};
    let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
    let mut reader = Reader::default();
    let (mut asked, mut begun) = (0_usize, None);
    let mut octets = Vec::new();
    loop {
        octets.clear();
        for number in 0..batch {
            let nth = asked + number;
            // Each unknown recipient is asked for once.
            let text = match known {
                true => format!("u{}@example.org", nth % accounts),
                false => format!("x{nth}@example.org"),
            };
            recipient(&text, false, 0, &mut octets);
        }
        stream.write_all(&octets).unwrap();
        let mut missing = batch;
        while missing > 0 {
            let count = stream.read(reader.space()).unwrap();
            reader.filled(count);
            while let Some(frame) = reader.frame().unwrap() {
                assert_eq!(Answer::decode(&frame) == Ok(Answer::Accepted), known);
                missing -= 1;
            }
        }
        asked += batch;
        // The first answer comes after the directory was filled.
        let begun = *begun.get_or_insert_with(|| {
            asked = 0;
            Instant::now()
        });
        if begun.elapsed() > time {
            return asked as f64 / begun.elapsed().as_secs_f64();
        }
    }
}
