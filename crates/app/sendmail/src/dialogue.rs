//! The conversation with the gateway: SMTP over its socket, one command at a time.
//!
//! No command is pipelined, so that a message goes to all its recipients or to none: a repetition of a refused
//! message causes no second copy.

use std::fmt;
use std::io::{self, Read, Write};

use vere_smtp::reply::{Reply, ReplyLimits, ReplyParser};

/// Why a message was not taken.
#[derive(Debug)]
pub(super) enum Refused {
    /// The gateway's reply to the command.
    Reply {
        /// The request, as text for a person.
        about: String,
        /// Whether the request was about a recipient.
        recipient: bool,
        /// The answer.
        reply: Reply,
    },
    /// The connection broke or took too long.
    Broken(io::Error),
    /// The answer is not SMTP.
    Protocol(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply { about, reply, .. } => {
                write!(f, "{about}: {} ", reply.code)?;
                if let Some(status) = reply.enhanced {
                    write!(f, "{status} ")?;
                }
                f.write_str(&reply.text.join(" "))
            }
            Self::Broken(error) => write!(f, "the mail system does not answer: {error}"),
            Self::Protocol(what) => write!(f, "the mail system answers nonsense: {what}"),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// The message to send, with every address complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Submission<'a> {
    /// Empty for the null path.
    pub(super) sender: &'a str,
    pub(super) recipients: &'a [String],
    pub(super) notify: Option<&'a str>,
    pub(super) ret: Option<&'a str>,
    /// As xtext.
    pub(super) envid: Option<String>,
    pub(super) eight_bit: bool,
}

/// A conversation that has begun.
#[derive(Debug)]
pub(super) struct Dialogue<S> {
    stream: S,
    parser: ReplyParser,
    unread: Vec<u8>,
    /// The first word of the greeting: the domain that completes addresses.
    domain: String,
    /// Where the conversation is shown.
    echo: bool,
}

impl<S: Read + Write> Dialogue<S> {
    /// Takes the greeting and introduces itself.
    pub(super) fn begin(stream: S, echo: bool) -> Result<Self, Refused> {
        let mut dialogue = Self {
            stream,
            parser: ReplyParser::new(ReplyLimits::default()),
            unread: Vec::new(),
            domain: String::new(),
            echo,
        };
        let greeting = dialogue.reply()?;
        if !greeting.is_completion() {
            return Err(refused("no mail is taken", false, greeting));
        }
        let text = greeting.text.first().map(String::as_str);
        let domain = text.and_then(|text| text.split_whitespace().next());
        dialogue.domain = domain
            .ok_or_else(|| Refused::Protocol("a greeting without a name".to_owned()))?
            .to_owned();
        dialogue.command("EHLO localhost", "introduction", false)?;
        Ok(dialogue)
    }

    /// The domain that completes addresses.
    pub(super) fn domain(&self) -> &str {
        &self.domain
    }

    /// Sends sender and recipients; the first refusal ends the transaction.
    pub(super) fn envelope(&mut self, submission: &Submission<'_>) -> Result<(), Refused> {
        let utf8 = std::iter::once(submission.sender)
            .chain(submission.recipients.iter().map(String::as_str))
            .any(|address| !address.is_ascii());
        let mut mail = format!("MAIL FROM:<{}>", submission.sender);
        if submission.eight_bit || utf8 {
            mail += " BODY=8BITMIME";
        }
        if utf8 {
            mail += " SMTPUTF8";
        }
        if let Some(ret) = submission.ret {
            mail += &format!(" RET={ret}");
        }
        if let Some(envid) = &submission.envid {
            mail += &format!(" ENVID={envid}");
        }
        self.command(&mail, &format!("sender <{}>", submission.sender), false)?;
        for recipient in submission.recipients {
            let notify = submission.notify.map(|notify| format!(" NOTIFY={notify}"));
            let rcpt = format!("RCPT TO:<{recipient}>{}", notify.unwrap_or_default());
            self.command(&rcpt, recipient, true)?;
        }
        Ok(())
    }

    /// Sends the message, of CRLF lines; on return, the message is safe.
    pub(super) fn message(&mut self, octets: &[u8]) -> Result<(), Refused> {
        self.send(b"DATA\r\n")?;
        let go = self.reply()?;
        if !go.is_intermediate() {
            return Err(refused("message", false, go));
        }
        let mut stuffed = Vec::with_capacity(octets.len() + octets.len() / 64 + 8);
        for line in octets.split_inclusive(|octet| *octet == b'\n') {
            // RFC 5321 section 4.5.2.
            if line.starts_with(b".") {
                stuffed.push(b'.');
            }
            stuffed.extend_from_slice(line);
        }
        stuffed.extend_from_slice(b".\r\n");
        self.stream.write_all(&stuffed)?;
        let reply = self.reply()?;
        if !reply.is_completion() {
            return Err(refused("message", false, reply));
        }
        // The message is accepted, whatever becomes of the connection.
        let _ = self.send(b"QUIT\r\n");
        Ok(())
    }

