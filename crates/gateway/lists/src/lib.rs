//! Lists of servers as one caller sees them: merged, rendered, cut to pages, kept, searched.
//!
//! The topic says what is on a list ([`topic::ListSnapshot`]), each server wrote its items
//! ([`upstream::Manifest`]). A list is judged and rendered outside of the topic's lock, once for as
//! long as nothing changes; pages are slices of it.
//!
//! - [`MergedList`], [`ListEntry`]: a list as the caller sees it. [`PageRequest`]: a page of it, with
//!   its cursor.
//! - [`Seen`]: all lists of a caller, for the tools that look into them: [`look_up`],
//!   [`Seen::index`].
//! - [`Modules`]: the schemas of a caller's tools in protobuf, as the schema registry has them.
//! - [`topic_manifest`]: what the topic is given of a server's lists.
//! - [`handshake`]: the results of `initialize` and `server/discover`.
//! - [`PageCache`], [`IndexCache`]: what is made from lists, and kept.

mod cache;
pub mod handshake;
mod lookup;
mod merged;
mod modules;
mod names;
mod page;
mod seen;
#[cfg(test)]
mod tests;

pub use cache::{IndexCache, LIST_BYTES_MAX, LISTS_MAX, PageCache};
pub use lookup::look_up;
pub use merged::{AcceptedNames, ListEntry, Manifests, MergedList, Reader};
pub use modules::{ModuleNames, Modules};
pub use names::topic_manifest;
pub use page::{CURSOR_MS, MergedPage, PAGE_ITEMS_MAX, PageRequest, bad_cursor};
pub use seen::Seen;
