//! Pages of lists (tools, prompts, resources, templates): split into items, and rendered.
//!
//! Items stay raw; only their key (name, URI, template) may be replaced.

mod render;
mod split;

pub use render::{Hints, RenderedList, render};
pub use split::{BadItem, Item, ListPage, split};

#[cfg(test)]
mod tests;
