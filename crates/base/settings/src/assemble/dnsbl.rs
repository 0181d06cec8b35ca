//! The section of the server of block lists.

use super::Assembly;
use crate::dnsbl::{Dnsbl, DnsblData, DnsblRate, DnsblZone};

impl Assembly {
    pub(super) fn dnsbl(&self) -> Option<Dnsbl> {
        self.section("dnsbl").then(|| Dnsbl {
            listen: self.need("dnsbl.listen"),
            threads: self.maybe("dnsbl.threads"),
            zones: self.each("dnsbl.zone", |at| self.dnsbl_zone(at)),
            check_interval: self.need("dnsbl.check_interval"),
            ttl: self.need("dnsbl.ttl"),
            negative_ttl: self.need("dnsbl.negative_ttl"),
            name_servers: self.need("dnsbl.name_servers"),
            test_entries: self.choice("dnsbl.test_entries", |text| Some(text == "yes")),
            rate: DnsblRate {
                positive: self.need("dnsbl.rate_positive"),
                negative: self.need("dnsbl.rate_negative"),
                errors: self.need("dnsbl.rate_errors"),
                surplus: self.need("dnsbl.rate_surplus"),
                slip: self.need("dnsbl.rate_slip"),
                networks: self.need("dnsbl.rate_networks"),
                exempt: self.networks("dnsbl.rate_exempt"),
            },
            connections_max: self.need("dnsbl.connections_max"),
            connections_per_client_max: self.need("dnsbl.connections_per_client_max"),
            idle_timeout: self.need("dnsbl.idle_timeout"),
            log_every: self.need("dnsbl.log_every"),
        })
    }

    fn dnsbl_zone(&self, at: &str) -> DnsblZone {
        let data: Vec<String> = self.need(&format!("{at}.data"));
        let data = data.iter().filter_map(|text| DnsblData::parse(text).ok());
        let resolved = data.map(|data| DnsblData {
            files: data.files.iter().map(|file| self.resolve(file)).collect(),
            ..data
        });
        DnsblZone {
            name: self.need(&format!("{at}.name")),
            data: resolved.collect(),
        }
    }
}
