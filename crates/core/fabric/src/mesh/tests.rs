use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::channel::Channel;
use super::frame::{ChannelId, Content, Frame, Piece, Reset};
use super::*;
use crate::bus::Delivery;
use crate::sim::{Faults, Simulated};

const KEY: [u8; 32] = [7; 32];
const A: Incarnation = Incarnation([1; 16]);
const B: Incarnation = Incarnation([2; 16]);

/// Two nodes that reach each other.
pub(crate) struct Two {
    pub(crate) a: Mesh,
    pub(crate) b: Arc<Mesh>,
    pub(crate) b_name: Incarnation,
}

pub(crate) async fn two(
    buses: [Arc<dyn Bus>; 2],
    root: &str,
    [a_name, b_name]: [Incarnation; 2],
) -> Two {
    let [to_a, to_b] = buses;
    let keys = ClusterKeys::new(&KEY);
    let root: SubjectName = root.parse().unwrap();
    let a = Mesh::join(to_a, root.clone(), keys.clone(), a_name)
        .await
        .unwrap();
    let b = Mesh::join(to_b, root, keys, b_name).await.unwrap();
    Two {
        a,
        b: Arc::new(b),
        b_name,
    }
}

async fn simulated(seed: u64, faults: Faults) -> (Simulated, Two) {
    let simulated = Simulated::new(seed, faults);
    let buses = [0, 1].map(|node| Arc::new(simulated.node(node)) as Arc<dyn Bus>);
    let two = two(buses, "pm.sim.n", [A, B]).await;
    (simulated, two)
}

/// Serves calls: each request is counted and answered by as many parts as it says.
fn serve(mesh: Arc<Mesh>) -> Arc<Mutex<HashMap<Bytes, u32>>> {
    let acts = Arc::<Mutex<HashMap<Bytes, u32>>>::default();
    let counted = Arc::clone(&acts);
    tokio::spawn(async move {
        loop {
            match mesh.accept().await {
                PeerChannel::Call(call) => drop(tokio::spawn(answer(call, Arc::clone(&counted)))),
                PeerChannel::Tunnel(tunnel) => drop(tokio::spawn(echo(tunnel))),
            }
        }
    });
    acts
}

async fn answer(mut call: ServedCall, acts: Arc<Mutex<HashMap<Bytes, u32>>>) {
    let Ok(request) = call.request().await else {
        return;
    };
    *acts.lock().entry(request.clone()).or_default() += 1;
    for number in 0..3_u8 {
        let part = [&[number][..], &request].concat();
        if call.answer(part.into()).await.is_err() {
            return;
        }
    }
    let _caller_has_left = call.finish().await;
}

async fn echo(tunnel: Tunnel) {
    let (mut read, mut write) = tokio::io::split(tunnel);
    let _reset = tokio::io::copy(&mut read, &mut write).await;
    let _reset = write.shutdown().await;
}

async fn answers(call: &mut PeerCall) -> Vec<Bytes> {
    let mut all = Vec::new();
    while let Some(answer) = call.next().await.unwrap() {
        all.push(answer);
    }
    all
}

/// The contract of calls and tunnels, over any bus.
pub(crate) async fn calls_and_tunnels_work(two: &Two, calls: u32) {
    let acts = serve(Arc::clone(&two.b));
    for number in 0..calls {
        // Some are larger than a credit.
        let length = if number % 7 == 3 { 300_000 } else { 100 };
        let request: Bytes = [&number.to_be_bytes()[..], &vec![1; length]]
            .concat()
            .into();
        let mut call = two.a.call(two.b_name, request.clone()).await.unwrap();
        let expect: Vec<Bytes> = (0..3_u8)
            .map(|part| [&[part][..], &request].concat().into())
            .collect();
        assert!(answers(&mut call).await == expect, "call {number}");
        assert_eq!(acts.lock().get(&request), Some(&1), "it acts once");
    }
    assert_eq!(acts.lock().len(), usize::try_from(calls).unwrap());
    a_tunnel_carries_bytes(two).await;
}

async fn a_tunnel_carries_bytes(two: &Two) {
    let bytes: Vec<u8> = (0..150_000_u32).flat_map(u32::to_be_bytes).collect();
    let (mut read, mut write) = tokio::io::split(two.a.tunnel(two.b_name).unwrap());
    let (_, back) = tokio::join!(
        async {
            write.write_all(&bytes).await.unwrap();
            write.shutdown().await.unwrap();
        },
        async {
            let mut back = Vec::new();
            read.read_to_end(&mut back).await.unwrap();
            back
        }
    );
    assert!(back == bytes);
}

