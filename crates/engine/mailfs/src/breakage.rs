//! Known breakages, to show that tests find them. They exist in tests only.

/// A breakage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breakage {
    /// A commit counts as won although UIDs below its own were not inspected.
    Gap,
    /// A merge does not say what was merged.
    MergeTwice,
    /// The loser's content is dropped.
    ContentDropped,
    /// The journal does not tell what a rebase has changed.
    RebaseForgotten,
    /// Commits are copied to further accounts before they are in the chain.
    CopiedEarly,
    /// The journal does not tell what rows were below its changes, as journals of earlier versions.
    BasesForgotten,
    /// A commit is sent before the packs that it names are stored.
    CommitBeforePacks,
    /// A rename over a name is sent before the content of its file.
    RenameBeforeContent,
    /// A commit is sent before the journal's word of it is on the disk.
    BegunUnsynced,
    /// Changes are never synced without a commit.
    JournalUnsynced,
    /// The journal does not tell that a part of its changes is in the chain.
    PartsReplayed,
    /// Mails are removed as soon as they look like garbage.
    NoGrace,
}

#[cfg(test)]
thread_local! {
    static BROKEN: std::cell::Cell<Option<Breakage>> = const { std::cell::Cell::new(None) };
}

/// Breaks the code of this thread, or mends it.
#[cfg(test)]
pub(crate) fn break_by(breakage: Option<Breakage>) {
    BROKEN.set(breakage);
}

/// Whether the code is broken so.
#[cfg(test)]
pub(crate) fn is_broken(breakage: Breakage) -> bool {
    BROKEN.get() == Some(breakage)
}

/// Whether the code is broken so.
#[cfg(not(test))]
pub(crate) const fn is_broken(_: Breakage) -> bool {
    false
}
