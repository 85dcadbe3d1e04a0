//! Branch: the gateway of a node that is not the home. It makes plain calls itself, and passes all
//! other requests on to the home.

use std::sync::Arc;

use config::Config;
use identity::SealingKeys;
use node::BranchJournal;
use store::recorder::Gate;
use store::{Entry, Fold as _};
use terminal::failure::Failure;
use terminal::output::LOG_TARGET;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, block_in_place};
use tokio::time::sleep;

use super::super::program_file::this_program;
use super::super::running::{Gateway, GatewayParts};
use super::shared::{BEGIN_RETRY, LOOK, PASSING, Shared};
use super::token_uses::NoUses;
use super::ways::NodeWays;

/// Runs a branch for as long as this is polled, whenever there is something that it may do. The one
/// that runs stays in the state when this ends.
pub(super) async fn keep(shared: &Arc<Shared>) {
    let renewed = Arc::<Notify>::default();
    loop {
        let begun = begin_when_possible(shared, &renewed).await;
        begun.gateway.export();
        *shared.branch.lock() = Some(Arc::clone(&begun.gateway));
        // What was taken over before that has found no branch.
        let config = shared.config.lock().clone();
        if config != begun.config {
            block_in_place(|| begun.gateway.reload(config.of_branch()));
        }
        renewed.notified().await;
        ended(end(shared)).await;
    }
}

/// The end of a branch, as it goes on.
pub(super) type BranchEnd = Option<JoinHandle<()>>;

/// Ends the branch, once its calls have ended. Its clients come again.
pub(super) fn end(shared: &Shared) -> BranchEnd {
    let branch = shared.branch.lock().take()?;
    Some(tokio::spawn(async move { branch.stop().await }))
}

/// Waits for the end of a branch.
pub(super) async fn ended(end: BranchEnd) {
    if let Some(end) = end {
        // A task that panicked has said so.
        let _ = end.await;
    }
}

/// A branch that has begun, with the configuration of which it has its part.
struct Begun {
    gateway: Arc<Gateway>,
    config: Config,
}

/// Begins a branch once this node has what the home has written.
async fn begin_when_possible(shared: &Arc<Shared>, renewed: &Arc<Notify>) -> Begun {
    loop {
        let config = branch_config(shared).filter(|_| shared.node.slot().is_some());
        let journal = config.as_ref().and_then(|_| shared.node.branch());
        let (Some(config), Some(journal)) = (config, journal) else {
            sleep(LOOK).await;
            continue;
        };
        let own = config.clone().of_branch();
        let failure = match block_in_place(|| begin(shared, own, &journal, renewed)) {
            Ok(gateway) => return Begun { gateway, config },
            Err(failure) => failure,
        };
        if !PASSING.contains(&failure.code.as_str()) {
            tracing::warn!(target: LOG_TARGET, error = failure.message, "this node makes no calls itself yet");
        }
        sleep(BEGIN_RETRY).await;
    }
}

/// The configuration, if by it there is something that a branch may do.
fn branch_config(shared: &Shared) -> Option<Config> {
    let config = shared.config.lock();
    config.has_branch().then(|| config.clone())
}

fn begin(
    shared: &Arc<Shared>,
    config: Config,
    journal: &Arc<BranchJournal>,
    renewed: &Arc<Notify>,
) -> Result<Arc<Gateway>, Failure> {
    let of_gate = Arc::clone(shared);
    let gateway = Arc::new(Gateway::of(GatewayParts {
        config,
        exe: this_program(),
        file: None,
        journal: Some(journal.writer()?),
        audit: shared
            .audit
            .gated_by(Gate::new(move || of_gate.node.admits())),
        operator: shared.operator,
        nodes: Some(Arc::new(NodeWays::of(shared))),
        branch: shared.node.slot(),
    })?);
    gateway.use_tokens_by(Arc::new(NoUses));
    follow(&gateway, journal, renewed);
    tracing::info!(target: LOG_TARGET, "this node makes plain calls itself");
    Ok(gateway)
}

/// Has a branch follow its journal. With other sealing keys it begins anew.
fn follow(gateway: &Arc<Gateway>, journal: &BranchJournal, renewed: &Arc<Notify>) {
    let (weak, renewed) = (Arc::downgrade(gateway), Arc::clone(renewed));
    let runtime = Handle::current();
    journal.on_applied(Box::new(move |entries: &[Entry]| {
        if entries
            .iter()
            .any(|entry| entry.owner() == SealingKeys::OWNER)
        {
            renewed.notify_one();
        }
        // The node's own threads serve no clients.
        let _entered = runtime.enter();
        if let Some(gateway) = weak.upgrade() {
            gateway.follow(Some(entries));
        }
    }));
    // What was written since its parts have read the journal.
    gateway.follow(None);
}
