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

#[cfg(test)]
mod tests {
    use vere_net::resolver::Zone;

    use super::*;

    const ZONE: &str = "one.test TXT first\none.test A 192.0.2.1\none.test A 192.0.2.2\n\
        one.test AAAA 2001:db8::1\none.test MX 10 mx.one.test\nmx.one.test AAAA 2001:db8::2\n\
        1.2.0.192.in-addr.arpa PTR mx.one.test\ndown.test FAIL\n";

    fn names() -> Names {
        Names::new(Resolver::from_zone(Zone::parse(ZONE).unwrap()))
    }

    #[tokio::test]
    async fn names_have_the_records_of_the_kind_asked_for() {
        let names = names();
        let texts = Ok(vec![b"first".to_vec()]);
        assert_eq!(Dns::texts(&names, "one.test").await, texts);
        assert_eq!(vere_spf::Dns::texts(&names, "one.test").await, texts);
        let both: Vec<IpAddr> = vec![[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        let wide: Vec<IpAddr> = vec!["2001:db8::1".parse().unwrap()];
        for (family, addresses) in [(Family::V4, both), (Family::V6, wide)] {
            let found = Dns::addresses(&names, "one.test", family).await;
            assert_eq!(found.as_ref(), Ok(&addresses));
            let found = vere_spf::Dns::addresses(&names, "one.test", family).await;
            assert_eq!(found, Ok(addresses));
        }
        let hosts = Ok(vec!["mx.one.test".to_owned()]);
        assert_eq!(vere_spf::Dns::exchangers(&names, "one.test").await, hosts);
        let client = [192, 0, 2, 1].into();
        assert_eq!(Dns::names(&names, client).await, hosts);
        assert_eq!(vere_spf::Dns::names(&names, client).await, hosts);
    }

    #[tokio::test]
    async fn missing_names_have_no_records_and_silent_ones_no_answer() {
        let names = names();
        // A name without the record of the question is there all the same.
        for (name, exists) in [
            ("one.test", Ok(true)),
            ("mx.one.test", Ok(true)),
            ("none.test", Ok(false)),
            ("down.test", Err(Unavailable)),
        ] {
            assert_eq!(Dns::exists(&names, name).await, exists, "{name}");
        }
        assert_eq!(Dns::texts(&names, "none.test").await, Ok(Vec::new()));
        assert_eq!(Dns::texts(&names, "mx.one.test").await, Ok(Vec::new()));
        assert_eq!(Dns::texts(&names, "down.test").await, Err(Unavailable));
        assert_eq!(
            vere_spf::Dns::exchangers(&names, "down.test").await,
            Err(Unavailable)
        );
        let stranger = [192, 0, 2, 9].into();
        assert_eq!(Dns::names(&names, stranger).await, Ok(Vec::new()));
    }
}
