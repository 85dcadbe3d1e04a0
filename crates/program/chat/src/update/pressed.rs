//! Keys and pasted text on the full screen.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{command, decide, suggest};
use crate::complete::shared;
use crate::keys::{Decide, Deed, Edit, KeyContext, deed};
use crate::state::{Action, ChatState, Focus, Prompt, ReasonedAct};
use crate::typing::{EARLIER_LINES_MAX, Typing};

/// Rows that stay on the screen when it scrolls by a page.
const PAGE_OVERLAP: usize = 2;

/// A key was pressed.
pub(super) fn key(state: &mut ChatState, key: KeyEvent) -> Vec<Action> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    state.notice = None;
    if state.help.is_some() {
        in_help(state, key);
        return Vec::new();
    }
    if state.prompt.is_some() {
        return in_prompt(state, key);
    }
    let is_asked = state
        .suggestions
        .as_ref()
        .is_some_and(|shown| shown.asked.is_some());
    if is_asked && state.focus == Focus::Inbox {
        return suggest::answered(state, key.code == KeyCode::Char('y'));
    }
    let place = match (state.focus, &state.suggestions) {
        (Focus::Talk, _) => KeyContext::Talk,
        (Focus::Inbox, Some(_)) => KeyContext::Suggestions,
        (Focus::Inbox, None) => KeyContext::Inbox,
    };
    let deed = deed(place, key);
    match (deed, state.focus) {
        (Some(deed), _) if deed_anywhere(state, deed) => Vec::new(),
        (Some(Deed::Redraw), _) => vec![Action::Redraw],
        (Some(Deed::Interrupt), Focus::Talk) if !state.line.text().is_empty() => {
            state.line.take();
            Vec::new()
        }
        (Some(Deed::Interrupt), _) => vec![Action::Quit],
        (Some(deed), Focus::Talk) => in_talk(state, deed),
        (Some(deed), Focus::Inbox) => in_inbox(state, deed),
        (None, Focus::Talk) => {
            let mut line = std::mem::take(&mut state.line);
            let fits = edit(&mut line, key);
            state.line = line;
            if !fits {
                state.tell("The line is full.");
            }
            Vec::new()
        }
        (None, Focus::Inbox) => Vec::new(),
    }
}

/// Whether a deed is one that works everywhere; then it is done.
fn deed_anywhere(state: &mut ChatState, deed: Deed) -> bool {
    match deed {
        Deed::Help => state.help = Some(0),
        Deed::OtherPane => {
            state.focus = if state.focus == Focus::Talk {
                Focus::Inbox
            } else {
                Focus::Talk
            };
        }
        Deed::Calls => command::calls(state),
        Deed::Redraw
        | Deed::Interrupt
        | Deed::Leave
        | Deed::Send
        | Deed::Complete
        | Deed::Earlier
        | Deed::Later
        | Deed::PageUp
        | Deed::PageDown
        | Deed::Top
        | Deed::Bottom
        | Deed::Line(_)
        | Deed::Back
        | Deed::Next
        | Deed::Previous
        | Deed::Suggestions
        | Deed::PutInForce
        | Deed::Refuse
        | Deed::Decide(_) => return false,
    }
    true
}

/// The keys of the help: those that scroll, and any other closes it.
fn in_help(state: &mut ChatState, key: KeyEvent) {
    let height = usize::from(state.size.1.saturating_sub(2));
    let last = crate::help::rows(state.size.0.into())
        .len()
        .saturating_sub(height);
    let at = state.help.unwrap_or_default();
    state.help = match key.code {
        KeyCode::Down | KeyCode::Char('j') => Some((at + 1).min(last)),
        KeyCode::Up | KeyCode::Char('k') => Some(at.saturating_sub(1)),
        KeyCode::PageDown | KeyCode::Char(' ') => Some((at + height).min(last)),
        KeyCode::PageUp | KeyCode::Char('b') => Some(at.saturating_sub(height)),
        KeyCode::Home => Some(0),
        KeyCode::End => Some(last),
        _ => None,
    };
}

