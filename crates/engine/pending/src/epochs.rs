//! Key epochs of a mounted volume, as `facts` moves them on.

/// The present key epochs.
#[derive(Debug, Default)]
pub struct Epochs {
    /// The epoch that begins when the chain lists its slots.
    pub next: Option<u16>,
    /// Commits of earlier epochs are no children of the newest commit.
    pub floor: u16,
    /// The generation behind which commits have the present epoch.
    pub behind: u64,
}

impl Epochs {
    /// Whether a mail of this epoch may be a commit behind the newest one.
    pub const fn allow(&self, epoch: u16) -> bool {
        epoch >= self.floor
    }
}
