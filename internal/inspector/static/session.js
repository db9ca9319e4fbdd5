// A session: one page, and one time cursor that all its panels obey. Looking is free:
// nothing is asked of anybody.
import { html, signal, useEffect, useMemo, useRef, useState } from './preact.js';
import { caller, follow, get, may, of } from './api.js';
import { Conversation, useTranscript } from './conversation.js';
import { offer, pressed } from './keys.js';
import { Timeline } from './timeline.js';
import { Ago, Hash, Link, Skeleton, State, Tabs, Wrong, lazy, now, place, setQuery, typed, useLoaded } from './ui.js';
import { cost, flat, number, plain, timeOf, took } from './text.js';

// Panels that are loaded when they are first opened, and actions, which come after the rest.
const [Actions, Composer] = ['Actions', 'Composer'].map((name) => lazy(() => import('./controls.js'), name, 0));
const StatePanel = lazy(() => import('./state.js'), 'StatePanel');
const Events = lazy(() => import('./events.js'), 'Events');
const Schedules = lazy(() => import('./schedules.js'), 'Schedules');
const [Tools, Batch, Effects] = ['Tools', 'Batch', 'Effects'].map((name) => lazy(() => import('./work.js'), name));

/** @typedef {API.EventHead} EventHead */

const pageSize = 2000;

/** The events of a session: loaded in pages, and then followed. @param {string} sid */
function useEvents(sid) {
  const [state, setState] = useState(/** @type {{ events: EventHead[], total: number, whole?: boolean, error?: Error }} */ ({ events: [], total: 0 }));
  useEffect(() => {
    const stop = new AbortController();
    let unfollow = () => {};
    /** @type {EventHead[]} */
    const all = [];
    const last = () => all.at(-1)?.seq ?? 0;
    /** @param {API.EventList} [more] */
    const show = (more) => setState({ events: [...all], total: Math.max(all.length, more?.total ?? 0), whole: !more?.next });
    const load = async () => {
      for (let from = /** @type {number | undefined} */ (1); from;) {
        const page = await get(of(sid, `/events?from=${from}&limit=${pageSize}`), stop.signal);
        all.push(...page.events);
        from = page.next;
        show(page);
      }
      unfollow = follow(of(sid, '/live'), String(last()), (head) => {
        if (head.seq <= last()) return;
        all.push(head);
        show();
      });
    };
    load().catch((error) => { if (!stop.signal.aborted) setState((was) => ({ ...was, error })); });
    return () => { stop.abort(); unfollow(); };
  }, [sid]);
  return state;
}

/**
 * The state at the cursor. The newest one is asked for at once, before it is known which
 * event is the last.
 * @param {string} sid @param {number} at @param {number} seq that of the event at the cursor; 0: it is not loaded yet
 */
function useStateAt(sid, at, seq) {
  const wanted = useRef(0); // 0: the newest
  const got = useRef(0);
  if (at) wanted.current = seq || at;
  else if (seq && (caller.value?.file || wanted.current || got.current && got.current < seq)) wanted.current = seq;
  const asks = wanted.current || !caller.value?.file; // a file has no newest state
  const state = useLoaded(async (stop) => (wanted.current ? get(of(sid, `/state?at=${wanted.current}&record=false`), stop) : asks ? get(of(sid, '/state?record=false'), stop) : undefined), [sid, wanted.current, asks]);
  got.current = state.value?.view.seq ?? 0;
  return state;
}

/** @typedef {{ turn?: string, text?: string, again?: boolean, waiting?: any }} Streamed */
const streamed = signal(/** @type {Streamed} */ ({}));

