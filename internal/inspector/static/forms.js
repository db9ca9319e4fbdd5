// What an operator sets of a session, and what a client changes of its queue: each with a
// preview.
import { html, useState } from './preact.js';
import { get, of, post, put, remove } from './api.js';
import { Form, readJSON } from './form.js';
import { Tabs, Wrong, loaded, typed, useLoaded } from './ui.js';
import { limited, plain } from './text.js';

/** @param {string} type @param {object} data */
const ctl = (type, data) => ({ type, door: 'ctl', data });

/** Facts by name: a value that is cleared removes its fact. @param {Asking} props */
function Facts({ sid, view, close }) {
  const now = Object.fromEntries((view.facts ?? []).map((f) => [f.name, f.value]));
  const [values, setValues] = useState(/** @type {Record<string, any>} */ ({}));
  const [name, setName] = useState('');
  /** @param {string} fact */
  const set = (fact) => typed((value) => setValues({ ...values, [fact]: value }));
  const facts = Object.fromEntries(Object.entries(values).filter(([k, v]) => v !== (now[k] ?? '')).map(([k, v]) => [k, v || null]));
  const names = [...new Set([...Object.keys(now), ...Object.keys(values)])].sort();
  const add = () => { if (name) setValues({ ...values, [name]: '' }); setName(''); };
  return html`<${Form} sid=${sid} view=${view} close=${close} name="Set facts" event=${Object.keys(facts).length ? ctl('FactsSet', { facts }) : null} send=${() => put(of(sid, '/facts'), { facts })}>
    <p class="soft">Conditions of tools and rules read them, from the next turn on. An empty value removes a fact.</p>
    ${names.map((n) => html`<label class="field" key=${n}><span class="mono">${plain(n)}</span><input class="input" value=${values[n] ?? now[n] ?? ''} onInput=${set(n)} data-refold-fact=${n} /></label>`)}
    <div class="row"><label class="field grow"><span>Another fact</span><input class="input mono" value=${name} spellcheck="false" onInput=${typed(setName)} data-refold-fact="" /></label><button type="button" class="btn" style=${{ alignSelf: 'end' }} disabled=${!name} onClick=${add}>Add</button></div>
  <//>`;
}

/** @param {Asking} props */
function Profile({ sid, view, close }) {
  const [profile, setProfile] = useState(view.profile ?? '');
  return html`<${Form} sid=${sid} view=${view} close=${close} name="Select the profile" event=${profile ? ctl('ToolProfileSelected', { profile }) : null} send=${() => put(of(sid, '/profile'), { profile })}>
    <p class="soft">The tools of runs whose config names no profile, from the next turn on.</p>
    <label class="field"><span>A profile of the session's registry</span><input class="input mono" value=${profile} spellcheck="false" onInput=${typed((value) => setProfile(value.trim()))} /></label>
  <//>`;
}

/** @type {['disable' | 'enable' | 'force', string][]} */
const lists = [['disable', 'Not offered, whatever else names them'], ['enable', 'Added to the profile'], ['force', 'Added to any list']];
/** @param {string} text */
const words = (text) => text.split(/\s+/).filter(Boolean);

/** @param {Asking} props */
function Overrides({ sid, view, close }) {
  const [scope, setScope] = useState('session');
  const [texts, setTexts] = useState(/** @type {Record<string, any>} */ ({}));
  const was = (scope === 'run' ? view.run?.overrides : view.overrides) ?? {};
  /** @param {typeof lists[number][0]} list */
  const before = (list) => (was[list] ?? []).join('\n');
  const changed = Object.fromEntries(lists.map(([l]) => l).filter((l) => texts[l] !== undefined && texts[l] !== before(l)).map((l) => [l, words(texts[l])]));
  const data = { scope, ...changed };
  return html`<${Form} sid=${sid} view=${view} close=${close} name="Set overrides" event=${Object.keys(changed).length ? ctl('ToolOverridesSet', data) : null} send=${() => put(of(sid, '/overrides'), data)}>
    <label class="field"><span>Whose lists</span><select class="input" value=${scope} onChange=${typed((value) => { setScope(value); setTexts({}); })}><option value="session">The session's</option>${view.run ? html`<option value="run">The active run's, which end with it</option>` : null}</select></label>
    ${lists.map(([l, title]) => html`<label class="field" key=${l + scope}><span>${title}: ids of tools, one a line</span><textarea class="input mono" rows="2" spellcheck="false" value=${texts[l] ?? before(l)} onInput=${typed((value) => setTexts({ ...texts, [l]: value }))}></textarea></label>`)}
  <//>`;
}

/**
 * A definition that is written as JSON: it begins with the one that the session has.
 * @param {Asking & { events: API.EventHead[], type: string, member: string, name: string, about: string, empty: object }} props
 */
function Whole({ sid, view, events, close, type, member, name, about, empty }) {
  const last = events.findLast((e) => e.type === type && !e.rejected);
  const now = useLoaded(async (stop) => (last ? (await get(of(sid, `/events/${last.seq}`), stop)).data ?? empty : empty), [last?.seq]);
  const [text, setText] = useState(/** @type {string | null} */ (null));
  return loaded(now, (value) => {
    const written = text ?? JSON.stringify(value, null, 2);
    const read = readJSON(written);
    const isNew = text !== null && read.value !== undefined;
    return html`<${Form} sid=${sid} view=${view} close=${close} name=${name} fault=${read.error && `It is no JSON: ${read.error}`} event=${isNew ? ctl(type, read.value) : null} send=${() => put(of(sid, `/${member}`), { [member]: read.value })}>
      <p class="soft">${about}</p>
      <label class="field"><span>As JSON</span><textarea class="input mono" rows="12" spellcheck="false" value=${written} onInput=${typed(setText)}></textarea></label>
    <//>`;
  }, 4);
}

