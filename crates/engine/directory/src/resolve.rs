//! Where mail for an address goes.

use std::collections::{HashSet, VecDeque};

use vere_ports::directory::{AccountName, DomainName, StoreError};
use vere_smtp::address::AddrSpec;
use vere_smtp::refusal::Refusal;

use crate::Directory;

/// The most addresses followed for a recipient: enough for an alias of a few hundred people who all forward; too
/// few for aliases that multiply by aliases.
pub const EXPANSION_MAX: usize = 5_000;

/// Where mail for an address goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The mailbox of this account.
    Local {
        /// The account.
        account: AccountName,
        /// The tag of the address, as written by the sender, if any.
        tag: Option<String>,
    },
    /// These destinations, without duplicates, at least one.
    Forward(Vec<Target>),
    /// The domain is not local.
    NotLocal,
    /// The domain is local, and the user does not exist. Permanent, 5.1.1.
    NoSuchUser,
    /// The aliases form a loop without an account, or lead to too many addresses. Permanent, 5.4.6.
    Loop,
}

impl Resolution {
    /// Gives the reason to refuse the recipient, if it is refused; [`NotLocal`](Self::NotLocal) is
    /// no reason, since the client may be allowed to relay.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::NoSuchUser => Some(Refusal::MailboxUnknown),
            Self::Loop => Some(Refusal::RoutingLoop),
            Self::Local { .. } | Self::Forward(_) | Self::NotLocal => None,
        }
    }
}

/// Where an alias leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// The mailbox of an account.
    Local {
        /// The account.
        account: AccountName,
        /// The tag named by the alias, if any.
        tag: Option<String>,
    },
    /// An address in a domain that is not local.
    Remote(AddrSpec),
}

impl Directory {
    /// Resolves a recipient.
    ///
    /// Looked for are, in this order: the exact name, as alias, as account; the name without its tag, as alias,
    /// as account; the domain's catch-all address. Aliases are followed however deep they lead, each address
    /// once and at most [`EXPANSION_MAX`] in all. Missing targets of an alias are skipped as long as other
    /// targets remain.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot be read; the recipient must then be deferred.
    pub fn resolve(&self, recipient: &AddrSpec) -> Result<Resolution, StoreError> {
        let Some(domain) = self.own_domain(recipient)? else {
            return Ok(Resolution::NotLocal);
        };
        let mut walk = Walk::default();
        match self.look(&domain, &recipient.local_part_unquoted())? {
            Found::Account(account, tag) => return Ok(Resolution::Local { account, tag }),
            Found::Targets(name, targets) => walk.follow(None, name, targets),
            Found::CatchAll(target) => walk.queue.push_back((None, target)),
            Found::Nobody => return Ok(Resolution::NoSuchUser),
        }
        self.walk(&mut walk)?;
        Ok(match (walk.found.pop(), walk.found.is_empty()) {
            _ if walk.over => Resolution::Loop,
            (Some(Target::Local { account, tag }), true) => Resolution::Local { account, tag },
            (Some(last), _) => {
                walk.found.push(last);
                Resolution::Forward(walk.found)
            }
            (None, _) if walk.looped => Resolution::Loop,
            (None, _) => Resolution::NoSuchUser,
        })
    }

    /// Resolves `Postmaster` without a domain (RFC 5321 section 4.5.1): the postmaster of `hostname`'s domain if
    /// local, or else of the first domain with a postmaster.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot be read.
    pub fn resolve_postmaster(&self, hostname: &str) -> Result<Resolution, StoreError> {
        let own = DomainName::parse(hostname).ok();
        let domains = self.store.domains()?.into_iter().map(|domain| domain.name);
        for domain in own.into_iter().chain(domains) {
            let Ok(address) = AddrSpec::new("postmaster", domain.as_str()) else {
                continue;
            };
            match self.resolve(&address)? {
                Resolution::NotLocal | Resolution::NoSuchUser => {}
                found => return Ok(found),
            }
        }
        Ok(Resolution::NoSuchUser)
    }

    /// Whether mail to `address` reaches `account`, so that the account may send under the address.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot be read.
    pub fn is_address_of(
        &self,
        account: &AccountName,
        address: &AddrSpec,
    ) -> Result<bool, StoreError> {
        Ok(match self.resolve(address)? {
            Resolution::Local { account: owner, .. } => owner == *account,
            Resolution::Forward(destinations) => destinations.iter().any(|destination| {
                matches!(destination, Target::Local { account: owner, .. } if owner == account)
            }),
            Resolution::NotLocal | Resolution::NoSuchUser | Resolution::Loop => false,
        })
    }

