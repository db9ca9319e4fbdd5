// What may be done to a session: offered exactly where the table of runs allows it, and
// previewed before it is sent. Pressing twice is pressing once: the key is made here.
import { html, useEffect, useMemo, useState } from './preact.js';
import { may, newKey, of, post } from './api.js';
import { Dialog, Wrong, lazy } from './ui.js';
import { plain } from './text.js';
import { Changes } from './state.js';

/**
 * The actions over a run, as docs/semantics.md has its table. ask is what the person may add:
 * a reason, a code, a budget. data is the event's for it, body the request's.
 */
export const actions = [
  { id: 'pause', name: 'Pause', type: 'RunPauseRequested', right: 'ask', when: ['running', 'waiting_input'], ask: ['reason'], about: 'Turns and calls that have begun end; no more begin until the run is resumed.' },
  { id: 'resume', name: 'Resume', type: 'RunResumeRequested', right: 'ask', when: ['paused'], ask: ['reason', 'budget'], about: 'The run goes on where it was.' },
  { id: 'complete', name: 'Complete', type: 'RunCompleted', right: 'ask', when: ['waiting_input'], ask: ['reason'], reason: 'detail', about: 'The run ends; its output is the model\u2019s last answer.' },
  { id: 'fail', name: 'Fail', type: 'RunFailed', right: 'ask', when: ['waiting_input'], ask: ['code', 'reason'], reason: 'detail', danger: true, about: 'The run ends as failed.' },
  { id: 'interrupt', name: 'Interrupt', type: 'RunInterruptRequested', right: 'ask', when: ['running', 'waiting_input', 'paused'], ask: ['reason'], about: 'The run ends when its open work is settled.' },
  { id: 'cancel', name: 'Cancel', type: 'RunCancelRequested', right: 'ask', when: ['running', 'waiting_input', 'paused', 'interrupting'], ask: ['reason'], danger: true, about: 'The run ends at once. A call that has begun may still take effect.' },
  { id: 'end', name: 'End session', type: 'SessionClosed', door: 'ctl', right: 'operate', when: null, ask: [], danger: true, about: 'The session takes no more requests, for good. Its runs are cancelled.' },
];

/** Is an action offered in a state of a session? */
export const isOffered = (action, view) => (action.when ? Boolean(view.run) && action.when.includes(view.lifecycle) : view.status === 'open');

/** What would come of an event: what the fold makes of it on a copy. */
export function usePreview(sid, event, after) {
  const [shown, setShown] = useState(null);
  const key = JSON.stringify(event);
  useEffect(() => {
    if (!event) { setShown(null); return undefined; }
    const timer = setTimeout(() => post(of(sid, '/preview'), event).then(setShown, (error) => setShown({ error })), 250);
    return () => clearTimeout(timer);
  }, [sid, key, after]);
  return shown;
}

export function Preview({ shown }) {
  if (!shown) return html`<p class="note" role="status">Trying it on a copy of the state…</p>`;
  if (shown.error) return html`<${Wrong} error=${shown.error} />`;
  const said = (shown.said ?? []).map((n) => n.type);
  const asks = (shown.effects ?? []).map((e) => e.effect);
  const tried = JSON.stringify({ rejected: shown.rejected ?? '', said, effects: asks, withdrawn: shown.withdrawn ?? [] });
  if (shown.rejected) return html`<p class="note bad" role="status" data-refold-preview=${tried}>It would have no effect: <b>${shown.rejected}</b>${shown.detail ? html` – ${plain(shown.detail)}` : null}</p>`;
  return html`<div class="note" role="status" data-refold-preview=${tried}><p><b>What would come of it</b>, tried on a copy after event ${shown.after}:</p>
    <p>${said.length ? `Notices: ${said.join(', ')}.` : 'No notice.'} ${asks.length ? `Asks: ${shown.effects.map((e) => `${e.effect} of ${e.class}/${e.target}`).join(', ')}.` : 'Asks nothing.'} ${shown.withdrawn?.length ? `Withdraws ${shown.withdrawn.join(', ')}.` : ''}</p>
    <details><summary>${shown.changes?.length ?? 0} changes of the state</summary><${Changes} changes=${shown.changes ?? []} more=${shown.more} /></details></div>`;
}

/** Reads JSON that a person writes: {value}, or {error}. An empty text is no value. */
export function readJSON(text) {
  try { return { value: text.trim() ? JSON.parse(text) : undefined }; } catch (error) { return { error: error.message }; }
}

/**
 * A form with a preview: what would come of the event is told before it is sent. send posts
 * it with a key that is made here, so that pressing twice is pressing once.
 */
