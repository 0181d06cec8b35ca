//! A bucket in memory behind HTTP, which fails as told.

mod slow;

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

use super::*;

const BUCKET: &str = "/bucket/";
/// Keys on a page of a list.
const PAGE: usize = 2;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// 503, before anything is done.
    Busy,
    /// Everything is done, and the connection ends without an answer.
    Lost,
    /// Half of an answer.
    Cut,
    /// 500, before anything is done.
    Broken,
    /// The end of the connection in the middle of the request.
    Torn,
    /// Nothing, until the client goes; the request's content is not read.
    Silent,
    /// A head and half of the content, and nothing more until the client goes.
    Stopped,
    /// A head, and an octet of the content from time to time.
    Drip,
    /// An octet of the head from time to time.
    HeadDrip,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    faults: VecDeque<Fault>,
    versions: u64,
    /// Whether conditions of PUTs are unknown.
    is_simple: bool,
    /// Connections open and silent.
    held: Vec<TcpStream>,
}

#[derive(Debug, Clone, Default)]
struct Server(Arc<Mutex<State>>);

struct Request {
    method: String,
    target: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn hold(&self, stream: TcpStream) {
        self.state().held.push(stream);
    }

    fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let server = server.clone();
                thread::spawn(move || server.serve(stream.unwrap()));
            }
        });
        format!("http://{address}")
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(mut request) = Request::head(&mut reader) {
            let fault = self.state().faults.pop_front();
            match fault {
                Some(Fault::Torn) => return request.read(&mut reader, 2),
                Some(Fault::Silent) => return self.hold(reader.into_inner()),
                _ => request.read(&mut reader, 1),
            }
            let (code, headers, body) = match fault {
                Some(Fault::Busy) => (503, String::new(), b"<Code>SlowDown</Code>".to_vec()),
                Some(Fault::Broken) => (500, String::new(), Vec::new()),
                _ => self.answer(&request),
            };
            let length = body.len() + usize::from(fault == Some(Fault::Cut));
            let head = format!("HTTP/1.1 {code} x\r\nContent-Length: {length}\r\n{headers}\r\n");
            let stream = reader.get_mut();
            if let Some(fault @ (Fault::Stopped | Fault::Drip | Fault::HeadDrip)) = fault {
                slow::answer(stream, fault, (head.as_bytes(), &body));
                return self.hold(reader.into_inner());
            }
            if fault == Some(Fault::Lost) {
                return;
            }
            stream.write_all(head.as_bytes()).unwrap();
            if request.method != "HEAD" {
                stream.write_all(&body).unwrap();
            }
            if fault == Some(Fault::Cut) {
                return;
            }
        }
    }

    fn answer(&self, request: &Request) -> (u16, String, Vec<u8>) {
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        let key = path.strip_prefix(BUCKET).unwrap_or_default();
        match request.method.as_str() {
            "GET" if query.contains("list-type=2") => (200, String::new(), self.page(query)),
            "GET" | "HEAD" => match self.state().objects.get(key) {
                Some((octets, version)) => (200, tag(*version), octets.clone()),
                None => (404, String::new(), Vec::new()),
            },
            "PUT" => self.put(key, request),
            _ => {
                self.state().objects.remove(key);
                (204, String::new(), Vec::new())
            }
        }
    }

    fn put(&self, key: &str, request: &Request) -> (u16, String, Vec<u8>) {
        let mut state = self.state();
        let there = state
            .objects
            .get(key)
            .map(|(_, version)| format!("\"{version}\""));
        let is_new = request.headers.contains_key("if-none-match");
        let expected = request.headers.get("if-match");
        let fails =
            (is_new && there.is_some()) || expected.is_some_and(|tag| there.as_ref() != Some(tag));
        if fails && !state.is_simple {
            return (412, String::new(), Vec::new());
        }
        state.versions += 1;
        let version = state.versions;
        state
            .objects
            .insert(key.to_owned(), (request.body.clone(), version));
        (200, tag(version), Vec::new())
    }

    fn page(&self, query: &str) -> Vec<u8> {
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let found = pairs.find(|(found, _)| *found == name);
            found
                .map(|(_, value)| value.replace("%2F", "/"))
                .unwrap_or_default()
        };
        let (prefix, after) = (value("prefix"), value("continuation-token"));
        let state = self.state();
        let mut keys = state
            .objects
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix) && **key > after);
        let page: Vec<_> = keys.by_ref().take(PAGE).collect();
        let mut text = "<ListBucketResult>".to_owned();
        for (key, (octets, version)) in &page {
            text += &format!(
                "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{version}</ETag><Size>{}</Size></Contents>",
                octets.len()
            );
        }
        if let (Some(_), Some((last, _))) = (keys.next(), page.last()) {
            text += &format!("<NextContinuationToken>{last}</NextContinuationToken>");
        }
        (text + "</ListBucketResult>").into_bytes()
    }
}

fn tag(version: u64) -> String {
    format!("ETag: \"{version}\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n")
}

impl Request {
    fn head(reader: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        Some(Self {
            method,
            target,
            headers,
            body: Vec::new(),
        })
    }

    /// Reads the content, or a part of it. An absent client leaves no octets.
    fn read(&mut self, reader: &mut BufReader<TcpStream>, part: usize) {
        let length = self.headers.get("content-length");
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        self.body = vec![0; length / part];
        let _ = reader.read_exact(&mut self.body);
    }
}

fn terms() -> Terms {
    Terms {
        renew: Duration::from_millis(100),
        valid: Duration::from_millis(900),
        steal: Duration::from_millis(1_500),
        look: Duration::from_millis(50),
    }
}

