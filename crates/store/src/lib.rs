//! Records that survive: the journal.