/** @param {object} props */
const Config = (props) => html`<${Whole} ...${props} type="SessionConfigured" member="config" name="Set the config" empty=${{}} about="It replaces the session's config as a whole, for runs that are requested from now on and bring none." />`;
/** @param {object} props */
const Registry = (props) => html`<${Whole} ...${props} type="ToolRegistrySet" member="registry" name="Replace the registry" empty=${{ tools: [] }} about="It replaces the session's tools and profiles as a whole, from the next turn on." />`;

/** @type {Record<string, [string, any]>} */
const parts = { facts: ['Facts', Facts], profile: ['Profile', Profile], overrides: ['Overrides', Overrides], config: ['Config', Config], registry: ['Registry', Registry] };

/** What an operator sets of a session. @param {object} props */
export function Definition(props) {
  const [at, setAt] = useState('facts');
  const Part = parts[at][1];
  return html`<${Tabs} label="What to define" at=${at} choose=${setAt} tabs=${Object.entries(parts).map(([id, [name]]) => ({ id, name }))}><${Part} key=${at} ...${props} /><//>`;
}

/** The input of a request, from its event. @param {any} data @returns {string} */
const inputOf = (data) => data?.input?.text ?? data?.text ?? '';

/** @param {{ sid: string, view: API.View, run: NonNullable<API.View['queue']>[number], done: () => void }} props */
function Waiting({ sid, view, run, done }) {
  const [how, setHow] = useState('');
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const event = useLoaded((stop) => get(of(sid, `/events/${run.seq}`), stop), [run.seq]);
  const was = inputOf(event.value?.data);
  const input = text ?? was;
  return html`<div class="note" data-refold-queued=${run.number}><div class="row"><b class="grow">Run ${run.number}</b><span class="label">${plain(run.model)}</span></div><p>${plain(limited(was).slice(0, 400)) || html`<span class="label">no text</span>`}</p>
    ${how === 'edit' ? html`<${Form} sid=${sid} view=${view} close=${done} name="Give it this input" event=${text ? { type: 'RunEdited', door: 'in', data: { run: run.number, input: { text } } } : null} send=${() => put(of(sid, `/runs/${run.number}/input`), { input })}>
      <label class="field"><span>Input</span><textarea class="input" rows="4" value=${input} onInput=${typed(setText)}></textarea></label><//>`
    : how === 'remove' ? html`<${Form} sid=${sid} view=${view} close=${done} name="Remove it" danger event=${{ type: 'RunCancelRequested', door: 'in', data: { run: run.number } }} send=${/** @param {string} key */ (key) => post(of(sid, `/runs/${run.number}/cancel`), {}, key)} />`
    : html`<div class="row"><button type="button" class="btn" onClick=${() => setHow('edit')}>Edit…</button><button type="button" class="btn danger" onClick=${() => setHow('remove')}>Remove…</button></div>`}
  </div>`;
}

/**
 * The runs that wait, the next one first.
 * @param {{ sid: string, view: API.View }} props
 */
export function Queue({ sid, view }) {
  const [n, setN] = useState(0);
  return html`<div class="card-body stack">${(view.queue ?? []).map((run) => html`<${Waiting} key=${`${run.number}-${run.seq}-${n}`} sid=${sid} view=${view} run=${run} done=${() => setN(n + 1)} />`)}${view.queue?.length ? null : html`<p class="soft">No run waits.</p>`}</div>`;
}

/**
 * The release of a session that is stopped: of the quarantine that the person sees.
 * @param {{ sid: string, quarantine: { seq: number, reason: string }, close: () => void }} props
 */
export function Release({ sid, quarantine, close }) {
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [sent, setSent] = useState(false);
  /** @param {Event} e */
  const submit = async (e) => {
    e.preventDefault();
    setSent(true);
    try {
      await post(of(sid, '/release'), { seq: quarantine.seq, reason: quarantine.reason });
      close();
    } catch (/** @type {any} */ problem) { setError(problem); setSent(false); }
  };
  return html`<form onSubmit=${submit}>
    <p>It is stopped before event <b class="num">${quarantine.seq}</b>: ${plain(quarantine.reason)}</p>
    <p class="soft">A session-actor folds it again from there within 15 seconds, and publishes what follows. If the cause remains, it stops again. <code>refold release ${sid}</code> does the same.</p>
    ${error ? html`<${Wrong} error=${error} />` : null}
    <div class="foot"><button class="btn main" disabled=${sent}>Release</button></div>
  </form>`;
}

/**
 * The removal of an event's text. done is called after it.
 * @param {{ sid: string, seq: number, close: () => void, done: () => void }} props
 */
export function Redact({ sid, seq, close, done }) {
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [sent, setSent] = useState(false);
  /** @param {Event} e */
  const submit = async (e) => {
    e.preventDefault();
    setSent(true);
    try {
      await remove(of(sid, `/events/${seq}`));
      close();
      done();
    } catch (/** @type {any} */ problem) { setError(problem); setSent(false); }
  };
  return html`<form onSubmit=${submit}>
    <p>The text of event <b class="num">${seq}</b> is overwritten in the log, for good. A copy without text stands in its place: the session, its hashes and its numbers stay what they are.</p>
    <p class="soft">Notices with the text are deleted, too. Other events stay, also where a model repeats it. <code>refold redact ${sid} ${seq}</code> does the same. It takes some seconds.</p>
    ${error ? html`<${Wrong} error=${error} />` : null}
    <div class="foot"><button class="btn danger" disabled=${sent}>${sent ? 'Removing…' : 'Remove the text'}</button></div>
  </form>`;
}
