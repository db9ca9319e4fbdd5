// The events of a session: a virtual list, and the opened event with all that it did.
import { html, useEffect, useLayoutEffect, useRef, useState } from './preact.js';
import { bytes, fileOf, get, may, of } from './api.js';
import { Changes } from './state.js';
import { Code, Copy, Dialog, Empty, Hash, Tree, lazy, loaded, save, setQuery, place, typed, useLoaded } from './ui.js';
import { dateOf, number, plain, size, timeOf } from './text.js';

const height = 36;
const over = 10; // rows that are drawn beyond what is seen

/** @type {Record<string, string>} */
const doors = { in: 'client', ctl: 'operator', approve: 'person', llm: 'model', tool: 'tool', step: 'step hook', wake: 'timer', space: 'workspace' };

/**
 * The rows that are seen, and a few more: at most three screens of them.
 * @param {{ events: API.EventHead[], index: number, choose: (i: number) => void }} props
 */
function List({ events, index, choose }) {
  const ref = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [tall, setTall] = useState(420);
  useLayoutEffect(() => { setTall(ref.current?.clientHeight ?? 420); }, []);
  useEffect(() => { // the cursor stays in sight
    const at = index * height;
    const el = ref.current;
    if (!el) return;
    if (at < el.scrollTop) el.scrollTop = Math.max(0, at - height);
    else if (at + height > el.scrollTop + el.clientHeight) el.scrollTop = at + 2 * height - el.clientHeight;
  }, [index, events.length]);
  const from = Math.max(0, Math.floor(top / height) - over);
  const to = Math.min(events.length, Math.ceil((top + tall) / height) + over);
  return html`<div class="vlist" ref=${ref} onScroll=${/** @param {Event & { target: HTMLElement }} e */ (e) => setTop(e.target.scrollTop)} tabIndex="0" role="table" aria-label="Events" aria-rowcount=${events.length}>
    <div style=${{ height: `${events.length * height}px` }} role="rowgroup">${events.slice(from, to).map((e, i) => html`<div class=${`ev ${from + i === index ? 'at' : ''}`} key=${e.seq} style=${{ top: `${(from + i) * height}px` }} role="row" aria-rowindex=${e.n} data-refold-seq=${e.seq} onClick=${() => choose(from + i)}>
      <span class="num label" role="cell">${e.seq}</span>
      <span class="num label time" role="cell" title=${dateOf(e.time)}>${timeOf(e.time).slice(0, 12)}</span>
      <span class="row" role="cell"><button type="button" class="type clip" title=${e.type}>${plain(e.type ?? '(unreadable)')}</button></span>
      <span class="clip soft lineof" role="cell">${plain(e.line ?? '')}</span>
      <span class="row" role="cell">${e.rejected ? html`<span class="tag bad">${e.rejected}</span>` : null}${e.opened ? html`<span class="tag mono">${e.opened.length > 2 ? `${e.opened.length} effects` : e.opened.join(' ')}</span>` : null}</span>
    </div>`)}</div>
  </div>`;
}

const hexMax = 4096;

/** Bytes as they are stored: hex, and text beside it. @param {{ sid: string, seq: number }} props */
function Raw({ sid, seq }) {
  const [shown, setShown] = useState(/** @type {Uint8Array | null} */ (null));
  const load = () => bytes(of(sid, `/events/${seq}/raw`)).then(setShown, () => setShown(new Uint8Array()));
  if (!shown) return html`<button type="button" class="btn" onClick=${load}>Show the bytes</button>`;
  const lines = [];
  for (let i = 0; i < Math.min(shown.length, hexMax); i += 16) {
    const part = [...shown.slice(i, i + 16)];
    lines.push(`${i.toString(16).padStart(6, '0')}  ${part.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(48)} ${part.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : '·')).join('')}`);
  }
  return html`<pre class="code" style=${{ whiteSpace: 'pre' }} tabIndex="0">${lines.join('\n')}${shown.length > hexMax ? `\n… ${number(shown.length - hexMax)} more bytes` : ''}</pre>`;
}

const Redact = lazy(() => import('./forms.js'), 'Redact');