    fn command(&mut self, line: &str, about: &str, recipient: bool) -> Result<(), Refused> {
        if line.contains(['\r', '\n', '\0']) {
            return Err(Refused::Protocol(format!("line end in {about:?}")));
        }
        self.send(format!("{line}\r\n").as_bytes())?;
        let reply = self.reply()?;
        if reply.is_completion() {
            Ok(())
        } else {
            Err(refused(about, recipient, reply))
        }
    }

    fn send(&mut self, line: &[u8]) -> io::Result<()> {
        if self.echo {
            let _ = write!(io::stdout(), ">>> {}", String::from_utf8_lossy(line));
        }
        self.stream.write_all(line)
    }

    fn reply(&mut self) -> Result<Reply, Refused> {
        let mut buffer = [0; 4096];
        loop {
            if self.unread.is_empty() {
                let octets = self.stream.read(&mut buffer)?;
                if octets == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                self.unread.extend_from_slice(&buffer[..octets]);
            }
            let parsed = self.parser.parse(&self.unread);
            let (taken, reply) = parsed.map_err(|error| Refused::Protocol(error.to_string()))?;
            self.unread.drain(..taken);
            if let Some(reply) = reply {
                if self.echo {
                    let mut line = Vec::new();
                    reply.encode(&mut line);
                    let _ = io::stdout().write_all(&line);
                }
                return Ok(reply);
            }
        }
    }
}

fn refused(about: &str, recipient: bool, reply: Reply) -> Refused {
    Refused::Reply {
        about: about.to_owned(),
        recipient,
        reply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with prepared replies, which records its input.
    struct Prepared {
        replies: io::Cursor<Vec<u8>>,
        heard: Vec<u8>,
    }

    impl Read for Prepared {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            // In pieces, as a network may give them.
            let most = buffer.len().min(7);
            self.replies.read(&mut buffer[..most])
        }
    }

    impl Write for Prepared {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.heard.extend_from_slice(octets);
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn dialogue(replies: &str) -> Result<Dialogue<Prepared>, Refused> {
        let stream = Prepared {
            replies: io::Cursor::new(replies.replace('\n', "\r\n").into_bytes()),
            heard: Vec::new(),
        };
        Dialogue::begin(stream, false)
    }

    fn submission(recipients: &[String]) -> Submission<'_> {
        Submission {
            sender: "me@h.example",
            recipients,
            notify: Some("SUCCESS"),
            ret: Some("HDRS"),
            envid: Some("x+20y".to_owned()),
            eight_bit: true,
        }
    }

    #[test]
    fn a_message_goes_with_its_parameters_and_stuffed_dots() {
        let replies = "220 h.example ESMTP\n250-h\n250 DSN\n250 a\n250 b\n354 c\n250 2.0.0 d\n";
        let mut talk = dialogue(replies).expect("greeted");
        assert_eq!(talk.domain(), "h.example");
        let recipients = ["jörg@x.example".to_owned()];
        talk.envelope(&submission(&recipients)).expect("taken");
        talk.message(b"A: b\r\n\r\n.one\r\n").expect("taken");
        let heard = String::from_utf8(talk.stream.heard).expect("text");
        let expected = "EHLO localhost\r\n\
             MAIL FROM:<me@h.example> BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=x+20y\r\n\
             RCPT TO:<jörg@x.example> NOTIFY=SUCCESS\r\n\
             DATA\r\nA: b\r\n\r\n..one\r\n.\r\nQUIT\r\n";
        assert_eq!(heard, expected);
    }

    #[test]
    fn the_first_refusal_ends_it_and_is_named() {
        let replies = "220 h\n250 h\n250 a\n550 5.1.1 no such user\n";
        let mut talk = dialogue(replies).expect("greeted");
        let recipients = ["x@h".to_owned(), "y@h".to_owned()];
        let error = talk
            .envelope(&submission(&recipients))
            .expect_err("refused");
        assert_eq!(error.to_string(), "x@h: 550 5.1.1 no such user");
        assert!(matches!(
            error,
            Refused::Reply {
                recipient: true,
                ..
            }
        ));
        assert!(matches!(dialogue("220 h\n"), Err(Refused::Broken(_))));
        assert!(matches!(dialogue("hello\n"), Err(Refused::Protocol(_))));
        assert!(matches!(dialogue("421 busy\n"), Err(Refused::Reply { .. })));
    }

    #[test]
    fn no_address_smuggles_a_command() {
        let mut talk = dialogue("220 h\n250 h\n250 a\n").expect("greeted");
        let recipients = ["x@h>\r\nDATA".to_owned()];
        let error = talk
            .envelope(&submission(&recipients))
            .expect_err("refused");
        assert!(matches!(error, Refused::Protocol(_)));
    }
}
