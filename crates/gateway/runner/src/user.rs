//! User of a node: the effects of the rules that are neither the log's, nor the bus's, nor the
//! disk's.

use std::sync::Arc;

use cluster::{Admission, HomeEffect, JournalHead, NotStored, Shard, StepDownCause};

use crate::line::ShardLine;

/// The user of a node.
pub trait HomeUser: Send + Sync + 'static {
    /// Carries out an effect; it is carried out when this returns. All effects of a node come one
    /// after the other, so this must not wait for another one.
    fn carry_out(&self, effect: UserEffect);
}

/// An effect of the rules that their user carries out; `cluster::HomeEffect` says what each means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserEffect {
    /// Lines of the common journal count from now on.
    Apply {
        /// Their place.
        revision: JournalHead,
        /// The lines.
        lines: Vec<ShardLine>,
    },
    /// The copy of the common journal begins anew with these lines, in place of all before.
    Reset {
        /// Their place.
        revision: JournalHead,
        /// The lines.
        lines: Vec<ShardLine>,
    },
    /// This node is the home of a shard from now on.
    BecomeHome {
        /// The shard.
        shard: Shard,
        /// The epoch.
        epoch: u64,
        /// All lines of a topic's journal from its latest snapshot on; none of the common one.
        lines: Vec<ShardLine>,
    },
    /// This node is the home no more.
    StepDown {
        /// The shard.
        shard: Shard,
        /// The epoch that is over.
        epoch: u64,
        /// The cause.
        why: StepDownCause,
    },
    /// Messages that were acknowledged are gone: the shard stops until a person accepts it.
    StopTopic {
        /// The shard.
        shard: Shard,
        /// The place up to which messages are known to have been written.
        known: JournalHead,
    },
    /// A line is durable.
    Stored {
        /// The shard.
        shard: Shard,
        /// The user's number.
        ticket: u64,
    },
    /// A line is not stored, and never will be.
    NotStored {
        /// The shard.
        shard: Shard,
        /// The user's number.
        ticket: u64,
        /// The cause.
        why: NotStored,
    },
    /// A line of the common journal is in force on every node that admits anything.
    Confirmed {
        /// The user's number.
        ticket: u64,
    },
    /// The time until which this node admits requests, or why it does not.
    Admit(Admission),
    /// A refresh token is used, once, before this time.
    Renew {
        /// The account that it is of.
        account: Arc<str>,
        /// The number of this use, which its result names.
        flight: u64,
        /// The end of the time for it, milliseconds of the node's clock.
        before_ms: u64,
    },
    /// A refresh token was used, and what came of it is stored; or nothing came of it in time, or a
    /// later use has begun.
    RenewalOver {
        /// The account.
        account: Arc<str>,
        /// The number of the use.
        flight: u64,
        /// The user's numbers of those that wait for it.
        tickets: Vec<u64>,
        /// Whether its result is stored.
        known: bool,
    },
    /// The result of a use of a refresh token is for the home of the common journal.
    NotRenewed {
        /// The account.
        account: Arc<str>,
        /// The number of the use.
        flight: u64,
        /// The line with the new tokens.
        line: Option<ShardLine>,
    },
}

/// An effect by the one who carries it out.
pub(crate) enum Whose {
    User(UserEffect),
    Runner(HomeEffect<ShardLine>),
}

impl Whose {
    pub(crate) fn of(effect: HomeEffect<ShardLine>) -> Self {
        Self::User(match effect {
            HomeEffect::Apply { revision, lines } => UserEffect::Apply { revision, lines },
            HomeEffect::Reset { revision, lines } => UserEffect::Reset { revision, lines },
            HomeEffect::BecomeHome {
                shard,
                epoch,
                lines,
            } => UserEffect::BecomeHome {
                shard,
                epoch,
                lines,
            },
            HomeEffect::StepDown { shard, epoch, why } => {
                UserEffect::StepDown { shard, epoch, why }
            }
            HomeEffect::StopTopic { shard, known } => UserEffect::StopTopic { shard, known },
            HomeEffect::Stored { shard, ticket } => UserEffect::Stored { shard, ticket },
            HomeEffect::NotStored { shard, ticket, why } => {
                UserEffect::NotStored { shard, ticket, why }
            }
            HomeEffect::Confirmed { ticket } => UserEffect::Confirmed { ticket },
            HomeEffect::Admit(admission) => UserEffect::Admit(admission),
            HomeEffect::Renew {
                account,
                flight,
                before_ms,
            } => UserEffect::Renew {
                account,
                flight,
                before_ms,
            },
            HomeEffect::RenewalOver {
                account,
                flight,
                tickets,
                known,
            } => UserEffect::RenewalOver {
                account,
                flight,
                tickets,
                known,
            },
            HomeEffect::NotRenewed {
                account,
                flight,
                line,
            } => UserEffect::NotRenewed {
                account,
                flight,
                line,
            },
            own @ (HomeEffect::Publish(_)
            | HomeEffect::Spread(_)
            | HomeEffect::Look { .. }
            | HomeEffect::Read { .. }
            | HomeEffect::Append { .. }
            | HomeEffect::Purge { .. }
            | HomeEffect::KeepHead { .. }) => return Self::Runner(own),
        })
    }
}
