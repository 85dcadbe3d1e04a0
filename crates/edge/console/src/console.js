// The script of the console: it keeps a page up to date, and keys decide. Every page works without it.
(() => {
'use strict';
const doc = document, root = doc.documentElement, { base, at, now } = root.dataset;
const one = (what, from = doc) => from.querySelector(what);
const all = (what, from = doc) => [...from.querySelectorAll(what)];
const cardOf = node => node?.closest?.('[data-card]');
const note = (textContent, tag = 'p') => Object.assign(doc.createElement(tag), { textContent, className: 'said wrong' });
const part = { headers: { 'x-portmoot-part': 1 } };
const say = text => { one('#say').textContent = text; };
// The code of `portmoot console` leaves the address at once.
const enter = () => {
	const form = one('form[data-enter]'), code = /^#([0-9a-f]{32})$/.exec(location.hash)?.[1];
	if (!code) return false;
	form.elements.code.value = code;
	history.replaceState(null, '', location.pathname + location.search);
	form.submit();
	return true;
};
if (enter()) return;
window.addEventListener('hashchange', enter);
if (at == null) return;
// Markup comes from the gateway alone, which has escaped all texts of others.
const plain = { createHTML: text => text };
const policy = window.trustedTypes?.createPolicy('portmoot', plain) ?? plain;
const parse = text => {
	const template = doc.createElement('template');
	template.innerHTML = policy.createHTML(text);
	return template.content;
};
// Times: of this browser's zone, and until a proposal expires.
const ahead = now - Date.now();
const localize = from => {
	for (const time of all('time:not([title])', from)) {
		const when = new Date(time.dateTime);
		time.title = time.textContent;
		time.textContent = 'day' in time.dataset ? when.toLocaleString() : when.toLocaleTimeString();
	}
};
const lock = (card, why, ...more) => {
	for (const button of all('.actions button', card)) button.disabled = true;
	if (!why || card.dataset.locked === why && !more[0]) return;
	card.dataset.locked = why;
	one('[data-answer]', card).replaceChildren(note(why), ...more);
};
const tick = () => {
	for (const card of all('[data-gone]')) if (Date.now() - card.dataset.gone > 3e4 && !held(card)) card.remove();
	all('#cards > [data-state=running]').forEach(follow);
	for (const left of all('[data-until]')) {
		const seconds = Math.ceil((left.dataset.until - Date.now() - ahead) / 1000);
		left.textContent = seconds > 0 ? `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, 0)} left` : 'expired';
		if (seconds <= 0) lock(cardOf(left), 'It has expired: nothing runs.');
		else if (seconds <= 20 && !left.classList.contains('soon')) {
			left.classList.add('soon');
			say('20 seconds are left: t gives more time.');
		}
	}
};
// The first press arms, the second one decides. A card that has just come or changed takes none.
const since = new WeakMap(), focused = new WeakMap();
const settled = (map, card) => !card || performance.now() - (map.get(card) ?? 0) >= 400;
const disarm = button => {
	if (button.dataset.armed) button.textContent = button.dataset.words;
	delete button.dataset.armed;
};
const press = (button, byKey) => {
	const card = cardOf(button), { armed } = button.dataset, time = performance.now();
	if (button.disabled) return say(card.dataset.locked ?? one('[data-why]', card)?.dataset.why);
	if (!settled(since, card) || (byKey && !settled(focused, card))) return;
	if (!armed) {
		Object.assign(button.dataset, { armed: time, words: button.textContent });
		button.textContent = `Press again within 6 s: ${button.textContent}`;
		say(button.textContent);
		setTimeout(() => {
			if (button.dataset.armed === `${time}`) say('Nothing was decided: press twice within 6 seconds.', disarm(button));
		}, 6000);
	} else if (time - armed >= 500) {
		disarm(button);
		if (button.form.elements.confirmed) button.form.elements.confirmed.value = 1;
		button.form.requestSubmit(button);
	}
};
doc.addEventListener('click', event => {
	const button = event.target.closest('[data-arm]'), choice = event.target.closest('[data-choice]');
	if (button) press(button, event.preventDefault());
	if (choice && !settled(since, cardOf(choice))) event.preventDefault();
});
doc.addEventListener('focusin', event => {
	const card = cardOf(event.target);
	if (card && card !== cardOf(event.relatedTarget)) focused.set(card, performance.now());
	for (const button of all('[data-armed]')) if (cardOf(button) !== card) disarm(button);
});
doc.addEventListener('input', event => { if (cardOf(event.target)) cardOf(event.target).dataset.dirty = 1; });
// Acts on a card are sent without leaving the page.
// What has come counts as there once it is on the screen: on a busy machine, or behind another tab, that is later.
const come = card => {
	since.set(card, Infinity);
	requestAnimationFrame(() => since.set(card, performance.now()));
	localize(card);
};
const take = (card, fresh) => {
	const had = card.contains(doc.activeElement), chosen = one('.choose', card);
	// The same request stays chosen.
	if (chosen && card.dataset.digest === fresh.dataset.digest) one('.choose', fresh)?.replaceWith(chosen);
	card.replaceWith(fresh);
	come(fresh);
	if (had) fresh.focus({ preventScroll: true });
};
doc.addEventListener('submit', async event => {
	const form = event.target, card = cardOf(form), body = new URLSearchParams(new FormData(form));
	if (!card) return;
	event.preventDefault();
	const buttons = all('.actions button:enabled', card);
	lock(card);
	const answer = await fetch(form.action, { method: 'POST', body, ...part }).catch(() => 0);
	if (answer.status === 401) return location.reload();
	const got = answer ? parse(await answer.text()) : note('No answer. Look again.');
	const fresh = answer && one('[data-card]', got);
	if (fresh) return take(card, fresh, say(one('.said', got).textContent));
	one('[data-answer]', card).replaceChildren(got);
	if (!card.dataset.locked) for (const button of buttons) button.disabled = false;
});
const held = card => card.matches(':hover, :focus-within, [data-dirty]');
// The stream. A card that is focused, under the pointer or filled in is never swapped.
const change = (card, fresh) => {
	const { state, hash } = fresh.dataset;
	if ([card.dataset.hash, card.dataset.next].includes(hash)) return;
	card.dataset.next = hash;
	// What waits for no decision is exchanged at once: nothing of it can be pressed by mistake.
	if (!held(card) || card.dataset.state !== 'pending') return take(card, fresh);
	const show = note('Show it', 'button');
	show.onclick = () => take(card, fresh);
	lock(card, state === 'pending' ? 'It has changed. Look again.' : `It is ${state} meanwhile.`, show);
};
// What was decided here is followed to its end; what waits no more goes after a while.
const follow = async card => {
	const answer = await fetch(one('.more', card)?.href ?? location.href, part).catch(() => 0);
	const fresh = answer.ok && one('[data-card]', parse(await answer.text()));
	if (fresh && fresh.dataset.state !== 'running') take(card, fresh);
};
const count = waiting => {
	const badge = one('#count');
	if (waiting > badge.textContent) say(waiting === 1 ? '1 proposal waits' : `${waiting} proposals wait`);
	badge.textContent = waiting;
	badge.hidden = !waiting;
	doc.title = (waiting ? `(${waiting}) ` : '') + doc.title.replace(/^\(\d+\) /, '');
};
// What is decided here stands below what waits.
const decided = () => all('#cards > [data-card]').find(card => card.dataset.state !== 'pending');
const seen = new Map(all('[data-live]').map(part => [part.id, part.cloneNode(true)]));
const patch = next => {
	for (const card of all('#cards > [data-card]')) if (!next.getElementById(card.id)) {
		card.dataset.gone ??= Date.now();
		if (card.dataset.state === 'pending') lock(card, 'It waits no more. Open it.');
	}
	for (const fresh of all('[data-live]', next)) {
		const part = doc.getElementById(fresh.id);
		if (!part || seen.get(fresh.id)?.isEqualNode(fresh) || part.matches(':focus-within, :hover:has(details[open])')) continue;
		const copy = fresh.cloneNode(true);
		seen.set(fresh.id, fresh);
		// What was opened stays open.
		const folds = all('details', copy), before = all('details', part);
		if (folds.length === before.length) before.forEach((fold, place) => { folds[place].open = fold.open; });
		part.replaceWith(copy);
		localize(copy);
	}
	for (const fresh of all('[data-card]', next)) {
		const card = doc.getElementById(fresh.id);
		if (card) change(card, fresh);
		else one('#cards')?.insertBefore((come(fresh), fresh), decided() ?? null);
	}
	tick();
};
let stream, paused;
// A stream that was refused: the session may have ended, with the gateway or without.
const again = async mine => {
	const { status } = await fetch(location.href, part).catch(() => 0);
	if (status === 401) location.reload();
	else if (mine === stream) open();
};
const open = () => {
	stream?.close();
	if (paused) return;
	const mine = stream = new EventSource(`${base}/feed?${new URLSearchParams({ at, hidden: doc.hidden ? 1 : '' })}`);
	const on = (name, act) => mine.addEventListener(name, act);
	on('open', () => { one('#lost').hidden = true; });
	on('error', () => {
		one('#lost').hidden = false;
		if (mine.readyState === 2) setTimeout(again, 3000, mine);
	});
	on('trouble', event => one('#trouble').replaceChildren(parse(event.data)));
	on('page', event => patch(parse(event.data)));
	on('count', event => count(+event.data));
	on('enough', () => pause(one('#trouble').replaceChildren(note('Too many pages are open: this one is not kept up to date.'))));
	on('over', () => location.reload());
};
doc.addEventListener('visibilitychange', open);
const pause = () => {
	paused = !paused;
	one('#pause').textContent = paused ? 'Resume updates' : 'Pause updates';
	if (!paused) one('#trouble').replaceChildren();
	open();
};
one('#pause').onclick = pause;
one('#pause').hidden = one('#help').hidden = false;
// Keys. They do nothing in a field, and nothing while they are switched off.
const move = (card, step) => {
	const cards = all('[data-card]');
	cards[Math.min(Math.max(cards.indexOf(card) + step, 0), cards.length - 1)]?.focus();
};
const approve = card => one('.approve [data-arm]', card);
const send = (card, act) => one(`[data-act=${act}]`, card)?.requestSubmit();
const keys = {
	j: card => move(card, 1),
	k: card => move(card, -1),
	a: card => one('[data-typed]', card)?.focus() ?? (approve(card) && press(approve(card), true)),
	Enter: card => doc.activeElement === card && approve(card)?.dataset.armed && press(approve(card), true),
	r: card => { one('.reject details', card).open = true; one('[name=reason]', card).focus(); },
	e: card => one('[data-edit]', card)?.click(),
	h: card => one('[data-like]', card)?.click(),
	c: card => send(card, 'claim'),
	t: card => send(card, 'extend'),
	'?': () => { one('#help').open ^= 1; one('#help summary').focus(); },
};
doc.addEventListener('keydown', event => {
	const { key, target, repeat } = event, field = target.closest('input, textarea, select'), card = cardOf(target);
	if (field) return key === 'Escape' && card?.focus();
	if (repeat) return target.closest('[data-arm]') && event.preventDefault();
	if (!keys[key] || root.dataset.keys !== 'on' || event.ctrlKey || event.metaKey || event.altKey) return;
	if (key !== 'Enter') event.preventDefault();
	if (card || 'jk?'.includes(key)) keys[key](card);
	else if (key !== 'Enter') move(card, 1);
});
count(+one('#count').textContent, localize(doc));
all('[data-card]').forEach(card => since.set(card, performance.now()));
setInterval(tick, 1000, tick());
open();
})();
