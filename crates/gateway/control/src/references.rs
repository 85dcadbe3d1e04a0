//! References of servers' tools, resolved at the registries that the configuration allows.

use std::sync::Arc;
use std::time::Duration;

use platform::unix_ms;
use registry::resolve::{References, Resolver};
use schema::{NoReference, Reference};
use upstream::{Resolve, Resolving};

/// Characters that are shown of a text that is no reference.
const SHOWN_CHARS_MAX: usize = 100;

/// Resolver of references; `None` if no registry is allowed. Without its directory the cache is in
/// memory alone.
#[must_use]
pub(crate) fn resolver(config: Option<&References>) -> Option<Arc<dyn Resolve>> {
    let References {
        settings,
        way,
        cache_dir,
        retry,
    } = config?.clone();
    let resolver = || Resolver::new(settings.clone(), way.clone());
    let Some(dir) = cache_dir else {
        return Some(Arc::new(At(resolver(), retry)));
    };
    let kept = resolver().kept_in(&dir).unwrap_or_else(|error| {
        tracing::warn!(dir = %dir.display(), %error, "the cache of schemas cannot be used: it is in memory alone");
        resolver()
    });
    Some(Arc::new(At(kept, retry)))
}

struct At(Resolver, Duration);

impl Resolve for At {
    fn retry(&self) -> Duration {
        self.1
    }

    fn resolve(self: Arc<Self>, reference: String) -> Resolving {
        Box::pin(async move {
            let bad = |error| {
                let start: String = reference.chars().take(SHOWN_CHARS_MAX).collect();
                format!("`{}` is {error}", start.escape_debug())
            };
            let read: Reference = reference.parse().map_err(|error: NoReference| bad(error))?;
            let resolved = self.0.resolve(&read, unix_ms()).await;
            resolved
                .map(|resolved| resolved.set)
                .map_err(|error| format!("`{reference}`: {error}"))
        })
    }
}
