//! Sections of further services.

use super::{Assembly, yes_or_no};
use crate::model::{Gateway, Resolver};
use crate::services::{
    CallAhead, Dkim, Front, RecordSink, Records, Reports, Sendmail, SpfTreatment, WhenUnavailable,
};
use crate::watching::{Backup, Metrics};

impl Assembly {
    pub(super) fn gateway(&self) -> Gateway {
        Gateway {
            name: self.need("gateway.name"),
            adopts: self.need("gateway.adopts"),
            adopt_after: self.need("gateway.adopt_after"),
        }
    }

    pub(super) fn resolver(&self) -> Resolver {
        Resolver {
            servers: self.need("resolver.servers"),
            zone: self.maybe_path("resolver.zone"),
            dnssec: self.choice("resolver.dnssec", |text| Some(text == "validate")),
            trust_anchor: self.maybe_path("resolver.trust_anchor"),
        }
    }

    pub(super) fn metrics(&self) -> Metrics {
        Metrics {
            listen: self.maybe("metrics.listen"),
            store: self.maybe("metrics.store"),
            front: self.maybe("metrics.front"),
            dnsbl: self.maybe("metrics.dnsbl"),
            x400: self.maybe("metrics.x400"),
            web: self.maybe("metrics.web"),
            otlp: self.maybe("metrics.otlp"),
        }
    }

    pub(super) fn backup(&self) -> Backup {
        Backup {
            warn_after: self.need("backup.warn_after"),
        }
    }

    /// Which of file and webhook is missing, the check of contradictions says.
    pub(super) fn records(&self) -> Option<Records> {
        let to = || match self.maybe("records.webhook") {
            Some(url) => RecordSink::Webhook {
                url,
                ca: self.maybe_path("records.webhook_ca"),
                secret: self
                    .maybe_path("records.webhook_secret")
                    .unwrap_or_default(),
                timeout: self.need("records.webhook_timeout"),
            },
            None => RecordSink::File {
                path: self.maybe_path("records.file").unwrap_or_default(),
                size_max: self.need("records.file_size_max"),
            },
        };
        self.section("records").then(|| Records {
            to: to(),
            waiting_max: self.need("records.waiting_max"),
        })
    }

    pub(super) fn reports(&self) -> Option<Reports> {
        let hostname: String = self.need("hostname");
        self.section("reports").then(|| Reports {
            dmarc: self.choice("reports.dmarc", |text| Some(text == "daily")),
            tls: self.choice("reports.tls", |text| Some(text == "daily")),
            organization: self
                .maybe("reports.organization")
                .unwrap_or_else(|| hostname.clone()),
            contact: self.maybe("reports.contact"),
            from: self
                .maybe("reports.from")
                .unwrap_or_else(|| format!("postmaster@{hostname}")),
        })
    }

    pub(super) fn dkim(&self) -> Option<Dkim> {
        let when_unavailable = |text: &str| match text {
            "defer" => Some(WhenUnavailable::Defer),
            "unsigned" => Some(WhenUnavailable::Unsigned),
            _ => None,
        };
        self.section("dkim").then(|| Dkim {
            keys: self.path("dkim.keys"),
            socket: self.path("dkim.socket"),
            when_unavailable: self.choice("dkim.when_unavailable", when_unavailable),
            arc: self.choice("dkim.arc", yes_or_no),
        })
    }

    pub(super) fn front(&self) -> Option<Front> {
        self.section("front").then(|| Front {
            workers: self.need("front.workers"),
            loops: self.maybe("front.loops"),
            tasks_per_worker: self.need("front.tasks_per_worker"),
            sessions_at_once: self.need("front.sessions_at_once"),
            hands_over_at_once: self.choice("front.hand_over", |text| match text {
                "trusted" => Some(false),
                "connected" => Some(true),
                _ => None,
            }),
            tls_threads: self.need("front.tls_threads"),
            kernel_tls: self.choice("front.kernel_tls", |text| Some(text == "on")),
            sessions_per_worker: self.need("front.sessions_per_worker"),
            banner_delay: self.need("front.banner_delay"),
            connections_per_minute: self.need("front.connections_per_minute"),
            refused_recipients_max: self.need("front.refused_recipients_max"),
            refused_recipients_per_hour: self.need("front.refused_recipients_per_hour"),
            allowed_networks: self.networks("front.allowed_networks"),
            refused_networks: self.networks("front.refused_networks"),
            refused_helo: self.need("front.refused_helo"),
            refused_senders: self.need("front.refused_senders"),
            allowed_senders: self.need("front.allowed_senders"),
            spf: self.spf(),
            call_ahead: self.call_ahead(),
            lists: self.lists(),
            greylist_delay: self
                .choice("front.greylist", |text| Some(text == "on"))
                .then(|| self.need("front.greylist_delay")),
        })
    }

    fn call_ahead(&self) -> CallAhead {
        let defers = |text: &str| Some(text == "defer");
        CallAhead {
            defers_unavailable: self.choice("front.call_ahead_unavailable", defers),
            timeout: self.need("front.call_ahead_timeout"),
            keep_accepted: self.need("front.call_ahead_keep_accepted"),
            keep_refused: self.need("front.call_ahead_keep_refused"),
        }
    }

    fn spf(&self) -> Option<SpfTreatment> {
        let refuses_softfail = self.choice("front.spf", |text| match text {
            "off" => Some(None),
            "fail" => Some(Some(false)),
            "softfail" => Some(Some(true)),
            _ => None,
        })?;
        Some(SpfTreatment {
            refuses_softfail,
            defers_unavailable: self.choice("front.spf_unavailable", |text| Some(text == "defer")),
            refuses_permerror: self.choice("front.spf_permerror", |text| Some(text == "refuse")),
        })
    }

    pub(super) fn sendmail(&self) -> Option<Sendmail> {
        self.section("sendmail").then(|| Sendmail {
            socket: self.path("sendmail.socket"),
            domain: self
                .maybe("sendmail.domain")
                .unwrap_or_else(|| self.need("hostname")),
        })
    }
}
