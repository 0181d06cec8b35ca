//! Hostile answers at every command: each request is answered in time, nothing panics, no answer is one that cannot be, and no
//! server is listened to without a bound.

use std::borrow::Cow;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, LocalSet};
use vere_accounts::{Security, Times};
use vere_ports::mail_accounts::{Answer, Fault, Request, Urgency};

use crate::harness::{Volume, append, commit, list, mail, read, remove, run, settings};

const TIMES: Times = Times {
    wait: Duration::from_secs(5),
    silence: Duration::from_millis(400),
    patience: Duration::from_secs(1),
    longest: Duration::from_secs(2),
};
/// The longest wait for an answer, as [`Times`] has it.
const LONGEST: Duration = TIMES.wait.saturating_add(TIMES.longest.saturating_mul(2));
/// Requests under way at once: most of the time goes by in waiting.
const THREADS: usize = 4;
const LANES: usize = 32;
const ABLE: &str = "IMAP4rev1 AUTH=PLAIN SASL-IR LITERAL+ UIDPLUS NAMESPACE QUOTA COMPRESS=DEFLATE";
const SELECTED: &str =
    "* 1 EXISTS\r\n* OK [UIDVALIDITY 5] x\r\n* OK [UIDNEXT 8] x\r\nOK [READ-WRITE] open";

/// Every kind of request that ends.
fn requests() -> Vec<Request> {
    vec![
        append("data", &mail("x", b"y")),
        commit(&mail("x", b"y")),
        read("data", (5, 7), &[(0, 4)]),
        read("data", (5, 7), &[]),
        list("data", 1, None),
        list("data", 7, Some(9)),
        Request::Find {
            mailbox: "data".to_owned(),
            word: "i00".to_owned(),
        },
        remove("data", 5, &[7, 9]),
        Request::Mailboxes,
        Request::Quota,
    ]
}

/// What ends a connection: no request is answered by anything else than a fault.
const BREAKING: &[&str] = &[
    "",
    "BYE",
    "* BYE enough\r\nOK",
    "+ go ahead\r\nOK",
    "+ \r\n+ \r\n+ \r\nOK",
    "A0 OK another tag\r\nOK",
    "\0\0\0\r\nOK",
    "\u{1}\u{2}\r\nOK",
    "\r\n\r\n\r\nOK",
    "* 4294967296 EXISTS\r\nOK",
    "* 99999999999999999999999999 EXISTS\r\nOK",
    "* 1 FETCH (UID 7 BODY[TEXT]<0> {-1}\r\n)\r\nOK",
    "* 1 FETCH (UID 7 BODY[TEXT]<0> {4294967295}\r\nabc)\r\nOK",
    "* 1 FETCH (UID 7 BODY[TEXT]<0> {18446744073709551615}\r\nabc)\r\nOK",
    "* 1 FETCH (UID 7 BODY[TEXT]<0> {9}\r\nabc)\r\nOK",
    "* 1 FETCH (UID 7 BODY[TEXT]<0> {2}\r\nabcdefgh)\r\nOK",
    "* 1 FETCH (UID 7 BODY[TEXT]<0> \"ab\r\ncd\")\r\nOK",
    "* SEARCH 0 -1 4294967296 7 7 7\r\nOK",
    "* LIST () \"/\" {300000}\r\nabc\r\nOK",
];

