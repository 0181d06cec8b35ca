//! How the connection to a host has to be secured, and who says so.
//!
//! In this order: the settings may switch TLS off; TLSA records that DNSSEC proves (DANE, RFC 7672) come
//! before the domain's MTA-STS policy (RFC 8461 section 2) and before the roots that the settings trust;
//! without any of them TLS is used where it is offered (RFC 7435).
//!
//! A sender may demand more: with REQUIRETLS (RFC 8689) nothing goes to a host that is not proven to be the
//! right one, is not verified, or does not promise the same. A sender that asks for less, by `TLS-Required:
//! No`, is spared the demands of the recipient's domain, not those of the settings.

use vere_net::resolver::TlsaAnswer;
use vere_net::sts::{FetchError, Mode, Policy, StsAnswer};
use vere_net::tls::{Dane, PeerCertificate, TlsInfo, Tlsa};
use vere_queue::TlsWish;
use vere_settings::TlsMode;
use vere_telemetry::metrics::TlsPolicy;

use super::Outbound;
use super::hosts::{Host, Hosts};

/// The encryption required on one connection.
#[derive(Debug, Clone)]
pub struct Security {
    /// The mode of encryption.
    pub(super) tls: TlsMode,
    /// The policy that demands the mode.
    pub policy: TlsPolicy,
    /// The DANE records that verify the host instead of root certificates.
    pub(super) dane: Option<DaneHost>,
    /// The TLSA records that led to the demand, for reports.
    pub(super) tlsa: Vec<String>,
}

/// A host with usable TLSA records.
#[derive(Debug, Clone)]
pub(super) struct DaneHost {
    pub(super) dane: Dane,
    /// The name that the records were found by.
    pub(super) base: String,
}

/// Why nothing may be sent to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forbidden {
    /// Who says so.
    pub policy: TlsPolicy,
    /// In words.
    pub reply: String,
}

impl Security {
    /// What the settings want.
    fn by_settings(tls: TlsMode) -> Self {
        Self {
            tls,
            policy: match tls {
                TlsMode::Off => TlsPolicy::Off,
                TlsMode::Opportunistic => TlsPolicy::Opportunistic,
                TlsMode::Required | TlsMode::Implicit => TlsPolicy::Required,
            },
            dane: None,
            tlsa: Vec::new(),
        }
    }

    /// TLS, with a certificate that somebody vouches for: by STARTTLS, unless the settings want it from the
    /// first octet.
    fn demanded(wanted: TlsMode, policy: TlsPolicy, dane: Option<DaneHost>) -> Self {
        let tls = match wanted {
            TlsMode::Implicit => TlsMode::Implicit,
            _ => TlsMode::Required,
        };
        Self {
            tls,
            policy,
            dane,
            tlsa: Vec::new(),
        }
    }

    fn because_of(self, records: &[Tlsa]) -> Self {
        Self {
            tlsa: records.iter().map(Tlsa::to_string).collect(),
            ..self
        }
    }

    /// Whether it must be seen who the host is.
    pub(super) fn is_verified(&self) -> bool {
        self.tls.is_verified() && self.policy != TlsPolicy::DaneUnusable
    }

    /// Whether a connection that came about is as the policy wants it.
    pub(super) fn is_kept(&self, tls: Option<&TlsInfo>) -> bool {
        match self.policy {
            TlsPolicy::Off | TlsPolicy::Opportunistic => true,
            TlsPolicy::DaneUnusable => tls.is_some(),
            _ => tls.is_some_and(|tls| tls.certificate == PeerCertificate::Valid),
        }
    }
}

/// The TLSA records of a host, and the name that they were found by.
pub(crate) type HostTlsa = Option<(String, Vec<Tlsa>)>;

impl Outbound {
    /// The MTA-STS policy of a domain, if one holds and the settings want to know.
    pub(super) async fn sts_policy(&self, domain: &str, tls: TlsMode) -> StsAnswer {
        if !self.config().settings.delivery.mta_sts || tls == TlsMode::Off {
            return StsAnswer::None;
        }
        self.sts.policy(domain).await
    }

    /// What is known of a domain's MTA-STS policy, for a person who asks.
    pub async fn sts_answer(&self, domain: &str) -> StsAnswer {
        self.sts.policy(domain).await
    }

    /// Fetches the MTA-STS policy of a domain that perhaps no record announces, for a person who asks.
    ///
    /// # Errors
    /// The reason why there is no policy.
    pub async fn fetched_policy(&self, domain: &str) -> Result<Policy, FetchError> {
        self.sts.fetched(domain).await
    }

