//! What one caller may want to hear at once.

use super::*;
use crate::bounds::Held;
use crate::config::Limits;

fn caller() -> Caller {
    let bounds = Bounds::new(&Limits::default(), Held::new(1 << 20));
    Caller::own(LinkId(1), &TopicName::new("main").unwrap(), &bounds)
}

fn stream(caller: &Caller) -> Arc<Stream> {
    Stream::new(1, Lifetime::Reader, 1, caller.bounds())
}

#[test]
fn a_caller_listens_as_often_as_it_may_and_no_more() {
    let caller = caller();
    let streams: Vec<_> = (0..LISTENS_MAX).map(|_| stream(&caller)).collect();
    let listens = |out: &Arc<Stream>| caller.listen(Id::number(1), Filter::default(), Arc::clone(out));
    assert!(streams.iter().all(listens));
    let late = stream(&caller);
    assert!(!listens(&late));
    caller.unlisten(&Id::number(2), &streams[0]);
    assert!(!listens(&late), "that is not one of them");
    caller.unlisten(&Id::number(1), &streams[0]);
    assert!(listens(&late) && !listens(&streams[0]));
    streams[1].end();
    assert!(listens(&streams[0]), "one that has ended makes room");
}

#[test]
fn a_caller_is_subscribed_to_as_much_as_it_may_and_no_more() {
    let caller = caller();
    assert!((0..SUBSCRIPTIONS_MAX).all(|number| caller.subscribe(&number.to_string())));
    assert!(!caller.subscribe("one more") && caller.subscribe("0"), "what it has it has");
    assert!(!caller.follows("one more") && caller.follows("0"));
    caller.unsubscribe("0");
    assert!(caller.subscribe("one more"));
}
