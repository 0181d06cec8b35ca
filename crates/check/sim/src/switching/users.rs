//! Users: a user of the first MTA sends, all users receive files.

use std::rc::Rc;

use bytes::Bytes;
use vere_mta400::{Destination as Next, Reports, Source, Submission};
use vere_queue::{Attempt, Disposition, Envelope};
use vere_x400::Apdu;

use super::account::Wanted;
use super::courier::{all, places};
use super::world::World;
use super::{Post, mtas};
use crate::schedule::MILLI;
use crate::stage::Staged;

/// Characters of a text with several checkpoints.
const LONG: usize = 6_000;

impl World {
    /// The user x of the first MTA submits a message.
    pub(super) fn submit(self: &Rc<Self>, post: Post) {
        let life = self.life_at(0);
        let id = format!("m{}", self.next_id());
        let (recipients, wanted) = self.recipients(post);
        let submission = Submission {
            originator: mtas::user("x", 0),
            recipients,
            reports: match post {
                Post::Several => Reports::All,
                Post::Short | Post::Long => Reports::Failures,
            },
            ..Submission::default()
        };
        let text = match post {
            Post::Long => "x".repeat(LONG),
            Post::Short | Post::Several => "Text".to_owned(),
        };
        let site = &self.mta(0).site;
        let apdu = match site.compose(&submission, "Subject", &text, &id) {
            Ok(message) => Apdu::Message(message).to_pieces(),
            Err(error) => return self.fail(format!("no message: {error}")),
        };
        self.account.borrow_mut().offered(&id, &wanted);
        let world = Rc::clone(self);
        let submit = async move {
            let taken = world.take(life, (Source::Local, None), apdu).await;
            world.note(|| format!("{id} submitted: {taken:?}"));
            if taken.is_ok() {
                world.account.borrow_mut().accepted(id);
            }
        };
        self.spawn(life, Box::pin(submit));
    }

    fn recipients(&self, post: Post) -> (Vec<vere_x400::OrAddress>, Vec<Wanted>) {
        let last = self.mtas() - 1;
        let one = Wanted {
            delivered: true,
            reported: post == Post::Several,
        };
        let mut recipients = vec![mtas::user("x", last)];
        let mut wanted = vec![one];
        if post == Post::Several {
            recipients.push(mtas::user("nobody", last));
            wanted.push(Wanted {
                delivered: false,
                reported: true,
            });
            for mta in 1..=last {
                recipients.push(mtas::user("y", mta));
                wanted.push(one);
            }
        }
        (recipients, wanted)
    }

    /// Files a unit for a user.
    pub(super) async fn file(
        self: Rc<Self>,
        mta: usize,
        (user, envelope, body): (String, Rc<Envelope>, Bytes),
    ) -> Option<Attempt> {
        let to = Next::File(user);
        let of = (envelope.head.trace, to.to_string());
        self.account.borrow_mut().begins(&of);
        self.pause(0..20 * MILLI).await;
        let unit = self.mta(mta).outgoing(&body, &places(&envelope), &to);
        let Some(apdu) = unit.ok().and_then(|unit| unit.apdu) else {
            self.fail(format!("{of:?} cannot be filed"));
            return None;
        };
        let mut account = self.account.borrow_mut();
        let taken = account.took(&of);
        let taken = taken.and_then(|()| account.delivered(&apdu, mta));
        let taken = taken.and_then(|()| account.ends(&of, true));
        drop(account);
        self.hold(taken);
        let filed = (Disposition::Delivered, "2.1.5", "filed".to_owned());
        Some(Attempt {
            reports_taken_over: false,
            ..all(&envelope, "local", filed)
        })
    }
}
