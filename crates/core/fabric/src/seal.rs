//! Frames and records, sealed with the cluster's key.
//!
//! The bus and the log are shared with others: what is not sealed with the key, for this receiver
//! and under a new number, has no effect. Cipher: XChaCha20-Poly1305, as for the states that
//! clients hold; the keys are derived from the cluster's by HKDF.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use bytes::Bytes;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use ring::{hkdf, hmac};
use zeroize::Zeroizing;

use crate::log::{FRAME_BYTES_MAX, MessageId, Record};
use crate::subject::SubjectName;
use crate::window::Window;

/// The most senders at a time whose frames are opened. One more takes the place of the one that was
/// silent for longest: of those that have sent nothing to this node alone, which is forgotten; if
/// there are none, of all, which has ended then.
pub const SENDERS_MAX: usize = 1024;
/// Incarnations that ended whose frames are known to be old.
pub const ENDED_MAX: usize = 4096;
/// The most bytes of the content of a sealed frame.
pub const CONTENT_BYTES_MAX: usize = FRAME_BYTES_MAX - SEAL_BYTES;
/// Bytes that a sealed frame has beside its content.
pub(crate) const SEAL_BYTES: usize = HEAD_BYTES + TAG_BYTES;

const FORMAT: u8 = 1;
const TO_ONE: u8 = 1;
const TO_ALL: u8 = 2;
const HEAD_BYTES: usize = 2 + 16 + 8;
const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;

/// The life of one process of a node: a random name that no other one has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Incarnation(pub [u8; 16]);

impl Incarnation {
    /// A new one.
    #[must_use]
    pub fn random() -> Self {
        Self(platform::random())
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incarnation({self})")
    }
}

/// The receiver of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameReceiver {
    /// One incarnation.
    One(Incarnation),
    /// All nodes. An incarnation that began later can be given such a frame again: the content
    /// says of which time it is.
    All,
}

/// A frame that has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It was not sealed with the cluster's key for this receiver, or was changed.
    #[error("the frame was not sealed for this node")]
    Foreign,
    /// It was opened before, or is too old to know.
    #[error("the frame was received before, or is too old")]
    Repeated,
    /// Its sender has ended.
    #[error("the sender of the frame has ended")]
    Ended,
}

/// An opened frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Its sender.
    pub sender: Incarnation,
    /// Whether it went to all.
    pub is_to_all: bool,
    /// Its content.
    pub content: Bytes,
    /// The sender that has ended to make way for this one: there were [`SENDERS_MAX`].
    pub made_way: Option<Incarnation>,
}

/// The keys of a cluster.
#[derive(Clone)]
pub struct ClusterKeys {
    frames: XChaCha20Poly1305,
    records: XChaCha20Poly1305,
    pairs: hmac::Key,
}

impl ClusterKeys {
    /// The keys that follow from the cluster's key, which is random.
    #[must_use]
    pub fn new(cluster: &[u8; 32]) -> Self {
        let root = root_of(cluster);
        let cipher = |purpose| XChaCha20Poly1305::new(&Key::from(*derived(&root, purpose)));
        Self {
            frames: cipher(b"frames"),
            records: cipher(b"records"),
            pairs: hmac::Key::new(hmac::HMAC_SHA256, derived(&root, b"pairs").as_slice()),
        }
    }

    /// Seals the content of a record of the log.
    #[must_use]
    pub fn seal_record(&self, subject: &SubjectName, id: MessageId, content: &[u8]) -> Bytes {
        let nonce: [u8; NONCE_BYTES] = platform::random();
        let place = record_place(subject, id);
        let payload = Payload {
            msg: content,
            aad: &place,
        };
        let sealed = self.records.encrypt(&XNonce::from(nonce), payload);
        // Encryption fails only beyond 256 GiB; the empty text then does not open.
        let sealed = sealed.unwrap_or_default();
        [&nonce[..], &sealed].concat().into()
    }

    /// The content of a record that was sealed for its subject and name.
    #[must_use]
    pub fn open_record(&self, record: &Record) -> Option<Vec<u8>> {
        let (nonce, sealed) = record.bytes.split_first_chunk::<NONCE_BYTES>()?;
        let place = record_place(&record.subject, record.id?);
        let payload = Payload {
            msg: sealed,
            aad: &place,
        };
        self.records.decrypt(&XNonce::from(*nonce), payload).ok()
    }

    /// The part of a nonce that is a pair's own: each pair counts for itself.
    fn pair(&self, sender: Incarnation, receiver: FrameReceiver) -> [u8; 16] {
        let mut names = Vec::with_capacity(33);
        names.extend_from_slice(&sender.0);
        match receiver {
            FrameReceiver::One(one) => names.extend_from_slice(&one.0),
            FrameReceiver::All => names.push(TO_ALL),
        }
        let tag = hmac::sign(&self.pairs, &names);
        let first = tag.as_ref().first_chunk::<16>();
        first.copied().unwrap_or_default()
    }
}

