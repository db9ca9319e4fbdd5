// What may be done to a session: offered exactly where the table of runs allows it, and
// previewed before it is sent. Pressing twice is pressing once: the key is made here.
import { html, useMemo, useState } from './preact.js';
import { may, newKey, of, post, remove } from './api.js';
import { Form, Preview, readJSON, usePreview } from './form.js';
import { Dialog, Wrong, lazy, typed } from './ui.js';

/**
 * The actions over a run, as docs/semantics.md has its table. ask is what the person may add:
 * a reason, a code, a budget. data is the event's for it, body the request's. offered says of
 * what sessions an action is that is not about a run.
 * @typedef {{ id: string, name: string, type: string, right: API.CallerShown['rights'][number], when?: string[] | null, ask: string[], about: string, door?: string,
 *   reason?: string, danger?: boolean, offered?: (view: API.View) => boolean, data?: object, path?: string, send?: typeof post | typeof remove }} Action
 * @type {Action[]}
 */
export const actions = [
  { id: 'pause', name: 'Pause', type: 'RunPauseRequested', right: 'ask', when: ['running', 'waiting_input'], ask: ['reason'], about: 'Turns and calls that have begun end; no more begin until the run is resumed.' },
  { id: 'resume', name: 'Resume', type: 'RunResumeRequested', right: 'ask', when: ['paused'], ask: ['reason', 'budget'], about: 'The run goes on where it was.' },
  { id: 'complete', name: 'Complete', type: 'RunCompleted', right: 'ask', when: ['waiting_input'], ask: ['reason'], reason: 'detail', about: 'The run ends; its output is the model\u2019s last answer.' },
  { id: 'fail', name: 'Fail', type: 'RunFailed', right: 'ask', when: ['waiting_input'], ask: ['code', 'reason'], reason: 'detail', danger: true, about: 'The run ends as failed.' },
  { id: 'interrupt', name: 'Interrupt', type: 'RunInterruptRequested', right: 'ask', when: ['running', 'waiting_input', 'paused'], ask: ['reason'], about: 'The run ends when its open work is settled.' },
  { id: 'cancel', name: 'Cancel', type: 'RunCancelRequested', right: 'ask', when: ['running', 'waiting_input', 'paused', 'interrupting'], ask: ['reason'], danger: true, about: 'The run ends at once. A call that has begun may still take effect.' },
  { id: 'end', name: 'End session', type: 'SessionClosed', door: 'ctl', right: 'operate', when: null, ask: [], danger: true, about: 'The session takes no more requests, for good. Its runs are cancelled.' },
  { id: 'hold', name: 'Hold', type: 'SessionHeld', door: 'ctl', right: 'operate', offered: (view) => view.status !== 'erased' && !view.held, data: { held: true }, ask: ['reason'], about: 'Nobody can delete the session until the hold ends.' },
  { id: 'hold', name: 'End hold', type: 'SessionHeld', door: 'ctl', right: 'operate', offered: (view) => Boolean(view.held), data: { held: false }, send: remove, ask: ['reason'], about: 'The session can be deleted again.' },
  { id: 'delete', name: 'Delete session', type: 'SessionErased', door: 'ctl', right: 'erase', offered: (view) => view.status !== 'erased' && !view.held, path: '', send: remove, ask: ['reason'], danger: true, about: 'The session is erased, for good, and its name is not used again. The eraser of the servers deletes its text later.' },
];

/** Is an action offered in a state of a session? @param {Action} action @param {API.View} view */
export const isOffered = (action, view) => action.offered?.(view) ?? (action.when ? Boolean(view.run) && action.when.includes(view.lifecycle ?? '') : view.status === 'open');

/** One action, with what the person adds. @param {Asking & { action: Action }} props */
function Acting({ sid, view, action, close }) {
  const spent = view.run?.spent;
  const [reason, setReason] = useState('');
  const [code, setCode] = useState('');
  const [budget, setBudget] = useState(spent ? JSON.stringify(view.run?.budget ?? {}) : '');
  const larger = readJSON(budget);
  const data = { ...action.data, ...(reason && { [action.reason ?? 'reason']: reason }), ...(code && { code }), ...(larger.value && { budget: larger.value }) };
  const body = action.ask.length ? { ...(reason && { reason }), ...(code && { code }), ...(larger.value && { budget: larger.value }) } : undefined;
  /** @param {string} title @param {string} value @param {(value: string) => void} set @param {object} more */
  const field = (title, value, set, more) => html`<label class="field"><span>${title}</span><input class="input" value=${value} onInput=${typed(set)} ...${more} /></label>`;
  return html`<${Dialog} title=${`${action.name}: ${sid}`} close=${close}><${Form} sid=${sid} view=${view} name=${action.name} danger=${action.danger} close=${close} fault=${larger.error && `The budget is no JSON: ${larger.error}`}
      event=${{ type: action.type, door: larger.value ? 'ctl' : action.door ?? 'in', data }} send=${/** @param {string} key */ (key) => (action.send ?? post)(of(sid, action.path ?? `/${action.id}`), body, key)}>
    <p class="soft">${action.about}${action.id === 'resume' && spent ? ' Its budget is spent: it needs a larger one.' : ''}</p>
    ${action.ask.includes('code') ? field('Code, for programs', code, setCode, { maxlength: 64, placeholder: 'explicit', spellcheck: 'false' }) : null}
    ${action.ask.includes('budget') && may('operate') ? field('Another budget, as JSON', budget, setBudget, { placeholder: 'as it is', spellcheck: 'false' }) : null}
    ${action.ask.includes('reason') ? field('Reason, for people', reason, setReason, { maxlength: 4096 }) : null}
  <//><//>`;
}

