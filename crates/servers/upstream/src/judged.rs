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
    let withheld = judge(origin, part, || {
        list.items
            .iter()
            .map(|item| PartDefinition::of(part, &item.key, &item.raw))
            .collect()
    });
    for one in &withheld {
        let pinned = one
            .pinned
            .as_ref()
            .and_then(|text| Item::read(kind, text.clone().into()).ok());
        let Some(index) = list.items.iter().position(|item| item.key == one.name) else {
            continue;
        };
        let Some(pinned) = pinned else {
            list.items.remove(index);
            continue;
        };
        if let Some(item) = list.items.get_mut(index) {
            *item = pinned;
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
    let withheld = judge(origin, Part::Instructions, || {
        text.iter()
            .map(|text| PartDefinition::of_instructions(text))
            .collect()
    });
    manifest
        .withheld
        .retain(|one| one.part != Part::Instructions);
    manifest.withheld.extend(withheld);
}

/// The definitions that are kept from callers. They are only made if something is judged.
fn judge(
    origin: &Origin<'_>,
    part: Part,
    definitions: impl FnOnce() -> Vec<PartDefinition>,
) -> Vec<Withheld> {
    let server = &origin.spec.config;
    match &origin.environment.pins {
        Some(pins) if pins.wants(server, origin.is_shared) => {
            pins.judge(server, part, definitions(), origin.is_shared)
        }
        Some(_) | None => Vec::new(),
    }
}
