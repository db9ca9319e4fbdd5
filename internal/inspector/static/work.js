// What a turn was offered and why, its batch of calls, and the effects of the session.
import { html } from './preact.js';
import { get, of } from './api.js';
import { Ago, Code, Empty, Hash, State, loaded, now, place, setQuery, useLoaded } from './ui.js';
import { number, plain, size, took } from './text.js';

/** @param {string} [hash] */
const hueOf = (hash) => (hash ? Number.parseInt(hash.slice(0, 6), 16) % 360 : 0);

/** @param {{ t: API.ToolShown }} props */
function Tool({ t }) {
  return html`<div class=${`tool ${t.offered ? '' : 'off'}`}><span class="place">${t.place || ''}</span>
    <div><b class="mono">${plain(t.tool_name)}</b>${t.tool_id === t.tool_name ? null : html` <span class="label mono">${plain(t.tool_id)}</span>`}${t.why === 'offered' ? null : html`<div class=${t.offered ? 'label' : 'soft'}>${plain(t.why)}</div>`}
      ${t.description || t.schema ? html`<details><summary class="label">Descriptor and schema</summary><div class="stack" style=${{ gap: '8px', padding: '8px 0' }}><p class="soft">${plain(t.description ?? '')}</p>${t.schema ? html`<${Code} text=${JSON.stringify(t.schema)} />` : null}</div></details>` : null}</div>
    <div class="row wrap" style=${{ justifyContent: 'flex-end' }}>${t.approval && t.approval !== 'never' ? html`<span class="tag warn">${t.approval === 'always' ? 'asks a person' : 'asks a person if'}</span>` : null}${t.retry_safe ? html`<span class="tag">retry-safe</span>` : null}<span class="tag mono">${plain(t.executor)}</span></div></div>`;
}

/** @param {Panel} props */
export function Tools({ sid, view, events, seq }) {
  const wanted = place.value.query.get('turn') || view.turn?.effect?.replace(/a\d+$/, '') || '';
  const state = useLoaded(async (stop) => (wanted ? get(of(sid, `/tools?turn=${wanted}`), stop) : null), [sid, wanted, events.length ? seq : 0]);
  if (!wanted) return html`<${Empty} title="No turn yet"><p>At this event the session has no turn that tools were offered to.</p><//>`;
  return loaded(state, (d) => {
    if (!d) return null;
    const on = d.tools.filter((t) => t.offered).sort((a, b) => (a.place ?? 0) - (b.place ?? 0));
    const off = d.tools.filter((t) => !t.offered);
    const { decided: w } = d;
    return html`<div class="panel-body">
      <div class="strip" role="group" aria-label="Turns: those with one colour were offered the same tools">${d.turns.slice(-120).map((t) => html`<button type="button" key=${t.turn} style=${{ '--hue': hueOf(t.toolset) }} aria-pressed=${t.turn === d.turn ? 'true' : 'false'} title=${`Toolset ${t.toolset?.slice(0, 8) ?? 'not decided'}`} onClick=${() => setQuery({ turn: t.turn })}>${t.turn}</button>`)}</div>
      <p class="soft" style=${{ marginBottom: '16px' }}>Turn <b class="mono">${d.turn}</b> · ${w.base === 'profile' ? html`${w.profile ? html`profile ${plain(w.profile)}` : 'all tools'}${w.profile_why ? html` (${plain(w.profile_why)})` : null}` : plain(w.base ?? 'not decided')} · registry <${Hash} hash=${w.registry} /> ${w.toolset ? html`· toolset <${Hash} hash=${w.toolset} />` : null}${w.step?.from ? html` · step by ${plain(w.step.from)}${w.step.rule === undefined ? '' : `, rule ${w.step.rule}`}` : null}</p>
      ${w.toolset ? html`<h2 class="h3">Offered <span class="label">${on.length}, in the model's order</span></h2>${on.map((t) => html`<${Tool} key=${t.tool_id} t=${t} />`)}${on.length ? null : html`<p class="label">No tool was offered.</p>`}
      <h2 class="h3" style=${{ marginTop: '24px' }}>Not offered <span class="label">${off.length}, with the step that took each away</span></h2>${off.map((t) => html`<${Tool} key=${t.tool_id} t=${t} />`)}${off.length ? null : html`<p class="label">Every tool of the registry was offered.</p>`}` : html`<p class="note" id="undecided">${w.step?.open ? 'The turn waits for its step hook, which decides over its tools.' : w.step?.code ? html`The turn was not published, since its step hook failed: ${plain(w.step.code)}${w.step.detail ? html`: ${plain(w.step.detail)}` : null}` : 'Its tools were not decided.'}</p>`}
    </div>`;
  }, 8);
}