/// What servers say besides, with the last line without its tag.
const SAYINGS: &[&str] = &[
    "OK",
    "NO",
    "BAD",
    "* PREAUTH hello\r\nOK",
    "* \r\nOK",
    "*\r\nOK",
    "* -1 EXISTS\r\nOK",
    "* 0 EXPUNGE\r\n* 4294967295 EXPUNGE\r\nOK",
    "* VANISHED (EARLIER) 1:4294967295\r\nOK",
    "* OK [UIDVALIDITY 0] x\r\n* OK [UIDNEXT 0] x\r\nOK",
    "* OK [UIDVALIDITY 99999999999] x\r\nOK",
    "* OK [UIDNEXT 4294967295] x\r\n* OK [UIDVALIDITY 4294967295] x\r\nOK",
    "* OK [UIDNEXT 4294967295] x\r\n* OK [UIDVALIDITY 5] x\r\nOK",
    "* OK [UIDVALIDITY 5] x\r\nOK",
    "* CAPABILITY MESSAGELIMIT=1\r\n* OK [UIDNEXT 4294967295] x\r\n* OK [UIDVALIDITY 5] x\r\nOK",
    "* OK [UIDNEXT 4294967295] x\r\n* OK [UIDVALIDITY 5] x\r\nOK [MESSAGELIMIT 1] x",
    "OK [APPENDUID 0 0] x",
    "OK [APPENDUID 5 0] x",
    "OK [APPENDUID 4294967295 4294967295] x",
    "OK [APPENDUID 5 4294967296] x",
    "OK [APPENDUID 5 1,2,3] x",
    "OK [APPENDUID 5] x",
    "OK [COPYUID 5 1:4294967295 1:4294967295] x",
    "OK [ALERT",
    "NO [UNAVAILABLE] Suggested Backoff Time: 99999999999999 milliseconds",
    "NO [LIMIT] Suggested Backoff Time: 999999999999999999999999999999 milliseconds",
    "NO [OVERQUOTA] x",
    "NO [TRYCREATE] x",
    "* 1 FETCH (UID 0)\r\nOK",
    "* 1 FETCH (UID 4294967296)\r\nOK",
    "* 0 FETCH (UID 7 RFC822.SIZE 4)\r\nOK",
    "* 1 FETCH (UID 7 RFC822.SIZE 18446744073709551616)\r\nOK",
    "* 1 FETCH (UID 7 RFC822.SIZE -4)\r\nOK",
    "* 1 FETCH (UID 7 RFC822.SIZE 9 BODY[HEADER.FIELDS (SUBJECT)] NIL)\r\nOK",
    "* 1 FETCH (UID 7 BODY[TEXT]<0> {0}\r\n)\r\nOK",
    "* 1 FETCH (UID 7 BODY[TEXT]<0> {5}\r\nabcde)\r\nOK",
    "* 1 FETCH (UID 7 BODY[TEXT]<4294967295> {4}\r\nabcd)\r\nOK",
    "* 1 FETCH (UID 7 BODY[TEXT] NIL)\r\nOK",
    "* 1 FETCH (UID 7 BODY[HEADER.FIELDS (SUBJECT)] {12}\r\nSubject: \0\0\0)\r\nOK",
    "* 1 FETCH (UID 7 UID 8 RFC822.SIZE 1 RFC822.SIZE 2)\r\nOK",
    "* SEARCH 0 7\r\nOK",
    "* SEARCH 7 6 5 4\r\nOK",
    "* SEARCH 7\r\n* SEARCH 8\r\n* SEARCH\r\nOK",
    "* ESEARCH (TAG \"x\") UID ALL 1:4294967295\r\nOK",
    "* ESEARCH UID ALL 1:4294967295\r\nOK",
    "* LIST () \"/\" \"VereFS/3f9c0a11/../../etc\"\r\nOK",
    "* LIST () NIL \"\"\r\n* LIST (\\Noselect) \"\" VereFS\r\nOK",
    "* LIST () \"/\" {3}\r\n\0\0\0\r\nOK",
    "* QUOTA \"\" (STORAGE -1 -1)\r\nOK",
    "* QUOTA \"\" (STORAGE 18446744073709551615 18446744073709551615)\r\nOK",
    "* QUOTA \"\" (STORAGE 9 1)\r\n* QUOTAROOT x x x\r\nOK",
    "* NAMESPACE NIL NIL NIL\r\nOK",
    "* CAPABILITY\r\nOK",
    "* ENABLED QRESYNC\r\nOK",
];

