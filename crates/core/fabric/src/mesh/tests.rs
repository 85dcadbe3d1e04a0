use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::channel::{Channel, Closed};
use super::frame::{ChannelId, Content, Frame, Piece, Reset};
use super::peer::Peer;
use super::*;
use crate::bus::{BusSubscription, Delivery, Waiting};
use crate::log::{FRAME_BYTES_MAX, Ongoing};
use crate::seal::{CONTENT_BYTES_MAX, SENDERS_MAX};
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
async fn all_who_wait_for_the_caller_to_leave_learn_it() {
    let (_world, two) = simulated(9, Faults::default()).await;
    let call = two.a.call(B, "stop me".into());
    let (call, came) = tokio::join!(call, two.b.accept());
    let PeerChannel::Call(served) = came else {
        panic!("{came:?}")
    };
    let served = Arc::new(served);
    let wait = |served: Arc<ServedCall>| tokio::spawn(async move { served.left().await });
    let waiting = [0, 1].map(|_| wait(Arc::clone(&served)));
    tokio::task::yield_now().await;
    drop(call.unwrap());
    for one in waiting {
        let left = tokio::time::timeout(Duration::from_secs(20), one).await;
        left.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_makes_way_for_new_ones() {
    let (world, two) = simulated(10, Faults::default()).await;
    let call = two.a.call(B, "request".into());
    let (_call, came) = tokio::join!(call, two.b.accept());
    let PeerChannel::Call(served) = came else {
        panic!("{came:?}")
    };
    // What the two owe each other is said.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let subject = inbox(&"pm.sim.n".parse().unwrap(), B).unwrap();
    let stranger = world.node(9);
    for number in 0..SENDERS_MAX as u128 {
        let sender = Incarnation((number + 1).to_be_bytes());
        let mut sealer = FrameSealer::new(ClusterKeys::new(&KEY), sender);
        let content = Content::Probe;
        let frame = Frame {
            channel: channel(0),
            content,
        };
        let sealed = sealer.seal(FrameReceiver::One(B), &frame.encode());
        stranger.publish(&subject, sealed.unwrap()).await.unwrap();
    }
    let left = tokio::time::timeout(Duration::from_secs(20), served.left());
    left.await.unwrap();
    let state = two.b.shared.state.lock();
    assert!(state.opener.has_ended(A));
    assert_eq!(state.peers.len(), SENDERS_MAX);
}

/// A bus that ends when its test says so.
#[derive(Default)]
struct Ending(Mutex<Option<Arc<Waiting>>>);

impl Bus for Ending {
    fn publish<'a>(&'a self, _: &'a SubjectName, _: Bytes) -> Ongoing<'a, Result<(), BusError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn subscribe<'a>(
        &'a self,
        _: &'a SubjectPattern,
    ) -> Ongoing<'a, Result<BusSubscription, BusError>> {
        let (subscription, waiting) = BusSubscription::new();
        *self.0.lock() = Some(waiting);
        Box::pin(std::future::ready(Ok(subscription)))
    }
}

#[tokio::test(start_paused = true)]
async fn channels_end_with_the_bus() {
    let bus = Arc::new(Ending::default());
    let root = "pm.sim.n".parse().unwrap();
    let to_bus = Arc::clone(&bus) as Arc<dyn Bus>;
    let mesh = Mesh::join(to_bus, root, ClusterKeys::new(&KEY), A).await;
    let mut tunnel = mesh.as_ref().unwrap().tunnel(B).unwrap();
    bus.0.lock().as_ref().unwrap().end();
    let read = tokio::time::timeout(Duration::from_secs(1), tunnel.read_u8()).await;
    assert!(read.unwrap().is_err());
    let after = mesh.unwrap().call(B, "after".into()).await;
    assert_eq!(after.unwrap_err(), PeerCallError::NodeEnded);
}

