//! A message in a file: facts are gathered again, by the DNS of now.

use std::io::Read as _;
use std::net::IpAddr;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::timeout;
use vere_handoff::question::{Spf, SpfResults};
use vere_judging::{Gathering, Names, Told, helo_form, told};
use vere_mime::{fields, unfold};
use vere_settings::Settings;
use vere_spf::Session;

use super::args::ExplainArgs;
use super::asked::{Asked, Sender};
use super::known::Known;
use vere_process::clock;
use vere_process::failure::Failure;

/// The longest message that is read, in octets.
const FILE_OCTETS_MAX: u64 = 1 << 30;
/// How long the DNS is asked for SPF of one name (RFC 7208 section 4.6.4).
const SPF_PATIENCE: Duration = Duration::from_secs(20);

/// The sender of a message, by the fields of the message.
#[derive(Debug, Default, PartialEq, Eq)]
struct Origin {
    client: Option<IpAddr>,
    helo: Option<String>,
    reverse_path: Option<String>,
    recipient: Option<String>,
    /// Octets of the fields put above the message by our system.
    ours: usize,
}

/// Reads a message, and gathers its facts.
///
/// # Errors
/// When the file cannot be read, or the client of the message is unknown.
pub(super) fn read(args: &ExplainArgs, settings: &Settings) -> Result<Known, Failure> {
    let octets = octets(&args.message)?;
    let origin = origin(&octets, &settings.hostname);
    let client = args.client.or(origin.client).ok_or_else(|| {
        Failure::new(format!(
            "expected --client, or a Received field by {}; found neither in {}",
            settings.hostname, args.message
        ))
    })?;
    let helo = args.helo.clone().or(origin.helo).unwrap_or_default();
    let reverse_path = args.from.clone().or(origin.reverse_path);
    let reverse_path = reverse_path.unwrap_or_default();
    let mut recipients = args.to.clone();
    if recipients.is_empty() {
        recipients.extend(origin.recipient);
    }
    let message = octets.get(origin.ours..).unwrap_or_default();
    let mut gathering = Gathering::default();
    gathering.take(message);
    let (mut asked, greylist) = Asked::new(settings, client);
    let names = Names::new(vere_outbound::resolver(settings)?);
    let told = Told {
        service: &settings.hostname,
        helo: &helo,
        helo_form: Some(helo_form(&helo, &settings.hostname, client_never(client))),
        reverse_path: &reverse_path,
        recipients: u32::try_from(recipients.len()).unwrap_or(u32::MAX),
        spf: None,
        listings: Vec::new(),
        greylist,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let gathering = async {
        let listings = asked.ask_lists(args, settings, client).await?;
        let now = clock::now().as_millis() / 1_000;
        let with_spf = async {
            let spf = Some(spf(&names, client, &told).await);
            Told {
                spf,
                listings,
                ..told.clone()
            }
        };
        let gathered = gathering.finish(&names, client, with_spf, now).await;
        let mut facts = gathered.facts;
        let sender = Sender {
            client,
            client_name: gathered.client_name.as_deref().unwrap_or_default(),
            helo: &helo,
            reverse_path: &reverse_path,
            recipients: &recipients,
        };
        let shown = (sender, message);
        asked.ask_filters(args, settings, shown, &mut facts).await?;
        Ok::<_, Failure>(facts)
    };
    let facts = LocalSet::new().block_on(&runtime, gathering)?;
    Ok(Known {
        name: args.message.clone(),
        past: None,
        asked: Some(asked),
        facts,
        recipients,
    })
}

/// The system's address in the session is unknown: an address of the other family never equals the client's literal.
const fn client_never(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
    }
}

fn octets(path: &str) -> Result<Vec<u8>, Failure> {
    let mut octets = Vec::new();
    let read = match path {
        "-" => std::io::stdin()
            .lock()
            .take(FILE_OCTETS_MAX)
            .read_to_end(&mut octets),
        _ => std::fs::File::open(path)
            .and_then(|file| file.take(FILE_OCTETS_MAX).read_to_end(&mut octets)),
    };
    read.map_err(|error| Failure::new(format!("expected a queue id or a file; {path}: {error}")))?;
    Ok(with_crlf(octets))
}