const Definition = lazy(() => import('./forms.js'), 'Definition');
const Queue = lazy(() => import('./forms.js'), 'Queue');
export const Release = lazy(() => import('./forms.js'), 'Release');

/**
 * The actions that the session's state allows.
 * @param {{ sid: string, view: API.View, events: API.EventHead[] }} props
 */
export function Actions({ sid, view, events }) {
  const [acting, setActing] = useState(/** @type {any} */ (null));
  const close = () => setActing(null);
  const all = actions.filter((a) => isOffered(a, view));
  const open = view.status === 'open';
  /** @param {string} id @param {string} name @param {API.CallerShown['rights'][number]} right @param {string} about @param {string | Action} what */
  const button = (id, name, right, about, what) => html`<button type="button" key=${id} class="btn" data-refold-action=${id} disabled=${!may(right)} title=${may(right) ? about : `This token lacks the right ${right}.`} onClick=${() => setActing(what)}>${name}</button>`;
  return html`<div class="actions" role="group" aria-label="Actions">${all.map((a) => button(a.id, a.name, a.right, a.about, a))}
    ${open && view.queue?.length ? button('queue', `Queue (${view.queue.length})`, 'ask', 'Edit or remove runs that wait.', 'queue') : null}
    ${open ? button('define', 'Define…', 'operate', 'Facts, profile, overrides, config and registry.', 'define') : null}
    ${view.quarantined ? button('release', 'Release…', 'operate', 'The session goes on from the event at which it stopped.', 'release') : null}
    ${acting === 'release' && view.quarantined ? html`<${Dialog} title=${`Release: ${sid}`} close=${close}><${Release} sid=${sid} quarantine=${view.quarantined} close=${close} /><//>` : null}
    ${acting === 'queue' ? html`<${Dialog} title=${`Queue: ${sid}`} close=${close}><${Queue} sid=${sid} view=${view} /><//>` : null}
    ${acting === 'define' ? html`<${Dialog} title=${`Define: ${sid}`} close=${close}><${Definition} sid=${sid} view=${view} events=${events} close=${close} /><//>` : null}
    ${acting?.type ? html`<${Acting} sid=${sid} view=${view} action=${acting} close=${close} />` : null}</div>`;
}

const busy = [['queue', 'after the active run'], ['steer', 'into the active run'], ['interrupt', 'in its place'], ['reject', 'only if none is active']];

/**
 * A box for more input: a run, or a steer of the active one.
 * @param {{ sid: string, view: API.View }} props
 */
export function Composer({ sid, view }) {
  const [text, setText] = useState('');
  const [when, setWhen] = useState('queue');
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [sent, setSent] = useState(false);
  const [wanted, setWanted] = useState(false);
  const key = useMemo(newKey, [text, when]);
  const active = Boolean(view.run);
  const event = wanted && text ? { type: 'RunRequested', door: 'in', data: { input: { text }, ...(active && { when_busy: when }) } } : null;
  const shown = usePreview(sid, event, view.seq);
  if (!may('ask')) return null;
  /** @param {Event} e */
  const submit = async (e) => {
    e.preventDefault();
    setSent(true);
    setError(null);
    try {
      await post(of(sid, '/runs'), { input: text, ...(active && { when_busy: when }) }, key);
      setText('');
      setWanted(false);
    } catch (/** @type {any} */ problem) { setError(problem); }
    setSent(false);
  };
  return html`<form class="composer" onSubmit=${submit}>
    <label class="field"><span class="sr">Input</span><textarea class="input" rows="2" placeholder=${active ? 'More for this session' : 'Ask again'} value=${text} onInput=${typed(setText)}></textarea></label>
    ${wanted && text ? html`<${Preview} shown=${shown} />` : null}
    ${error ? html`<${Wrong} error=${error} />` : null}
    <div class="row wrap">${active ? html`<label class="row"><span class="label">Send it</span><select class="input" style=${{ width: 'auto' }} value=${when} onChange=${typed(setWhen)}>${busy.map(([id, words]) => html`<option value=${id} key=${id}>${words}</option>`)}</select></label>` : null}<span class="grow"></span>
      <button type="button" class="btn" aria-pressed=${wanted ? 'true' : 'false'} disabled=${!text} onClick=${() => setWanted(!wanted)}>Preview</button><button class="btn main" disabled=${!text || sent || Boolean(wanted && shown?.rejected)}>${active && when === 'steer' ? 'Steer' : 'Run'}</button></div>
  </form>`;
}
