//! Bytes of heartbeats.

use bytes::Bytes;
use cluster::{HeardNode, Heartbeat, HomeClaim, HomeLeft, Slot};

use super::{Content, In, Out, Tail};

/// The content of a heartbeat.
pub(crate) fn write_beat(beat: &Heartbeat) -> Vec<u8> {
    let mut out = Out::new();
    out.node(&beat.node);
    out.option(beat.slot.as_ref(), |out, slot| out.number(slot.0.into()));
    for number in [beat.beat, beat.up_ms, beat.wall_ms, beat.config] {
        out.number(number);
    }
    out.head(&beat.revision);
    out.flag(beat.has_met_home);
    out.option(beat.lost.as_ref(), |out, lost| out.number(*lost));
    out.list(&beat.homes, write_claim);
    out.list(&beat.left, |out, left| {
        out.text(left.shard.as_str());
        out.number(left.epoch);
        out.option(left.next.as_ref(), |out, next| out.text(next));
    });
    out.list(&beat.heads, |out, (shard, heads)| {
        out.text(shard.as_str());
        out.list(heads, Out::head);
    });
    out.list(&beat.hears, |out, hears| {
        out.node(&hears.node);
        out.number(hears.beat);
        out.number(hears.age_ms);
    });
    out.flag(beat.draining);
    out.0
}

fn write_claim(out: &mut Out, claim: &HomeClaim) {
    out.text(claim.shard.as_str());
    out.number(claim.epoch);
    out.head(&claim.head);
    out.head(&claim.follows);
    out.number(claim.accepted);
    out.flag(claim.stopped);
}

/// The heartbeat of a content.
pub(crate) fn read_beat(content: &Bytes) -> Content<Heartbeat> {
    Content::of(content, Tail::Allowed, read)
}

fn read(input: &mut In) -> Option<Heartbeat> {
    Some(Heartbeat {
        node: input.node()?,
        slot: input.option(|input| u16::try_from(input.number()?).ok().map(Slot))?,
        beat: input.number()?,
        up_ms: input.number()?,
        wall_ms: input.number()?,
        config: input.raw()?,
        revision: input.head()?,
        has_met_home: input.flag()?,
        lost: input.option(In::number)?,
        homes: input.list(read_claim)?,
        left: input.list(read_left)?,
        heads: input.list(|input| Some((input.shard()?, input.list(In::head)?)))?,
        hears: input.list(read_hears)?,
        draining: input.flag()?,
    })
}

fn read_claim(input: &mut In) -> Option<HomeClaim> {
    Some(HomeClaim {
        shard: input.shard()?,
        epoch: input.number()?,
        head: input.head()?,
        follows: input.head()?,
        accepted: input.number()?,
        stopped: input.flag()?,
    })
}

fn read_left(input: &mut In) -> Option<HomeLeft> {
    Some(HomeLeft {
        shard: input.shard()?,
        epoch: input.number()?,
        next: input.option(In::name)?,
    })
}

fn read_hears(input: &mut In) -> Option<HeardNode> {
    Some(HeardNode {
        node: input.node()?,
        beat: input.number()?,
        age_ms: input.number()?,
    })
}
