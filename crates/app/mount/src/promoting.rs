//! A change of the lead, carried out between the engine of a promotion and the accounts.

use vere_mailfs::volume::{Create, Terms};
use vere_ports::mail_accounts::Fault;
use vere_process::failure::Failure;
use vere_promotion::{Promoted, Promotion, PromotionError, PromotionStep, Source};

use crate::accounts::{ANSWER_TIMEOUT, Ask};
use crate::host::{Clock, Event};
use crate::lines::{self, Level};
use crate::listings::Between;
use crate::news::News;
use crate::volume::moment;

/// Has a promotion read and write all its needs.
pub(crate) fn run(
    (terms, of): (&Terms, &Create),
    (source, to): (Source, u16),
    (first, clock): (u64, Clock),
    between: Between<'_>,
    news: &mut dyn FnMut(News),
) -> Result<Promoted, Failure> {
    attempt((terms, of), (source, to), (first, clock), between, news).map_err(Failure::from)
}

/// As [`run`], with the error as the engine has it.
pub(crate) fn attempt(
    (terms, of): (&Terms, &Create),
    (source, to): (Source, u16),
    (first, clock): (u64, Clock),
    (ask, answers): Between<'_>,
    news: &mut dyn FnMut(News),
) -> Result<Promoted, PromotionError> {
    let date = moment(clock.now()).date();
    let mut promotion = Promotion::new(terms, of.clone(), (source, to), (first, date));
    loop {
        while let Some(step) = promotion.poll() {
            match step {
                PromotionStep::Ask(id, account, urgency, request) => {
                    ask(Ask(id, account, urgency, request));
                }
                PromotionStep::Left(account, uid, reason) => lines::log(
                    Level::Warn,
                    &format!("account {account}: the mail of UID {uid} is not copied: {reason}"),
                ),
            }
        }
        if promotion.is_over() {
            return promotion.finish();
        }
        match answers.recv_timeout(ANSWER_TIMEOUT) {
            Ok(Event::Answer(id, answer)) => promotion.answered(id, answer),
            Ok(_) => {}
            Err(_) => {
                let text = "expected an answer within 60 s; found none".to_owned();
                promotion.give_up(Fault::Unreachable(text));
            }
        }
        let (done, all) = promotion.progress();
        news(News::Progress(done, all));
    }
}
