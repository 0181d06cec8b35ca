//! From checked values to the structures.

mod acme;
mod dnsbl;
mod filters;
mod judging;
mod lists;
mod mail_store;
mod outgoing;
mod quota;
mod sending;
mod services;
mod spool_accounts;
mod volume;
mod web;
mod x400;

use std::path::{Path, PathBuf};

use crate::changes::option;
use crate::cross;
use crate::directory_store::DirectoryStore;
use crate::document::{self, Document};
use crate::errors::ConfigErrors;
use crate::kind::{Kind, Secrecy};
use crate::model::{
    Auth, CertificateFiles, Cluster, Directory, Durability, Etcd, Limits, LineTls, Listen, LogBy,
    Priority, PriorityPolicy, Register, Settings, Sni, Spool, SpoolNode, SpoolTls, Tls,
};
use crate::network::Networks;
use crate::outgoing::{Delivery, LocalDelivery, TlsMode};
use crate::table::SYSTEM;
use crate::value::FromValue;
use crate::watching::{Control, Log, LogFormat, LogLevel};

impl Settings {
    /// Parses and checks the text of a whole file.
    ///
    /// `file` is the path for errors; relative paths in the text are taken from the directory of
    /// `file`. No other file is opened.
    ///
    /// # Errors
    ///
    /// All errors of the text, at once. Contradictions between values are only checked once every
    /// value by itself is valid.
    pub fn parse(text: &str, file: &str) -> Result<Self, ConfigErrors> {
        let document =
            document::read(text, SYSTEM).map_err(|errors| ConfigErrors::new(file, errors))?;
        let folder = Path::new(file)
            .parent()
            .unwrap_or_else(|| Path::new(""))
            .to_path_buf();
        let settings = Assembly::new(document, folder).settings();
        let (settings, document) = settings;
        let errors = cross::check(&settings, &document);
        if errors.is_empty() {
            Ok(settings)
        } else {
            Err(ConfigErrors::new(file, errors))
        }
    }
}

pub(crate) struct Assembly {
    document: Document,
    folder: PathBuf,
    data: PathBuf,
}

impl Assembly {
    fn new(document: Document, folder: PathBuf) -> Self {
        let mut assembly = Self {
            document,
            folder,
            data: PathBuf::new(),
        };
        assembly.data = assembly.path("data");
        assembly
    }

    fn log(&self) -> Log {
        Log {
            level: self.choice("log.level", log_level),
            format: self.choice("log.format", log_format),
            otlp: self.maybe("log.otlp"),
            otlp_headers: self.maybe_path("log.otlp_headers"),
            otlp_ca: self.maybe_path("log.otlp_ca"),
        }
    }

    fn settings(self) -> (Settings, Document) {
        let tls = self.choice("delivery.tls", tls_mode);
        let port = self.need("delivery.port");
        let settings = Settings {
            hostname: self.need("hostname"),
            data: self.data.clone(),
            user: self.maybe("user"),
            smtp: self.listen("smtp"),
            submission: self.listen("submission"),
            submissions: self.listen("submissions"),
            imap: self.listen("imap"),
            imaps: self.listen("imaps"),
            lmtp: self.listen("lmtp"),
            quota: self.quota(),
            store: self.mail_store(),
            limits: self.limits(),
            relay: self.networks("relay.networks"),
            priority: Priority {
                networks: self.networks("priority.networks"),
                policy: self.choice("priority.policy", priority_policy),
            },
            sending: self.sending(),
            sendmail: self.sendmail(),
            front: self.front(),
            web: self.web(),
            dnsbl: self.dnsbl(),
            x400: self.x400(),
            filters: self.filters(),
            judging: self.judging(),
            dkim: self.dkim(),
            records: self.records(),
            reports: self.reports(),
            xclient: self.networks("xclient.networks"),
            proxy: self.networks("proxy.networks"),
            imap_proxy: self.networks("proxy.imap_networks"),
            auth: Auth {
                plaintext_networks: self.networks("auth.plaintext_networks"),
            },
            tls: self.tls(),
            acme: self.acme(),
            resolver: self.resolver(),
            directory: self.directory(),
            delivery: self.delivery(tls, port),
            destinations: self.each("delivery.destination", |at| self.destination(at, port)),
            routes: self.each("route", |at| self.route(at, tls, port)),
            sources: self.each("source", |at| self.source(at)),
            gateway: self.gateway(),
            spool: self.spool(),
            cluster: Cluster {
                register: self.register(),
                lease: self.need("cluster.lease"),
                skew: self.need("cluster.skew"),
            },
            metrics: self.metrics(),
            backup: self.backup(),
            log: self.log(),
            control: Control {
                socket: self.path("control.socket"),
            },
            secret_files: self.files_of(|kind| kind.secrecy() == Secrecy::File),
            named_files: self.files_of(|kind| matches!(kind, Kind::Path | Kind::SecretFile)),
            values: self.document.values.clone(),
        };
        (settings, self.document)
    }

