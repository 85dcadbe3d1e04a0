//! Uses of refresh tokens, one at a time in the cluster.

use std::sync::Arc;
use std::time::Duration;

use node::{HomeJournal, NoFlight, TokenFlight};
use oauth::token_uses::{Beginning, NotUsable, TokenUse, TokenUses};

/// The uses by the home.
#[derive(Debug)]
pub(super) struct ClusterUses(pub(super) Arc<HomeJournal>);

impl TokenUses for ClusterUses {
    fn begin<'u>(&'u self, account: &'u str) -> Beginning<'u> {
        Box::pin(async move {
            match self.0.fly(account).await {
                Ok(flight) => Ok(Box::new(ClusterUse(flight)) as Box<dyn TokenUse>),
                Err(NoFlight::Over) => Err(NotUsable::Used),
                Err(NoFlight::Elsewhere) => Err(NotUsable::Elsewhere),
            }
        })
    }
}

/// A use.
struct ClusterUse(TokenFlight);

impl TokenUse for ClusterUse {
    fn time_left(&self) -> Duration {
        self.0.time_left()
    }

    fn end(self: Box<Self>) {
        self.0.end();
    }
}

/// The uses by a node that is not the home: it makes none.
#[derive(Debug)]
pub(super) struct NoUses;

impl TokenUses for NoUses {
    fn begin<'u>(&'u self, _: &'u str) -> Beginning<'u> {
        Box::pin(async { Err(NotUsable::Elsewhere) })
    }
}