fn in_talk(state: &mut ChatState, deed: Deed) -> Vec<Action> {
    match deed {
        Deed::Send => {
            let line = state.line.take();
            if !line.trim().is_empty() {
                state.earlier.retain(|other| *other != line);
                state.earlier.push(line.clone());
                if state.earlier.len() > EARLIER_LINES_MAX {
                    state.earlier.remove(0);
                }
            }
            state.earlier_at = state.earlier.len();
            return command::typed(state, &line);
        }
        Deed::Complete if state.line.text().is_empty() => state.focus = Focus::Inbox,
        Deed::Complete => complete(state),
        Deed::Earlier => earlier(state, state.earlier_at.checked_sub(1)),
        Deed::Later => earlier(state, Some(state.earlier_at + 1)),
        Deed::Leave if state.line.text().is_empty() => return vec![Action::Quit],
        Deed::Leave => state.line.delete(),
        Deed::PageUp => scroll(state, 1),
        Deed::PageDown => scroll(state, -1),
        Deed::Top => scroll(state, isize::MAX),
        Deed::Bottom => scroll(state, isize::MIN),
        Deed::Help
        | Deed::OtherPane
        | Deed::Calls
        | Deed::Redraw
        | Deed::Interrupt
        | Deed::Line(_)
        | Deed::Back
        | Deed::Next
        | Deed::Previous
        | Deed::Suggestions
        | Deed::PutInForce
        | Deed::Refuse
        | Deed::Decide(_) => {}
    }
    Vec::new()
}

/// Completes the word before the cursor as far as all candidates agree, and names them if they are
/// several.
fn complete(state: &mut ChatState) {
    let (start, found) = state.candidates.complete(state.line.before());
    let Some(common) = shared(&found) else { return };
    let typed = state.line.before().len() - start;
    if common.len() > typed {
        state.line.replace(start, &common);
    } else if found.len() > 1 {
        let names: Vec<&str> = found.iter().map(|one| one.trim_end()).collect();
        state.tell(names.join("  "));
    }
}

/// Brings back an earlier line; behind the last one, an empty line.
fn earlier(state: &mut ChatState, at: Option<usize>) {
    let Some(at) = at.filter(|at| *at <= state.earlier.len()) else {
        return;
    };
    state.earlier_at = at;
    state.line = Typing::new(state.earlier.get(at).map_or("", String::as_str));
}

/// Scrolls the talk by so many pages; the extremes go to its ends.
fn scroll(state: &mut ChatState, pages: isize) {
    let Some(areas) = state.areas() else { return };
    let columns = usize::from(areas.main.width);
    let height = usize::from(areas.main.height);
    let page = isize::try_from(height.saturating_sub(PAGE_OVERLAP).max(1)).unwrap_or(1);
    let zone = state.zone;
    state
        .talk
        .scroll_by(pages.saturating_mul(page), columns, height, zone);
}

fn in_inbox(state: &mut ChatState, deed: Deed) -> Vec<Action> {
    let id = state.inbox.selected().map(|item| item.proposal.id.clone());
    let page = state.areas().map_or(1, |areas| {
        usize::from(areas.main.height).saturating_sub(PAGE_OVERLAP)
    });
    if state.suggestions.is_some() {
        return suggest::deed(state, deed, page);
    }
    match (deed, id) {
        (Deed::Suggestions, _) => return suggest::find(state),
        (Deed::Back, _) => state.focus = Focus::Talk,
        (Deed::Next, _) => state.inbox.step(1),
        (Deed::Previous, _) => state.inbox.step(-1),
        (Deed::PageDown, _) => state.inbox.scroll = state.inbox.scroll.saturating_add(page),
        (Deed::PageUp, _) => state.inbox.scroll = state.inbox.scroll.saturating_sub(page),
        (Deed::Top, _) => state.inbox.scroll = 0,
        (Deed::Bottom, _) => state.inbox.scroll = usize::MAX,
        (Deed::Decide(how), Some(id)) => return decided(state, how, &id),
        (Deed::Decide(_), None) => state.tell("No proposal waits for a decision."),
        (
            Deed::Help
            | Deed::OtherPane
            | Deed::Calls
            | Deed::Redraw
            | Deed::Interrupt
            | Deed::Leave
            | Deed::Send
            | Deed::Complete
            | Deed::Earlier
            | Deed::Later
            | Deed::PutInForce
            | Deed::Refuse
            | Deed::Line(_),
            _,
        ) => {}
    }
    Vec::new()
}