    /// The files that values of some kinds name, with the keys of these values.
    fn files_of(&self, is_wanted: impl Fn(Kind) -> bool) -> Vec<(String, PathBuf)> {
        let keys = self.document.values.keys();
        let keys = keys.filter(|key| option(key).is_some_and(|option| is_wanted(option.kind)));
        keys.map(|key| (key.clone(), self.path(key))).collect()
    }

    pub(crate) fn maybe<T: FromValue>(&self, key: &str) -> Option<T> {
        let value = self.document.values.get(key)?;
        let taken = T::from_value(value);
        assert!(
            taken.is_some(),
            "{key} has another type in the option table than in the model"
        );
        taken
    }

    pub(crate) fn need<T: FromValue>(&self, key: &str) -> T {
        match self.maybe(key) {
            Some(value) => value,
            None => panic!("{key} has no value, though the option table requires or defaults it"),
        }
    }

    pub(crate) fn choice<T>(&self, key: &str, read: fn(&str) -> Option<T>) -> T {
        match read(self.need::<&'static str>(key)) {
            Some(value) => value,
            None => panic!("{key} allows a choice in the option table that the model lacks"),
        }
    }

    /// Puts `{data}` in and takes relative paths from the folder of the file.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        let path = match path.strip_prefix("{data}") {
            Ok(rest) => self.data.join(rest),
            Err(_) => path.to_path_buf(),
        };
        // Drops the `.` of `data = "."`, which would appear in every error text.
        self.folder.join(path).components().collect()
    }

    pub(crate) fn path(&self, key: &str) -> PathBuf {
        self.resolve(&self.need::<PathBuf>(key))
    }

    pub(crate) fn maybe_path(&self, key: &str) -> Option<PathBuf> {
        self.maybe::<PathBuf>(key).map(|path| self.resolve(&path))
    }

    fn listen(&self, section: &str) -> Listen {
        Listen {
            listen: self.need(&format!("{section}.listen")),
        }
    }

    /// Whether an optional section is there.
    pub(crate) fn section(&self, name: &str) -> bool {
        self.document.counts.contains_key(name)
    }

    fn networks(&self, key: &str) -> Networks {
        Networks {
            networks: self.need(key),
        }
    }

    pub(crate) fn each<T>(&self, section: &str, make: impl Fn(&str) -> T) -> Vec<T> {
        let count = self.document.counts.get(section).copied().unwrap_or(0);
        (1..=count)
            .map(|n| make(&format!("{section}[{n}]")))
            .collect()
    }

    fn limits(&self) -> Limits {
        Limits {
            message_size_max: self.need("limits.message_size_max"),
            recipients_max: self.need("limits.recipients_max"),
            command_line_length_max: self.need("limits.command_line_length_max"),
            text_line_length_max: self.need("limits.text_line_length_max"),
            hops_max: self.need("limits.hops_max"),
            messages_per_connection_max: self.need("limits.messages_per_connection_max"),
            errors_max: self.need("limits.errors_max"),
            auth_failures_max: self.need("limits.auth_failures_max"),
            command_timeout: self.need("limits.command_timeout"),
            data_timeout: self.need("limits.data_timeout"),
            data_time_max: self.need("limits.data_time_max"),
            parse_timeout: self.need("limits.parse_timeout"),
            connections_max: self.need("limits.connections_max"),
            connections_per_client_max: self.need("limits.connections_per_client_max"),
            body_memory_max: self.need("limits.body_memory_max"),
            body_disk_max: self.need("limits.body_disk_max"),
            fetch_memory_max: self.need("limits.fetch_memory_max"),
            queued_messages_max: self.need("limits.queued_messages_max"),
            throttle_from: self.need("limits.throttle_from"),
            throttle_until: self.need("limits.throttle_until"),
            messages_per_destination_max: self.need("limits.messages_per_destination_max"),
            octets_per_destination_max: self.need("limits.octets_per_destination_max"),
            queue_memory_max: self.need("limits.queue_memory_max"),
        }
    }

    fn tls(&self) -> Tls {
        let pair = self
            .maybe_path("tls.certificate")
            .zip(self.maybe_path("tls.key"));
        Tls {
            default: pair.map(|(certificate, key)| CertificateFiles { certificate, key }),
            sni: self.each("tls.sni", |at| Sni {
                name: self.need(&format!("{at}.name")),
                files: CertificateFiles {
                    certificate: self.path(&format!("{at}.certificate")),
                    key: self.path(&format!("{at}.key")),
                },
            }),
        }
    }

    fn directory(&self) -> Directory {
        let store = match self.need("directory.store") {
            DirectoryStore::File(path) => DirectoryStore::File(self.resolve(&path)),
            DirectoryStore::Sqlite(path) => DirectoryStore::Sqlite(self.resolve(&path)),
        };
        let separator: String = self.need("directory.subaddress_separator");
        Directory {
            store,
            subaddress_separator: separator.chars().next(),
        }
    }

    fn delivery(&self, tls: TlsMode, port: u16) -> Delivery {
        let maildir: String = self.need("delivery.maildir");
        let local = self.maybe("delivery.local").and_then(local_delivery);
        Delivery {
            local: local.unwrap_or(LocalDelivery::Store),
            local_is_said: local.is_some(),
            maildir: self
                .resolve(Path::new(&maildir))
                .to_string_lossy()
                .into_owned(),
            srs: self.choice("delivery.srs", yes_or_no),
            connections_per_destination_max: self.need("delivery.connections_per_destination_max"),
            connections_per_site_max: self.need("delivery.connections_per_site_max"),
            connections_max: self.need("delivery.connections_max"),
            one_round_max: self.need("delivery.one_round_max"),
            connect_timeout: self.need("delivery.connect_timeout"),
            messages_per_connection_max: self.need("delivery.messages_per_connection_max"),
            tls,
            mta_sts: self.choice("delivery.mta_sts", on_or_off),
            dane: self.choice("delivery.dane", on_or_off),
            mta_sts_port: self.need("delivery.mta_sts_port"),
            ca: self.maybe_path("delivery.ca"),
            port,
            courier_processes: self.need("delivery.courier_processes"),
            retry: self.need("delivery.retry"),
            expire: self.need("delivery.expire"),
            delay_notice: self.need("delivery.delay_notice"),
            queue_idle: self.need("delivery.queue_idle"),
            reports_per_hour_max: self.need("delivery.reports_per_hour_max"),
            source: self.maybe("delivery.source"),
        }
    }

    fn spool(&self) -> Spool {
        let durability = self.choice("spool.durability", durability);
        let replicas = self.maybe("spool.replicas_min");
        let mut nodes = self.each("spool.node", |at| self.node(at));
        if nodes.is_empty() {
            for (name, port) in [("a", 2600), ("b", 2601)] {
                nodes.push(SpoolNode {
                    name: name.to_owned(),
                    listen: ([127, 0, 0, 1], port).into(),
                    standby: None,
                    remote: false,
                    tls: LineTls::Auto,
                    data: self.data.join("spool").join(name),
                });
            }
        }
        let most = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        Spool {
            durability,
            log: self.choice("spool.log", log_by),
            replicas: self.maybe("spool.replicas").unwrap_or(2.min(most)),
            replicas_min: replicas.unwrap_or(match durability {
                Durability::Synced => 1,
                Durability::Replicated => 2,
            }),
            slow_after: self.need("spool.slow_after"),
            slow_lag: self.need("spool.slow_lag"),
            slow_rest: self.need("spool.slow_rest"),
            secret: self.path("spool.secret"),
            accounts: self.spool_accounts(),
            speaks_as: self.need("spool.as"),
            adopters: self.need("spool.adopters"),
            readers: self.need("spool.readers"),
            queues: self.spool_queues(),
            group_max: self.maybe("spool.group_max"),
            queues_max: self.need("spool.queues_max"),
            groups_max: self.need("spool.groups_max"),
            memory_max: self.need("spool.memory_max"),
            spill_max: self.need("spool.spill_max"),
            segment_size: self.need("spool.segment_size"),
            kept_max: self.need("spool.kept_max"),
            nodes,
            tls: self.spool_tls(),
        }
    }

    fn spool_tls(&self) -> Option<SpoolTls> {
        let given = self.document.counts.contains_key("spool.tls");
        given.then(|| SpoolTls {
            files: CertificateFiles {
                certificate: self.path("spool.tls.certificate"),
                key: self.path("spool.tls.key"),
            },
            ca: self.path("spool.tls.ca"),
            ca_key: self.maybe_path("spool.tls.ca_key"),
        })
    }

    /// Without `[cluster.etcd]`, reported as missing by `cross`, the register is the directory.
    fn register(&self) -> Register {
        let wanted: &str = self.need("cluster.register");
        if wanted == "file" || !self.document.counts.contains_key("cluster.etcd") {
            return Register::File(self.path("cluster.folder"));
        }
        let pair = self
            .maybe_path("cluster.etcd.certificate")
            .zip(self.maybe_path("cluster.etcd.key"));
        let user = self.maybe("cluster.etcd.user");
        Register::Etcd(Etcd {
            endpoints: self.need("cluster.etcd.endpoints"),
            prefix: self.need("cluster.etcd.prefix"),
            ca: self.maybe_path("cluster.etcd.ca"),
            certificate: pair.map(|(certificate, key)| CertificateFiles { certificate, key }),
            login: user.zip(self.maybe_path("cluster.etcd.password_file")),
        })
    }

    fn node(&self, at: &str) -> SpoolNode {
        let name: String = self.need(&format!("{at}.name"));
        let data: PathBuf = self.need(&format!("{at}.data"));
        let data = PathBuf::from(data.to_string_lossy().replace("{name}", &name));
        SpoolNode {
            listen: self.need(&format!("{at}.listen")),
            standby: self.maybe(&format!("{at}.standby")),
            remote: self.choice(&format!("{at}.runs"), |text| Some(text == "elsewhere")),
            tls: self.choice(&format!("{at}.tls"), line_tls),
            data: self.resolve(&data),
            name,
        }
    }
}

