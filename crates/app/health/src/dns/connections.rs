//! Port 25 in both directions, and the certificate that senders see.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use vere_net::tls::PeerCertificate;
use vere_outbound::hosts::Host;
use vere_outbound::{Hosts, Opened, Outbound, Unroutable};
use vere_queue::{Place, TlsWish};

use super::subject::Subject;
use crate::row::Row;

/// How long a host may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(15);

/// Whether the host answers at port 25 as senders reach the host, and the certificate.
pub(super) async fn incoming(subject: &Subject, outbound: &Outbound) -> Vec<Row> {
    const CHECK: &str = "port 25 in";
    let host_name = &subject.hostname;
    let remedy = "open port 25 in the firewalls of machine and provider; behind NAT, check from another network";
    // By its name, as a relay: as an exchanger of the domain the own host is left out, since mail would come back.
    let own = Place::Relay(format!("{host_name}:{}", subject.mail_port));
    let Ok(hosts) = find(outbound, own).await else {
        return Vec::new();
    };
    let Some(host) = hosts.hosts.first().filter(|host| host.addresses.is_ok()) else {
        // The check of the host prints a missing address.
        return Vec::new();
    };
    let Ok(opening) = timeout(PATIENCE, outbound.open(&hosts, host)).await else {
        let seconds = PATIENCE.as_secs();
        let text = format!("{host_name} gives no service: no answer within {seconds} s");
        return vec![Row::critical(CHECK, text, remedy)];
    };
    match opening {
        Ok(mut opened) => {
            let rows = vec![
                Row::ok(CHECK, format!("{} answers", opened.remote)),
                certificate(host_name, &opened),
            ];
            opened.quit().await;
            rows
        }
        Err(error) => {
            let text = format!("{host_name} gives no service: {}", error.into_reply());
            vec![Row::critical(CHECK, text, remedy)]
        }
    }
}

fn certificate(host: &str, opened: &Opened) -> Row {
    const CHECK: &str = "certificate";
    let Some(tls) = &opened.tls else {
        return Row::warning(
            CHECK,
            format!("{host} offers no STARTTLS"),
            "set [tls] or [acme]: mail comes in the clear until then",
        );
    };
    match &tls.certificate {
        PeerCertificate::Invalid(_, problem) => Row::warning(
            CHECK,
            format!("the certificate of {host} proves nothing: {problem}"),
            format!("set [acme], or a certificate for {host} of a public authority"),
        ),
        _ => Row::ok(
            CHECK,
            format!("{host} has a valid certificate, {}", tls.version),
        ),
    }
}

/// Whether outgoing connections to port 25 are possible: many providers forbid such connections.
pub(super) async fn outgoing(probe: &str, outbound: &Outbound) -> Row {
    const CHECK: &str = "port 25 out";
    let remedy = "ask the provider to open port 25 outwards, or send through a relay: [[route]] domain = \"*\"";
    let hosts = match find(outbound, Place::Domain(probe.to_owned())).await {
        Ok(hosts) => hosts,
        Err(reason) => {
            let remedy = "see that this machine's resolver works: [resolver] servers";
            return Row::critical(
                CHECK,
                format!("{probe} cannot be looked up: {reason}"),
                remedy,
            );
        }
    };
    // All at once: behind a firewall that drops packets each address would take the whole time.
    let mut tries = JoinSet::new();
    for address in hosts.hosts.iter().flat_map(Host::sockets).take(4) {
        let connect = timeout(PATIENCE, TcpStream::connect(address));
        tries.spawn(async move { (address, connect.await) });
    }
    let mut last = "no address".to_owned();
    while let Some(tried) = tries.join_next().await {
        match tried {
            Ok((address, Ok(Ok(_)))) => {
                return Row::ok(CHECK, format!("{address} ({probe}) answers"));
            }
            Ok((_, Ok(Err(error)))) => last = error.to_string(),
            Ok((_, Err(_))) => last = format!("no answer within {} s", PATIENCE.as_secs()),
            Err(error) => last = error.to_string(),
        }
    }
    Row::critical(
        CHECK,
        format!("no MX host of {probe} can be reached: {last}"),
        remedy,
    )
}

async fn find(outbound: &Outbound, place: Place) -> Result<Hosts, String> {
    let destination = place.with(TlsWish::None);
    outbound.find(&destination).await.map_err(|why| match why {
        Unroutable::Permanent { reply, .. } => reply,
        Unroutable::Temporary(reply) | Unroutable::Site(reply) => reply,
    })
}
