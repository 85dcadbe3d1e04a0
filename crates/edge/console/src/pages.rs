//! The content of each page, by its address.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::api_client::Problem;
use crate::outcome::no_page;
use crate::page::Content;
use crate::state::{At, Visit};
use crate::{
    access, audit, calls, coverage, definitions, inbox, like, overview, people, proposal, rights,
    rules, servers, tools,
};

/// The answer of the API, in its pages, that a page was last written of.
#[derive(Default)]
pub(crate) struct LastAnswer(Option<[u8; 32]>);

impl LastAnswer {
    /// Takes an answer; whether it is another one than the last.
    fn is_new(&mut self, answer: &[String]) -> bool {
        let mut hash = Sha256::new();
        for page in answer {
            hash.update(page);
        }
        let hash: [u8; 32] = hash.finalize().into();
        self.0.replace(hash) != Some(hash)
    }
}

/// The content of a page.
pub(crate) async fn content(visit: &Arc<Visit>, at: &At) -> Result<Content, Problem> {
    let new = news(visit, at, &mut LastAnswer::default()).await?;
    new.ok_or_else(no_page)
}

/// The content of a page, unless it is what it was: one with proposals is written only when the API
/// answers something else.
pub(crate) async fn news(
    visit: &Arc<Visit>,
    at: &At,
    last: &mut LastAnswer,
) -> Result<Option<Content>, Problem> {
    let content = match at {
        At::Inbox { all } => {
            let list = inbox::answer(visit).await?;
            if !last.is_new(&list) {
                return Ok(None);
            }
            inbox::content(visit, list, all).await
        }
        At::Proposal { id, all, edit } => {
            let answer = proposal::answer(visit, id).await?;
            if !last.is_new(std::slice::from_ref(&answer)) {
                return Ok(None);
            }
            proposal::content(visit, answer, *all, *edit).await
        }
        At::Past => inbox::past(visit).await,
        At::Like { id } => like::content(visit, id).await,
        At::Overview => overview::content(visit).await,
        At::People { topic } => people::content(visit, topic).await,
        At::Servers => servers::content(visit).await,
        At::Server { name } => servers::one(visit, name).await,
        At::Definitions { name } => definitions::content(visit, name).await,
        At::Tools { query } => tools::content(visit, query).await,
        At::Tool { name, all } => tools::one(visit, name, *all, None).await,
        At::Rules { topic } => rules::content(visit, topic).await,
        At::Coverage { topic } => coverage::content(visit, topic).await,
        At::Audit { filters } => audit::content(visit, filters).await,
        At::Calls { filters } => calls::content(visit, filters).await,
        At::Call { id, place } => calls::one(visit, id, place).await,
        At::Access => access::content(visit).await,
        At::Rights { name, topic } => rights::content(visit, name, topic).await,
        At::Unknown => Err(no_page()),
    };
    content.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_answer_is_no_news() {
        let mut last = LastAnswer::default();
        assert!(last.is_new(&["a".to_owned()]));
        assert!(!last.is_new(&["a".to_owned()]));
        assert!(last.is_new(&["b".to_owned()]));
    }
}