fn decided(state: &mut ChatState, how: Decide, id: &str) -> Vec<Action> {
    match how {
        Decide::Approve => return decide::approve(state, id, ""),
        Decide::ApproveWithNote => decide::ask_note(state, id),
        Decide::Edit => return decide::edit(state, id, false),
        Decide::EditOutside => return decide::edit(state, id, true),
        Decide::Reject => decide::ask_reason(state, id, ReasonedAct::Reject),
        Decide::Withdraw => decide::ask_reason(state, id, ReasonedAct::Withdraw),
        Decide::Pause => decide::ask_reason(state, id, ReasonedAct::Pause),
        Decide::Allow => decide::allow(state, id),
        Decide::Claim => return decide::claim(state, id),
        Decide::Extend => return decide::extend(state, id),
    }
    Vec::new()
}

/// A key while something is asked.
fn in_prompt(state: &mut ChatState, key: KeyEvent) -> Vec<Action> {
    if matches!(key.code, KeyCode::Esc) || deed(KeyContext::Line, key) == Some(Deed::Interrupt) {
        state.prompt = None;
        return Vec::new();
    }
    match state.prompt.take() {
        Some(Prompt::Reason { id, act, line }) if key.code == KeyCode::Enter => {
            decide::with_reason(state, &id, act, line.text())
        }
        Some(Prompt::Note { id, line }) if key.code == KeyCode::Enter => {
            decide::approve(state, &id, line.text())
        }
        Some(Prompt::Arguments { id, line }) if key.code == KeyCode::Enter => {
            decide::with_arguments(state, &id, line.text())
        }
        Some(Prompt::Reason { id, act, mut line }) => {
            edit(&mut line, key);
            state.prompt = Some(Prompt::Reason { id, act, line });
            Vec::new()
        }
        Some(Prompt::Note { id, mut line }) => {
            edit(&mut line, key);
            state.prompt = Some(Prompt::Note { id, line });
            Vec::new()
        }
        Some(Prompt::Arguments { id, mut line }) => {
            edit(&mut line, key);
            state.prompt = Some(Prompt::Arguments { id, line });
            Vec::new()
        }
        Some(Prompt::Conditions { id, seconds, line }) if key.code == KeyCode::Enter => {
            decide::like_for(state, &id, seconds, line.text())
        }
        Some(Prompt::Conditions {
            id,
            seconds,
            mut line,
        }) => {
            edit(&mut line, key);
            state.prompt = Some(Prompt::Conditions { id, seconds, line });
            Vec::new()
        }
        Some(Prompt::Time { id }) => match key.code {
            KeyCode::Char(c) => match decide::time_of(c) {
                Some(seconds) => decide::like_for(state, &id, seconds, ""),
                None => Vec::new(),
            },
            _ => Vec::new(),
        },
        Some(sure @ Prompt::Sure { .. }) if key.code == KeyCode::Char('y') => {
            state.prompt = Some(sure);
            decide::go_on(state)
        }
        Some(Prompt::Sure { approval, .. }) if key.code == KeyCode::Char('e') => {
            state.prompt = decide::ask_conditions(&approval);
            Vec::new()
        }
        Some(Prompt::Sure { .. }) | None => Vec::new(),
    }
}

/// Edits a line. False if it is full.
fn edit(line: &mut Typing, key: KeyEvent) -> bool {
    if let Some(Deed::Line(edit)) = deed(KeyContext::Line, key) {
        match edit {
            Edit::Left => line.left(),
            Edit::Right => line.right(),
            Edit::Home => line.home(),
            Edit::End => line.end(),
            Edit::Backspace => line.backspace(),
            Edit::Delete => line.delete(),
            Edit::WordBack => line.word_back(),
            Edit::CutBefore => line.cut_before(),
            Edit::CutAfter => line.cut_after(),
        }
        return true;
    }
    match key.code {
        KeyCode::Char(c)
            if !key
                .modifiers
                .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) =>
        {
            line.insert(c.encode_utf8(&mut [0; 4]))
        }
        _ => true,
    }
}

/// A text was pasted: it goes into the line that is typed, and decides nothing.
pub(super) fn paste(state: &mut ChatState, text: &str) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let fits = match (&mut state.prompt, state.focus) {
        (
            Some(
                Prompt::Reason { line, .. }
                | Prompt::Note { line, .. }
                | Prompt::Arguments { line, .. }
                | Prompt::Conditions { line, .. },
            ),
            _,
        ) => line.insert(&text),
        (None, Focus::Talk) => state.line.insert(&text),
        (Some(Prompt::Time { .. } | Prompt::Sure { .. }), _) | (None, Focus::Inbox) => true,
    };
    if !fits {
        state.tell("The pasted text does not fit into the line.");
    }
}
