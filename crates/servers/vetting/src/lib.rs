//! Vetting of what servers write about themselves: definitions of tools and prompts, and
//! instructions to models.
//!
//! A [`PartDefinition`] has a digest, by which a [`Book`] of pins notices every change. [`scan`] looks
//! for what tries to instruct a model behind its user's back. Both only say what they have found:
//! no text is changed.

mod book;
mod definition;
mod diff;
mod flags;
mod pointer;

pub use book::{
    Book, FirstUse, Judgement, Key, KnownDefinition, News, PINS_BYTES_MAX, PINS_MAX, Pin, PinMode,
    PinPolicy, PinState, Withheld,
};
pub use definition::{Part, PartDefinition};
pub use diff::{Difference, diff};
pub use flags::{FINDINGS_MAX, Flag, FlaggedText, imitations, scan};
