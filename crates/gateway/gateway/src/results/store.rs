//! Store of the results that are kept in one topic.

use std::sync::{Arc, Weak};
use std::time::Duration;

use model::{Latest, ParticipantId};
use platform::Mutex;
use tokio::time::{Instant, sleep_until};
use wire::mcp::large::Kept;

/// Results that one topic keeps.
pub const LARGE_RESULTS_MAX: usize = 1_000;
/// The bytes of these results.
pub const LARGE_RESULTS_BYTES_MAX: usize = 64 << 20;
/// Time for which a result is kept.
pub const LARGE_RESULT_KEPT: Duration = Duration::from_secs(3_600);

/// The results that are kept in a topic.
#[derive(Default)]
pub(crate) struct Results(Mutex<State>);

#[derive(Default)]
struct State {
    kept: Latest<One>,
    /// Whether a task removes what is old.
    is_swept: bool,
}

struct One {
    id: String,
    owner: String,
    until: Instant,
    kept: Arc<Kept>,
}

impl Results {
    /// Keeps a result for its owner, a bearer of this name. Of too many, the participant that has
    /// most loses its oldest.
    pub(crate) fn keep(
        self: &Arc<Self>,
        id: &str,
        owner: String,
        name: &ParticipantId,
        kept: Kept,
    ) {
        let until = Instant::now() + LARGE_RESULT_KEPT;
        let bytes = kept.bytes();
        let one = One {
            id: id.to_owned(),
            owner,
            until,
            kept: Arc::new(kept),
        };
        let mut state = self.0.lock();
        state.kept.push(name.account(), bytes, one);
        let gone = state
            .kept
            .shrink(LARGE_RESULTS_MAX, LARGE_RESULTS_BYTES_MAX);
        let sweeps = !std::mem::replace(&mut state.is_swept, true);
        drop(state);
        // Outside of the lock: they may be many bytes.
        drop(gone);
        if sweeps {
            tokio::spawn(sweep(Arc::downgrade(self), until));
        }
    }

    /// A result that is kept for this owner.
    pub(crate) fn find(&self, id: &str, owner: &str) -> Option<Arc<Kept>> {
        let state = self.0.lock();
        let now = Instant::now();
        let is = |one: &&One| one.id == id && one.owner == owner && one.until > now;
        state.kept.iter().find(is).map(|one| Arc::clone(&one.kept))
    }

    /// Removes what is old, and returns when the next one will be.
    fn remove_old(&self) -> Option<Instant> {
        let mut state = self.0.lock();
        let now = Instant::now();
        while state.kept.pop_if(|one| one.until <= now).is_some() {}
        let next = state.kept.iter().next().map(|one| one.until);
        state.is_swept = next.is_some();
        next
    }
}

/// Removes results when they are old, until there are none.
async fn sweep(results: Weak<Results>, first: Instant) {
    let mut next = Some(first);
    while let Some(at) = next {
        sleep_until(at).await;
        let Some(results) = results.upgrade() else {
            return;
        };
        next = results.remove_old();
    }
}

#[cfg(test)]
mod tests {
    use wire::mcp::large::{LIMIT_BYTES_MIN, ResultReceiver, cut};

    use super::*;

    /// A result that is kept, of so many bytes: an image, if it is long.
    fn kept(bytes: usize) -> Kept {
        let kind = if bytes > 1 << 20 {
            ("image", "data")
        } else {
            ("text", "text")
        };
        let data = "x".repeat(bytes);
        let result = format!(
            r#"{{"content":[{{"type":"{}","{}":"{data}"}}]}}"#,
            kind.0, kind.1
        );
        cut(
            result.as_bytes(),
            ResultReceiver {
                limit: LIMIT_BYTES_MIN,
                id: "i",
                links: true,
            },
        )
        .unwrap()
        .kept
    }

    fn name(name: &str) -> ParticipantId {
        ParticipantId::new(name).unwrap()
    }

    fn keep(results: &Arc<Results>, who: &str, id: &str, bytes: usize) {
        results.keep(id, who.to_owned(), &name(who), kept(bytes));
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_its_owners_for_an_hour() {
        let results = Arc::<Results>::default();
        keep(&results, "ann", "one", 9_000);
        tokio::time::advance(Duration::from_secs(1_800)).await;
        keep(&results, "ann", "two", 9_000);
        let has = |id: &str, owner: &str| results.find(id, owner).is_some();
        assert!(has("one", "ann") && has("two", "ann"));
        assert!(!has("one", "bob") && !has("one", "ann\n2") && !has("none", "ann"));
        tokio::time::advance(LARGE_RESULT_KEPT - Duration::from_secs(1_801)).await;
        assert!(has("one", "ann"));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!has("one", "ann") && has("two", "ann"));
        tokio::time::sleep(LARGE_RESULT_KEPT).await;
        // Nothing stays in memory, and the next one is removed in its time too.
        let is_empty = || results.0.lock().kept.is_empty();
        while !is_empty() {
            tokio::task::yield_now().await;
        }
        keep(&results, "ann", "three", 9_000);
        assert!(has("three", "ann"));
        tokio::time::sleep(LARGE_RESULT_KEPT + Duration::from_secs(1)).await;
        while !is_empty() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_participant_that_has_most_loses_its_oldest() {
        let results = Arc::<Results>::default();
        keep(&results, "ann", "mine", 9_000);
        for number in 0..LARGE_RESULTS_MAX {
            keep(&results, "eve", &number.to_string(), 10);
        }
        let has = |id: &str, owner: &str| results.find(id, owner).is_some();
        assert!(has("mine", "ann") && !has("0", "eve") && has("1", "eve"));
        // By their bytes too.
        let mib = 1 << 20;
        for number in 0..5 {
            keep(&results, "bob", &format!("b{number}"), 16 * mib - 10_000);
        }
        assert!(has("mine", "ann") && !has("b0", "bob") && has("b1", "bob") && has("b4", "bob"));
        let state = results.0.lock();
        assert!(
            state.kept.weight() <= LARGE_RESULTS_BYTES_MAX && state.kept.len() <= LARGE_RESULTS_MAX
        );
    }
}