export function Form({ sid, view, event, send, name, danger, fault, close, children }) {
  const [error, setError] = useState(null);
  const [sent, setSent] = useState(false);
  const text = JSON.stringify(event);
  const key = useMemo(newKey, [text]);
  const shown = usePreview(sid, fault ? null : event, view.seq);
  const submit = async (e) => {
    e.preventDefault();
    setSent(true);
    try {
      await send(key);
      close();
    } catch (problem) { setError(problem); setSent(false); }
  };
  return html`<form onSubmit=${submit}>${children}
    ${fault ? html`<p class="note bad" role="status">${plain(fault)}</p>` : event ? html`<${Preview} shown=${shown} />` : null}
    ${error ? html`<${Wrong} error=${error} />` : null}
    <div class="foot"><button class=${`btn ${danger ? 'danger' : 'main'}`} disabled=${sent || !event || Boolean(fault) || !shown || Boolean(shown.rejected || shown.error)}>${name}</button></div>
  </form>`;
}

/** One action, with what the person adds. */
function Acting({ sid, view, action, close }) {
  const spent = view.run?.spent;
  const [reason, setReason] = useState('');
  const [code, setCode] = useState('');
  const [budget, setBudget] = useState(spent ? JSON.stringify(view.run.budget) : '');
  const larger = readJSON(budget);
  const data = { ...(reason && { [action.reason ?? 'reason']: reason }), ...(code && { code }), ...(larger.value && { budget: larger.value }) };
  const body = action.ask.length ? { ...(reason && { reason }), ...(code && { code }), ...(larger.value && { budget: larger.value }) } : undefined;
  const field = (title, value, set, more) => html`<label class="field"><span>${title}</span><input class="input" value=${value} onInput=${(e) => set(e.target.value)} ...${more} /></label>`;
  return html`<${Dialog} title=${`${action.name}: ${sid}`} close=${close}><${Form} sid=${sid} view=${view} name=${action.name} danger=${action.danger} close=${close} fault=${larger.error && `The budget is no JSON: ${larger.error}`}
      event=${{ type: action.type, door: larger.value ? 'ctl' : action.door ?? 'in', data }} send=${(key) => post(of(sid, `/${action.id}`), body, key)}>
    <p class="soft">${action.about}${action.id === 'resume' && spent ? ' Its budget is spent: it needs a larger one.' : ''}</p>
    ${action.ask.includes('code') ? field('Code, for programs', code, setCode, { maxlength: 64, placeholder: 'explicit', spellcheck: 'false' }) : null}
    ${action.ask.includes('budget') && may('operate') ? field('Another budget, as JSON', budget, setBudget, { placeholder: 'as it is', spellcheck: 'false' }) : null}
    ${action.ask.includes('reason') ? field('Reason, for people', reason, setReason, { maxlength: 4096 }) : null}
  <//><//>`;
}

const Definition = lazy(() => import('./forms.js'), 'Definition');
const Queue = lazy(() => import('./forms.js'), 'Queue');
export const Release = lazy(() => import('./forms.js'), 'Release');

/** The actions that the session's state allows. */
export function Actions({ sid, view, events }) {
  const [acting, setActing] = useState(null);
  const close = () => setActing(null);
  const all = actions.filter((a) => isOffered(a, view));
  const open = view.status === 'open';
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

/** A box for more input: a run, or a steer of the active one. */
export function Composer({ sid, view }) {
  const [text, setText] = useState('');
  const [when, setWhen] = useState('queue');
  const [error, setError] = useState(null);
  const [sent, setSent] = useState(false);
  const [wanted, setWanted] = useState(false);
  const key = useMemo(newKey, [text, when]);
  const active = Boolean(view.run);
  const event = wanted && text ? { type: 'RunRequested', door: 'in', data: { input: { text }, ...(active && { when_busy: when }) } } : null;
  const shown = usePreview(sid, event, view.seq);
  if (!may('ask')) return null;
  const submit = async (e) => {
    e.preventDefault();
    setSent(true);
    setError(null);
    try {
      await post(of(sid, '/runs'), { input: text, ...(active && { when_busy: when }) }, key);
      setText('');
      setWanted(false);
    } catch (problem) { setError(problem); }
    setSent(false);
  };
  return html`<form class="composer" onSubmit=${submit}>
    <label class="field"><span class="sr">Input</span><textarea class="input" rows="2" placeholder=${active ? 'More for this session' : 'Ask again'} value=${text} onInput=${(e) => setText(e.target.value)}></textarea></label>
    ${wanted && text ? html`<${Preview} shown=${shown} />` : null}
    ${error ? html`<${Wrong} error=${error} />` : null}
    <div class="row wrap">${active ? html`<label class="row"><span class="label">Send it</span><select class="input" style=${{ width: 'auto' }} value=${when} onChange=${(e) => setWhen(e.target.value)}>${busy.map(([id, words]) => html`<option value=${id} key=${id}>${words}</option>`)}</select></label>` : null}<span class="grow"></span>
      <button type="button" class="btn" aria-pressed=${wanted ? 'true' : 'false'} disabled=${!text} onClick=${() => setWanted(!wanted)}>Preview</button><button class="btn main" disabled=${!text || sent || Boolean(wanted && shown?.rejected)}>${active && when === 'steer' ? 'Steer' : 'Run'}</button></div>
  </form>`;
}
