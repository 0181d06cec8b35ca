//! The DNS by the product's resolver, for SPF and the authentication of messages.

use std::net::IpAddr;

use vere_auth::{Dns, Family, Unavailable};
use vere_net::resolver::{Record, RecordKind, RecordsAnswer, Resolver, reverse_name};

/// Answers questions about names by a resolver. The answer about a missing name is empty.
#[derive(Debug)]
pub struct Names(Resolver);

impl Names {
    /// Asks by this resolver.
    #[must_use]
    pub const fn new(resolver: Resolver) -> Self {
        Self(resolver)
    }

    async fn records<T>(
        &self,
        name: &str,
        kind: RecordKind,
        pick: impl Fn(Record) -> Option<T>,
    ) -> Result<Vec<T>, Unavailable> {
        match self.0.records(name, kind).await {
            RecordsAnswer::Found(records) => Ok(records.into_iter().filter_map(pick).collect()),
            RecordsAnswer::None | RecordsAnswer::NoSuchName => Ok(Vec::new()),
            RecordsAnswer::TempFail(failure) => {
                tracing::debug!(name, %failure, "lookup for a message failed");
                Err(Unavailable)
            }
        }
    }
}

impl Dns for Names {
    async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        let pick = |record| match record {
            Record::Txt(text) => Some(text),
            _ => None,
        };
        self.records(name, RecordKind::Txt, pick).await
    }

    async fn exists(&self, name: &str) -> Result<bool, Unavailable> {
        match self.0.records(name, RecordKind::A).await {
            RecordsAnswer::Found(_) | RecordsAnswer::None => Ok(true),
            RecordsAnswer::NoSuchName => Ok(false),
            RecordsAnswer::TempFail(_) => Err(Unavailable),
        }
    }

    async fn addresses(&self, name: &str, family: Family) -> Result<Vec<IpAddr>, Unavailable> {
        let kind = match family {
            Family::V4 => RecordKind::A,
            Family::V6 => RecordKind::Aaaa,
        };
        let pick = |record| match record {
            Record::A(address) => Some(address.into()),
            Record::Aaaa(address) => Some(address.into()),
            _ => None,
        };
        self.records(name, kind, pick).await
    }

    async fn names(&self, address: IpAddr) -> Result<Vec<String>, Unavailable> {
        let pick = |record| match record {
            Record::Ptr(name) => Some(name),
            _ => None,
        };
        self.records(&reverse_name(address), RecordKind::Ptr, pick)
            .await
    }
}

impl vere_spf::Dns for Names {
    async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        Dns::texts(self, name).await
    }

    async fn addresses(&self, name: &str, family: Family) -> Result<Vec<IpAddr>, Unavailable> {
        Dns::addresses(self, name, family).await
    }

    async fn exchangers(&self, name: &str) -> Result<Vec<String>, Unavailable> {
        let pick = |record| match record {
            Record::Mx(_, host) => Some(host),
            _ => None,
        };
        self.records(name, RecordKind::Mx, pick).await
    }

    async fn names(&self, address: IpAddr) -> Result<Vec<String>, Unavailable> {
        Dns::names(self, address).await
    }
}
