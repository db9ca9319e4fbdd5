// How the log is stored, what is stopped, and whether everything folds to what is stored.
import { html, useEffect, useRef, useState } from './preact.js';
import { may, stream } from './api.js';
import { Release } from './controls.js';
import { useRepeated } from './fleet.js';
import { Dialog, Empty, Link, Wrong, loaded } from './ui.js';
import { number, plain, size, took } from './text.js';

/** @type {Record<string, [string, string]>} */
const durability = {
  always: ['good', 'Servers sync to disk before they acknowledge.'], replicated: ['good', 'Three or more servers have each event; not all of them sync every write.'],
  interval: ['warn', 'Servers sync every two minutes: a power failure may lose acknowledged events.'], unknown: ['', 'No server says how it syncs.'],
};

/** @typedef {{ step: API.VerifyStep, differ: API.Verified[], stopped?: boolean, error?: Error }} Job */

/** Folds everything again, as a job that can be stopped. */
function Verify() {
  const [job, setJob] = useState(/** @type {Job | null} */ (null));
  const stop = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => () => stop.current?.abort(), []);
  const start = async () => {
    stop.current = new AbortController();
    setJob({ differ: [], step: { sessions: 0, events: 0, differ: 0 } });
    try {
      await stream('/v1/verify', (step) => setJob((was) => ({ ...was, step, differ: [...was?.differ ?? [], ...step.session ? [step.session] : []].slice(0, 200) })), stop.current.signal);
    } catch (/** @type {any} */ error) {
      setJob((was) => was && (error.name === 'AbortError' ? { ...was, stopped: true } : { ...was, error }));
    }
  };
  const running = job && !job.step.done && !job.error && !job.stopped;
  return html`<section class="card" aria-label="Verify"><div class="card-head"><h2 class="grow">Verify</h2>${running ? html`<button type="button" class="btn" onClick=${() => stop.current?.abort()}>Stop</button>` : html`<button type="button" class="btn main" onClick=${start}>${job ? 'Verify again' : 'Verify all sessions'}</button>`}</div>
    <div class="card-body stack"><p class="soft">Folds every session again from its first event, and compares it with the stored effects, snapshots and notices. It changes nothing.</p>
      <div aria-live="polite">${job ? html`<p class=${`note ${job.step.done ? (job.step.differ || job.step.missing ? 'bad' : 'good') : ''}`} id="verdict"><b>${job.step.done ? (job.step.differ || job.step.missing ? 'It differs.' : 'Identical.') : job.stopped ? 'Stopped.' : job.error ? 'It failed.' : 'Folding…'}</b> ${number(job.step.sessions)} session${job.step.sessions === 1 ? '' : 's'}, ${number(job.step.events)} events, ${number(job.step.differ)} differ${job.step.missing ? `, ${number(job.step.missing)} sequences of the log have no event` : ''}.</p>` : null}</div>
      ${job?.error ? html`<${Wrong} error=${job.error} again=${start} />` : null}
      ${job?.differ.map((s) => html`<div class="note bad" key=${s.session}><p><${Link} to=${`/s/${encodeURIComponent(s.session)}`}>${plain(s.session)}<//></p>${(s.differences ?? []).map((d) => html`<p>${plain(d)}</p>`)}</div>`)}
    </div></section>`;
}

export function System() {
  const [releasing, setReleasing] = useState(/** @type {API.QuarantineShown | null} */ (null));
  const state = useRepeated('/v1/system');
  useEffect(() => { document.title = 'System · Refold'; }, []);
  return html`<div class="page-head"><h1>System</h1><p>How the log is stored.</p></div>${loaded(state, (s) => {
    const [tone, words] = durability[s.durability] ?? durability.unknown;
    return html`<div class="stack">
      <section class="card" aria-label="Log"><div class="card-body"><dl class="facts">
        <div><dt>Durability</dt><dd><span class=${`state ${tone}`}>${plain(s.durability)}</span><p class="label" style=${{ marginTop: '6px' }}>${words}</p></dd></div>
        <div><dt>Newest event</dt><dd>${number(s.last)}</dd></div>
        <div><dt>Missing events</dt><dd>${s.missing ? html`<span class="state bad">${number(s.missing)}</span>` : 'none'}</dd></div>
        <div><dt>Rules</dt><dd>${s.rules}<p class="label" style=${{ marginTop: '6px' }}>the newest that this server knows; ${s.pinned_rules ? `new sessions follow ${s.pinned_rules}` : 'no install record is pinned'}</p></dd></div>
        <div><dt>NATS</dt><dd>${plain(s.nats)}<p class="label" style=${{ marginTop: '6px' }}>the server that this one is connected to</p></dd></div>
        <div><dt>Timers</dt><dd>${s.timers.due ? html`<span class="state warn">${number(s.timers.due)} due</span>` : number(s.timers.set)}<p class="label" style=${{ marginTop: '6px' }}>${s.timers.unknown ? html`it is not known which are due: ${plain(s.timers.unknown)}` : s.timers.due ? `of ${number(s.timers.set)} that are set: session-actors settle them at once` : 'are set, and none is due'}</p></dd></div>
        <div><dt>Quarantined</dt><dd>${s.quarantines.length ? html`<span class="state bad">${s.quarantines.length}</span>` : 'none'}</dd></div>
      </dl></div></section>
      ${s.quarantines.length ? html`<section class="card" aria-label="Quarantines"><div class="card-head"><h2>Quarantines</h2></div><div class="table-wrap"><table class="cards"><thead><tr><th>Session</th><th class="r">Stopped at</th><th>Reason</th><th>To go on</th></tr></thead><tbody>${s.quarantines.map((q) => html`<tr key=${q.session}><td class="mono"><${Link} to=${`/s/${encodeURIComponent(q.session)}`}>${plain(q.session)}<//></td><td class="r num" data-label="at">${q.seq}</td><td class="full">${plain(q.reason)}</td><td><button type="button" class="btn" disabled=${!may('operate')} data-refold-release=${q.session} onClick=${() => setReleasing(q)}>Release…</button></td></tr>`)}</tbody></table></div></section>` : null}
      <section class="card" aria-label="Streams"><div class="card-head"><h2 class="grow">Streams</h2></div>${s.streams.length ? html`<div class="table-wrap"><table class="cards"><thead><tr><th>Stream</th><th class="r">Messages</th><th class="r">Size</th><th class="r">Limit</th><th class="r">Kept for</th><th class="r">Copies</th><th>Leader</th></tr></thead><tbody>${s.streams.map((t) => html`<tr key=${t.name}><td class="mono full">${plain(t.name)}${t.missing ? html` <span class="state bad">missing</span>` : null}</td><td class="r num" data-label="messages">${number(t.messages)}</td><td class="r num" data-label="size">${size(t.bytes)}</td><td class="r num" data-label="limit">${t.bytes_max ? html`${size(t.bytes_max)}${t.bytes / t.bytes_max > 0.8 ? html` <span class="tag warn">${Math.round((t.bytes / t.bytes_max) * 100)} %</span>` : null}` : 'none'}</td><td class="r soft" data-label="kept">${t.max_age_s ? took(t.max_age_s * 1000) : 'ever'}</td><td class="r num" data-label="copies">${t.replicas}</td><td class=${`soft ${t.leader ? '' : 'none'}`}>${plain(t.leader ?? '–')}</td></tr>`)}</tbody></table></div>` : html`<${Empty} title="No streams" />`}</section>
      <${Verify} />
      ${releasing ? html`<${Dialog} title=${`Release: ${releasing.session}`} close=${() => setReleasing(null)}><${Release} sid=${releasing.session} quarantine=${releasing} close=${() => { setReleasing(null); state.again(); }} /><//>` : null}
    </div>`;
  }, 8)}`;
}
