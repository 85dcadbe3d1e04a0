//! Paths of the HTTP endpoints.

/// The topic that a path names: the main one, or the one after the endpoint and a slash.
pub(super) fn topic_of<'p>(path: &'p str, endpoint: &str) -> Option<&'p str> {
    match path.strip_prefix(endpoint)? {
        "" => Some("main"),
        rest => rest
            .strip_prefix('/')
            .filter(|topic| !topic.is_empty() && !topic.contains('/')),
    }
}
