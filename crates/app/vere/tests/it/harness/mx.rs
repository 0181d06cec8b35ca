//! A next hop with TLS, and with the behaviour that a test asks for.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{Files, PATIENCE, wait_for};

/// How a next hop behaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manners {
    /// The certificate of the server; without a certificate the server offers no STARTTLS.
    pub(crate) certificate: Option<Files>,
    /// Certificates behind the server's certificate.
    pub(crate) chain: Vec<Vec<u8>>,
    /// TLS from the first octet on.
    pub(crate) implicit: bool,
    /// Further keywords in the reply to EHLO.
    pub(crate) keywords: &'static [&'static str],
    /// Replies by the beginning of the command, `.` for the end of the text, instead of the good ones;
    /// `close` closes, and nothing is said from `silent` on.
    pub(crate) replies: &'static [(&'static str, &'static str)],
    /// The greeting, when unusual; `silent`: no greeting.
    pub(crate) greeting: Option<&'static str>,
    /// Whether the greeting leaves octet by octet.
    pub(crate) drip: bool,
}

/// A message, or the attempt of a message, as the next hop saw the message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// The server name of the handshake; empty without a name, `None` without TLS.
    pub(crate) tls: Option<String>,
    /// The client's address.
    pub(crate) peer: Option<SocketAddr>,
    /// All commands of the connection.
    pub(crate) commands: Vec<String>,
    /// The text, if received.
    pub(crate) text: String,
}

/// A running next hop.
#[derive(Debug)]
pub(crate) struct Mx {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Mx {
    /// Starts a next hop on a free port of 127.0.0.1.
    pub(crate) fn start(manners: Manners) -> Self {
        Self::start_on("127.0.0.1:0", manners)
    }

    /// Starts a next hop at an address.
    pub(crate) fn start_on(address: &str, manners: Manners) -> Self {
        let listener = TcpListener::bind(address).expect("an address");
        let address = listener.local_addr().expect("its address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let files = manners.certificate.as_ref();
        let config = files.map(|files| files.server(&manners.chain));
        let into = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (manners, config) = (manners.clone(), config.clone());
                let into = Arc::clone(&into);
                // A disconnecting client is no failure of the test.
                std::thread::spawn(move || serve(stream, &manners, config, &into));
            }
        });
        Self { address, seen }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The attempts so far: an entry for each connection that ended or brought a message.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    /// Messages received whole.
    pub(crate) fn messages(&self) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|one| !one.text.is_empty());
        seen
    }

    /// Waits until exactly `count` messages are there.
    pub(crate) fn wait_messages(&self, count: usize) -> Vec<Seen> {
        wait_for(&format!("{count} messages at a next hop"), || {
            let messages = self.messages();
            (messages.len() == count).then_some(messages)
        })
    }
}

/// A stream in the clear or within TLS.
trait Duplex: Read + Write {}
impl<T: Read + Write> Duplex for T {}

fn serve(
    stream: TcpStream,
    manners: &Manners,
    config: Option<Arc<ServerConfig>>,
    into: &Mutex<Vec<Seen>>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut seen = Seen {
        peer: stream.peer_addr().ok(),
        ..Seen::default()
    };
    let result = dialogue(stream, manners, config, &mut seen, into);
    into.lock().expect("no panic").push(Seen {
        text: String::new(),
        ..seen
    });
    result
}

fn dialogue(
    stream: TcpStream,
    manners: &Manners,
    config: Option<Arc<ServerConfig>>,
    seen: &mut Seen,
    into: &Mutex<Vec<Seen>>,
) -> io::Result<()> {
    let mut config = config;
    let mut stream: Box<dyn Duplex> = match config.take_if(|_| manners.implicit) {
        Some(config) => encrypted(stream, config, seen)?,
        None if config.is_some() => {
            greet(&mut &stream, manners)?;
            match converse(BufReader::new(&stream), manners, true, seen, into)? {
                Next::StartTls => match config.take() {
                    Some(config) => encrypted(stream, config, seen)?,
                    None => return Ok(()),
                },
                Next::End => return Ok(()),
            }
        }
        None => Box::new(stream),
    };
    if seen.tls.is_none() || manners.implicit {
        greet(&mut stream, manners)?;
    }
    converse(BufReader::new(stream), manners, false, seen, into).map(drop)
}