#[tokio::test(start_paused = true)]
async fn calls_and_tunnels_over_a_good_bus() {
    let (_world, two) = simulated(1, Faults::default()).await;
    calls_and_tunnels_work(&two, 20).await;
    assert_eq!(two.a.counts(), MeshCounts::default());
}

#[tokio::test(start_paused = true)]
async fn calls_and_tunnels_over_a_bus_that_loses_doubles_and_delays() {
    for seed in 0..8 {
        let (_world, two) = simulated(seed, Faults::of(seed)).await;
        calls_and_tunnels_work(&two, 8).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_acts_at_most_once_through_cuts() {
    let mut failed = 0;
    for seed in 0..16 {
        let (world, two) = simulated(seed, Faults::of(seed)).await;
        let acts = serve(Arc::clone(&two.b));
        let mut chance = crate::sim::Chance::new(seed);
        for number in 0..8_u8 {
            let [there, back] = [chance.happens(300), chance.happens(300)];
            world.world(|world| {
                world.cut(0, 1, there);
                world.cut(1, 0, back);
            });
            let request = Bytes::from(vec![number; 10]);
            let call = two.a.call(B, request.clone()).await;
            world.world(|world| {
                world.cut(0, 1, false);
                world.cut(1, 0, false);
            });
            match call {
                Ok(mut call) => assert_eq!(answers(&mut call).await.len(), 3),
                Err(why) => {
                    assert_eq!(why, PeerCallError::Unacknowledged);
                    failed += 1;
                }
            }
            assert!(acts.lock().get(&request).is_none_or(|times| *times == 1));
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(acts.lock().values().all(|times| *times == 1), "seed {seed}");
    }
    assert!(failed > 10, "cuts were felt: {failed}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_left_at_the_other_node_too() {
    for lost in [0, 400] {
        let faults = Faults {
            bus_drops: lost,
            ..Faults::default()
        };
        let (_world, two) = simulated(5, faults).await;
        let call = two.a.call(B, "stop me".into());
        let (call, came) = tokio::join!(call, two.b.accept());
        let PeerChannel::Call(mut served) = came else {
            panic!("{came:?}")
        };
        assert_eq!(served.request().await.unwrap(), "stop me");
        drop(call.unwrap());
        tokio::time::timeout(Duration::from_secs(20), served.left())
            .await
            .unwrap();
        assert_eq!(served.answer("late".into()).await, Err(PeerCallError::Left));
        // And the other way round.
        let call = two.a.call(B, "leave me".into());
        let (call, came) = tokio::join!(call, two.b.accept());
        drop(came);
        let left = match call {
            Ok(mut call) => call.next().await.unwrap_err(),
            Err(why) => why,
        };
        assert_eq!(left, PeerCallError::Left);
    }
}

#[tokio::test(start_paused = true)]
async fn channels_end_with_the_other_incarnation() {
    let (_world, two) = simulated(3, Faults::default()).await;
    let call = two.a.call(B, "request".into());
    let (call, came) = tokio::join!(call, two.b.accept());
    let PeerChannel::Call(served) = came else {
        panic!("{came:?}")
    };
    let mut tunnel = two.a.tunnel(B).unwrap();
    two.b.peer_ended(A);
    served.left().await;
    // Frames of the one that ended have no effect.
    let refused = two.b.counts().refused;
    let after = two.a.call(B, "after".into()).await;
    assert_eq!(after.unwrap_err(), PeerCallError::Unacknowledged);
    assert!(two.b.counts().refused > refused);
    two.a.peer_ended(B);
    assert_eq!(call.unwrap().next().await, Err(PeerCallError::NodeEnded));
    assert!(tunnel.read_u8().await.is_err());
    let after = two.a.call(B, "after".into()).await;
    assert_eq!(after.unwrap_err(), PeerCallError::NodeEnded);
}

#[tokio::test(start_paused = true)]
async fn forged_repeated_and_foreign_frames_open_no_call() {
    let (world, two) = simulated(4, Faults::default()).await;
    let subject = inbox(&"pm.sim.n".parse().unwrap(), B).unwrap();
    let listener = world.node(9);
    let mut frames = listener.subscribe(&(&subject).into()).await.unwrap();
    let acts = serve(Arc::clone(&two.b));
    let mut call = two.a.call(B, "once".into()).await.unwrap();
    answers(&mut call).await;
    let Some(Delivery::Message(frame)) = frames.next().await else {
        panic!("a frame was sent")
    };
    for at in 0..frame.bytes.len() {
        let mut changed = frame.bytes.to_vec();
        changed[at] ^= 1;
        listener.publish(&subject, changed.into()).await.unwrap();
    }
    for _ in 0..3 {
        listener
            .publish(&subject, frame.bytes.clone())
            .await
            .unwrap();
    }
    let mut foreign = FrameSealer::new(ClusterKeys::new(&[8; 32]), A);
    let foreign = foreign.seal(FrameReceiver::One(B), b"x").unwrap();
    listener.publish(&subject, foreign).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(*acts.lock(), HashMap::from([("once".into(), 1)]));
    let expect = u64::try_from(frame.bytes.len()).unwrap() + 4;
    assert_eq!(two.b.counts().refused, expect);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_waits_holds_its_own_tunnel_alone() {
    let (_world, two) = simulated(6, Faults::default()).await;
    let mut writer = two.a.tunnel(B).unwrap();
    let mut written = 0;
    let chunk = vec![1; 8 * 1024];
    while let Ok(write) = tokio::time::timeout(Duration::from_secs(1), writer.write(&chunk)).await {
        written += write.unwrap() as u64;
    }
    assert!(
        written <= CREDIT_BYTES && written > CREDIT_BYTES - 10_000,
        "{written}"
    );
    let PeerChannel::Tunnel(mut reader) = two.b.accept().await else {
        panic!("a tunnel")
    };
    serve(Arc::clone(&two.b));
    let mut call = two.a.call(B, "meanwhile".into()).await.unwrap();
    assert_eq!(answers(&mut call).await.len(), 3);
    // As soon as it reads, there is room.
    let mut read = vec![0; 200_000];
    reader.read_exact(&mut read).await.unwrap();
    let write = tokio::time::timeout(Duration::from_secs(1), writer.write(&chunk)).await;
    assert_eq!(write.unwrap().unwrap(), chunk.len());
}

#[tokio::test(start_paused = true)]
async fn too_many_calls_to_a_node_are_refused() {
    let (_world, two) = simulated(7, Faults::default()).await;
    let mut tunnels = Vec::new();
    for _ in 0..CHANNELS_MAX {
        tunnels.push(two.a.tunnel(B).unwrap());
    }
    assert_eq!(two.a.tunnel(B).unwrap_err(), PeerCallError::Busy);
    let refused = two.a.call(B, "one more".into()).await.unwrap_err();
    assert_eq!(refused, PeerCallError::Busy);
    tunnels.pop();
    serve(Arc::clone(&two.b));
    assert!(two.a.call(B, "again".into()).await.is_ok());
    let large = Bytes::from(vec![0; MESSAGE_BYTES_MAX + 1]);
    let refused = two.a.call(B, large).await.unwrap_err();
    assert_eq!(refused, PeerCallError::TooLarge);
}

#[tokio::test(start_paused = true)]
async fn a_message_to_all_comes_once_under_its_subject_alone() {
    let (world, two) = simulated(8, Faults::default()).await;
    let [own, other]: [SubjectName; 2] =
        ["pm.sim.hb", "pm.sim.feed"].map(|one| one.parse().unwrap());
    let all = "pm.sim.*".parse().unwrap();
    let mut at_a = two.a.listen(&all).await.unwrap();
    let mut at_b = two.b.listen(&all).await.unwrap();
    let stranger = world.node(9);
    let mut seen = stranger.subscribe(&(&own).into()).await.unwrap();
    two.a.broadcast(&own, b"beat").await.unwrap();
    let Some(Delivery::Message(message)) = seen.next().await else {
        panic!("a frame was sent")
    };
    let beat = |sender| Broadcast::From {
        sender,
        subject: own.clone(),
        content: "beat".into(),
    };
    assert_eq!(at_b.next().await, Some(beat(A)));
    for subject in [&own, &other] {
        stranger
            .publish(subject, message.bytes.clone())
            .await
            .unwrap();
    }
    let mut forged = message.bytes.to_vec();
    forged[30] ^= 1;
    stranger.publish(&own, forged.into()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // What comes next is what is sent next.
    two.b.broadcast(&own, b"beat").await.unwrap();
    assert_eq!(at_a.next().await, Some(beat(B)));
    two.a.broadcast(&own, b"beat").await.unwrap();
    assert_eq!(at_b.next().await, Some(beat(A)));
    // A frame that its receiver has not seen is moved to another subject.
    world.world(|world| world.cut(0, 1, true));
    two.a.broadcast(&own, b"held back").await.unwrap();
    let Some(Delivery::Message(held)) = seen_last(&mut seen).await else {
        panic!("a frame was sent")
    };
    stranger.publish(&other, held.bytes).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.world(|world| world.cut(0, 1, false));
    two.a.broadcast(&own, b"beat").await.unwrap();
    assert_eq!(at_b.next().await, Some(beat(A)));
}

/// The last message that has come within a second.
async fn seen_last(messages: &mut crate::BusSubscription) -> Option<Delivery> {
    let mut last = None;
    let wait = Duration::from_secs(1);
    while let Ok(next) = tokio::time::timeout(wait, messages.next()).await {
        last = next;
    }
    last
}

fn data(number: u64, bytes: usize) -> Content {
    Content::Data {
        purpose: Purpose::Tunnel,
        number,
        piece: Piece {
            bytes: vec![0; bytes].into(),
            ends_message: false,
            ends_stream: false,
        },
    }
}

fn channel(number: u64) -> ChannelId {
    ChannelId {
        is_own: false,
        number,
    }
}

#[test]
fn a_node_whose_bytes_wait_loses_its_greediest_channel() {
    let mut peer = Peer::default();
    let now = Duration::ZERO;
    let pieces = CREDIT_BYTES / (60_000 + 64);
    let channels = NODE_WAITING_BYTES_MAX / (pieces * 60_064) + 1;
    assert!(channels < CHANNELS_MAX as u64);
    // One more piece makes it the greediest.
    for number in 0..channels {
        for piece in 0..pieces {
            let content = data(piece, if number == 3 { 60_001 } else { 60_000 });
            let channel = channel(number);
            peer.receive(now, Frame { channel, content });
        }
    }
    let closed = |peer: &mut Peer, number| peer.get(channel(number)).unwrap().closed();
    assert!(closed(&mut peer, 3).is_some());
    let others = (0..channels).filter(|number| *number != 3);
    assert!(
        others
            .into_iter()
            .all(|number| closed(&mut peer, number).is_none())
    );
}

#[test]
fn a_channel_takes_no_more_than_its_credit() {
    let mut one = Channel::new(Purpose::Tunnel);
    let receive = |one: &mut Channel, number: u64, bytes: usize| match data(number, bytes) {
        Content::Data { number, piece, .. } => one.receive(number, piece),
        _ => false,
    };
    for number in 0..4 {
        assert!(receive(&mut one, number, 60_000));
    }
    assert!(!receive(&mut one, 4, 60_000));
    assert!(receive(&mut one, 4, 10));
    // Neither do tiny pieces, or those from far ahead.
    let mut tiny = Channel::new(Purpose::Tunnel);
    let taken = (0..9000)
        .take_while(|number| receive(&mut tiny, *number, 0))
        .count();
    assert_eq!(taken as u64, CREDIT_BYTES / 64);
    assert!(!receive(&mut Channel::new(Purpose::Tunnel), u64::MAX, 0));
    let mut sender = Channel::new(Purpose::Tunnel);
    let beyond = sender.acknowledged(Duration::ZERO, 1, 0, false);
    assert_eq!(beyond, Err(Reset::Overrun));
}

#[test]
fn the_end_of_so_many_channels_is_remembered() {
    let mut peer = Peer::default();
    let now = Duration::ZERO;
    for number in 0..ENDED_CHANNELS_MAX as u64 + 5 {
        let channel = channel(number);
        peer.receive(
            now,
            Frame {
                channel,
                content: data(0, 1),
            },
        );
        peer.leave(now, channel);
    }
    peer.out.clear();
    // A late piece opens nothing, remembered or not.
    for (number, why) in [(0, Reset::Unknown), (6, Reset::Cancelled)] {
        let channel = channel(number);
        assert_eq!(
            peer.receive(
                now,
                Frame {
                    channel,
                    content: data(0, 1)
                }
            ),
            None
        );
        let content = Content::Reset(why);
        assert_eq!(peer.out.pop_front(), Some(Frame { channel, content }));
    }
}

proptest! {
    /// A node that has the key and is broken sends any frames: nothing panics, and what it makes
    /// this node keep is bounded.
    #[test]
    fn any_frames_are_borne(
        frames in proptest::collection::vec((0_u64..4, any::<bool>(), 0_u8..6, 0_u64..5, 0_usize..90_000), 0..200),
    ) {
        let mut peer = Peer::default();
        let mut now = Duration::ZERO;
        let own = peer.open(Purpose::Call);
        for (number, is_own, kind, at, bytes) in frames {
            let content = match kind {
                0 | 1 => data(at, bytes % 64_000),
                2 => Content::Acknowledge { next: at, may: u64::MAX - at, has_gap: bytes % 2 == 0 },
                3 => Content::Probe,
                4 => Content::Reset(Reset::Cancelled),
                _ => Content::ResetSeen,
            };
            peer.receive(now, Frame { channel: ChannelId { is_own, number }, content });
            now += Duration::from_millis(30);
            peer.again(now);
            prop_assert!(peer.out.len() < 60);
            peer.out.clear();
            let room = peer.get(own.unwrap()).map(|one| one.room());
            prop_assert!(room.is_none_or(|room| room <= 64 * 1024));
        }
    }
}