/// All of them, and long ones; whether a connection ends by the saying.
fn sayings() -> Vec<(String, bool)> {
    let of = |all: &[&str], breaks| {
        let said = all.iter().map(|said| ((*said).to_owned(), breaks));
        said.collect::<Vec<_>>()
    };
    let mut all = of(BREAKING, true);
    all.extend(of(SAYINGS, false));
    let words = " 4294967295".repeat(200_000);
    for long in [
        format!("* 1 FETCH {}\r\nOK", "(".repeat(100_000)),
        format!("* {}\r\nOK", "a".repeat(1 << 20)),
        format!("* SEARCH{words}\r\nOK"),
    ] {
        all.push((long, true));
    }
    let rows =
        (1..5_000).map(|number| format!("* {number} FETCH (UID {number} RFC822.SIZE 1)\r\n"));
    let names = (1..5_000).map(|number| format!("* LIST () \"/\" VereFS/3f9c0a11/x{number}\r\n"));
    let levels = "x/".repeat(100_000);
    for long in [
        format!("* LIST () \"/\" \"{levels}\"\r\nOK"),
        format!("{}OK", rows.collect::<String>()),
        format!("{}OK", names.collect::<String>()),
    ] {
        all.push((long, false));
    }
    all
}

/// Where a server lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Greeting,
    Login,
    Namespace,
    StartTls,
    Compress,
    /// Every command of the request, but SELECT.
    Request,
    /// Every command of the request.
    Everywhere,
}

/// A server that says the same in one place.
#[derive(Debug)]
struct Liar {
    at: At,
    said: Arc<str>,
}

impl Liar {
    /// What is said to a command, or as a greeting; the last line has no tag.
    fn says(&self, command: Option<&str>) -> Cow<'_, str> {
        let word = command.map(|command| command.split(' ').next().unwrap_or_default());
        let (at, honest) = match word {
            None => (At::Greeting, format!("OK [CAPABILITY {ABLE}] hello")),
            Some("AUTHENTICATE") => (At::Login, format!("OK [CAPABILITY {ABLE}] in")),
            Some("CAPABILITY") => (At::Login, format!("* CAPABILITY {ABLE}\r\nOK")),
            Some("NAMESPACE") => {
                let own = "* NAMESPACE ((\"\" \"/\")) NIL NIL\r\nOK".to_owned();
                (At::Namespace, own)
            }
            Some("STARTTLS") => (At::StartTls, "OK begin".to_owned()),
            Some("COMPRESS") => (At::Compress, "NO not now".to_owned()),
            Some("SELECT") => (At::Everywhere, SELECTED.to_owned()),
            Some(_) => (At::Request, "OK".to_owned()),
        };
        let lies = self.at == at || self.at == At::Everywhere && at == At::Request;
        match lies {
            true => Cow::Borrowed(&self.said),
            false => Cow::Owned(honest),
        }
    }

    async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let own = Arc::clone(&self);
            // The client ends connections of liars.
            connections.spawn(async move { own.converse(stream).await.ok() });
        }
    }

    async fn converse(&self, stream: TcpStream) -> std::io::Result<()> {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let mut tag = "*".to_owned();
        let mut command = None;
        loop {
            let said = self.says(command.as_deref());
            let (before, last) = said.rsplit_once('\n').unwrap_or(("", &said));
            let newline = if before.is_empty() { "" } else { "\n" };
            let said = format!("{before}{newline}{tag} {last}\r\n");
            writer.write_all(said.as_bytes()).await?;
            let mut line = String::new();
            if reader.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let (own, rest) = line.trim_end().split_once(' ').unwrap_or(("", ""));
            tag = own.to_owned();
            command = Some(rest.to_owned());
            let mut part = rest.to_owned();
            while let Some(octets) = part
                .trim_end()
                .strip_suffix("+}")
                .and_then(|rest| rest.rsplit('{').next())
            {
                let octets: u64 = octets.parse().expect("a number");
                let mut literal = (&mut reader).take(octets);
                tokio::io::copy(&mut literal, &mut tokio::io::sink()).await?;
                part.clear();
                reader.read_line(&mut part).await?;
            }
        }
    }
}

/// A request to a liar.
#[derive(Debug)]
struct Case {
    liar: Arc<Liar>,
    request: Request,
    breaks: bool,
}

