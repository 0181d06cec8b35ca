//! Programs that print passwords and tokens: run for each connection, and once more after a refusal of a token.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use base64::Engine as _;
use vere_accounts::{AccountSettings, Login};
use vere_ports::mail_accounts::{Answer, Fault, Request};

use crate::harness::{Volume, run, settings};

/// A server for the token or password `good`; everything else is refused.
fn server(mechanism: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || drop(converse(&stream, mechanism)));
        }
    });
    address
}

fn converse(mut stream: &TcpStream, mechanism: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let greeting = format!("* OK [CAPABILITY IMAP4rev1 SASL-IR AUTH={mechanism}] hello\r\n");
    stream.write_all(greeting.as_bytes())?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let (tag, command) = line.trim_end().split_once(' ').unwrap_or(("", ""));
        let tag = tag.to_owned();
        if let Some(initial) = command.strip_prefix(&format!("AUTHENTICATE {mechanism} ")) {
            let octets = base64::engine::general_purpose::STANDARD.decode(initial);
            let text = String::from_utf8(octets.expect("base64")).expect("text");
            if text.contains("good") {
                stream.write_all(format!("{tag} OK in\r\n").as_bytes())?;
            } else {
                if mechanism != "PLAIN" {
                    // RFC 7628 section 3.2.2: the client answers the error before the end.
                    stream.write_all(b"+ eyJzdGF0dXMiOiI0MDEifQ==\r\n")?;
                    line.clear();
                    reader.read_line(&mut line)?;
                }
                let refusal = "NO [AUTHENTICATIONFAILED] expired";
                stream.write_all(format!("{tag} {refusal}\r\n").as_bytes())?;
            }
        } else {
            let before = match command {
                "CAPABILITY" => "* CAPABILITY IMAP4rev1\r\n",
                _ => "",
            };
            stream.write_all(format!("{before}{tag} OK\r\n").as_bytes())?;
        }
        line.clear();
    }
    Ok(())
}

/// An account whose program prints the words of the list, the last one for ever, and counts the runs.
struct Program {
    folder: tempfile::TempDir,
    words: Vec<String>,
}

impl Program {
    fn printing(list: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().display();
        let mut script =
            format!("n=$(cat {at}/runs 2>/dev/null || echo 0); n=$((n+1)); echo $n > {at}/runs\n");
        script.push_str("case $n in\n");
        for (run, word) in list.iter().enumerate() {
            let pattern = match run + 1 == list.len() {
                true => "*".to_owned(),
                false => (run + 1).to_string(),
            };
            script.push_str(&format!("{pattern}) {word} ;;\n"));
        }
        script.push_str("esac\n");
        let words = ["sh", "-c", &script].map(str::to_owned).to_vec();
        Self { folder, words }
    }

    fn runs(&self) -> u32 {
        let text = fs::read_to_string(self.folder.path().join("runs"));
        text.expect("a run").trim().parse().expect("a number")
    }

    fn token(&self, address: SocketAddr) -> AccountSettings {
        let mut own = settings(address, 1);
        own.remote.login = Login::TokenProgram {
            username: "alice".to_owned(),
            words: self.words.clone(),
        };
        own
    }
}

fn answer(settings: AccountSettings) -> Result<Answer, Fault> {
    let mut answer = Ok(Answer::Gone);
    run(async {
        answer = Volume::new(settings).ask(Request::Quota).await;
    });
    answer
}

#[test]
fn a_refused_token_is_fetched_once_more() {
    for mechanism in ["XOAUTH2", "OAUTHBEARER"] {
        let program = Program::printing(&["echo stale", "echo good"]);
        let got = answer(program.token(server(mechanism)));
        assert_eq!(got, Ok(Answer::Quota(None)), "{mechanism}");
        assert_eq!(program.runs(), 2);
    }
}

#[test]
fn a_token_refused_twice_is_a_refused_login() {
    let program = Program::printing(&["echo stale"]);
    let got = answer(program.token(server("XOAUTH2")));
    assert!(
        matches!(&got, Err(Fault::Login(text)) if text.contains("expired")),
        "{got:?}"
    );
    assert_eq!(program.runs(), 2);
}

#[test]
fn each_connection_asks_for_a_token() {
    let program = Program::printing(&["echo good"]);
    let address = server("XOAUTH2");
    for _ in 0..2 {
        assert_eq!(answer(program.token(address)), Ok(Answer::Quota(None)));
    }
    assert_eq!(program.runs(), 2);
}

#[test]
fn the_words_of_a_failed_program_are_in_the_error() {
    let program = Program::printing(&["echo no network >&2; exit 7"]);
    let got = answer(program.token(server("XOAUTH2")));
    let Err(Fault::Unreachable(text)) = got else {
        panic!("{got:?}");
    };
    assert!(text.contains("exit status 7: no network"), "{text}");
}

#[test]
fn a_program_prints_a_password() {
    let program = Program::printing(&["echo good"]);
    let mut own = settings(server("PLAIN"), 1);
    own.remote.login = Login::PasswordProgram {
        username: "alice".to_owned(),
        words: program.words.clone(),
    };
    assert_eq!(answer(own), Ok(Answer::Quota(None)));
}

/// A program may have to fetch a token over a slow network, or wait for a person.
#[test]
fn a_slow_program_has_its_whole_time() {
    let program = Program::printing(&["sleep 12; echo good"]);
    let got = answer(program.token(server("XOAUTH2")));
    assert_eq!(got, Ok(Answer::Quota(None)));
    assert_eq!(program.runs(), 1);
}
