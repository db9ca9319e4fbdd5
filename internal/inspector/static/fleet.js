// What runs now: bridges, session-actors, their lanes, targets, and install records.
import { html, useEffect, useMemo, useRef, useState } from './preact.js';
import { get } from './api.js';
import { Changes } from './state.js';
import { Ago, Dialog, Empty, Hash, loaded, now, useLoaded } from './ui.js';
import { dateOf, number, plain, size, took } from './text.js';

const every = 5000;

/**
 * A value that is loaded again and again, while the tab is seen.
 * @type {<P extends string>(path: P) => import('./ui.js').Loaded<API.GetAnswer<P>>}
 */
export function useRepeated(path) {
  const [n, setN] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) setN((was) => was + 1); }, every);
    return () => clearInterval(timer);
  }, []);
  return useLoaded((stop) => get(path, stop), [path, n]);
}

/** Numbers as ranges: 0–3, 7. @param {number[]} numbers */
export function ranges(numbers) {
  const all = [...numbers].sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < all.length;) {
    let j = i;
    while (all[j + 1] === all[j] + 1) j++;
    parts.push(i === j ? all[i] : `${all[i]}–${all[j]}`);
    i = j + 1;
  }
  return parts.join(', ');
}

/** @param {number} [ms] */
const clockOff = (ms) => (ms ? html` <span class="tag bad">clock ${ms > 0 ? 'ahead' : 'behind'} by ${Math.abs(ms / 1000).toFixed(1)} s</span>` : null);
/** @param {string} target */
const how = (target) => (target.startsWith('llm/') ? 'refold bridge serve --model MODEL' : 'refold bridge serve --tools TOOLS');

/** @param {{ title: string, count?: number | string, children?: Drawn }} props */
const Card = ({ title, count, children }) => html`<section class="card" aria-label=${title}><div class="card-head"><h2 class="grow">${title}</h2>${count === undefined ? null : html`<span class="label">${count}</span>`}</div>${children}</section>`;

/**
 * How an install record differs from the one before it.
 * @param {{ record: API.InstallShown, close: () => void }} props
 */
function Differs({ record, close }) {
  const state = useLoaded((stop) => get(`/v1/installs/${record.seq}/changes`, stop), [record.seq]);
  return html`<${Dialog} title=${`Install record ${record.seq}: what it changed`} close=${close}><div class="card-body">${loaded(state, (d) => html`<${Changes} ...${d} />`, 5)}</div><//>`;
}

const rateOver = 60_000; // milliseconds of the past of which a rate is

/**
 * Returns what counts were at times, and how much each grew in a second of the last minute.
 * A count that was seen once has no rate.
 * @typedef {Map<string, { at: number, n: number }[]>} Counted
 * @type {(before: Counted, counts: [string, number][], at: number) => { counted: Counted, rates: Map<string, number> }}
 */
export function ratesOf(before, counts, at) {
  const counted = new Map(counts.map(([name, n]) => [name, [...(before.get(name) ?? []).filter((one) => one.at > at - rateOver), { at, n }]]));
  const grown = [...counted].filter(([, [first]]) => first.at < at).map(/** @returns {[string, number]} */ ([name, all]) => [name, (all[all.length - 1].n - all[0].n) * 1000 / (at - all[0].at)]);
  return { counted, rates: new Map(grown) };
}

/**
 * The rates of the processes that answered, by instance: effects that a bridge settled, events that a session-actor stored.
 * @param {API.FleetShown | undefined} f
 */
function useRates(f) {
  const counted = useRef(/** @type {Counted} */ (new Map()));
  return useMemo(() => {
    /** @type {[string, number][]} */
    const counts = [];
    for (const { instance, work } of f?.bridges ?? []) if (work) counts.push([instance, work.done + work.failed]);
    for (const { instance, work } of f?.session_actors ?? []) if (work) counts.push([instance, work.events]);
    const now = ratesOf(counted.current, counts, Date.now());
    counted.current = now.counted;
    return now.rates;
  }, [f]);
}

/** How often something is done. @param {{ rate?: number, what: string }} props */
const Rate = ({ rate, what }) => (rate === undefined ? null : html`<div class="label" data-refold-rate>${rate < 10 ? rate.toFixed(1) : number(Math.round(rate))} ${what}/s</div>`);

/** The newest version of the rules that a process knows. @param {API.FleetShown} f */
const newest = (f) => [...f.bridges, ...f.session_actors].reduce((n, p) => Math.max(n, p.rules ?? 0), 0);

/** A process's release and rules. @param {{ version?: string, rules?: number, newest: number }} props */
const Release = ({ version, rules, newest }) => html`<span class="soft clip" style=${{ maxWidth: '220px', display: 'inline-block' }}>${plain(version || '–')}</span>${rules ? html`<div class=${rules < newest ? 'tag warn' : 'label'}>rules ${rules}${rules < newest ? `, others know ${newest}` : ''}</div>` : null}`;

