//! Vetting of what servers write about themselves: definitions of tools and prompts, and
//! instructions to models.
//!
//! A [`Definition`] has a digest, by which a [`Book`] of pins notices every change. [`scan`] looks
//! for what tries to instruct a model behind its user's back. Both only say what they have found:
//! no text is changed.

mod book;
mod definition;
mod diff;
mod flags;
mod pointer;

pub use book::{
    Book, FirstUse, Judgement, Key, Mode, News, PINS_BYTES_MAX, PINS_MAX, Pin, PinState, Policy,
    Row, Withheld,
};
pub use definition::{Definition, Part};
pub use diff::{Change, diff};
pub use flags::{FINDINGS_MAX, Finding, Flag, imitations, scan};
