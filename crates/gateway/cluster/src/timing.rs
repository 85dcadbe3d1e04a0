//! Times of the cluster, and limits of what waits.

/// The time between two ticks, milliseconds.
pub const TICK_MS: u64 = 100;
/// The time between two heartbeats, milliseconds.
pub const HEARTBEAT_MS: u64 = 500;
/// The least time between two heartbeats that say of a new revision, milliseconds.
pub const HEARTBEAT_GAP_MS: u64 = 20;
/// The time after which a node without heartbeats counts as silent, milliseconds.
pub const SILENCE_MS: u64 = 4_000;
/// The time after which a home steps down if the log acknowledges nothing and no majority echoes
/// its heartbeats, milliseconds.
pub const ALONE_MS: u64 = 3_000;
/// The time after which a home without a majority appends an empty group, so that it knows that it
/// is the home, milliseconds.
pub const ALIVE_MS: u64 = 1_000;
/// The time for which a node that is back listens before it takes its former homes again,
/// milliseconds.
pub const RETURN_MS: u64 = 1_000;
/// The time after which a request to the log is repeated, milliseconds.
pub const LOG_RETRY_MS: u64 = 1_000;
/// The time after which a purge of which nothing is known is repeated, milliseconds.
pub const PURGE_RETRY_MS: u64 = 15_000;
/// The most epochs that a snapshot says. A node that comes back after more take-overs than these
/// does not notice by itself that its latest messages were lost.
pub const EPOCHS_KEPT_MAX: usize = 256;
/// The most that the wall clocks of two nodes may be apart when one joins, milliseconds.
pub const CLOCKS_APART_MS: u64 = 5_000;
/// The time after which a node that says nothing is forgotten, milliseconds.
pub const FORGOTTEN_MS: u64 = 600_000;
/// The most lines of one message.
pub const GROUP_LINES_MAX: usize = 256;
/// The most bytes of the lines of one message, but for a single line.
pub const GROUP_BYTES_MAX: usize = 192 << 10;
/// The most lines of a shard that wait for the log.
pub const WAITING_LINES_MAX: usize = 65_536;
/// The most bytes of a shard's lines that wait for the log, but for the last of them.
pub const WAITING_BYTES_MAX: usize = 32 << 20;
/// The time after which a home that has no answer to an append takes no further lines,
/// milliseconds.
pub const APPEND_OPEN_MS: u64 = 10_000;
/// The most topics of a configuration.
pub const TOPICS_MAX: usize = 500;
/// The most members.
pub const NODES_MAX: usize = 64;
/// The most other lives of nodes that a node hears at a time.
pub const HEARD_MAX: usize = 2 * NODES_MAX;
/// The most bytes of a node's name.
pub const NODE_NAME_BYTES_MAX: usize = 255;
/// The most shards of which a heartbeat has heads because they are new, and because it is their
/// turn.
pub const HEADS_OF_BEAT_MAX: usize = 32;
/// The most bytes of a heartbeat as the runner writes it.
pub const BEAT_BYTES_MAX: usize = 224 << 10;
/// The greatest number of an epoch, a message, a sequence, a heartbeat or a time: the runner reads
/// nothing with a greater one, so that sums of them are numbers too.
pub const NUMBER_MAX: u64 = 1 << 62;
/// The usual time without contact after which a node admits nothing, milliseconds.
pub const CUT_OFF_MS: u64 = 10_000;
/// The usual time that a request with a refresh token takes at most, milliseconds.
pub const RENEWAL_MS: u64 = 30_000;
/// The part of the time of a renewal that a successor waits beyond it, as clocks run at different
/// speeds.
pub(crate) const DRIFT_PART: u64 = 16;