/// Signatures cover line ends of CRLF; lines in files often end with LF.
fn with_crlf(octets: Vec<u8>) -> Vec<u8> {
    if octets.windows(2).any(|pair| pair == b"\r\n") {
        return octets;
    }
    let mut text = Vec::with_capacity(octets.len() + octets.len() / 32);
    for line in octets.split_inclusive(|octet| *octet == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => text.extend_from_slice(&[line, b"\r\n"].concat()),
            None => text.extend_from_slice(line),
        }
    }
    text
}

async fn spf(names: &Names, client: IpAddr, told: &Told<'_>) -> SpfResults {
    let check = async |reverse_path| {
        let session = Session {
            client,
            helo: told.helo,
            reverse_path,
        };
        let checked = timeout(SPF_PATIENCE, vere_spf::check(names, session)).await;
        checked.map_or(Spf::TempError, self::told)
    };
    match told.reverse_path {
        "" => check("").await.into(),
        path => {
            let (sender, helo) = tokio::join!(check(path), check(""));
            SpfResults {
                sender,
                helo: Some(helo),
            }
        }
    }
}

/// Reads the fields above the message, down to our Received field.
fn origin(message: &[u8], hostname: &str) -> Origin {
    let mut origin = Origin::default();
    let mut at = 0_usize;
    for field in fields(message) {
        at = at.saturating_add(field.raw.len());
        let value = String::from_utf8_lossy(&unfold(field.value)).into_owned();
        if field.is("Return-Path") {
            let path = value.trim().trim_start_matches('<').trim_end_matches('>');
            origin.reverse_path.get_or_insert_with(|| path.to_owned());
        } else if field.is("Delivered-To") {
            origin
                .recipient
                .get_or_insert_with(|| value.trim().to_owned());
        } else if field.is("Received") {
            if let Some((helo, client)) = hop(&value, hostname) {
                origin.helo = Some(helo);
                origin.client = Some(client);
                origin.ours = at;
            }
            break;
        }
    }
    if origin.ours == 0 {
        return Origin::default();
    }
    origin
}

/// Reads the HELO name and the address of a Received field by this host: `from helo (name [address]) by host with ...`.
fn hop(value: &str, hostname: &str) -> Option<(String, IpAddr)> {
    let words: Vec<_> = value.split_ascii_whitespace().collect();
    let value = words.join(" ");
    let rest = value.strip_prefix("from ")?;
    let (helo, rest) = rest.split_once(" (")?;
    let (info, rest) = rest.split_once(") by ")?;
    let by = rest.split_ascii_whitespace().next()?;
    let (_, literal) = info.rsplit_once('[')?;
    let literal = literal.strip_suffix(']')?;
    let address = literal.strip_prefix("IPv6:").unwrap_or(literal);
    let client = address.parse().ok()?;
    by.eq_ignore_ascii_case(hostname)
        .then(|| (helo.to_owned(), client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivered_message_says_who_sent_it() {
        let text = "Return-Path: <a@b.example>\r\nDelivered-To: c@d.example\r\nX-Spam-Status: No\r\n\
                    Received: from mx.b.example (mx.b.example [IPv6:2001:db8::1])\r\n\tby mx.d.example with ESMTPS\r\n\
                    \tid 1; Sat, 28 Nov 2026 00:00:00 +0000\r\nReceived: from x (y [192.0.2.1]) by z\r\nSubject: s\r\n\r\ntext\r\n";
        let found = origin(text.as_bytes(), "MX.d.example");
        assert_eq!(found.client, Some("2001:db8::1".parse().unwrap()));
        assert_eq!(found.helo.as_deref(), Some("mx.b.example"));
        assert_eq!(found.reverse_path.as_deref(), Some("a@b.example"));
        assert_eq!(found.recipient.as_deref(), Some("c@d.example"));
        assert!(text[found.ours..].starts_with("Received: from x"));
        // Another host's word counts for nothing.
        assert_eq!(origin(text.as_bytes(), "z"), Origin::default());
        assert_eq!(
            origin(b"Return-Path: <a@b>\r\n\r\n", "z"),
            Origin::default()
        );
    }

    #[test]
    fn line_ends_of_files_become_those_of_messages() {
        assert_eq!(with_crlf(b"a\nb\n\nc".to_vec()), b"a\r\nb\r\n\r\nc");
        assert_eq!(with_crlf(b"a\r\nb\n".to_vec()), b"a\r\nb\n");
    }
}