/** One call of a batch, and why it stands where it does. @param {{ c: API.BatchCall, all: API.BatchCall[] }} props */
function Job({ c, all }) {
  const conflicts = c.conflicts ?? [];
  /** @param {API.BatchCall} a @param {API.BatchCall} b */
  const shared = ({ key: a = '' }, { key: b = '' }) => (a.length < b.length ? a : b);
  return html`<div class="job" data-refold-call=${c.call}><div class="row"><b class="mono clip grow">${plain(c.tool)}</b><${State} state=${c.status} /></div><span class="label mono">${c.call}</span>
    ${c.key ? html`<span class="label">${c.access === 'read' ? 'reads' : 'writes'} <span class="mono">${plain(c.key)}</span></span>` : null}
    ${conflicts.slice(-3).map((i) => html`<span class="label conflict" key=${i}>after <span class="mono">${all[i].call}</span>: ${c.parallel_safe && all[i].parallel_safe ? html`both use <span class="mono">${plain(shared(c, all[i]))}</span>` : `${plain(c.parallel_safe ? all[i].tool : c.tool)} runs alone`}</span>`)}
    ${conflicts.length > 3 ? html`<span class="label">and after ${conflicts.length - 3} earlier ones</span>` : null}
    ${c.asked_by ? html`<span class="tag warn">asked by ${plain(c.asked_by)}</span>` : null}
    ${c.code ? html`<span class="tag bad clip">${plain(c.code)}</span>` : null}${c.detail ? html`<span class="label">${plain(c.detail)}</span>` : null}</div>`;
}

/** @param {Panel} props */
export function Batch({ sid, view }) {
  const { batch: seen, seq } = view;
  const state = useLoaded(async (stop) => (seen ? get(of(sid, `/batch?at=${seq}`), stop) : null), [sid, seen ? seq : 0]);
  if (!seen) return html`<${Empty} title="No batch of calls"><p>At this event the latest turn has no calls.</p><//>`;
  return loaded(state, (b) => {
    if (!b?.calls.length) return null;
    const groups = seen.groups.map((_, g) => b.calls.filter((c) => c.group === g + 1));
    const refused = b.calls.filter((c) => !c.group);
    return html`<div class="panel-body stack">
      <p class="soft">Batch of turn <b class="mono">${b.batch}</b> · ${b.calls.length} call${b.calls.length === 1 ? '' : 's'} in ${groups.length} group${groups.length === 1 ? '' : 's'} · plan <${Hash} hash=${b.plan_hash} />${b.excess ? html` · <span class="tag bad">${b.excess} beyond the 64 that may run</span>` : null}</p>
      <div class="groups">${groups.map((g, i) => html`<div class="group-col" key=${i}><div class="row"><h2 class="h3">Group ${i + 1}</h2><span class="label">${i < seen.group ? 'done' : i === seen.group ? 'at work' : 'waits'}</span></div>${g.map((c) => html`<${Job} key=${c.call} c=${c} all=${b.calls} />`)}</div>`)}</div>
      ${refused.length ? html`<div><h2 class="h3">Without a group</h2><div class="groups" style=${{ marginTop: '8px' }}>${refused.map((c) => html`<${Job} key=${c.call} c=${c} all=${b.calls} />`)}</div></div>` : null}
    </div>`;
  }, 5);
}

/** @param {Panel} props */
export function Effects({ sid, end, seq, at }) {
  const state = useLoaded((stop) => get(of(sid, '/effects'), stop), [sid, end]);
  return loaded(state, (d) => {
    const all = d.effects.filter((e) => !at || e.seq <= seq);
    if (!all.length) return html`<${Empty} title="No effects"><p>At this event the session has asked nothing of anybody.</p><//>`;
    const words = { same: ['good', 'as the fold asks'], other: ['bad', 'other bytes'], gone: ['', 'no longer kept'] };
    return html`${d.unknown ? html`<p class="note warn" style=${{ margin: '16px' }}>What is stored is not known: ${plain(d.unknown)}</p>` : null}
      <div class="table-wrap"><table class="cards"><thead><tr><th>Effect</th><th>Target</th><th>State</th><th class="r">Asked</th><th class="r">Took</th><th>Stored</th><th class="r">Size</th><th>Hash</th></tr></thead>
      <tbody>${all.map((e) => {
    const ended = e.ended_seq && (!at || e.ended_seq <= seq);
    return html`<tr key=${`${e.effect}-${e.seq}`} data-refold-effect=${e.effect}><td class="mono">${e.effect}</td><td>${plain(`${e.class}/${e.target}`)}</td>
        <td>${ended ? html`<span class="label">ended by ${e.ended_seq}</span>` : html`<span class="state run">open</span>${e.holder ? html` <span class="label">at <span class="mono">${plain(e.holder.slice(-6))}</span></span>` : null}`}</td>
        <td class="r soft"><${Ago} at=${e.asked} /></td><td class="r num">${ended ? took((e.ended ?? e.asked) - e.asked) : (e.deadline ?? 0) > now.value ? `${took(Math.ceil(((e.deadline ?? 0) - now.value) / 1000) * 1000)} left` : '–'}</td>
        <td>${e.stored ? html`<span class=${`tag ${words[e.stored][0]}`}>${words[e.stored][1]}</span>` : html`<span class="label">–</span>`}</td><td class="r num">${size(e.bytes)}</td><td><${Hash} hash=${e.hash} /></td></tr>`;
  })}</tbody></table></div>
      ${d.more ? html`<p class="label" style=${{ padding: '12px 16px' }}>The latest ${number(d.effects.length)} are shown.</p>` : null}`;
  }, 6);
}
