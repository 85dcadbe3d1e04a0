//! Events as they are drawn, each with what it is about.

mod answers;
mod asks;
mod envelopes;
mod fulfilments;
mod held;
mod journal;
mod lists;
mod notices;
mod people;
mod proposals;
mod requests;
mod restart;
mod room;
mod servers;
mod stories;
mod waits;
