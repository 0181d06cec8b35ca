//! Every page on the local disk: what reads all rows at once begins when no page is missing.

use super::state::Volume;
use super::state::pages::{ASKED_MAX, Bring};
use vere_ports::files::Errno;
use vere_ports::mail_accounts::Urgency;
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// Goes on with a walk. Returns whether every page is on the local disk or in memory.
    ///
    /// # Errors
    ///
    /// EIO if no account has a page.
    pub(super) fn bring_pages(&mut self, bring: &mut Bring) -> Result<bool, Errno> {
        let root = self.files.tree().pages().root().copied();
        if bring.root != root {
            // A checkpoint has taken the place of the last one.
            bring.root = root;
            bring.left = root.into_iter().map(|root| (root, None)).collect();
        }
        let mut awaited = Vec::new();
        while awaited.len() < ASKED_MAX
            && let Some((at, level)) = bring.left.pop()
        {
            let pages = self.files.tree().pages();
            let is_near = if level == Some(0) {
                pages.is_near(&at)
            } else {
                pages.has(&at)
            };
            if is_near {
                bring.left.extend(pages.below(&at, level));
            } else if self.want_page(at, Urgency::Idle) {
                awaited.push((at, level));
            } else {
                return Err(Errno::Io);
            }
        }
        let is_over = awaited.is_empty();
        bring.left.extend(awaited);
        Ok(is_over)
    }
}
