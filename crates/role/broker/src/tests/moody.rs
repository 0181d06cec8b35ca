//! A directory that fails now and then.

use std::sync::atomic::{AtomicUsize, Ordering};

use vere_ports::directory::{
    Account, Alias, Change, ChangeError, Domain, Lookup, Page, StoreError,
};

use super::*;

/// A directory in memory whose lookups can fail, and are counted.
#[derive(Debug, Default)]
struct Moody {
    store: MemoryStore,
    /// Lookups of domains that will fail.
    failures: AtomicUsize,
    lookups: AtomicUsize,
}

impl Lookup for Moody {
    fn domain(&self, name: &DomainName) -> Result<Option<Domain>, StoreError> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let fewer = |failures: usize| failures.checked_sub(1);
        let (order, fails) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.failures.fetch_update(order, fails, fewer) {
            Ok(_) => Err(StoreError::Busy("directory".into())),
            Err(_) => self.store.domain(name),
        }
    }

    fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreError> {
        self.store.account(name)
    }

    fn alias(&self, name: &AccountName) -> Result<Option<Alias>, StoreError> {
        self.store.alias(name)
    }

    fn count(&self, domain: &DomainName) -> Result<(usize, usize), StoreError> {
        self.store.count(domain)
    }
}

impl DirectoryStore for Moody {
    fn apply(&self, change: &Change) -> Result<(), ChangeError> {
        self.store.apply(change)
    }

    fn revision(&self) -> Result<u64, StoreError> {
        self.store.revision()
    }

    fn domains(&self) -> Result<Vec<Domain>, StoreError> {
        self.store.domains()
    }

    fn accounts(&self, page: &Page) -> Result<Vec<Account>, StoreError> {
        self.store.accounts(page)
    }

    fn aliases(&self, page: &Page) -> Result<Vec<Alias>, StoreError> {
        self.store.aliases(page)
    }
}

#[test]
fn a_failure_is_forgotten_and_an_answer_is_not() {
    let store = Arc::new(Moody::default());
    let answers = answers(filled(store.clone()));
    connected(&answers, async move |mut stream| {
        let mut ask = async |text: &str| ask(&mut stream, text).await;
        store.failures.store(1, Ordering::Relaxed);
        let failed = ask("ann@example.org").await;
        assert_eq!(failed, refused(&Refusal::LocalError));
        assert_eq!(ask("ann@example.org").await, Answer::Accepted);
        let unknown = refused(&Refusal::MailboxUnknown);
        assert_eq!(ask("bob@example.org").await, unknown);
        // Further questions cost no lookup.
        let lookups = store.lookups.load(Ordering::Relaxed);
        for _ in 0..3 {
            assert_eq!(ask("ann@example.org").await, Answer::Accepted);
            assert_eq!(ask("bob@example.org").await, unknown);
        }
        assert_eq!(store.lookups.load(Ordering::Relaxed), lookups);
    });
}
