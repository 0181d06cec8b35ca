//! Lists of clients.

use std::net::IpAddr;

use vere_handoff::question::{Answer, Kept, ListsAnswer, NoRecords, Question};
use vere_lists::Lists;
use vere_net::resolver::ResolverError;
use vere_settings::Settings;

use super::call_ahead::Later;

/// Returns the lists of the settings; absent without a front, which asks about them.
///
/// # Errors
/// The zone file or the system's list of name servers cannot be used.
pub(super) fn lists(settings: &Settings) -> Result<Option<Lists>, ResolverError> {
    let lists = settings.front.as_ref().map(|front| &front.lists);
    lists.map(|lists| Lists::new(settings, lists)).transpose()
}

/// Answers a question about lists, at once or once the lists have answered.
pub(super) fn answer(
    lists: Option<&Lists>,
    id: u64,
    question: Question<'_>,
) -> Result<Answer, Later> {
    Ok(match (question, lists) {
        (Question::Lists(client), Some(lists)) => {
            let lists = lists.clone();
            return Err(Box::pin(async move { (id, ask(&lists, client).await) }));
        }
        (Question::Lists(_), None) => Answer::Lists(ListsAnswer::new(true, Vec::new(), "", "")),
        (Question::ListFigures(number), lists) => {
            let figures = lists.and_then(|lists| lists.figures(number));
            figures.map_or(Answer::Nothing(NoRecords::NoSuchName), Answer::ListFigures)
        }
        (Question::Keeping(keeping), Some(lists)) => {
            Answer::Kept(lists.kept(keeping.zone.as_str(), keeping.client))
        }
        _ => Answer::Kept(Kept::NoSuchList),
    })
}

async fn ask(lists: &Lists, client: IpAddr) -> Answer {
    let found = lists.ask(client).await;
    let listings = found.listings();
    if !listings.is_empty() {
        let (sum, listed) = (found.sum, found.is_listed);
        tracing::info!(%client, sum, listed, lists = %listings, "client on lists");
    }
    Answer::Lists(found.answer())
}
