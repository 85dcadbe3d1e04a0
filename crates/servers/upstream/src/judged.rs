//! Lists and instructions after they were judged: definitions that were changed are kept from
//! callers.

use vetting::{Part, PartDefinition, Withheld};
use wire::mcp::ListKind;
use wire::mcp::list::Item;

use crate::declared::Handshake;
use crate::manifest::{List, Manifest};
use crate::origin::Origin;

/// Judges the items of a list. Changed ones become what they were before; those that were never
/// approved are left out.
pub(crate) fn judge_list(
    origin: &Origin<'_>,
    manifest: &mut Manifest,
    kind: ListKind,
    list: &mut List,
) {
    let part = match kind {
        ListKind::Tools => Part::Tool,
        ListKind::Prompts => Part::Prompt,
        ListKind::Resources => Part::Resource,
        ListKind::Templates => Part::Template,
        ListKind::Skills => Part::Skill,
    };
    let definitions = || {
        list.items
            .iter()
            .map(|item| PartDefinition::of(part, &item.key, &item.raw))
            .collect()
    };
    let withheld = judge(origin, part, definitions);
    for one in &withheld {
        let pinned = one
            .pinned
            .as_ref()
            .and_then(|text| Item::read(kind, text.clone().into()).ok());
        match (
            list.items.iter().position(|item| item.key == one.name),
            pinned,
        ) {
            (Some(at), Some(pinned)) => list
                .items
                .get_mut(at)
                .into_iter()
                .for_each(|item| *item = pinned.clone()),
            (Some(at), None) => drop(list.items.remove(at)),
            (None, _) => {}
        }
    }
    manifest.withheld.retain(|one| one.part != part);
    manifest.withheld.extend(withheld);
}

/// Judges the instructions of the handshake.
pub(crate) fn judge_instructions(
    origin: &Origin<'_>,
    manifest: &mut Manifest,
    handshake: &Handshake,
) {
    let text = json::at(&handshake.result, &["instructions"]).and_then(json::text);
    let definitions = || {
        text.iter()
            .map(|text| PartDefinition::of_instructions(text))
            .collect()
    };
    let withheld = judge(origin, Part::Instructions, definitions);
    manifest
        .withheld
        .retain(|one| one.part != Part::Instructions);
    manifest.withheld.extend(withheld);
}

fn judge(
    origin: &Origin<'_>,
    part: Part,
    definitions: impl FnOnce() -> Vec<PartDefinition>,
) -> Vec<Withheld> {
    let server = &origin.spec.config;
    let is_shared = origin.is_shared;
    let pins = origin
        .environment
        .pins
        .as_ref()
        .filter(|pins| pins.wants(server, is_shared));
    pins.map(|pins| pins.judge(server, part, definitions(), is_shared))
        .unwrap_or_default()
}