fn tls_mode(text: &str) -> Option<TlsMode> {
    Some(match text {
        "off" => TlsMode::Off,
        "opportunistic" => TlsMode::Opportunistic,
        "required" => TlsMode::Required,
        "implicit" => TlsMode::Implicit,
        _ => return None,
    })
}

fn priority_policy(text: &str) -> Option<PriorityPolicy> {
    Some(match text {
        "none" => PriorityPolicy::None,
        "mixer" => PriorityPolicy::Mixer,
        "stanag4406" => PriorityPolicy::Stanag4406,
        "nsep" => PriorityPolicy::Nsep,
        _ => return None,
    })
}

fn on_or_off(text: &str) -> Option<bool> {
    Some(match text {
        "on" => true,
        "off" => false,
        _ => return None,
    })
}

fn yes_or_no(text: &str) -> Option<bool> {
    Some(match text {
        "yes" => true,
        "no" => false,
        _ => return None,
    })
}

fn local_delivery(text: &str) -> Option<LocalDelivery> {
    Some(match text {
        "maildir" => LocalDelivery::Maildir,
        "store" => LocalDelivery::Store,
        _ => return None,
    })
}

fn line_tls(text: &str) -> Option<LineTls> {
    Some(match text {
        "auto" => LineTls::Auto,
        "required" => LineTls::Required,
        "off" => LineTls::Off,
        _ => return None,
    })
}

fn durability(text: &str) -> Option<Durability> {
    Some(match text {
        "synced" => Durability::Synced,
        "replicated" => Durability::Replicated,
        _ => return None,
    })
}

fn log_by(text: &str) -> Option<LogBy> {
    Some(match text {
        "machine" => LogBy::Machine,
        "node" => LogBy::Node,
        _ => return None,
    })
}

fn log_level(text: &str) -> Option<LogLevel> {
    Some(match text {
        "error" => LogLevel::Error,
        "warn" => LogLevel::Warn,
        "info" => LogLevel::Info,
        "debug" => LogLevel::Debug,
        "trace" => LogLevel::Trace,
        _ => return None,
    })
}

fn log_format(text: &str) -> Option<LogFormat> {
    Some(match text {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        _ => return None,
    })
}