/** @param {{ all: API.BridgeShown[], newest: number, rates: Map<string, number> }} props */
function Bridges({ all, newest, rates }) {
  if (!all.length) return html`<${Card} title="Bridges" count=${0}><${Empty} title="No bridge is heard" /><//>`;
  return html`<${Card} title="Bridges" count=${all.length}><div class="table-wrap" tabIndex="0"><table class="cards"><thead><tr><th>Bridge</th><th>Version</th><th>Targets</th><th class="r">In flight</th><th class="r">Settled</th><th class="r">Last heartbeat</th></tr></thead><tbody>${all.map(({ work, ...b }) => html`<tr key=${b.instance} data-refold-bridge=${b.instance}><td class="full"><b>${plain(b.name || 'unnamed')}</b> <span class="label mono">${plain(b.instance.slice(-8))}</span>${clockOff(b.clock_ahead_ms)}</td>
    <td><${Release} version=${b.version} rules=${b.rules} newest=${newest} /></td>
    <td>${b.targets.map((t) => html`<span class="tag mono" style=${{ marginRight: '4px' }}>${plain(t)}</span>`)}${(b.troubles ?? []).map((t) => html`<span class="tag bad">${plain(`${t.target}: ${t.code}${t.detail ? `: ${t.detail}` : ''}`)}</span>`)}</td>
    <td class="r num" data-label="in flight">${work ? `${number(work.in_flight)} of ${number(work.slots)}` : '–'}</td><td class="r num" data-label="settled">${work ? number(work.done + work.failed) : '–'}<${Rate} rate=${rates.get(b.instance)} what="effects" />${work?.failed ? html`<div class="label">${number(work.failed)} failed</div>` : null}${work?.taken_over ? html`<div class="label">${number(work.taken_over)} taken over</div>` : null}</td>
    <td class="r soft">${b.heard ? html`<${Ago} at=${b.heard} />` : 'only answers'}</td></tr>`)}</tbody></table></div><//>`;
}

/** @param {{ all: API.ActorShown[], lanes?: number, newest: number, rates: Map<string, number> }} props */
function Actors({ all, lanes, newest, rates }) {
  if (!all.length) return html`<${Card} title="Session-actors" count=${0}><${Empty} title="No session-actor is heard"><p>Sessions do not go on without one.</p><pre>refold actor serve</pre><//><//>`;
  return html`<${Card} title="Session-actors" count=${all.length}><div class="table-wrap" tabIndex="0"><table class="cards"><thead><tr><th>Session-actor</th><th>State</th><th>Version</th><th>Lanes</th><th class="r">Take-overs</th><th class="r">In memory</th><th class="r">Heartbeat</th></tr></thead><tbody>${all.map(({ work, ...a }) => html`<tr key=${a.instance} data-refold-actor=${a.instance}><td class="mono full">${plain(a.instance)}${clockOff(a.clock_ahead_ms)}</td>
    <td>${a.not_ready?.length ? html`<span class="state bad">not ready</span>${a.not_ready.map((w) => html`<div class="label">${plain(w)}</div>`)}` : a.leaving ? html`<span class="state warn">leaving</span>` : a.joining ? html`<span class="state">joining</span>` : html`<span class="state good">ready</span>`}</td>
    <td><${Release} version=${work?.version} rules=${a.rules} newest=${newest} /></td>
    <td class="num" data-label="lanes">${a.lanes.length ? `${a.lanes.length} of ${lanes}: ${ranges(a.lanes)}` : 'none'}<${Rate} rate=${rates.get(a.instance)} what="events" /></td><td class="r num" data-label="take-overs">${number(work?.takeovers)}</td>
    <td class="r num">${work ? `${number(work.sessions)} session${work.sessions === 1 ? '' : 's'}` : '–'}${work ? html`<div class="label">${size(work.sessions_bytes)}</div>` : null}</td><td class="r soft"><${Ago} at=${a.heard} /></td></tr>`)}</tbody></table></div><//>`;
}

const lateMS = 10_000; // of the alert RefoldLaneBehind

/** How long the oldest event of a lane has waited. @param {{ at: number }} props */
const Age = ({ at }) => html`<time class=${now.value - at > lateMS ? 'tag bad' : 'num'} dateTime=${new Date(at).toISOString()} title=${dateOf(at)}>${took(Math.max(0, now.value - at))}</time>`;

