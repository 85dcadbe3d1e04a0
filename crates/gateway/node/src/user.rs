//! User of the runner: the copy of the common journal, and this node's time as the home.

use std::sync::{Arc, OnceLock};

use cluster::{JournalHead, Shard, StepDownCause};
use platform::Mutex;
use runner::{HomeUser, Runner, ShardLine, UserEffect};
use store::Ledger;
use tokio::sync::watch;

use crate::branch::BranchJournal;
use crate::copy::{AppliedGroup, JournalCopy};
use crate::journal::HomeJournal;
use crate::lives::{NodeLives, NodeRecord};
use crate::standing::NodeStanding;

/// The user.
pub(crate) struct NodeUser {
    pub(crate) copy: Arc<Mutex<JournalCopy>>,
    pub(crate) runner: Arc<OnceLock<Runner>>,
    pub(crate) home: Mutex<Option<Arc<HomeJournal>>>,
    pub(crate) branch: Arc<Mutex<Option<Arc<BranchJournal>>>>,
    pub(crate) standing: watch::Sender<NodeStanding>,
    pub(crate) lives: Ledger<NodeLives>,
}

impl HomeUser for NodeUser {
    fn carry_out(&self, effect: UserEffect) {
        match effect {
            UserEffect::Apply { revision, lines } => {
                let (branch, groups) = self.apply(revision, &lines);
                if let Some(branch) = branch {
                    branch.report(&groups);
                }
            }
            // This node is not the home.
            UserEffect::Reset { revision, lines } => {
                self.end_branch();
                {
                    let mut copy = self.copy.lock();
                    copy.reset();
                    copy.apply(revision, &lines);
                }
                // A person has accepted a loss.
                self.standing.send_modify(|standing| {
                    if matches!(standing, NodeStanding::Lost) {
                        *standing = NodeStanding::Away;
                    }
                });
            }
            UserEffect::BecomeHome { shard, epoch, .. } => self.begin(&shard, epoch),
            UserEffect::StepDown { shard, epoch, why } => self.step_down(&shard, epoch, &why),
            UserEffect::StopTopic { shard, known } => {
                tracing::error!(
                    shard = shard.as_str(),
                    epoch = known.epoch,
                    number = known.number,
                    "the cluster's log has lost messages that it had acknowledged: nothing is served until a person has looked; then: portmoot cluster accept"
                );
                self.end(NodeStanding::Lost);
            }
            UserEffect::Stored { ticket, .. } => self.at_home(|home| home.stored(ticket)),
            UserEffect::NotStored { ticket, why, .. } => {
                self.at_home(|home| home.not_stored(ticket, why))
            }
            UserEffect::Confirmed { ticket } => self.at_home(|home| home.confirmed(ticket)),
            UserEffect::Renew {
                account,
                flight,
                before_ms,
            } => self.at_home(|home| home.flies(&account, flight, before_ms)),
            UserEffect::RenewalOver { tickets, .. } => self.at_home(|home| home.flown(&tickets)),
            // A gateway asks at each request. What a former home has of a use it has stored, or not.
            UserEffect::Admit(_) | UserEffect::NotRenewed { .. } => {}
        }
    }
}

impl NodeUser {
    /// Takes lines over, and hands the groups that they end to those who watch.
    fn apply(
        &self,
        revision: JournalHead,
        lines: &[ShardLine],
    ) -> (Option<Arc<BranchJournal>>, Vec<AppliedGroup>) {
        let mut copy = self.copy.lock();
        let groups = copy.apply(revision, lines);
        if let Some(home) = self.home() {
            home.applied(&groups);
        }
        // Under the lock: who begins to watch from here on has them already.
        let branch = self.branch.lock().clone();
        if let Some(branch) = &branch {
            branch.applied(&groups);
        }
        (branch, groups)
    }

    /// Does something with the journal of the home, if this node is it.
    fn at_home(&self, act: impl FnOnce(&Arc<HomeJournal>)) {
        if let Some(home) = self.home() {
            act(&home);
        }
    }

    fn home(&self) -> Option<Arc<HomeJournal>> {
        self.home.lock().clone()
    }

    fn begin(&self, shard: &Shard, epoch: u64) {
        if *shard != Shard::Common {
            return;
        }
        if let Some(fault) = self.copy.lock().fault() {
            tracing::error!(%fault, "this node cannot be the home: update it");
            if let Some(runner) = self.runner.get() {
                runner.drain();
            }
            return self.end(NodeStanding::Away);
        }
        tracing::info!(epoch, "this node is the home of the cluster");
        self.note(true);
        let home = HomeJournal::new(Arc::clone(&self.copy), Arc::clone(&self.runner));
        let before = self.home.lock().replace(Arc::clone(&home));
        if let Some(before) = before {
            before.end();
        }
        self.standing.send_replace(NodeStanding::Home(home));
    }

    fn step_down(&self, shard: &Shard, epoch: u64, why: &StepDownCause) {
        if *shard == Shard::Common {
            tracing::info!(epoch, ?why, "this node is the home of the cluster no more");
            self.end(NodeStanding::Away);
            self.note(false);
        }
    }

    fn end_branch(&self) {
        if let Some(branch) = self.branch.lock().take() {
            branch.end();
        }
    }

    /// Ends the time as the home.
    fn end(&self, standing: NodeStanding) {
        let home = self.home.lock().take();
        if let Some(home) = home {
            home.end();
        }
        self.standing.send_replace(standing);
    }

    /// Notes for the next life whether this one is the home. It is late by what the disk takes: it
    /// decides only how soon a node that is back tries.
    fn note(&self, is_home: bool) {
        self.lives
            .submit(&[NodeRecord::HomeChanged { is_home }], |noted| {
                if let Err(why) = noted {
                    tracing::warn!(%why, "it cannot be noted whether this node is the home");
                }
            });
    }
}
