//! Counts of connections, and the endpoint that shows the metrics.

use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::sleep;
use vere_http::server::Counts;
use vere_telemetry::metrics::{Health, Metrics, WebConnection, WebConnectionEnd, WebScheme, serve};

use crate::site::Site;

/// The interval between two additions to the metrics.
const INTERVAL: Duration = Duration::from_secs(1);

/// The metrics of the server.
#[derive(Debug)]
pub(crate) struct Figures {
    metrics: Metrics,
    site: Arc<Site>,
    /// The counts of HTTPS and HTTP at the last look.
    before: [Counts; 2],
}

impl Figures {
    pub(crate) fn new(metrics: &Metrics, site: &Arc<Site>) -> Self {
        Self {
            metrics: metrics.clone(),
            site: Arc::clone(site),
            before: [Counts::default(); 2],
        }
    }

    /// Serves the endpoint on these sockets from now on.
    pub(crate) fn serve(
        mut self,
        listeners: Vec<StdListener>,
        health: &watch::Sender<Health>,
    ) -> io::Result<()> {
        for listener in listeners {
            let listener = TcpListener::from_std(listener)?;
            spawn_local(serve(listener, self.metrics.clone(), health.subscribe()));
        }
        spawn_local(async move {
            loop {
                self.collect();
                sleep(INTERVAL).await;
            }
        });
        Ok(())
    }

    fn collect(&mut self) {
        let schemes = [WebScheme::Https, WebScheme::Http];
        let places = self.site.places();
        for ((scheme, places), before) in schemes.into_iter().zip(places).zip(&mut self.before) {
            let Some(places) = places else {
                continue;
            };
            let now = places.counts();
            let add = |end, count: u64| {
                let connection = WebConnection { scheme, end };
                let counter = self.metrics.web.connections.get_or_create(&connection);
                counter.inc_by(count);
            };
            add(WebConnectionEnd::Accepted, now.accepted - before.accepted);
            add(WebConnectionEnd::Refused, now.refused - before.refused);
            add(WebConnectionEnd::Evicted, now.evicted - before.evicted);
            let open = i64::try_from(now.open).unwrap_or(i64::MAX);
            self.metrics.web.open.get_or_create(&scheme).set(open);
            *before = now;
        }
    }
}
