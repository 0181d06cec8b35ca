//! Connections to other hosts: which hosts take a destination's mail, in which order, from which of our
//! addresses, and how the connection has to be secured.
//!
//! In reading order: `hosts` (MX, routes, loops), `failures` (who did not answer a moment ago),
//! `security` (which policy says how to encrypt), `open` (from an address to a connection that takes
//! messages), `sessions` and `seen` (their encryption, for reports), `sending` (messages over a connection).
//!
//! But for `sending` nothing here knows of queues or messages, so that `vere dial` goes the same way as a delivery.

mod convert;
mod error;
mod failures;
pub mod hosts;
mod metrics;
mod open;
mod own;
mod patience;
mod search;
mod security;
mod seen;
mod sending;
mod sessions;
mod statuses;
pub mod tls;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use vere_net::resolver::{Resolver, ResolverError, ResolverOptions};
use vere_net::sts::Sts;
use vere_net::web::{self, PostError};
use vere_sasl::client::Credentials;
use vere_settings::{Route, Settings};
use vere_smtp::reply::Reply;
use vere_units::Secret;

pub use self::error::OutboundError;
use self::failures::Failures;
pub use self::hosts::Hosts;
pub use self::metrics::{Count, OutboundMetrics};
pub use self::open::{OpenError, Opened, Progress, drive};
use self::own::Interfaces;
pub use self::security::{Forbidden, Security};
pub use self::seen::{SESSIONS_MAX, Sessions};
pub use self::sending::Sending;
pub use self::statuses::{NO_DOMAIN, NO_MAIL, STATUSES};
use crate::tls::ClientTls;
pub use vere_delivery::Unroutable;

/// How often MTA-STS policies are looked through for those that will end.
const REFRESH_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Octets read of a file with a password.
const PASSWORD_FILE_MAX: u64 = 4_096;

/// What connections to other hosts are made with.
#[derive(Debug)]
pub struct Outbound {
    config: RefCell<Rc<OutboundConfig>>,
    resolver: Resolver,
    sts: Sts,
    failures: RefCell<Failures>,
    interfaces: Interfaces,
    metrics: OutboundMetrics,
}

/// What a reload exchanges as a whole.
#[derive(Debug)]
struct OutboundConfig {
    settings: Arc<Settings>,
    tls: ClientTls,
    /// The passwords that lie in files, by the file.
    passwords: HashMap<PathBuf, Secret<String>>,
}

impl Outbound {
    /// Puts together what connections are made with. MTA-STS policies are kept in the file, if there is to
    /// be one.
    ///
    /// # Errors
    /// When roots, a password or the policies cannot be read.
    pub fn new(
        settings: &Arc<Settings>,
        resolver: Resolver,
        metrics: OutboundMetrics,
        policies: Option<&Path>,
    ) -> Result<Self, OutboundError> {
        let config = OutboundConfig::load(settings)?;
        let (https, port) = (config.tls.https(), settings.delivery.mta_sts_port);
        let sts = match policies {
            Some(path) => Sts::open(resolver.clone(), https, port, path).map_err(|source| {
                OutboundError::Unusable {
                    path: path.to_owned(),
                    source,
                }
            })?,
            None => Sts::in_memory(resolver.clone(), https, port),
        };
        Ok(Self {
            config: RefCell::new(Rc::new(config)),
            resolver,
            sts,
            failures: RefCell::default(),
            interfaces: Interfaces::default(),
            metrics,
        })
    }

    /// Puts other settings in force; connections that are open keep theirs.
    ///
    /// # Errors
    /// When roots or a password cannot be read; then nothing changes.
    pub fn set_settings(&self, settings: &Arc<Settings>) -> Result<(), OutboundError> {
        let config = OutboundConfig::load(settings)?;
        self.sts
            .set_https(config.tls.https(), settings.delivery.mta_sts_port);
        self.config.replace(Rc::new(config));
        Ok(())
    }

    /// Keeps MTA-STS policies fresh for as long as the process runs.
    pub async fn refresh_policies(self: Rc<Self>) {
        loop {
            tokio::time::sleep(REFRESH_INTERVAL).await;
            self.sts.refresh().await;
        }
    }

    /// Sends a POST request to a web server that another system names, whose certificate must be valid.
    ///
    /// # Errors
    /// See [`PostError`].
    pub async fn post(&self, uri: &str, media_type: &str, body: Bytes) -> Result<(), PostError> {
        let config = self.config();
        let (https, port) = (config.tls.https(), config.settings.delivery.mta_sts_port);
        web::post(&self.resolver, (&https, port), uri, media_type, body).await
    }

    fn config(&self) -> Rc<OutboundConfig> {
        Rc::clone(&self.config.borrow())
    }
}

impl OutboundConfig {
    fn load(settings: &Arc<Settings>) -> Result<Self, OutboundError> {
        let mut passwords = HashMap::new();
        for path in settings
            .routes
            .iter()
            .filter_map(|route| route.password_file.as_ref())
        {
            if !passwords.contains_key(path) {
                passwords.insert(path.clone(), read_password(path)?);
            }
        }
        Ok(Self {
            settings: Arc::clone(settings),
            tls: ClientTls::new(settings)?,
            passwords,
        })
    }

    /// Whom to authenticate as with the next hop of a route.
    fn credentials(&self, route: &Route) -> Option<Credentials> {
        let username = route.username.as_ref()?;
        let in_file = || self.passwords.get(route.password_file.as_ref()?);
        let password = route.password.as_ref().or_else(in_file)?;
        Some(Credentials::new(username, password.expose()))
    }
}

/// What names are looked up with.
///
/// # Errors
/// When the zone file or the system's list of name servers cannot be used.
pub fn resolver(settings: &Settings) -> Result<Resolver, ResolverError> {
    let options = ResolverOptions {
        servers: settings.resolver.servers.clone(),
        zone: settings.resolver.zone.clone(),
        dnssec: settings.resolver.dnssec,
        trust_anchor: settings.resolver.trust_anchor.clone(),
        ..ResolverOptions::default()
    };
    Resolver::new(&options)
}

/// The first line of a file.
fn read_password(path: &Path) -> Result<Secret<String>, OutboundError> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(PASSWORD_FILE_MAX).read_to_string(&mut text))
        .map_err(|source| OutboundError::Unusable {
            path: path.to_owned(),
            source,
        })?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Secret::new(line.to_owned())),
        _ => Err(OutboundError::NoPassword {
            path: path.to_owned(),
        }),
    }
}

/// One line of a reply, with its codes.
pub fn reply_line(reply: &Reply) -> String {
    let code = reply.code;
    let text = reply.text.join(" ");
    match reply.enhanced {
        Some(status) => format!("{code} {status} {text}"),
        None => format!("{code} {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, "correct horse\nbattery\n").unwrap();
        assert_eq!(read_password(&path).unwrap().expose(), "correct horse");
        std::fs::write(&path, "\nnothing\n").unwrap();
        let error = read_password(&path).unwrap_err().to_string();
        assert!(error.contains("no password"), "{error}");
        let error = read_password(&dir.path().join("absent")).unwrap_err();
        assert!(error.to_string().contains("absent"), "{error}");
    }
}