/// The waits of most tests.
fn waits() -> Waits {
    let mut retry = retries(3, Duration::from_secs(10));
    retry.backoff.init_backoff = Duration::from_millis(10);
    Waits {
        answer: TIMEOUT_DEFAULT,
        retry,
        terms: terms(),
    }
}

fn bucket(endpoint: &str) -> Bucket {
    bucket_with(endpoint, waits())
}

fn bucket_with(endpoint: &str, waits: Waits) -> Bucket {
    let builder = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_access_key_id("id")
        .with_secret_access_key("secret");
    Bucket::with("s3://bucket/some/place", builder, waits).unwrap()
}

#[test]
fn entries_are_written_listed_and_removed() {
    let server = Server::default();
    let place = bucket(&server.start());
    assert_eq!(place.list("objects").unwrap(), []);
    for name in [
        "objects/00/one",
        "objects/00/two",
        "objects/01/three",
        "manifests/00000001",
    ] {
        place.write(name, b"1").unwrap();
    }
    place.write("objects/00/one", b"12").unwrap();
    let mut listed = place.list("objects").unwrap();
    listed.sort_by(|a, b| a.path.cmp(&b.path));
    let entry = |path: &str, octets| Entry {
        path: path.to_owned(),
        octets,
    };
    let all = [
        ("objects/00/one", 2),
        ("objects/00/two", 1),
        ("objects/01/three", 1),
    ];
    assert_eq!(listed, all.map(|(path, octets)| entry(path, octets)));
    assert_eq!(place.read("objects/00/one", 2).unwrap(), b"12");
    let kind = |read: io::Result<Vec<u8>>| read.unwrap_err().kind();
    assert_eq!(
        kind(place.read("objects/00/one", 1)),
        ErrorKind::InvalidData
    );
    place.remove("objects/00/one").unwrap();
    place.remove("objects/00/one").unwrap();
    assert_eq!(kind(place.read("objects/00/one", 9)), ErrorKind::NotFound);
    // A list is not written over; the same list again is an answer that was lost.
    place.create("manifests/00000001", b"1").unwrap();
    let error = place.create("manifests/00000001", b"2").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(place.read("manifests/00000001", 9).unwrap(), b"1");
}

#[test]
fn busy_servers_and_lost_answers_cost_attempts_and_no_content() {
    let server = Server::default();
    let place = bucket(&server.start());
    let fail = |faults: &[Fault]| server.state().faults.extend(faults);
    fail(&[Fault::Busy, Fault::Busy, Fault::Busy]);
    place.write("a", b"1").unwrap();
    fail(&[Fault::Lost, Fault::Busy]);
    place.write("a", b"12").unwrap();
    fail(&[Fault::Busy, Fault::Cut]);
    assert_eq!(place.read("a", 9).unwrap(), b"12");
    // The list was written, and the answer lost: the list is there.
    fail(&[Fault::Lost]);
    place.create("list", b"1").unwrap();
    fail(&[Fault::Busy; 4]);
    let error = place.write("a", b"3").unwrap_err().to_string();
    assert!(
        error.contains("503") && error.contains("3 retries"),
        "{error}"
    );
    assert!(server.state().faults.is_empty());
    // Nobody listens.
    let place = bucket("http://127.0.0.1:1");
    let error = place.read("a", 9).unwrap_err().to_string();
    assert!(error.contains("refused"), "{error}");
}

#[test]
fn a_lease_lets_a_single_command_write() {
    let server = Server::default();
    let endpoint = server.start();
    let (place, other) = (bucket(&endpoint), bucket(&endpoint));
    let lease = place.lock(Use::Writing).unwrap();
    // The other command sees that the holder is alive.
    assert_eq!(
        other.lock(Use::Changing).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    drop(other.lock(Use::Reading).unwrap());
    place.create("list", b"1").unwrap();
    drop(lease);
    assert!(!server.state().objects.contains_key("some/place/lock"));
    // The lease of a killed command is taken over after a while.
    server
        .state()
        .objects
        .insert("some/place/lock".to_owned(), (b"killed 1\n".to_vec(), 77));
    let began = Instant::now();
    let lease = other.lock(Use::Changing).unwrap();
    assert!(began.elapsed() >= terms().steal);
    // A lease that another command takes over, or that cannot be renewed, is none any more.
    server
        .state()
        .objects
        .insert("some/place/lock".to_owned(), (b"another 1\n".to_vec(), 78));
    let began = Instant::now();
    while other.check().is_ok() {
        assert!(began.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(5));
    }
    let error = other.remove("list").unwrap_err().to_string();
    assert!(error.contains("lease"), "{error}");
    assert!(
        other.create("more", b"2").is_err()
            && !server.state().objects.contains_key("some/place/more")
    );
    drop(lease);
    assert!(server.state().objects.contains_key("some/place/lock"));
}

#[test]
fn a_server_without_conditions_is_refused() {
    let server = Server::default();
    server.state().is_simple = true;
    let place = bucket(&server.start());
    let error = place.lock(Use::Writing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(server.state().objects.is_empty());
    drop(place.lock(Use::Reading).unwrap());
}

#[test]
fn names_of_places_are_checked() {
    let open = |text: &str| Bucket::with(text, AmazonS3Builder::new(), waits());
    for wrong in [
        "s3://",
        "s3:///a",
        "s3://id:secret@bucket/a",
        "s3://bucket/a//b",
        "s3://bu cket",
    ] {
        assert!(open(wrong).is_err(), "{wrong}");
    }
    for (right, path) in [
        ("s3://bucket", "lock"),
        ("s3://bucket/", "lock"),
        ("s3://bucket/a/b/", "a/b/lock"),
    ] {
        let place = open(right).unwrap();
        assert_eq!(place.path("lock").as_ref(), path);
    }
}