impl Case {
    async fn check(&self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mut settings = settings(listener.local_addr().expect("bound"), 1);
        settings.times = TIMES;
        settings.remote.compress = self.liar.at == At::Compress;
        if self.liar.at == At::StartTls {
            settings.remote.security = Security::StartTls;
        }
        let server = tokio::spawn(Arc::clone(&self.liar).serve(listener));
        let mut volume = Volume::new(settings);
        let begin = Instant::now();
        let id = volume.send(Urgency::Waited, self.request.clone());
        let answer = volume.wait(id).await;
        let took = begin.elapsed();
        server.abort();
        assert!(took < LONGEST, "{}: {took:?}", self.name());
        let is_right = !self.breaks || answer.is_err();
        assert!(
            is_right && can_be(&self.request, &answer),
            "{}: {answer:?}",
            self.name()
        );
    }

    fn name(&self) -> String {
        let said: String = self.liar.said.chars().take(80).collect();
        format!("{said:?} at {:?} to {:?}", self.liar.at, self.request)
    }
}

/// Whether an answer can be one to the request.
fn can_be(request: &Request, answer: &Result<Answer, Fault>) -> bool {
    let Ok(answer) = answer else {
        return true;
    };
    match (request, answer) {
        (Request::Append { .. }, Answer::Appended(place)) => {
            place.is_none_or(|(uid_validity, uid)| uid_validity != 0 && uid != 0)
        }
        (Request::Read { parts, .. }, Answer::Read(read)) => {
            let lengths = parts.iter().map(|part| part.length as usize);
            read.len() == parts.len().max(1)
                && read
                    .iter()
                    .zip(lengths)
                    .all(|(read, most)| read.len() <= most)
        }
        (
            Request::List { range, .. },
            Answer::Listed {
                uid_validity,
                mails,
                ..
            },
        ) => {
            let last = range.last.unwrap_or(u32::MAX);
            mails.is_sorted_by_key(|mail| mail.uid)
                && mails
                    .iter()
                    .all(|mail| (range.first..=last).contains(&mail.uid))
                && (*uid_validity != 0 || mails.is_empty())
        }
        (Request::Find { .. }, Answer::Found(uid_validity, uids)) => {
            !uids.contains(&0) && (*uid_validity != 0 || uids.is_empty())
        }
        (Request::Mailboxes, Answer::Mailboxes(names)) => names.iter().all(|name| !name.is_empty()),
        (Request::Read { .. }, Answer::Gone)
        | (Request::Remove { .. }, Answer::Removed)
        | (Request::Quota, Answer::Quota(_)) => true,
        _ => false,
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for at in [
        At::Greeting,
        At::Login,
        At::Namespace,
        At::StartTls,
        At::Compress,
        At::Request,
        At::Everywhere,
    ] {
        for (said, breaks) in sayings() {
            let said = Arc::from(said.as_str());
            let liar = Arc::new(Liar { at, said });
            let mut requests = requests();
            if !matches!(at, At::Request | At::Everywhere) {
                // The same for all requests.
                requests.truncate(1);
            }
            cases.extend(requests.into_iter().map(|request| Case {
                liar: Arc::clone(&liar),
                request,
                // No answer of a liar is TLS.
                breaks: breaks || at == At::StartTls,
            }));
        }
    }
    cases
}

#[test]
fn every_request_survives_every_answer() {
    let cases = Arc::new(cases());
    let next = Arc::new(AtomicUsize::new(0));
    let lane = |cases: Arc<Vec<Case>>, next: Arc<AtomicUsize>| async move {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            case.check().await;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let lanes = || {
                run(LocalSet::new().run_until(async {
                    let mut lanes = JoinSet::new();
                    for _ in 0..LANES {
                        lanes.spawn_local(lane(Arc::clone(&cases), Arc::clone(&next)));
                    }
                    while let Some(lane) = lanes.join_next().await {
                        lane.expect("a lane");
                    }
                }));
            };
            scope.spawn(lanes);
        }
    });
    let done = next.load(Ordering::Relaxed);
    assert!(done > 1_500, "{done} requests");
}