/** The text of the open turn, as it is written: never doubled, and void when it begins again. @param {string} sid */
function useStreaming(sid) {
  useEffect(() => {
    streamed.value = {};
    return follow(of(sid, '/updates'), '', (u) => {
      const key = `r${u.run}t${u.turn}`;
      if (u.type === 'text') streamed.value = { turn: key, text: (streamed.value.turn === key ? streamed.value.text : '') + u.delta };
      else if (u.type === 'text_restarted') streamed.value = { turn: key, text: '', again: true };
      else if (u.type === 'run_ended') streamed.value = {};
      else if (u.type === 'waiting') streamed.value = { ...streamed.value, waiting: u.cause ? u : null };
    });
  }, [sid]);
}

/**
 * Why the session waits, for people.
 * @param {{ view: API.View }} props
 */
function Why({ view }) {
  const troubles = view.troubles ?? [];
  const open = view.open?.filter((e) => e.class !== 'wake') ?? [];
  const names = [...new Set(open.map((e) => `${e.class}/${e.target}`))];
  const words = /** @type {Record<string, string>} */ ({
    model: 'for the model', tools: 'for tools', step: 'for a step hook', host_loop: 'for a host loop', approval: 'for a person to decide',
    input: 'for input', resume: 'to be resumed', retry: 'until the turn is tried again', space: 'for a workspace', reply: 'for a reply', clock: 'for the time', session: 'for another session', operator: 'for an operator',
  })[view.quarantined ? 'operator' : view.waits_for ?? ''];
  if (!words) return null;
  const deadline = open.length ? Math.min(...open.map((e) => e.deadline).filter(Boolean)) : view.run?.retry_at;
  return html`<p class="why">Waits ${words}${names.length ? html` (<span class="mono">${plain(names.slice(0, 3).join(', '))}${names.length > 3 ? ', …' : ''}</span>)` : null}${deadline && Number.isFinite(deadline) && deadline > now.value ? html`, <span class="num">${took(Math.ceil((deadline - now.value) / 1000) * 1000)}</span> left` : null}${view.unserved?.length ? html` · <span class="tag bad">nobody serves ${plain(view.unserved.join(', '))}</span>` : null}${troubles.map((t) => html` · <span class="tag warn">${plain(`${t.target}: ${t.code}${t.detail ? `: ${t.detail}` : ''}`)}</span>`)}${view.quarantined ? html` · <span class="tag bad">${plain(view.quarantined.reason)}</span>` : null}</p>`;
}

/**
 * Whose call the session carries out, and which sessions carry out its own.
 * @param {{ view: API.View }} props
 */
function Family({ view }) {
  /** @param {string} sid */
  const name = (sid) => (caller.value?.file ? html`<span class="mono">${plain(sid)}</span>` : html`<${Link} to=${`/s/${encodeURIComponent(sid)}`}><span class="mono">${plain(sid)}</span><//>`);
  const children = view.children ?? [];
  return html`${view.parent ? html`<p class="why" data-refold-parent>Carries out <span class="mono">${plain(view.parent.call)}</span> of ${name(view.parent.session)}</p>` : null}
    ${children.length ? html`<p class="why" data-refold-children>${children.length === 1 ? 'Child' : 'Children'}: ${children.slice(0, 5).map((c, i) => html`${i ? ', ' : ''}${name(c.session)} <span class="label">${plain(c.call)} ${plain(c.state)}</span>`)}${children.length > 5 ? ` and ${children.length - 5} more` : ''}</p>` : null}`;
}

/** @param {{ used: number, most: number, name: string }} props */
function Meter({ used, most, name }) {
  const part = Math.min(1, used / most);
  return html`<span class="meter ${part > 0.9 ? 'near' : ''}" style=${{ width: '56px', alignSelf: 'center' }} role="meter" aria-valuenow=${used} aria-valuemin="0" aria-valuemax=${most} aria-label=${name}><i style=${{ width: `${part * 100}%` }}></i></span>`;
}