    fn walk(&self, walk: &mut Walk) -> Result<(), StoreError> {
        while let Some((from, target)) = walk.queue.pop_front() {
            walk.looked_at += 1;
            if walk.looked_at > EXPANSION_MAX {
                walk.over = true;
                return Ok(());
            }
            // Changes check the targets, so only an edited file can bring an invalid target here.
            let Ok(address) = AddrSpec::parse(&target) else {
                continue;
            };
            let Some(domain) = self.own_domain(&address)? else {
                walk.add(Target::Remote(address));
                continue;
            };
            match self.look(&domain, &address.local_part_unquoted())? {
                Found::Account(account, tag) => walk.add(Target::Local { account, tag }),
                Found::Targets(name, _) if walk.is_below(from, &name) => {
                    self.keep_copy(&name, walk)?
                }
                Found::Targets(name, targets) => walk.follow(from, name, targets),
                // A catch-all is for senders' typing errors, not for aliases'.
                Found::CatchAll(_) | Found::Nobody => {}
            }
        }
        Ok(())
    }

    /// An alias leads back to itself: the target is the account of the same name, if any.
    fn keep_copy(&self, own: &AccountName, walk: &mut Walk) -> Result<(), StoreError> {
        match self.store.account(own)? {
            Some(account) => walk.add(Target::Local {
                account: account.name,
                tag: None,
            }),
            None => walk.looped = true,
        }
        Ok(())
    }

    /// Finds the account that an address names by itself, with the tag behind the separator. Aliases and the
    /// catch-all address are not followed: an account of exactly this name comes first, then the account of the
    /// name without the tag.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn account_at(
        &self,
        address: &AddrSpec,
    ) -> Result<Option<(AccountName, Option<String>)>, StoreError> {
        let Some(domain) = self.own_domain(address)? else {
            return Ok(None);
        };
        let local = address.local_part_unquoted();
        let whole = (&*local, None);
        let parts = self.separator.and_then(|mark| local.split_once(mark));
        let tagged = parts.map(|(base, tag)| (base, Some(tag.to_owned())));
        for (name, tag) in [Some(whole), tagged].into_iter().flatten() {
            if let Ok(name) = AccountName::new(name, domain.clone())
                && let Some(account) = self.store.account(&name)?
            {
                return Ok(Some((account.name, tag)));
            }
        }
        Ok(None)
    }

    fn own_domain(&self, address: &AddrSpec) -> Result<Option<DomainName>, StoreError> {
        let Ok(domain) = DomainName::parse(address.domain()) else {
            return Ok(None);
        };
        Ok(self.store.domain(&domain)?.map(|domain| domain.name))
    }

    /// Looks up a local part in a local domain.
    fn look(&self, domain: &DomainName, local: &str) -> Result<Found, StoreError> {
        // What cannot be a name can still be caught by the catch-all address.
        if let Ok(name) = AccountName::new(local, domain.clone())
            && let Some(found) = self.exact(name, None)?
        {
            return Ok(found);
        }
        if let Some((base, tag)) = self.separator.and_then(|mark| local.split_once(mark))
            && let Ok(name) = AccountName::new(base, domain.clone())
            && let Some(found) = self.exact(name, Some(tag.to_owned()))?
        {
            return Ok(found);
        }
        let domain = self.store.domain(domain)?;
        Ok(domain
            .and_then(|domain| domain.catch_all)
            .map_or(Found::Nobody, Found::CatchAll))
    }

    fn exact(&self, name: AccountName, tag: Option<String>) -> Result<Option<Found>, StoreError> {
        if let Some(alias) = self.store.alias(&name)? {
            return Ok(Some(Found::Targets(name, alias.targets)));
        }
        Ok(self
            .store
            .account(&name)?
            .map(|account| Found::Account(account.name, tag)))
    }
}

/// The meaning of a name.
enum Found {
    Account(AccountName, Option<String>),
    Targets(AccountName, Vec<String>),
    CatchAll(String),
    Nobody,
}

/// The state of following aliases, breadth first.
#[derive(Default)]
struct Walk {
    /// Targets still to be looked at, each with the place in `followed` of the alias naming it.
    queue: VecDeque<(Option<usize>, String)>,
    /// The aliases followed, each with the index of the alias before.
    followed: Vec<(AccountName, Option<usize>)>,
    names: HashSet<AccountName>,
    known: HashSet<Target>,
    found: Vec<Target>,
    looked_at: usize,
    /// An alias led back to itself, and there is no account of its name.
    looped: bool,
    /// The number of addresses exceeds the limit.
    over: bool,
}

impl Walk {
    /// Follows an alias once, however many aliases lead to the alias.
    fn follow(&mut self, from: Option<usize>, name: AccountName, targets: Vec<String>) {
        if self.names.insert(name.clone()) {
            let place = self.followed.len();
            self.followed.push((name, from));
            self.queue
                .extend(targets.into_iter().map(|target| (Some(place), target)));
        }
    }

    /// Says whether the way to the alias at `from` went through `name`.
    fn is_below(&self, from: Option<usize>, name: &AccountName) -> bool {
        let mut next = from.and_then(|place| self.followed.get(place));
        while let Some((above, from)) = next {
            if above == name {
                return true;
            }
            next = from.and_then(|place| self.followed.get(place));
        }
        false
    }

    fn add(&mut self, destination: Target) {
        if self.known.insert(destination.clone()) {
            self.found.push(destination);
        }
    }
}
