//! The sections of the X.400 MTA.

use std::net::IpAddr;

use super::{Assembly, log_level, yes_or_no};
use crate::kind::host_and_port;
use crate::x400::{
    X400, X400Border, X400Expire, X400Gateway, X400Password, X400Peer, X400Route, X400User,
};

/// The port of RFC 1006.
const PORT: u16 = 102;

impl Assembly {
    pub(super) fn x400(&self) -> Option<X400> {
        self.section("x400").then(|| {
            let mta_name = self.maybe("x400.mta_name");
            let mta_name: String = mta_name.unwrap_or_else(|| self.first_label());
            X400 {
                listen: self.need("x400.listen"),
                listen_tls: self.need("x400.listen_tls"),
                client_ca: self.maybe("x400.client_ca"),
                peers: self.each("x400.peer", |at| self.x400_peer(at, &mta_name)),
                mta_name,
                domain: self.need("x400.domain"),
                connections_max: self.need("x400.connections_max"),
                size_max: self.need("x400.size_max"),
                recipients_max: self.need("x400.recipients_max"),
                return_size_max: self.need("x400.return_size_max"),
                retry: self.need("x400.retry"),
                expire: X400Expire {
                    urgent: self.need("x400.expire_urgent"),
                    normal: self.need("x400.expire_normal"),
                    non_urgent: self.need("x400.expire_non_urgent"),
                },
                alternate: self.maybe("x400.alternate"),
                archive: self.choice("x400.archive", yes_or_no),
                archive_keep: self.need("x400.archive_keep"),
                audit: self.choice("x400.audit", yes_or_no),
                audit_keep: self.need("x400.audit_keep"),
                log_level: self.choice("x400.log_level", log_level),
                socket: self.path("x400.socket"),
                folder: self.data.join("x400"),
                routes: self.each("x400.route", |at| self.x400_route(at)),
                users: self.each("x400.user", |at| self.x400_user(at)),
                gateways: self.each("x400.gateway", |at| self.x400_gateway(at)),
            }
        })
    }

    fn first_label(&self) -> String {
        let hostname: String = self.need("hostname");
        let label = hostname.split('.').next().unwrap_or_default();
        label.to_owned()
    }

    fn x400_peer(&self, at: &str, mta_name: &str) -> X400Peer {
        let key = |name: &str| format!("{at}.{name}");
        let name: String = self.need(&key("name"));
        // The name of an MTA has cases; the names of queues have none.
        let nameless = self.choice(&key("nameless"), yes_or_no);
        let theirs = self.maybe(&key("mta_name"));
        let own = self.maybe(&key("own_name"));
        let addresses: Vec<String> = self.need(&key("addresses"));
        let from: Vec<String> = self.need(&key("from"));
        X400Peer {
            domain: self.need(&key("domain")),
            mta_name: (!nameless).then(|| theirs.unwrap_or_else(|| name.clone())),
            password: self.password(&key("password")),
            own_name: own.unwrap_or_else(|| mta_name.to_owned()),
            own_password: self.password(&key("own_password")),
            addresses: addresses
                .iter()
                .filter_map(|text| host_and_port(text, PORT))
                .collect(),
            from: from
                .iter()
                .filter_map(|text| text.parse::<IpAddr>().ok())
                .collect(),
            caller_certificate: self.maybe(&key("caller_certificate")),
            tls: self.choice(&key("tls"), yes_or_no),
            certificate: self.maybe(&key("certificate")),
            is_1984: self.choice(&key("profile"), |text| Some(text == "1984")),
            selector: self.maybe(&key("selector")),
            own_selector: self.maybe(&key("own_selector")),
            associations_max: self.need(&key("associations_max")),
            two_way: self.choice(&key("two_way"), yes_or_no),
            permanent: self.need(&key("permanent")),
            messages_per_association_max: self.need(&key("messages_per_association_max")),
            accepts: self.border(at, "accept", "refuse"),
            sends: self.border(at, "send", "withhold"),
            name: name.to_ascii_lowercase(),
        }
    }

    fn password(&self, key: &str) -> X400Password {
        match (self.maybe(key), self.maybe_path(&format!("{key}_file"))) {
            (Some(text), _) => X400Password::Text(text),
            (None, Some(path)) => X400Password::File(path),
            (None, None) => X400Password::None,
        }
    }

    fn border(&self, at: &str, yes: &str, no: &str) -> X400Border {
        let key = |word: &str, what: &str| format!("{at}.{word}_{what}");
        X400Border {
            originators: self.need(&key(yes, "originators")),
            not_originators: self.need(&key(no, "originators")),
            recipients: self.need(&key(yes, "recipients")),
            not_recipients: self.need(&key(no, "recipients")),
            content_types: self.need(&key(yes, "content_types")),
            size_max: self.maybe(&key(yes, "size_max")),
        }
    }

    /// A word that becomes part of the name of a queue.
    fn lower(&self, key: &str) -> String {
        self.need::<String>(key).to_ascii_lowercase()
    }

    fn x400_route(&self, at: &str) -> X400Route {
        X400Route {
            address: self.need(&format!("{at}.address")),
            to: self.lower(&format!("{at}.to")),
            whole: self.choice(&format!("{at}.whole"), yes_or_no),
        }
    }

    fn x400_user(&self, at: &str) -> X400User {
        X400User {
            name: self.lower(&format!("{at}.name")),
            content_types: self.need(&format!("{at}.content_types")),
            size_max: self.maybe(&format!("{at}.size_max")),
            redirect_to: self.maybe(&format!("{at}.redirect_to")),
        }
    }

    fn x400_gateway(&self, at: &str) -> X400Gateway {
        X400Gateway {
            name: self.lower(&format!("{at}.name")),
            keep_max: self.need(&format!("{at}.keep_max")),
        }
    }
}