/** @param {{ shown: API.StateShown, prove: () => void }} props */
function Vitals({ shown, prove }) {
  const v = shown.view;
  const run = v.run ?? v.last;
  const budget = v.run?.budget;
  /** @param {{ input_tokens?: number, output_tokens?: number }} [usage] */
  const tokens = (usage) => (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0);
  return html`<div class="vitals">
    <div><span class="label">Run</span><span class="num">${run?.number ?? '–'}${v.queue?.length ? ` (+${v.queue.length} queued)` : ''}</span></div>
    ${v.run ? html`<div><span class="label">Turn</span><span class="num">${v.run.turns} of ${v.run.turns_max}</span>${v.run.turns * 2 > v.run.turns_max ? html`<${Meter} used=${v.run.turns} most=${v.run.turns_max} name="Turns" />` : null}</div>` : null}
    <div><span class="label">Tokens</span><span class="num">${number(tokens(v.usage))}</span>${budget?.tokens ? html`<${Meter} used=${tokens(v.run?.usage)} most=${budget.tokens} name="Tokens of the budget" />` : null}</div>
    <div><span class="label">Cost</span><span class="num">${cost(v.cost)}</span>${budget?.cost ? html`<${Meter} used=${v.run?.cost ?? 0} most=${budget.cost} name="Cost of the budget" />` : null}</div>
    ${v.run?.model ? html`<div><span class="label">Model</span><span class="clip" title=${flat(v.run.model)}>${plain(v.run.model)}</span></div>` : null}
    <div><span class="label">Sequence</span><span class="num">${v.seq}</span></div>
    <div><span class="label">State</span><${Hash} hash=${v.hash} what="hash of the state" /><button type="button" class="btn" data-refold-prove onClick=${prove} disabled=${caller.value?.redacts} title=${caller.value?.redacts ? 'This server masks secrets, so it sends no events as they are stored.' : 'Fold the events again in this browser, and compare'}>Prove</button></div>
  </div>`;
}

/**
 * Finds the event before or after a place that is one for which is returns true.
 * @param {EventHead[]} events @param {number} from @param {number} step @param {Begins} is
 */
const seek = (events, from, step, is) => {
  for (let i = from + step; i >= 0 && i < events.length; i += step) if (is(events[i], events[i - 1])) return i;
  return -1;
};
/** @typedef {(e: EventHead, before?: EventHead) => unknown} Begins @type {Record<string, Begins>} */
const begins = { event: () => true, turn: (e, before) => e.turn && e.turn !== before?.turn, run: (e, before) => e.run && e.run !== before?.run, refusal: (e) => e.rejected };

/** @param {Pick<Panel, 'events' | 'at' | 'index' | 'move'> & { live: () => void }} props */
function Cursor({ events, at, index, move, live }) {
  /** @param {number} by @param {string} kind */
  const step = (by, kind) => () => { const i = seek(events, index, by, begins[kind]); if (i >= 0) move(i); };
  /** @param {number} by @param {string} kind */
  const any = (by, kind) => seek(events, index, by, begins[kind]) >= 0;
  const [kind, setKind] = useState('event');
  const e = events[index];
  return html`<div class="cursor" role="group" aria-label="Time cursor">
    <label><span class="sr">Step by</span><select class="input" style=${{ width: 'auto' }} value=${kind} onChange=${typed(setKind)}>${Object.keys(begins).map((k) => html`<option key=${k}>${k}</option>`)}</select></label>
    <button type="button" class="btn icon" disabled=${!any(-1, kind)} onClick=${step(-1, kind)} aria-label=${`Previous ${kind}`} title=${`Previous ${kind} ([)`}>‹</button>
    <button type="button" class="btn icon" disabled=${!any(1, kind)} onClick=${step(1, kind)} aria-label=${`Next ${kind}`} title=${`Next ${kind} (])`}>›</button>
    <input type="range" min="0" max=${Math.max(0, events.length - 1)} value=${index} aria-label="Event" aria-valuetext=${e ? `${e.n} of ${events.length}: ${e.type ?? 'unreadable'}` : ''} onInput=${typed((value) => move(Number(value)))} />
    <span class="where">${e ? html`${number(e.n)} of ${number(events.length)}<br />${timeOf(e.time)}` : null}</span>
    <button type="button" class=${`btn ${at ? '' : 'on'}`} aria-pressed=${at ? 'false' : 'true'} onClick=${live} title="Follow the log (l)">${caller.value?.file ? 'End' : 'Live'}</button>
  </div>`;
}