/** @param {{ all: API.LaneShown[], unknown?: string }} props */
function Lanes({ all, unknown }) {
  if (unknown) return html`<${Card} title="Lanes"><p class="note warn" style=${{ margin: '16px' }}>Lanes are not known: ${plain(unknown)}</p><//>`;
  return html`<${Card} title="Lanes" count=${all.length}><div class="table-wrap" tabIndex="0"><table class="cards"><thead><tr><th>Lane</th><th>Owner</th><th class="r">Pending</th><th class="r">Unacknowledged</th><th class="r">Oldest waits</th></tr></thead><tbody>${all.map((l) => html`<tr key=${l.lane} data-refold-lane=${l.lane}><td class="num">${l.lane}</td>
    <td class="full">${l.owner ? html`<span class="mono">${plain(l.owner)}</span>` : l.pinned ? html`<span class="state warn">does not answer</span>` : html`<span class="state bad">nobody</span>`}</td>
    <td class="r num" data-label="pending">${number(l.pending)}</td><td class="r num" data-label="unacknowledged">${number(l.unacknowledged)}</td><td class="r" data-label="oldest waits">${l.oldest ? html`<${Age} at=${l.oldest} />` : html`<span class="soft">–</span>`}</td></tr>`)}</tbody></table></div><//>`;
}

export function Fleet() {
  const [shown, setShown] = useState(/** @type {API.InstallShown | null} */ (null));
  const state = useRepeated('/v1/fleet');
  const rates = useRates(state.value);
  useEffect(() => { document.title = 'Fleet · Refold'; }, []);
  return html`<div class="page-head"><h1>Fleet</h1><p>What runs now, by its heartbeats.</p></div>${loaded(state, (f) => html`<div class="stack">
    <${Card} title="Targets" count=${f.targets.length}>${f.targets.length ? html`<div class="table-wrap"><table class="cards"><thead><tr><th>Target</th><th>Served by</th><th class="r">Not taken</th><th class="r">At work or waiting</th><th>Lacks</th></tr></thead><tbody>${f.targets.map((t) => html`<tr key=${t.target}><td class="mono full">${plain(t.target)}</td>
      <td>${t.bridges ? html`<span class="state good">${t.bridges} bridge${t.bridges > 1 ? 's' : ''}</span>` : html`<span class="state bad">nobody</span> <code class="label">${how(t.target)}</code>`}</td><td class="r num" data-label="not taken">${f.unknown ? '–' : number(t.untaken)}</td><td class="r num" data-label="waiting">${f.unknown ? '–' : number(t.waiting)}</td><td class=${t.lacks ? 'full' : 'none'}>${(t.lacks ?? []).map((l) => html`<div class="tag warn">${plain(l)}</div>`)}</td></tr>`)}</tbody></table></div>${f.unknown ? html`<p class="note warn" style=${{ margin: '16px' }}>Queues are not known: ${plain(f.unknown)}</p>` : null}` : html`<${Empty} title="Nothing is served"><p>Start a bridge for models or tools.</p><pre>refold bridge serve --model MODEL</pre><//>`}<//>
    <${Bridges} all=${f.bridges} newest=${newest(f)} rates=${rates} />
    <${Actors} all=${f.session_actors} lanes=${f.lanes} newest=${newest(f)} rates=${rates} />
    <${Lanes} all=${f.lane_states} unknown=${f.unknown} />
    <${Card} title="Install records" count=${`the latest ${f.installs.length}`}><div class="table-wrap"><table class="cards"><thead><tr><th>Sequence</th><th>Hash</th><th>State</th><th class="r">Tools</th><th class="r">Rules</th><th class="r">Published</th><th>Differs</th></tr></thead><tbody>${f.installs.map((r) => html`<tr key=${r.seq}><td class="num">${r.seq}</td><td>${r.hash ? html`<${Hash} hash=${r.hash} what="hash of the record" />` : '–'}</td><td class="full">${r.fault ? html`<span class="state bad">faulty</span> <span class="label">${plain(r.fault)}</span>` : r.pinned ? html`<span class="state good">new sessions pin it</span>${r.unserved ? html`<div class="tag warn">nobody serves ${plain(r.unserved.slice(0, 5).join(', '))}${r.unserved.length > 5 ? ` and ${r.unserved.length - 5} more` : ''}</div>` : null}` : html`<span class="state">older</span>`}</td><td class="r num" data-label="tools">${r.tools ?? 0}</td><td class="r num" data-label="rules">${r.rules ?? '–'}</td><td class="r soft"><${Ago} at=${r.time} /></td><td><button type="button" class="btn" onClick=${() => setShown(r)} aria-label=${`Changes of record ${r.seq}`}>Changes</button></td></tr>`)}</tbody></table></div><//>
    ${shown ? html`<${Differs} record=${shown} close=${() => setShown(null)} />` : null}
  </div>`, 10)}`;
}
