// The state at the cursor: as people see it, as it is stored, and how two states differ.
import { html } from './preact.js';
import { get, of } from './api.js';
import { Empty, Tree, loaded, place, setQuery, useLoaded } from './ui.js';
import { number, plain } from './text.js';

/** Paths at which two states differ. @param {API.ChangeList} props */
export function Changes({ changes, more }) {
  if (!changes.length) return html`<p class="label">Nothing differs.</p>`;
  return html`<div class="table-wrap"><table class="changes"><colgroup><col style=${{ width: '30%' }} /><col /><col /></colgroup><thead><tr><th>Path</th><th>Before</th><th>After</th></tr></thead>
    <tbody>${changes.map((c) => html`<tr key=${c.path}><td>${plain(c.path)}</td><td class="old"><div>${c.old === undefined ? html`<span class="nul">–</span>` : plain(c.old)}</div></td><td class="new"><div>${c.new === undefined ? html`<span class="nul">removed</span>` : plain(c.new)}</div></td></tr>`)}</tbody></table></div>
    ${more ? html`<p class="label">There are more: only the first ${changes.length} are shown.</p>` : null}`;
}

/** @param {Pick<Panel, 'sid' | 'pin' | 'seq'>} props */
function Diff({ sid, pin, seq }) {
  const state = useLoaded(async (stop) => (pin ? get(of(sid, `/diff?a=${pin}&b=${seq}`), stop) : undefined), [sid, pin, seq]);
  if (!pin) return html`<${Empty} title="Compare two events"><p>Pin the state at the cursor, then move the cursor.</p><button type="button" class="btn" onClick=${() => setQuery({ compare: seq })}>Pin event ${seq}</button><//>`;
  return html`<div class="row wrap" style=${{ marginBottom: '12px' }}><span class="grow">From event <b class="num">${pin}</b> to event <b class="num">${seq}</b></span><button type="button" class="btn" onClick=${() => setQuery({ compare: seq })}>Pin ${seq} instead</button><button type="button" class="btn" onClick=${() => setQuery({ compare: '' })}>Unpin</button></div>
    ${loaded(state, (d) => (d ? html`<${Changes} ...${d} />` : null), 5)}`;
}

/** The fields of an object, as trees. @param {{ of: object }} props */
const Fields = ({ of: fields }) => html`<div class="tree">${Object.entries(fields).map(([k, v]) => html`<${Tree} key=${k} name=${k} value=${v} depth=${1} open=${2} />`)}</div>`;

/** The state as it is stored. @param {Pick<Panel, 'sid' | 'seq'>} props */
function Stored({ sid, seq }) {
  const state = useLoaded(async (stop) => get(of(sid, `/state?at=${seq}`), stop), [sid, seq]);
  return loaded(state, (shown) => html`<${Fields} of=${shown.record} />`);
}

const parts = [['view', 'View'], ['record', 'Record'], ['diff', 'Compare']];

/** @param {Panel} props */
export function StatePanel({ sid, seq, shown, pin }) {
  const part = place.value.query.get('part') ?? 'view';
  const at = parts.some(([id]) => id === part) ? part : 'view';
  return html`<div class="panel-body">
    <div class="row wrap" style=${{ marginBottom: '16px' }} role="group" aria-label="Which form">${parts.map(([id, name]) => html`<button type="button" key=${id} class=${`btn ${id === at ? 'on' : ''}`} aria-pressed=${id === at ? 'true' : 'false'} onClick=${() => setQuery({ part: id === 'view' ? '' : id })}>${name}</button>`)}<span class="label">${at === 'record' ? 'As it is stored: its fields are no part of the protocol.' : at === 'view' ? `As of event ${number(shown.n)}.` : ''}</span></div>
    ${at === 'diff' ? html`<${Diff} sid=${sid} pin=${pin} seq=${seq} />` : at === 'record' ? html`<${Stored} sid=${sid} seq=${seq} />` : html`<${Fields} of=${shown.view} />`}
  </div>`;
}