const tabs = [['timeline', 'Timeline'], ['events', 'Events'], ['state', 'State'], ['tools', 'Tools'], ['batch', 'Batch'], ['effects', 'Effects'], ['schedules', 'Schedules']];

/** Is there room for two columns? */
function useWide() {
  const query = useMemo(() => matchMedia('(min-width: 1100px)'), []);
  const [wide, setWide] = useState(query.matches);
  useEffect(() => {
    const look = () => setWide(query.matches);
    query.addEventListener('change', look);
    return () => query.removeEventListener('change', look);
  }, []);
  return wide;
}

/** @param {{ sid: string }} props */
export function Session({ sid }) {
  const { query } = place.value;
  const { events, total, whole, error } = useEvents(sid);
  useStreaming(sid);
  const wide = useWide();
  const all = wide ? tabs : [['conversation', 'Conversation'], ...tabs];
  const at = Number(query.get('at')) || 0; // a sequence; 0: live
  const last = events.at(-1);
  let index = events.length - 1;
  if (at) for (index = events.length - 1; index > 0 && events[index].seq > at;) index--;
  const cursor = (whole && (at ? events[index] : last)?.seq) || 0;
  const state = useStateAt(sid, at, cursor);
  const seq = cursor || state.value?.view.seq || 0;
  const end = whole ? last?.seq ?? 0 : at ? 0 : seq;
  const tab = all.find(([id]) => id === query.get('tab'))?.[0] ?? all[0][0];
  const said = useTranscript(sid, end, wide || tab === 'conversation');
  // At the end, the view of a session-actor knows more than the log: troubles, and who serves.
  const live = useLoaded(async (stop) => (at || !seq ? undefined : get(of(sid), stop).catch(() => undefined)), [sid, at ? 0 : seq, at ? 0 : Math.floor(now.value / 5000)]);
  /** @param {number} i */
  const move = (i) => setQuery({ at: i === events.length - 1 ? '' : events[i].seq });
  const goLive = () => setQuery({ at: '' });
  const pin = Number(query.get('compare')) || 0;
  const [proof, setProof] = useState(/** @type {any} */ (null)); // its panel is loaded when it is asked for
  const prove = () => import('./prove.js').then(({ Proof }) => setProof(() => Proof));
  useEffect(() => { document.title = `${sid} · Refold`; }, [sid]);
  useEffect(() => {
    /** @param {number} step @param {string} kind */
    const by = (step, kind) => () => { const i = seek(events, index, step, begins[kind]); if (i >= 0) move(i); };
    /** @param {KeyboardEvent} e */
    const press = (e) => pressed(e, {
      '[': by(-1, 'event'), ']': by(1, 'event'), '{': by(-1, 'turn'), '}': by(1, 'turn'), l: goLive,
      c: () => setQuery({ compare: pin ? '' : seq || '', tab: 'state', part: pin ? '' : 'diff' }),
    });
    addEventListener('keydown', press);
    // Actions are the buttons that are offered: each asks before it sends.
    const ended = offer(() => [
      ...[.../** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll('[data-refold-action]'))].map((b) => ({ name: b.textContent, run: () => b.click(), off: b.disabled })),
      ...all.map(([id, name]) => ({ name: `Show ${name}`, run: () => setQuery({ tab: id === all[0][0] ? '' : id }) })),
      ...Object.keys(begins).flatMap((kind) => [{ name: `Previous ${kind}`, run: by(-1, kind) }, { name: `Next ${kind}`, run: by(1, kind) }]),
      { name: 'Live', run: goLive, off: !at },
    ]);
    return () => { removeEventListener('keydown', press); ended(); };
  }, [events, index, pin, wide]);
  const file = caller.value?.file; // the page is one, without a server
  const head = file ? null : html`<div class="row label"><${Link} to="/">Sessions<//><span aria-hidden="true">/</span></div>`;
  const failed = !state.value && (state.error ?? error);
  if (failed) return html`<div class="page-head">${head}<h1 class="mono">${plain(sid)}</h1></div><${Wrong} error=${failed} again=${state.error ? state.again : undefined} />`;
  if (!state.value || at && !events.length) return html`<div class="page-head">${head}<h1 class="mono">${plain(sid)}</h1></div><div class="card"><${Skeleton} lines=${8} /></div>`;
  const shown = state.value;
  const view = at || !live.value || live.value.seq !== shown.view.seq ? shown.view : { ...shown.view, troubles: live.value.troubles, unserved: live.value.unserved, quarantined: live.value.quarantined };
  /** @type {Panel} */
  const context = { sid, events, at, seq, end, index, move, view, shown, pin, streamed };
  const talk = html`<${Conversation} ...${context} said=${said} />`;
  const panel = /** @type {Record<string, () => Drawn>} */ ({ conversation: () => talk, timeline: () => html`<${Timeline} ...${context} />`, events: () => html`<${Events} ...${context} />`, state: () => html`<${StatePanel} ...${context} />`, tools: () => html`<${Tools} ...${context} />`, batch: () => html`<${Batch} ...${context} />`, effects: () => html`<${Effects} ...${context} />`, schedules: () => html`<${Schedules} ...${context} />` })[tab]();
  const lower = !at && view.status === 'open' && (may('ask') || may('operate')) ? html`<${Composer} sid=${sid} view=${view} />` : null;
  /** @type {Record<string, string | number>} */
  const counts = { events: number(total), ...(view.schedules && { schedules: view.schedules.length }) };
  const panels = html`<${Tabs} label="Parts of the session" at=${tab} choose=${/** @param {string} id */ (id) => setQuery({ tab: id === all[0][0] ? '' : id })} tabs=${all.map(([id, name]) => ({ id, name, count: counts[id] }))}>${panel}${tab === 'conversation' ? lower : null}<//>`;
  return html`<div class="session-head">
      ${head}
      <div class="title"><h1>${plain(sid)}</h1><${State} state=${view.quarantined ? 'quarantined' : view.status === 'closed' ? 'closed' : view.lifecycle} waits=${view.waits_for} /><div class="about grow"><${Why} view=${view} /><${Family} view=${view} /></div>${at || file ? null : html`<${Actions} sid=${sid} view=${view} events=${events} />`}</div>
      <${Vitals} shown=${shown} prove=${prove} />
      <${Cursor} events=${events} at=${at} index=${index} move=${move} live=${goLive} />
      ${at ? html`<div class="past" role="status"><span>As of event ${number(events[index].n)}, <${Ago} at=${events[index].time} />. Nothing is asked.</span><button type="button" class="btn" onClick=${goLive}>Back to live</button></div>` : null}
    </div>
    ${error || state.error ? html`<${Wrong} error=${error ?? state.error} />` : null}
    ${proof ? html`<${proof} sid=${sid} events=${events} close=${() => setProof(null)} />` : null}
    ${wide ? html`<div class="split"><section class="card" aria-label="Conversation"><div class="card-head"><h2 class="grow">Conversation</h2><span class="label">${view.items} item${view.items === 1 ? '' : 's'}</span></div>${talk}${lower}</section>${panels}</div>` : panels}
    <div class="sr" aria-live="polite">${at ? '' : `${view.lifecycle} ${view.waits_for === 'nobody' ? '' : `waits for ${view.waits_for}`}`}</div>`;
}