#[tokio::test(start_paused = true)]
async fn a_message_to_all_has_a_largest_size() {
    let (_world, two) = simulated(11, Faults::default()).await;
    let subject: SubjectName = "pm.sim.feed".parse().unwrap();
    let most = CONTENT_BYTES_MAX - 2 - subject.as_str().len();
    two.a.broadcast(&subject, &vec![0; most]).await.unwrap();
    let refused = two.a.broadcast(&subject, &vec![0; most + 1]).await;
    assert_eq!(refused, Err(BusError::TooLarge(FRAME_BYTES_MAX + 1)));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_answer_costs_nothing_and_may_come_back() {
    let (world, two) = simulated(5, Faults::default()).await;
    let mut open = two.a.tunnel(B).unwrap();
    open.write_all(b"x").await.unwrap();
    let PeerChannel::Tunnel(mut there) = two.b.accept().await else {
        panic!("a tunnel")
    };
    assert_eq!(there.read_u8().await.unwrap(), b'x');
    world.world(|world| {
        world.cut(0, 1, true);
        world.cut(1, 0, true);
    });
    let left = two.a.tunnel(B).unwrap();
    drop(left);
    two.a.peer_lost(B);
    assert!(open.read_u8().await.is_err());
    drop(open);
    assert!(two.a.is_quiet(), "nothing is said again");
    world.world(|world| {
        world.cut(0, 1, false);
        world.cut(1, 0, false);
    });
    // The other one learns of it with its next word.
    there.write_all(b"y").await.unwrap();
    assert!(there.read_u8().await.is_err());
    let (call, came) = tokio::join!(two.a.call(B, "again".into()), two.b.accept());
    assert!(call.is_ok() && matches!(came, PeerChannel::Call(_)));
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
async fn seen_last(messages: &mut BusSubscription) -> Option<Delivery> {
    let mut last = None;
    let wait = Duration::from_secs(1);
    while let Ok(next) = tokio::time::timeout(wait, messages.next()).await {
        last = next;
    }
    last
}

fn piece(bytes: usize) -> Piece {
    Piece {
        bytes: vec![0; bytes].into(),
        ends_message: false,
        ends_stream: false,
    }
}

fn data(number: u64, bytes: usize) -> Content {
    Content::Data {
        purpose: Purpose::Tunnel,
        number,
        piece: piece(bytes),
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
    let now = Duration::ZERO;
    assert_eq!(sender.acknowledged(now, 1, 0, false), Err(Reset::Overrun));
    // Nor does the other side give more than that for what it has received.
    let sent = || {
        let mut sender = Channel::new(Purpose::Tunnel);
        sender.put(now, piece(100)).unwrap();
        sender
    };
    let cost = 64 + 100;
    for (next, may, is_fit) in [
        (0, CREDIT_BYTES, true),
        (0, CREDIT_BYTES + 1, false),
        (1, CREDIT_BYTES + cost, true),
        (1, CREDIT_BYTES + cost + 1, false),
        (1, u64::MAX, false),
    ] {
        let taken = sent().acknowledged(now, next, may, false);
        assert_eq!(taken.is_ok(), is_fit, "{next} {may}");
    }
}

#[test]
fn a_call_is_accepted_when_its_first_piece_has_come() {
    let now = Duration::ZERO;
    let mut caller = Channel::new(Purpose::Call);
    for _ in 0..2 {
        caller.put(now, piece(10)).unwrap();
    }
    // The first piece was lost, and the second one was not.
    let later = now + Duration::from_secs(1);
    let again = caller.acknowledged(later, 0, 0, true).unwrap();
    assert!(matches!(again, Some(Content::Data { number: 0, .. })));
    assert!(!caller.is_accepted());
    caller.acknowledged(later, 2, 0, false).unwrap();
    assert!(caller.is_accepted());
}

#[test]
fn one_who_waits_learns_that_the_caller_has_forgotten_the_call() {
    let mut peer = Peer::default();
    let now = Duration::from_secs(9);
    let call = channel(0);
    let content = data(0, 1);
    let frame = Frame {
        channel: call,
        content,
    };
    assert_eq!(peer.receive(now, frame), Some(call));
    peer.again(now);
    let is_question = |frame: &Frame| frame.content == Content::Probe;
    assert!(!peer.out.iter().any(is_question), "no one waits");
    let waiting = peer.get(call).unwrap();
    waiting.wake_when_closed(std::task::Waker::noop());
    let mut questions = Vec::new();
    for second in 0..20 {
        peer.out.clear();
        peer.again(now + Duration::from_secs(second));
        questions.extend(peer.out.iter().find(|frame| is_question(frame)).cloned());
    }
    assert_eq!(questions.len(), 4);
    // The caller has another view of whose channel it is.
    let mut question = questions.remove(0);
    question.channel.is_own = true;
    let mut caller = Peer::default();
    caller.receive(now, question);
    let mut answer = caller.out.pop_front().unwrap();
    answer.channel.is_own = false;
    peer.receive(now, answer);
    let closed = peer.get(call).unwrap().closed();
    assert_eq!(closed, Some(Closed::ByPeer(Reset::Unknown)));
}

#[test]
fn nothing_follows_an_end() {
    let end = Piece {
        ends_stream: true,
        ..piece(10)
    };
    for early in [piece(10), piece(0), end.clone()] {
        let mut one = Channel::new(Purpose::Tunnel);
        assert!(one.receive(1, early));
        assert!(!one.receive(0, end.clone()));
        assert_eq!((one.take(), one.take()), (Some(end.clone()), None));
    }
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

/// A credit that is fit for so many pieces, or is too much.
fn may(pieces: u64, chance: usize) -> u64 {
    match chance % 4 {
        0 => u64::MAX - pieces,
        1 => CREDIT_BYTES + 1 + pieces * 20_064,
        _ => CREDIT_BYTES + pieces * 20_064,
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
                2 => {
                    let (may, has_gap) = (may(at, bytes), bytes % 2 == 0);
                    Content::Acknowledge { next: at, may, has_gap }
                }
                3 => Content::Probe,
                4 => Content::Reset(Reset::Cancelled),
                _ => Content::ResetSeen,
            };
            let channel = ChannelId { is_own, number };
            peer.receive(now, Frame { channel, content });
            now += Duration::from_millis(30);
            peer.again(now);
            prop_assert!(peer.out.len() < 60);
            peer.out.clear();
            // This node reads a little, and says what it may.
            if bytes % 5 == 0 {
                let _piece = peer.take(channel);
            }
            while peer.put(now, own.unwrap(), piece(20_000)) {
                prop_assert!(peer.get(own.unwrap()).unwrap().unacknowledged() <= CREDIT_BYTES);
            }
            let mut waiting = 0;
            for number in 0..4 {
                for is_own in [false, true] {
                    let one = peer.get(ChannelId { is_own, number }).map_or(0, |one| one.waiting());
                    prop_assert!(one <= CREDIT_BYTES);
                    waiting += one;
                }
            }
            prop_assert_eq!(peer.waiting(), waiting);
        }
    }
}
