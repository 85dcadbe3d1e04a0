//! Lists and instructions after they were judged: definitions that were changed are kept from callers.

use vetting::{Definition, Part, Withheld};
use wire::mcp::ListKind;
use wire::mcp::list::Item;

use crate::manifest::{List, Manifest};
use crate::session::{Handshake, Session};

/// Judges the items of a list. Changed ones become what they were before; those that were never approved are left out.
pub(crate) fn judge_list(session: &Session, manifest: &mut Manifest, kind: ListKind, list: &mut List) {
    let part = match kind {
        ListKind::Tools => Part::Tool,
        ListKind::Prompts => Part::Prompt,
        ListKind::Resources => Part::Resource,
        ListKind::Templates => Part::Template,
    };
    let definitions = || list.items.iter().map(|item| Definition::of(part, &item.key, &item.raw)).collect();
    let withheld = judge(session, part, definitions);
    for one in &withheld {
        let pinned = one.pinned.as_ref().and_then(|text| Item::read(kind, text.clone().into()).ok());
        match (list.items.iter().position(|item| item.key == one.name), pinned) {
            (Some(at), Some(pinned)) => {
                list.items.get_mut(at).into_iter().for_each(|item| *item = pinned.clone())
            }
            (Some(at), None) => drop(list.items.remove(at)),
            (None, _) => {}
        }
    }
    manifest.withheld.retain(|one| one.part != part);
    manifest.withheld.extend(withheld);
}

/// Judges the instructions of the handshake.
pub(crate) fn judge_instructions(session: &Session, manifest: &mut Manifest, handshake: &Handshake) {
    let text = json::at(&handshake.result, &["instructions"]).and_then(json::text);
    let definitions = || text.iter().map(|text| Definition::of_instructions(text)).collect();
    let withheld = judge(session, Part::Instructions, definitions);
    manifest.withheld.retain(|one| one.part != Part::Instructions);
    manifest.withheld.extend(withheld);
}

fn judge(session: &Session, part: Part, definitions: impl FnOnce() -> Vec<Definition>) -> Vec<Withheld> {
    let (server, is_shared) = (&session.setup.spec.config, !session.key().is_own());
    let pins = session.setup.environment.pins.as_ref().filter(|pins| pins.wants(server, is_shared));
    pins.map(|pins| pins.judge(server, part, definitions(), is_shared)).unwrap_or_default()
}