impl fmt::Debug for ClusterKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKeys(..)")
    }
}

/// The length of a derived key, as `ring` asks for it.
struct KeyBytes;

/// A key for a purpose of the nodes of a cluster, derived from its key.
#[must_use]
pub fn derived_key(cluster: &[u8; 32], purpose: &str) -> Zeroizing<[u8; 32]> {
    derived(&root_of(cluster), purpose.as_bytes())
}

fn root_of(cluster: &[u8; 32]) -> hkdf::Prk {
    hkdf::Salt::new(hkdf::HKDF_SHA256, b"portmoot cluster 1").extract(cluster)
}

impl hkdf::KeyType for KeyBytes {
    fn len(&self) -> usize {
        32
    }
}

fn derived(root: &hkdf::Prk, purpose: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    let purpose = [purpose];
    let filled = root
        .expand(&purpose, KeyBytes)
        .and_then(|bytes| bytes.fill(key.as_mut_slice()));
    // HKDF has no shorter or longer key than asked for: without one nothing may be sealed.
    if filled.is_err() {
        std::process::abort();
    }
    key
}

fn record_place(subject: &SubjectName, id: MessageId) -> Vec<u8> {
    let mut place = id.0.to_vec();
    place.extend_from_slice(subject.as_str().as_bytes());
    place
}

fn nonce(pair: [u8; 16], number: u64) -> XNonce {
    let mut nonce = [0; NONCE_BYTES];
    let (head, tail) = nonce.split_at_mut(16);
    head.copy_from_slice(&pair);
    tail.copy_from_slice(&number.to_be_bytes());
    XNonce::from(nonce)
}

/// Additional data of a frame: its head, and the receiver, which the head does not name.
fn additional(head: &[u8], receiver: FrameReceiver) -> Vec<u8> {
    let mut data = head.to_vec();
    if let FrameReceiver::One(one) = receiver {
        data.extend_from_slice(&one.0);
    }
    data
}

/// Seals the frames of one incarnation.
#[derive(Debug)]
pub struct FrameSealer {
    keys: ClusterKeys,
    own: Incarnation,
    pairs: HashMap<FrameReceiver, Pair>,
    /// No pair that is forgotten has counted further: a number is used once, even if it is met
    /// again.
    floor: u64,
}

#[derive(Debug)]
struct Pair {
    nonce: [u8; 16],
    next: u64,
}

impl FrameSealer {
    /// Seals as this incarnation, which has no other sealer.
    #[must_use]
    pub fn new(keys: ClusterKeys, own: Incarnation) -> Self {
        Self {
            keys,
            own,
            pairs: HashMap::new(),
            floor: 0,
        }
    }

    /// Seals a frame; `None` if its content has more than [`CONTENT_BYTES_MAX`] bytes.
    pub fn seal(&mut self, receiver: FrameReceiver, content: &[u8]) -> Option<Bytes> {
        if content.len() > CONTENT_BYTES_MAX {
            return None;
        }
        let (keys, own, floor) = (&self.keys, self.own, self.floor);
        let pair = self.pairs.entry(receiver).or_insert_with(|| Pair {
            nonce: keys.pair(own, receiver),
            next: floor,
        });
        let number = pair.next;
        pair.next = number.checked_add(1)?;
        let mut frame = Vec::with_capacity(HEAD_BYTES + content.len() + TAG_BYTES);
        frame.push(FORMAT);
        frame.push(if receiver == FrameReceiver::All {
            TO_ALL
        } else {
            TO_ONE
        });
        frame.extend_from_slice(&own.0);
        frame.extend_from_slice(&number.to_be_bytes());
        let payload = Payload {
            msg: content,
            aad: &additional(&frame, receiver),
        };
        let sealed = keys.frames.encrypt(&nonce(pair.nonce, number), payload);
        frame.extend_from_slice(&sealed.ok()?);
        Some(frame.into())
    }

    /// Forgets a receiver that has ended.
    pub fn forget(&mut self, receiver: Incarnation) {
        if let Some(pair) = self.pairs.remove(&FrameReceiver::One(receiver)) {
            self.floor = self.floor.max(pair.next);
        }
    }
}

/// Opens the frames for one incarnation.
#[derive(Debug)]
pub struct FrameOpener {
    keys: ClusterKeys,
    own: Incarnation,
    senders: HashMap<Incarnation, Sender>,
    /// The number of frames that were opened.
    count: u64,
    ended: HashSet<Incarnation>,
    ended_in_order: VecDeque<Incarnation>,
}

#[derive(Debug)]
struct Sender {
    to_one: [u8; 16],
    to_all: [u8; 16],
    one: Window,
    all: Window,
    /// The number of its latest frame, of all that were opened.
    latest: u64,
}