/// Octets that a client may take in a row from a server without an end: 13 MiB, a listing of 1,000 subjects or 10,000 names, and
/// what lies between the sockets.
const OCTETS_MAX: u64 = 40 << 20;

/// A server that answers AUTHENTICATE, or NAMESPACE too, and then says `head`, and a piece without an end; the most octets that a
/// client has taken.
fn endless(answered: usize, head: &str, piece: &str) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let most = Arc::new(AtomicU64::new(0));
    let (taken, head) = (Arc::clone(&most), head.to_owned());
    let pieces = piece.repeat(1 + 65_536 / piece.len());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (taken, head, pieces) = (Arc::clone(&taken), head.clone(), pieces.clone());
            std::thread::spawn(move || {
                let octets =
                    flood(stream, answered, &head, &pieces).unwrap_or_else(|octets| octets);
                taken.fetch_max(octets, Ordering::Relaxed);
            });
        }
    });
    (address, most)
}

/// The answers to the first commands, and the one without an end. The error tells the octets as well.
fn flood(
    mut stream: std::net::TcpStream,
    answered: usize,
    head: &str,
    pieces: &str,
) -> Result<u64, u64> {
    let honest = Liar {
        at: At::Everywhere,
        said: "".into(),
    };
    let mut say = |said: &str| stream.write_all(said.as_bytes());
    say(&format!("* {}\r\n", honest.says(None))).map_err(|_| 0_u64)?;
    let answered = &["AUTHENTICATE", "NAMESPACE"][..answered];
    loop {
        let mut text = [0; 4_096];
        let octets = stream.read(&mut text).map_err(|_| 0_u64)?;
        let text = String::from_utf8_lossy(&text[..octets]).into_owned();
        let mut words = text.split_ascii_whitespace();
        let (tag, command) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        if !answered.contains(&command) {
            break;
        }
        let said = honest.says(Some(command));
        let (before, last) = said.rsplit_once('\n').unwrap_or(("", &said));
        let newline = if before.is_empty() { "" } else { "\n" };
        let said = format!("{before}{newline}{tag} {last}\r\n");
        stream.write_all(said.as_bytes()).map_err(|_| 0_u64)?;
    }
    stream.write_all(head.as_bytes()).map_err(|_| 0_u64)?;
    let mut sent = 0;
    while sent < 4 * OCTETS_MAX {
        stream.write_all(pieces.as_bytes()).map_err(|_| sent)?;
        sent += pieces.len() as u64;
    }
    Ok(sent)
}

#[test]
fn nobody_listens_to_a_server_without_an_end() {
    let long = "x".repeat(1_000);
    let row = "* 1 FETCH (UID 7 RFC822.SIZE 1 BODY[HEADER.FIELDS (SUBJECT)] \"Subject: ";
    let body = "* 1 FETCH (UID 7 BODY[TEXT]<0> {3}\r\nabc BODY[TEXT]<1> {1000}\r\n";
    let pieces = [
        ("", "a".to_owned()),
        ("", "((((((((".to_owned()),
        ("* SEARCH", " 4294967295".to_owned()),
        (
            "* 1 FETCH (UID 7 BODY[TEXT]<0> {4294967295}\r\n",
            long.clone(),
        ),
        ("* 1 FETCH (UID 7 BODY[TEXT] {99999999}\r\n", long.clone()),
        ("* LIST () \"/\" \"", "abcdefgh".to_owned()),
        ("", format!("* OK {long}\r\n")),
        ("", format!("{row}{long}\")\r\n")),
        ("", format!("{body}{long})\r\n")),
        ("", format!("* LIST () \"/\" VereFS/3f9c0a11/{long}\r\n")),
        ("", format!("* SEARCH{}\r\n", " 7".repeat(1_000))),
        ("", format!("* QUOTA \"{long}\" (STORAGE 1 2)\r\n")),
    ];
    std::thread::scope(|scope| {
        for (head, piece) in &pieces {
            // Most of the time goes by in waiting.
            scope.spawn(move || (0..3).for_each(|answered| listen(answered, head, piece)));
        }
    });
}

