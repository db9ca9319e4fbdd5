// What may be done to a session: offered exactly where the table of runs allows it, and
// previewed before it is sent. Pressing twice is pressing once: the key is made here.
import { html, useEffect, useMemo, useState } from './preact.js';
import { may, newKey, of, post } from './api.js';
import { Dialog, Wrong } from './ui.js';
import { plain } from './text.js';
import { Changes } from './state.js';

/** The actions over a run, as docs/semantics.md has its table. */
export const actions = [
  { id: 'pause', name: 'Pause', type: 'RunPauseRequested', door: 'in', right: 'ask', when: ['running', 'waiting_input'], about: 'Turns and calls that have begun end; no more begin until the run is resumed.' },
  { id: 'resume', name: 'Resume', type: 'RunResumeRequested', door: 'in', right: 'ask', when: ['paused'], about: 'The run goes on where it was.' },
  { id: 'interrupt', name: 'Interrupt', type: 'RunInterruptRequested', door: 'in', right: 'ask', when: ['running', 'waiting_input', 'paused'], about: 'The run ends when its open work is settled.' },
  { id: 'cancel', name: 'Cancel', type: 'RunCancelRequested', door: 'in', right: 'ask', when: ['running', 'waiting_input', 'paused', 'interrupting'], danger: true, about: 'The run ends at once. A call that has begun may still take effect.' },
  { id: 'end', name: 'End session', type: 'SessionClosed', door: 'ctl', right: 'operate', when: null, danger: true, about: 'The session takes no more requests, for good. Its runs are cancelled.' },
];

/** Is an action offered in a state of a session? */
export const isOffered = (action, view) => (action.when ? Boolean(view.run) && action.when.includes(view.lifecycle) : view.status === 'open');

/** What would come of an event: what the fold makes of it on a copy. */
function usePreview(sid, event, after) {
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
  if (shown.rejected) return html`<p class="note bad" role="status">It would have no effect: <b>${shown.rejected}</b>${shown.detail ? html` – ${plain(shown.detail)}` : null}</p>`;
  return html`<div class="note" role="status"><p><b>What would come of it</b>, tried on a copy after event ${shown.after}:</p>
    <p>${shown.said?.length ? `Notices: ${shown.said.map((n) => n.type).join(', ')}.` : 'No notice.'} ${shown.effects?.length ? `Asks: ${shown.effects.map((e) => `${e.effect} of ${e.class}/${e.target}`).join(', ')}.` : 'Asks nothing.'} ${shown.withdrawn?.length ? `Withdraws ${shown.withdrawn.join(', ')}.` : ''}</p>
    <details><summary>${shown.changes?.length ?? 0} changes of the state</summary><${Changes} changes=${shown.changes ?? []} more=${shown.more} /></details></div>`;
}

/** One action, with its preview and a reason. */
function Acting({ sid, view, action, close }) {
  const [reason, setReason] = useState('');
  const [error, setError] = useState(null);
  const [sent, setSent] = useState(false);
  const key = useMemo(newKey, [reason]);
  const hasReason = action.id !== 'end';
  const shown = usePreview(sid, { type: action.type, door: action.door, data: hasReason && reason ? { reason } : {} }, view.seq);
  const submit = async (e) => {
    e.preventDefault();
    setSent(true);
    try {
      await post(of(sid, `/${action.id}`), hasReason ? { reason } : undefined, key);
      close();
    } catch (problem) { setError(problem); setSent(false); }
  };
  return html`<${Dialog} title=${`${action.name}: ${sid}`} close=${close}><form onSubmit=${submit}>
    <p class="soft">${action.about}</p>
    ${hasReason ? html`<label class="field"><span>Reason, for people</span><input class="input" maxlength="4096" value=${reason} onInput=${(e) => setReason(e.target.value)} /></label>` : null}
    <${Preview} shown=${shown} />
    ${error ? html`<${Wrong} error=${error} />` : null}
    <div class="foot"><button class=${`btn ${action.danger ? 'danger' : 'main'}`} disabled=${sent || !shown || Boolean(shown.rejected || shown.error)}>${action.name}</button></div>
  </form><//>`;
}

/** The actions that the session's state allows. */
export function Actions({ sid, view }) {
  const [acting, setActing] = useState(null);
  const all = actions.filter((a) => isOffered(a, view));
  return html`<div class="actions" role="group" aria-label="Actions">${all.map((a) => html`<button type="button" key=${a.id} class="btn" data-refold-action=${a.id} disabled=${!may(a.right)} title=${may(a.right) ? a.about : `This token lacks the right ${a.right}.`} onClick=${() => setActing(a)}>${a.name}</button>`)}
    ${acting ? html`<${Acting} sid=${sid} view=${view} action=${acting} close=${() => setActing(null)} />` : null}</div>`;
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
