//! Strangers' texts as this program shows them: nothing hidden, moved or recoloured. The rule itself is `client`'s, whose
//! participants show such texts too.

pub(crate) use client::visible::{is_hidden, line, lines};
