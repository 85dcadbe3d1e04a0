//! The room of a topic: everybody who hears it, one queue, one order.
//!
//! Owns what is said from the moment the topic has admitted it until it is on every socket. Frames are encoded once and
//! the same bytes go to all; there is no queue and no task per hearer. Must not know who may say what, nor any payload.

mod frame;
mod history;
mod item;
mod queue;
mod ring;
mod run;
mod socket;
mod turn;

use std::sync::Arc;

pub use frame::{Close, text};
pub use item::{Entry, Item, Reach, RoomConfig, Said, Stamps};
pub use queue::Room;
pub use ring::{Kept, Mark, Since};
pub use socket::Socket;

/// An empty room, and the task that writes it until nobody has the room any more. Must be called inside a runtime.
pub fn open(config: RoomConfig, stamps: Arc<dyn Stamps>) -> Arc<Room> {
    let room = Arc::new(Room::default());
    tokio::spawn(turn::run(Arc::downgrade(&room), room.wake(), config, stamps));
    room
}