/// The head of a frame.
struct Head {
    is_to_all: bool,
    sender: Incarnation,
    number: u64,
}

impl Head {
    fn read(head: &[u8; HEAD_BYTES]) -> Option<Self> {
        let ([format, to], rest) = head.split_first_chunk::<2>()?;
        let (sender, number) = rest.split_first_chunk::<16>()?;
        let is_to_all = match (*format, *to) {
            (FORMAT, TO_ONE) => false,
            (FORMAT, TO_ALL) => true,
            _ => return None,
        };
        Some(Self {
            is_to_all,
            sender: Incarnation(*sender),
            number: u64::from_be_bytes(number.try_into().ok()?),
        })
    }
}

impl FrameOpener {
    /// Opens for this incarnation, which has no other opener.
    #[must_use]
    pub fn new(keys: ClusterKeys, own: Incarnation) -> Self {
        Self {
            keys,
            own,
            senders: HashMap::new(),
            count: 0,
            ended: HashSet::new(),
            ended_in_order: VecDeque::new(),
        }
    }

    /// Opens a frame, once.
    ///
    /// # Errors
    /// [`OpenError`] when the frame must have no effect.
    pub fn open(&mut self, frame: &[u8]) -> Result<Opened, OpenError> {
        let (head_bytes, sealed) = frame
            .split_first_chunk::<HEAD_BYTES>()
            .filter(|_| frame.len() <= FRAME_BYTES_MAX)
            .ok_or(OpenError::Foreign)?;
        let head = Head::read(head_bytes).ok_or(OpenError::Foreign)?;
        if self.ended.contains(&head.sender) {
            return Err(OpenError::Ended);
        }
        let known = self.senders.get(&head.sender);
        let unknown = Window::default();
        let window = known.map_or(&unknown, |known| known.window(&head));
        if !window.is_new(head.number) {
            return Err(OpenError::Repeated);
        }
        let receiver = if head.is_to_all {
            FrameReceiver::All
        } else {
            FrameReceiver::One(self.own)
        };
        let pair = match known {
            Some(known) if head.is_to_all => known.to_all,
            Some(known) => known.to_one,
            None => self.keys.pair(head.sender, receiver),
        };
        let payload = Payload {
            msg: sealed,
            aad: &additional(head_bytes, receiver),
        };
        let content = self.keys.frames.decrypt(&nonce(pair, head.number), payload);
        let content = content.map_err(|_| OpenError::Foreign)?;
        let made_way = self.make_way(head.sender);
        self.note(&head);
        Ok(Opened {
            sender: head.sender,
            is_to_all: head.is_to_all,
            content: content.into(),
            made_way,
        })
    }

    /// Notes the number of an authentic frame.
    fn note(&mut self, head: &Head) {
        self.count += 1;
        let (keys, own) = (&self.keys, self.own);
        let sender = self.senders.entry(head.sender).or_insert_with(|| Sender {
            to_one: keys.pair(head.sender, FrameReceiver::One(own)),
            to_all: keys.pair(head.sender, FrameReceiver::All),
            one: Window::default(),
            all: Window::default(),
            latest: 0,
        });
        sender.latest = self.count;
        let window = if head.is_to_all {
            &mut sender.all
        } else {
            &mut sender.one
        };
        window.note(head.number);
    }

    /// Makes a place for a sender, if there is none. A sender whose frames were for all
    /// alone may be one of before this node began, whose frames someone sends again: so it goes
    /// first, and may come again.
    fn make_way(&mut self, sender: Incarnation) -> Option<Incarnation> {
        if self.senders.len() < SENDERS_MAX || self.senders.contains_key(&sender) {
            return None;
        }
        let others = self.senders.iter().filter(|(one, _)| **one != self.own);
        let first = others.min_by_key(|(_, one)| (!one.one.is_empty(), one.latest));
        let (silent, has_sent) = first.map(|(name, one)| (*name, !one.one.is_empty()))?;
        if has_sent {
            self.end(silent);
            return Some(silent);
        }
        self.senders.remove(&silent);
        None
    }

    /// Whether a sender has ended, as far back as that is known.
    #[must_use]
    pub fn has_ended(&self, sender: Incarnation) -> bool {
        self.ended.contains(&sender)
    }

    /// Ends a sender: its frames have no effect any more.
    pub fn end(&mut self, sender: Incarnation) {
        self.senders.remove(&sender);
        if self.ended.insert(sender) {
            self.ended_in_order.push_back(sender);
        }
        if self.ended.len() > ENDED_MAX
            && let Some(oldest) = self.ended_in_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }
}

impl Sender {
    fn window(&self, head: &Head) -> &Window {
        if head.is_to_all { &self.all } else { &self.one }
    }
}

#[cfg(test)]
mod tests;
