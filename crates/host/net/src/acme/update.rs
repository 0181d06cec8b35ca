//! Publishes TXT records by updates of the DNS (RFC 2136), over TCP, signed with TSIG if there is a key.

use std::net::SocketAddr;
use std::str::FromStr as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hickory_resolver::proto::op::update_message::{append, delete_by_rdata};
use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::TXT;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordSet, RecordType, TSigner};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::proof::UpdateOptions;
use super::tsig;

/// Longest time of a question to the server, with its answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time in seconds that name servers keep the record.
const TTL: u32 = 60;

/// A change of one TXT record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Add,
    Remove,
}

/// Adds or removes a TXT record. The error is the reason.
pub(super) async fn run(
    options: &UpdateOptions,
    change: Change,
    name: &str,
    value: &str,
) -> Result<(), String> {
    let key = options.key.as_deref().map(tsig::read).transpose()?;
    let owner = parsed(name)?;
    let zone = match &options.zone {
        Some(zone) => parsed(zone)?,
        None => zone_of(options.server, &owner).await?,
    };
    if !zone.zone_of(&owner) {
        return Err(format!("{name} is not in the zone {zone}"));
    }
    let data = RData::TXT(TXT::new(vec![value.to_owned()]));
    let set = RecordSet::from(Record::from_rdata(owner, TTL, data));
    let message = match change {
        Change::Add => append(set, zone, false, false),
        Change::Remove => delete_by_rdata(set, zone, false),
    };
    match send(options.server, message, key.as_ref()).await? {
        code if code.code == ResponseCode::NoError => Ok(()),
        answer => Err(format!(
            "{} refuses the update of {name}: {}",
            options.server, answer.code
        )),
    }
}

fn parsed(name: &str) -> Result<Name, String> {
    let mut parsed = Name::from_str(name).map_err(|_| format!("{name} is no name"))?;
    parsed.set_fqdn(true);
    Ok(parsed)
}

/// The nearest zone above a name that the server knows.
async fn zone_of(server: SocketAddr, name: &Name) -> Result<Name, String> {
    let mut zone = name.base_name();
    while !zone.is_root() {
        let mut query = Query::query(zone.clone(), RecordType::SOA);
        query.set_query_class(hickory_resolver::proto::rr::DNSClass::IN);
        let mut message = Message::query();
        message.add_query(query);
        let answer = send(server, message, None).await?;
        if answer.is_zone_of(&zone) {
            return Ok(zone);
        }
        zone = zone.base_name();
    }
    Err(format!(
        "{server} knows no zone of {name}: say it by acme.dns_zone"
    ))
}

/// The answer of a server.
struct Answer {
    code: ResponseCode,
    records: Vec<Record>,
}

impl Answer {
    fn is_zone_of(&self, name: &Name) -> bool {
        let mut records = self.records.iter();
        records.any(|record| record.record_type() == RecordType::SOA && record.name == *name)
    }
}

async fn send(
    server: SocketAddr,
    message: Message,
    key: Option<&TSigner>,
) -> Result<Answer, String> {
    match timeout(PATIENCE, exchange(server, message, key)).await {
        Ok(answer) => answer.map_err(|problem| format!("{server}: {problem}")),
        Err(_) => Err(format!("{server} did not answer within {PATIENCE:?}")),
    }
}

/// Sends one message over a connection (RFC 1035 section 4.2.2), and returns the answer: signed where the message is.
async fn exchange(
    server: SocketAddr,
    mut message: Message,
    key: Option<&TSigner>,
) -> Result<Answer, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut verifier = None;
    if let Some(key) = key {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let signed = message.finalize(key, now.as_secs());
        verifier = signed.map_err(|error| text(&error))?;
    }
    let octets = message.to_vec().map_err(|error| text(&error))?;
    let length = u16::try_from(octets.len()).map_err(|error| text(&error))?;
    let io = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(server).await.map_err(io)?;
    stream.write_u16(length).await.map_err(io)?;
    stream.write_all(&octets).await.map_err(io)?;
    let length = stream.read_u16().await.map_err(io)?;
    let mut octets = vec![0; usize::from(length)];
    stream.read_exact(&mut octets).await.map_err(io)?;
    let answer = Message::from_vec(&octets).map_err(|error| text(&error))?;
    if answer.id != message.id {
        return Err("the answer is to another question".to_owned());
    }
    // A server that refuses a key cannot sign with it (RFC 8945 section 5.2).
    if let Some(verifier) = verifier
        .as_mut()
        .filter(|_| answer.response_code == ResponseCode::NoError)
    {
        let verified = verifier.verify(&octets);
        verified.map_err(|error| format!("the answer is not signed with the key: {error}"))?;
    }
    Ok(Answer {
        code: answer.response_code,
        records: answer.answers,
    })
}