/// Every request to such a server ends by a fault, and soon.
fn listen(answered: usize, head: &str, piece: &str) {
    let (address, taken) = endless(answered, head, piece);
    let mut requests = requests();
    if answered < 2 {
        // The same for all requests.
        requests.truncate(1);
    }
    run(async {
        let mut asked = Vec::new();
        for request in requests {
            let mut settings = settings(address, 1);
            settings.times = TIMES;
            let mut volume = Volume::new(settings);
            let id = volume.send(Urgency::Waited, request.clone());
            asked.push((volume, id, request));
        }
        for (volume, id, request) in &mut asked {
            let answer = volume.wait(*id).await;
            assert!(
                answer.is_err(),
                "{head} {piece:.40} to {request:?}: {answer:?}"
            );
        }
    });
    let most = taken.load(Ordering::Relaxed);
    assert!(most < OCTETS_MAX, "{head} {piece:.40}: {most} octets");
}

/// A server that takes COMPRESS, and then says `octets` again and again; as [`endless`].
fn inflating(octets: Vec<u8>) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let octets = octets.clone();
            std::thread::spawn(move || inflate(stream, &octets));
        }
    });
    address
}

fn inflate(mut stream: std::net::TcpStream, octets: &[u8]) -> std::io::Result<()> {
    let greeting = format!("* OK [CAPABILITY {ABLE}] hello\r\n");
    stream.write_all(greeting.as_bytes())?;
    loop {
        let mut text = [0; 4_096];
        let read = stream.read(&mut text)?;
        let text = String::from_utf8_lossy(&text[..read]).into_owned();
        let mut words = text.split_ascii_whitespace();
        let (tag, command) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let said = match command {
            "AUTHENTICATE" => format!("{tag} OK [CAPABILITY {ABLE}] in\r\n"),
            _ => format!("{tag} OK\r\n"),
        };
        stream.write_all(said.as_bytes())?;
        if command == "COMPRESS" {
            break;
        }
    }
    for _ in 0..1_000_000 {
        stream.write_all(octets)?;
    }
    Ok(())
}

/// Octets as a piece of a DEFLATE stream that can stand anywhere in the stream.
fn deflated(octets: &[u8]) -> Vec<u8> {
    let mut deflate = flate2::Compress::new(flate2::Compression::best(), false);
    let mut out = Vec::with_capacity(octets.len() + 1_000);
    let flush = flate2::FlushCompress::Full;
    deflate.compress_vec(octets, &mut out, flush).expect("room");
    out
}

#[test]
fn a_bomb_behind_compress_ends_the_connection() {
    let mib = 1 << 20;
    let bombs = [
        deflated(&vec![b'a'; mib]),
        deflated(&b"* OK x\r\n".repeat(mib / 8)),
        deflated(&b"* 1 EXISTS\r\n".repeat(mib / 12)),
        // No DEFLATE at all, and a stream that ends.
        vec![0xff; 1_000],
        vec![3, 0],
    ];
    assert!(bombs[0].len() < mib / 900, "{}", bombs[0].len());
    run(async {
        let mut asked = Vec::new();
        for bomb in bombs {
            let mut settings = settings(inflating(bomb), 1);
            settings.times = TIMES;
            settings.remote.compress = true;
            let mut volume = Volume::new(settings);
            let begun = Instant::now();
            let id = volume.send(Urgency::Waited, list("data", 1, None));
            asked.push((volume, id, begun));
        }
        for (number, (volume, id, begun)) in asked.iter_mut().enumerate() {
            let answer = volume.wait(*id).await;
            assert!(answer.is_err(), "{number}: {answer:?}");
            assert!(
                begun.elapsed() < LONGEST * 2,
                "{number}: {:?}",
                begun.elapsed()
            );
        }
    });
}

