//! Names of all events and effects: a new variant does not compile until it is named here, and a
//! run that never meets it fails.

use crate::numbers::{Effect, Event, RoomEffect};

macro_rules! variants {
    ($all:ident, $name:ident, $of:ty, $prefix:literal, $type:ident: $($variant:ident)*) => {
        pub(crate) const $all: &[&str] = &[$(concat!($prefix, stringify!($variant))),*];

        pub(crate) fn $name(one: &$of) -> &'static str {
            match one {
                $($type::$variant { .. } => concat!($prefix, stringify!($variant)),)*
            }
        }
    };
}

variants!(EVENTS, event, Event<'_>, "event ", Event:
    Join Leave Revoke Disown Regrant Brake MayBecomeTask Task TaskWritten TaskChanged SessionLost Configure Available Attach Detach Listed Request Resume Wait Say Announce Execute Propose ProposePlan RunStep
    Unproposable Restore Closed Decide Claim Describe Written Tick Stop Ask Answer Proceed Cancel Notice);

variants!(EFFECTS, effect, Effect, "effect ", Effect:
    Closed Withhold Receive Ignore Deliver Hold Park Pause Return Proceed Report Settle Refuse Drop Cancel Ask SettleAsk RefuseAsk
    CancelTask ForgetTask LoseTask CancelAsk Notify ListChanged Unsubscribe Unwatch Store Proposed NotProposed Rejected Remind Counted Claimed Extended Amended Expiring Approved StepDue Concluded Relay Ruled
    RefuseDecision);

variants!(ROOM_EFFECTS, room_effect, RoomEffect, "room effect ", RoomEffect:
    Enter Renew Joined Changed Left Publish Mirror Exit);