fn encrypted(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    seen: &mut Seen,
) -> io::Result<Box<dyn Duplex>> {
    let mut connection = ServerConnection::new(config).expect("a configuration");
    let mut stream = stream;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    seen.tls = Some(connection.server_name().unwrap_or_default().to_owned());
    Ok(Box::new(StreamOwned::new(connection, stream)))
}

enum Next {
    StartTls,
    End,
}

fn converse<S>(
    mut reader: BufReader<S>,
    manners: &Manners,
    may_start_tls: bool,
    seen: &mut Seen,
    into: &Mutex<Vec<Seen>>,
) -> io::Result<Next>
where
    S: Read + WriteHalf,
{
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(Next::End);
        }
        let command = line.trim_end().to_owned();
        seen.commands.push(command.clone());
        let verb = command.to_ascii_uppercase();
        let odd = manners
            .replies
            .iter()
            .find(|(start, _)| verb.starts_with(start));
        if let Some((_, reply)) = odd {
            match misbehave(&mut reader, reply)? {
                Some(end) => return Ok(end),
                None => continue,
            }
        }
        match verb.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" | "LHLO" => {
                let mut keywords = manners.keywords.to_vec();
                if may_start_tls {
                    keywords.push("STARTTLS");
                }
                let mut reply = String::from("250-mx");
                for keyword in keywords {
                    reply += &format!("\r\n250-{keyword}");
                }
                reader.get_mut().say(&format!("{reply}\r\n250 HELP"))?;
            }
            "STARTTLS" => {
                reader.get_mut().say("220 2.0.0 go ahead")?;
                return Ok(Next::StartTls);
            }
            "DATA" => {
                reader.get_mut().say("354 go on")?;
                let mut text = String::new();
                while !text.ends_with("\r\n.\r\n") && reader.read_line(&mut text)? > 0 {}
                if let Some((_, reply)) = manners.replies.iter().find(|(start, _)| *start == ".") {
                    match misbehave(&mut reader, reply)? {
                        Some(end) => return Ok(end),
                        None => continue,
                    }
                }
                reader.get_mut().say("250 2.0.0 taken")?;
                into.lock().expect("no panic").push(Seen {
                    text,
                    ..seen.clone()
                });
            }
            "QUIT" => {
                reader.get_mut().say("221 2.0.0 bye")?;
                return Ok(Next::End);
            }
            _ => reader.get_mut().say("250 2.0.0 ok")?,
        }
    }
}

/// Replies as a test wants; gives the end of the dialogue, if it ends so.
fn misbehave<S: Read + WriteHalf>(
    reader: &mut BufReader<S>,
    reply: &str,
) -> io::Result<Option<Next>> {
    match reply {
        "close" => Ok(Some(Next::End)),
        // Nothing more, until the client goes or the machine's patience ends.
        "silent" => io::copy(reader, &mut io::sink()).map(|_| Some(Next::End)),
        _ => reader.get_mut().say(reply).map(|()| None),
    }
}

/// A connection that can be written while a reader holds the connection.
trait WriteHalf {
    fn say(&mut self, reply: &str) -> io::Result<()>;
}

impl WriteHalf for &TcpStream {
    fn say(&mut self, reply: &str) -> io::Result<()> {
        say(self, reply)
    }
}

impl WriteHalf for Box<dyn Duplex> {
    fn say(&mut self, reply: &str) -> io::Result<()> {
        say(self, reply)
    }
}

fn greet(stream: &mut impl Write, manners: &Manners) -> io::Result<()> {
    let greeting = manners.greeting.unwrap_or("220 mx ESMTP");
    if greeting == "silent" {
        return Ok(());
    }
    if !manners.drip {
        return say(stream, greeting);
    }
    for octet in format!("{greeting}\r\n").bytes() {
        stream.write_all(&[octet])?;
        stream.flush()?;
    }
    Ok(())
}

fn say(stream: &mut impl Write, reply: &str) -> io::Result<()> {
    stream.write_all(reply.as_bytes())?;
    stream.write_all(b"\r\n")?;
    stream.flush()
}