/** @param {{ sid: string, e: API.EventShown, again: () => void }} props */
function Opened({ sid, e, again }) {
  const [redacting, setRedacting] = useState(false);
  const close = () => setRedacting(false);
  return html`<div class="opened">
    <div class="row wrap"><h2 class="h3 grow">${plain(e.type ?? 'Unreadable event')} <span class="label">at ${e.seq}</span></h2>
      <button type="button" class="btn" disabled=${!e.previous} onClick=${() => setQuery({ at: e.previous })}>‹ ${e.previous ?? ''}</button><button type="button" class="btn" disabled=${!e.following} onClick=${() => setQuery({ at: e.following })}>${e.following ?? ''} ›</button></div>
    ${e.rejected ? html`<p class="note bad">It had no effect: <b>${e.rejected}</b>${e.detail ? html` – ${plain(e.detail)}` : null}</p>` : null}
    <dl class="pairs">
      <dt>Time</dt><dd class="num">${dateOf(e.time)} <span class="label">of the log</span>${e.at ? html` · ${dateOf(e.at)} <span class="label">of the publisher</span>` : null}</dd>
      <dt>Door</dt><dd>${e.door} <span class="label">${doors[e.door] ?? ''}</span></dd>
      ${e.by ? html`<dt>By</dt><dd>${plain(e.by)}</dd>` : null}
      ${e.id ? html`<dt>Id</dt><dd><${Copy} text=${e.id} what="id" /></dd>` : null}
      <dt>Size</dt><dd>${size(e.bytes)}</dd>
      <dt>Hashes</dt><dd class="row wrap"><span class="label">event</span><${Hash} hash=${e.leaf} /><span class="label">chain</span><${Hash} hash=${e.chain} /><span class="label">state</span><${Hash} hash=${e.hash} /></dd>
    </dl>
    ${e.redacted ? html`<p class="note">Its text was removed: this is a copy without it, which leaves the same state. The hash is that of the event.</p>` : null}
    ${redacting ? html`<${Dialog} title=${`Remove the text of event ${e.seq}`} close=${close}><${Redact} sid=${sid} seq=${e.seq} close=${close} done=${again} /><//>` : null}
    ${e.fault ? html`<p class="note bad">It can't be read: ${plain(e.fault)}</p>` : e.data ? html`<div><h2 class="h3">Data</h2><${Code} text=${JSON.stringify(e.data)} /></div>` : html`<p class="note row wrap"><span class="grow">Its data is not shown: there is none, or it is over 64 KiB.</span><button type="button" class="btn" onClick=${() => fileOf(of(sid, `/events/${e.seq}/text`)).then((text) => save(`event-${e.seq}.txt`, text), () => {})}>All of it</button></p>`}
    ${e.said?.length ? html`<div><h2 class="h3">Notices</h2>${e.said.map((n) => html`<div class="tree"><${Tree} name=${n.type} value=${n.data ?? {}} open=${0} /></div>`)}</div>` : null}
    ${e.effects?.length ? html`<div><h2 class="h3">Effects that it opened</h2><div class="table-wrap"><table><thead><tr><th>Effect</th><th>Target</th><th class="r">Size</th><th>Hash</th></tr></thead><tbody>${e.effects.map((f) => html`<tr><td class="mono">${f.effect}</td><td>${plain(`${f.class}/${f.target}`)}</td><td class="r num">${size(f.bytes)}</td><td><${Hash} hash=${f.hash} /></td></tr>`)}</tbody></table></div></div>` : null}
    ${e.withdrawn?.length ? html`<p class="note">It withdrew ${e.withdrawn.join(', ')}.</p>` : null}
    <div><h2 class="h3">What it changed</h2><${Changes} changes=${e.changes ?? []} more=${e.more} /></div>
    <div><h2 class="h3">Bytes</h2><${Raw} key=${e.seq} sid=${sid} seq=${e.seq} /></div>
    ${may('erase') && !e.redacted ? html`<div class="row"><button type="button" class="btn danger" onClick=${() => setRedacting(true)}>Remove the text…</button></div>` : null}
  </div>`;
}

const kinds = [['', 'All events'], ['refused', 'Without effect'], ['notices', 'With notices'], ['effects', 'That opened effects'], ['people', 'Of people and operators']];
/** @type {Record<string, (e: API.EventHead) => any>} */
const isOf = { '': () => true, refused: (e) => e.rejected, notices: (e) => e.notices?.length, effects: (e) => e.opened?.length, people: (e) => ['in', 'ctl', 'approve'].includes(e.door) };

/** @param {Panel} props */
export function Events({ sid, events, index, seq }) {
  const kind = place.value.query.get('events') ?? '';
  const shown = kind ? events.filter(isOf[kind] ?? isOf['']) : events;
  /** @param {number} i */
  const choose = (i) => setQuery({ at: shown[i].seq === events.at(-1)?.seq ? '' : shown[i].seq });
  let at = kind ? shown.findLastIndex((e) => e.seq <= seq) : index;
  if (at < 0) at = 0;
  const state = useLoaded((stop) => get(of(sid, `/events/${seq}`), stop), [sid, seq]);
  return html`<div class="card-head" style=${{ borderBottom: '1px solid var(--line)' }}><label class="row"><span class="sr">Which events</span><select class="input" value=${kind} onChange=${typed((value) => setQuery({ events: value }))}>${kinds.map(([id, words]) => html`<option value=${id} key=${id}>${words}</option>`)}</select></label><span class="label">${kind ? `${number(shown.length)} of ${number(events.length)}: the filter hides ${number(events.length - shown.length)}` : `${number(events.length)} events`}</span></div>
    ${shown.length ? html`<${List} events=${shown} index=${at} choose=${choose} />` : html`<${Empty} title="No event matches"><p>${kinds.find(([id]) => id === kind)?.[1]}</p><button type="button" class="btn" onClick=${() => setQuery({ events: '' })}>Show all events</button><//>`}
    ${loaded(state, (e) => html`<${Opened} sid=${sid} e=${e} again=${state.again} />`, 4)}`;
}
