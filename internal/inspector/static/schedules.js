// The session's schedules: when each requests a run, and what an operator may do about it.
import { html, useState } from './preact.js';
import { caller, may, of, post, remove } from './api.js';
import { Form } from './form.js';
import { Ago, Dialog, Empty, State, now } from './ui.js';
import { plain, timeOf, took } from './text.js';

/** What may be done. event is the data of the event that is previewed, besides the name. */
/**
 * @typedef {NonNullable<API.View['schedules']>[number]} Schedule
 * @typedef {'pause' | 'resume' | 'remove'} Change
 * @type {Record<Change, { name: string, type: string, about: string, danger?: boolean, event: (s: Schedule) => object, send: (path: string) => Promise<unknown> }>}
 */
const changes = {
  pause: { name: 'Pause', type: 'SchedulePauseRequested', about: 'It requests no runs until it is resumed.', event: () => ({}), send: (path) => post(`${path}/pause`, undefined) },
  resume: {
    name: 'Resume', type: 'ScheduleResumeRequested', about: 'It goes on. The server computes its next time; the preview takes the next minute.',
    event: (s) => { const at = Math.floor(Date.now() / 60_000) * 60_000; return { at, next: at + 60_000, rev: s.rev }; }, send: (path) => post(`${path}/resume`, undefined),
  },
  remove: { name: 'Remove', type: 'ScheduleRemoved', about: 'It requests no more runs. Its runs go on.', danger: true, event: () => ({}), send: (path) => remove(path) },
};

/** @type {Record<string, string>} */
const why = { request: 'by an operator', failed: 'its last ten runs failed', no_next: 'it has no next time', bad_settlement: 'a session-actor published a firing that was not accepted' };

/** @param {{ s: Schedule, change: ((what: { id: Change, s: Schedule }) => void) | null }} props */
function Row({ s, change }) {
  const due = s.due ?? 0;
  /** @param {Change} id */
  const button = (id) => html`<button type="button" class=${`btn ${changes[id].danger ? 'danger' : ''}`} disabled=${!may('operate')} title=${may('operate') ? changes[id].about : 'This token lacks the right operate.'} onClick=${() => change?.({ id, s })}>${changes[id].name}</button>`;
  return html`<tr data-refold-schedule=${s.name}><td class="mono">${plain(s.name)}</td><td><span class="mono">${plain(s.cron)}</span> <span class="label">${plain(s.zone || 'UTC')}</span></td>
    <td>${s.paused ? html`<${State} state="paused" /> <span class="label">${why[s.paused] ?? plain(s.paused)}</span>` : html`<span class="num">${timeOf(due)}</span> <span class="label">${due > now.value ? `in ${took(Math.ceil((due - now.value) / 1000) * 1000)}` : 'due'}</span>`}</td>
    <td class="soft">${s.last ? html`<${Ago} at=${s.last} />` : '–'}</td><td>${s.when_busy || 'skip'}</td><td class="r num">${s.failures ? html`<span class="tag bad">${s.failures}</span>` : 0}</td>
    ${change ? html`<td><div class="row">${button(s.paused ? 'resume' : 'pause')}${button('remove')}</div></td>` : null}</tr>`;
}

/** @param {Panel} props */
export function Schedules({ sid, view, at }) {
  const [changing, change] = useState(/** @type {{ id: Change, s: Schedule } | null} */ (null));
  const all = view.schedules ?? [];
  const live = !at && !caller.value?.file && view.status === 'open';
  if (!all.length) return html`<${Empty} title="No schedules"><p>At this event no schedule requests runs of this session. <span class="mono">refold schedule set</span> sets one.</p><//>`;
  const doing = changing && changes[changing.id];
  return html`<div class="table-wrap"><table class="cards"><thead><tr><th>Schedule</th><th>Times</th><th>Next</th><th>Last</th><th>When busy</th><th class="r">Failures</th>${live ? html`<th><span class="sr">Actions</span></th>` : null}</tr></thead>
    <tbody>${all.map((s) => html`<${Row} key=${s.name} s=${s} change=${live ? change : null} />`)}</tbody></table></div>
    ${doing ? html`<${Dialog} title=${`${doing.name}: ${changing.s.name}`} close=${() => change(null)}><${Form} sid=${sid} view=${view} name=${doing.name} danger=${doing.danger} close=${() => change(null)}
      event=${{ type: doing.type, door: 'ctl', data: { name: changing.s.name, ...doing.event(changing.s) } }} send=${() => doing.send(of(sid, `/schedules/${encodeURIComponent(changing.s.name)}`))}>
      <p class="soft">${doing.about}</p><//><//>` : null}`;
}
