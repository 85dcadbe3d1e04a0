//! Strangers' texts as this program shows them: nothing hidden, moved or recoloured.

pub(crate) use json::visible::{is_hidden, line, lines};