    /// Looks up the TLSA records of a host, if DNSSEC proves both the records and the MX.
    ///
    /// # Errors
    /// When the look-up fails: records may exist, so the host must not be used (RFC 7672 section 2.1.1).
    pub async fn tlsa(&self, hosts: &Hosts, host: &Host) -> Result<HostTlsa, Forbidden> {
        let wanted = self.config().settings.delivery.dane
            && hosts.tls != TlsMode::Off
            && hosts.wish != TlsWish::Optional;
        // RFC 7672 section 2.2.1: without proven MX records the host could be anybody's.
        if !wanted || !hosts.proven {
            return Ok(None);
        }
        for base in &host.tlsa_bases {
            match self.resolver.tlsa(base, host.port).await {
                TlsaAnswer::Found(records) => return Ok(Some((base.clone(), records))),
                TlsaAnswer::None => {}
                TlsaAnswer::TempFail(failure) => {
                    return Err(Forbidden {
                        policy: TlsPolicy::Dane,
                        reply: format!("cannot look up the TLSA records of {base}: {failure}"),
                    });
                }
            }
        }
        Ok(None)
    }

    /// Decides the encryption for a connection to one of the hosts.
    ///
    /// # Errors
    /// When a policy forbids the connection.
    pub async fn security(&self, hosts: &Hosts, host: &Host) -> Result<Security, Forbidden> {
        let security = self.demanded(hosts, host).await?;
        if hosts.wish == TlsWish::Required {
            hosts.required(host, security)
        } else {
            Ok(security)
        }
    }

    /// What settings and the recipient's domain demand.
    async fn demanded(&self, hosts: &Hosts, host: &Host) -> Result<Security, Forbidden> {
        let Some((base, records)) = self.tlsa(hosts, host).await? else {
            return hosts.without_dane(host);
        };
        // RFC 7672 section 3.2.2: the names that a certificate below a trust anchor may have.
        let names = [base.clone(), host.name.clone()];
        let names: Vec<String> = names.into_iter().chain(hosts.domain.clone()).collect();
        match Dane::new(&records, &names) {
            Some(dane) => {
                let dane = Some(DaneHost { dane, base });
                let security = Security::demanded(hosts.tls, TlsPolicy::Dane, dane);
                Ok(security.because_of(&records))
            }
            // Section 2.2: unusable records still demand encryption. A stricter demand remains in effect.
            None => match hosts.without_dane(host)? {
                security if security.is_verified() => Ok(security),
                _ => {
                    let security = Security::demanded(hosts.tls, TlsPolicy::DaneUnusable, None);
                    Ok(security.because_of(&records))
                }
            },
        }
    }
}

impl Hosts {
    /// What REQUIRETLS makes of it (RFC 8689 section 4.2.1).
    fn required(&self, host: &Host, security: Security) -> Result<Security, Forbidden> {
        let forbidden = |reply: String| Forbidden {
            policy: TlsPolicy::RequireTls,
            reply,
        };
        if security.tls == TlsMode::Off {
            return Err(forbidden("message needs TLS, which is off".to_owned()));
        }
        if !self.proven
            && !self
                .sts
                .as_ref()
                .is_some_and(|held| held.policy.names(&host.name))
        {
            let reply = "message needs REQUIRETLS, and neither DNSSEC nor MTA-STS proves this host";
            return Err(forbidden(reply.to_owned()));
        }
        if security.is_verified() {
            return Ok(security);
        }
        Ok(Security {
            tlsa: security.tlsa,
            ..Security::demanded(self.tls, TlsPolicy::RequireTls, None)
        })
    }

    /// How a connection to a host without TLSA records has to be secured.
    fn without_dane(&self, host: &Host) -> Result<Security, Forbidden> {
        let wanted = Security::by_settings(self.tls);
        let Some(held) = &self.sts else {
            return Ok(wanted);
        };
        let named = held.policy.names(&host.name);
        match held.policy.mode {
            Mode::Enforce if named => Ok(Security::demanded(self.tls, TlsPolicy::StsEnforce, None)),
            Mode::Enforce => Err(Forbidden {
                policy: TlsPolicy::StsEnforce,
                reply: format!("the domain's MTA-STS policy does not name {}", host.name),
            }),
            // RFC 8461 section 5: the mail is sent as if there were no policy. What the settings demand
            // they demand all the same.
            Mode::Testing if wanted.tls == TlsMode::Opportunistic => {
                if !named {
                    tracing::info!(remote = %host.name, "MTA-STS policy under test does not name the host");
                }
                Ok(Security {
                    policy: TlsPolicy::StsTesting,
                    ..wanted
                })
            }
            Mode::Testing | Mode::None => Ok(wanted),
        }
    }

    /// Whether a policy that is only tried would let mail go to this host.
    pub(super) fn is_named(&self, host: &Host) -> bool {
        let sts = self.sts.as_ref();
        sts.is_none_or(|held| held.policy.names(&host.name))
    }
}