/// What a server says while a client idles. Other requests go on over another connection.
#[test]
fn nothing_that_is_said_to_idle_harms() {
    let pieces: Vec<(String, bool)> = sayings();
    let most = Arc::new(AtomicU64::new(0));
    run(LocalSet::new().run_until(async {
        for all in pieces.chunks(LANES) {
            let mut lanes = JoinSet::new();
            for (said, _) in all {
                lanes.spawn_local(watch(said.clone(), Arc::clone(&most)));
            }
            while let Some(lane) = lanes.join_next().await {
                lane.expect("a lane");
            }
        }
        let flood = "* 1 EXISTS\r\n".repeat(10_000);
        watch(format!("{flood}endless"), Arc::clone(&most)).await;
    }));
    let most = most.load(Ordering::Relaxed);
    assert!(most > 1 << 20, "{most} octets");
    assert!(most < OCTETS_MAX, "{most} octets");
}

/// Watches a mailbox at a server that idles so, and lists another one meanwhile.
async fn watch(said: String, most: Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut settings = settings(listener.local_addr().expect("bound"), 4);
    let longest = match said.ends_with("endless") {
        // The octets end the connection, and no time.
        true => Duration::from_secs(60),
        false => TIMES.longest,
    };
    settings.times = Times { longest, ..TIMES };
    let own: Arc<str> = said.as_str().into();
    let server = tokio::spawn(idle_server(listener, own, Arc::clone(&most)));
    let mut volume = Volume::new(settings);
    let mailbox = "log".to_owned();
    for _ in 0..2 {
        let watch = Request::Watch {
            mailbox: mailbox.clone(),
        };
        volume.send(Urgency::Idle, watch);
        let asked = list("data", 1, None);
        let id = volume.send(Urgency::Waited, asked.clone());
        let begun = Instant::now();
        let answer = volume.wait(id).await;
        let name: String = said.chars().take(80).collect();
        assert!(
            answer.is_ok() && can_be(&asked, &answer),
            "{name}: {answer:?}"
        );
        assert!(begun.elapsed() < LONGEST, "{name}: {:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // A flood lasts as long as somebody listens.
    let mut before = None;
    while said.ends_with("endless") && before != Some(most.load(Ordering::Relaxed)) {
        before = Some(most.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    server.abort();
}

/// A server that is honest but for IDLE.
async fn idle_server(listener: TcpListener, said: Arc<str>, most: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (said, most) = (Arc::clone(&said), Arc::clone(&most));
        connections.spawn(async move { idle(stream, &said, &most).await.ok() });
    }
}

async fn idle(stream: TcpStream, said: &str, most: &AtomicU64) -> std::io::Result<()> {
    let honest = Liar {
        at: At::Greeting,
        said: "".into(),
    };
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    let greeting = format!("* OK [CAPABILITY {ABLE} IDLE] hello\r\n");
    writer.write_all(greeting.as_bytes()).await?;
    while let Some(line) = lines.next_line().await? {
        let (tag, command) = line.split_once(' ').unwrap_or(("", &line));
        let answer = match command.split(' ').next() {
            Some("IDLE") => {
                writer.write_all(b"+ idling\r\n").await?;
                said.strip_suffix("endless").unwrap_or(said).to_owned()
            }
            Some("AUTHENTICATE") => format!("OK [CAPABILITY {ABLE} IDLE] in"),
            _ => honest.says(Some(command)).into_owned(),
        };
        let answer = answer.replace("\r\nOK", &format!("\r\n{tag} OK"));
        let prefix = if answer.starts_with('*') { "" } else { tag };
        let end = if answer.ends_with('\n') { "" } else { "\r\n" };
        let space = if prefix.is_empty() { "" } else { " " };
        let answer = format!("{prefix}{space}{answer}{end}");
        writer.write_all(answer.as_bytes()).await?;
        let mut sent = 0;
        while command == "IDLE" && said.ends_with("endless") && sent < 4 * OCTETS_MAX {
            writer.write_all(answer.as_bytes()).await?;
            sent += answer.len() as u64;
            most.fetch_max(sent, Ordering::Relaxed);
        }
    }
    Ok(())
}
