//! The web names of the domain (`mta-sts.`, `autoconfig.`, `autodiscover.`): their addresses, and the certificates under them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use vere_discovery::names::{POLICY_LABEL, of_domain};
use vere_net::resolver::AddressAnswer;
use vere_net::tls::{ClientTls, Roots, Verification};
use vere_ports::directory::DomainName;

use super::subject::{Subject, WebServer, listed};
use crate::row::Row;

const CHECK: &str = "web names";
/// The longest time for a connection with its handshake.
const PATIENCE: Duration = Duration::from_secs(15);

/// Whether the names that the web server serves lead to this machine, and only there: the gateway orders no certificate otherwise. The
/// records may be missing. A wrong address of the host name is a finding of that check alone, and none of the names that
/// lead to the host name.
pub(super) async fn names(subject: &Subject) -> Vec<Row> {
    let served = served(subject);
    if served.is_empty() {
        return Vec::new();
    }
    let host = match subject.resolver.addresses(&subject.hostname).await {
        AddressAnswer::Found(found) => found,
        _ => Vec::new(),
    };
    let mut rows = Vec::new();
    for name in served {
        rows.push(of_name(subject, &name, &host).await);
    }
    rows
}

/// The web names that the server has content for.
fn served(subject: &Subject) -> Vec<String> {
    let (Some(web), Ok(domain)) = (&subject.web, DomainName::parse(&subject.domain)) else {
        return Vec::new();
    };
    let policy = format!("{POLICY_LABEL}.");
    let names = of_domain(&domain).into_iter();
    names
        .filter(|name| web.has_policy || !name.starts_with(&policy))
        .collect()
}

async fn of_name(subject: &Subject, name: &str, host: &[IpAddr]) -> Row {
    let record = format!("{name}. CNAME {}.", subject.hostname);
    let found = match subject.resolver.addresses(name).await {
        AddressAnswer::Found(found) => found,
        AddressAnswer::None | AddressAnswer::NoSuchName => {
            let text = format!("no record of {name}; the web server has content for: {record}");
            return Row::ok(CHECK, text);
        }
        AddressAnswer::TempFail(failure) => return Row::unanswered(CHECK, name, &failure),
    };
    let foreign: Vec<IpAddr> = found
        .iter()
        .filter(|at| !subject.addresses.contains(at) && !host.contains(at))
        .copied()
        .collect();
    if subject.addresses.is_empty() || foreign.is_empty() {
        return Row::ok(CHECK, format!("{name} leads to {}", listed(&found)));
    }
    let text = format!(
        "{name} leads to {}, and this machine has {}: it gets no certificate",
        listed(&foreign),
        subject.own()
    );
    Row::warning(CHECK, text, format!("publish: {record}"))
}

/// Whether the web server shows a valid certificate under each name that leads to this machine.
pub(super) async fn certificates(subject: &Subject) -> Vec<Row> {
    let Some(web) = &subject.web else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for name in served(subject) {
        let AddressAnswer::Found(found) = subject.resolver.addresses(&name).await else {
            continue;
        };
        let own = |at: &IpAddr| subject.addresses.is_empty() || subject.addresses.contains(at);
        if let Some(address) = found.into_iter().find(own) {
            let at = SocketAddr::new(address, web.port);
            rows.push(certificate(web, &name, at).await);
        }
    }
    rows
}

async fn certificate(web: &WebServer, name: &str, at: SocketAddr) -> Row {
    match timeout(PATIENCE, shake(web, name, at)).await {
        Ok(Ok(())) => Row::ok(CHECK, format!("{name} has a valid certificate")),
        Ok(Err(why)) => refused(name, at, &why),
        Err(_) => refused(
            name,
            at,
            &format!("no answer within {} s", PATIENCE.as_secs()),
        ),
    }
}

fn refused(name: &str, at: SocketAddr, why: &str) -> Row {
    Row::critical(
        CHECK,
        format!("no valid certificate for {name} at {at}: {why}"),
        "look for \"web name\" in the log of the gateway, or name a certificate: [[tls.sni]]",
    )
}

async fn shake(web: &WebServer, name: &str, at: SocketAddr) -> Result<(), String> {
    let roots = Roots::load(web.roots.as_deref()).map_err(|error| error.to_string())?;
    let tls = ClientTls::new(Verification::Required, &roots).map_err(|error| error.to_string())?;
    let stream = TcpStream::connect(at).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let secured = tls.connect(name, stream).await;
    secured.map(drop).map_err(|error| error.to_string())
}
