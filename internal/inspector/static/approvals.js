// Calls that wait for a person, of all sessions: the one that ends first is first.
import { html, signal, useEffect, useMemo, useState } from './preact.js';
import { caller, follow, get, may, newKey, of, post } from './api.js';
import { Code, Dialog, Empty, Hash, Link, Skeleton, Wrong, now, typed, useLoaded } from './ui.js';
import { dateOf, flat, plain, pretty, took } from './text.js';
import { Answer, mayAnswer } from './questions.js';

/** The waiting calls; null: not known yet. */
const waiting = signal(/** @type {WaitingCall[] | null} */ (null));
const failed = signal(/** @type {Error | null} */ (null));
export const waitingCount = signal(0);
const goneFor = 20_000; // a call that went away stays shown that long, with what became of it

/** @param {WaitingCall} a */
const keyOf = (a) => `${a.session}\n${a.call}\n${a.args_hash}`;
/** @param {WaitingCall} a @param {WaitingCall} b */
const byDeadline = (a, b) => (a.deadline || Infinity) - (b.deadline || Infinity);

/** Says by a notification of the system that calls wait, if the person allowed it: without arguments. @param {WaitingCall[]} more */
function tell(more) {
  if (!more.length || !document.hidden || globalThis.Notification?.permission !== 'granted') return;
  const words = more.length === 1 ? `${flat(more[0].tool)} in ${flat(more[0].session)}` : `${more.length} calls`;
  new Notification('A call waits for a person', { body: words, tag: 'refold-approvals' });
}

/** Learns what became of a call that waits no more. @param {WaitingCall} a */
async function learn(a) {
  const became = await get(of(a.session, '/transcript')).then((all) => {
    const entries = /** @type {import('./conversation.js').Said[]} */ (all);
    const last = entries.findLast((e) => e.call === a.call && (e.kind === 'decided' || e.kind === 'result'));
    const decided = entries.findLast((e) => e.call === a.call && e.kind === 'decided');
    if (decided) return `${decided.status === 'approve' ? (decided.arguments ? 'approved with other arguments' : 'approved') : 'denied'}${decided.by ? ` by ${decided.by}` : ''}`;
    return last?.kind === 'result' ? `ended: ${last.code || last.status}` : '';
  }, () => '');
  waiting.value = (waiting.value ?? []).map((b) => (keyOf(b) === keyOf(a) ? { ...b, became } : b));
}

/** Calls are loaded one load after another: a later answer is never older. */
/** @type {Promise<void> | null} */
let loading = null;
let again = false;
async function load() {
  if (loading) { again = true; return loading; }
  loading = loadOnce().finally(() => { loading = null; if (again) { again = false; load(); } });
  return loading;
}

async function loadOnce() {
  try {
    const [decided, answered] = await Promise.all([get('/v1/approvals'), get('/v1/questions')]);
    /** @type {WaitingCall[]} */
    const approvals = [...decided.approvals, ...answered.questions.map((q) => ({ ...q, asks: true }))];
    const here = new Set(approvals.map(keyOf));
    const before = waiting.value;
    const gone = (before ?? []).filter((a) => !here.has(keyOf(a)))
      .map((a) => ({ ...a, gone: a.gone ?? Date.now() })).filter((a) => Date.now() - a.gone < goneFor);
    waiting.value = [...approvals, ...gone].sort(byDeadline);
    waitingCount.value = approvals.length;
    if (before) tell(approvals.filter((a) => !before.some((b) => keyOf(b) === keyOf(a))));
    gone.filter((a) => a.became === undefined).forEach(learn);
    failed.value = null;
  } catch (/** @type {any} */ error) { failed.value = error; }
}

/** Follows what waits, for the badge and the page. */
export function watchApprovals() {
  if (!caller.value || !may('read')) return undefined;
  load();
  let timer = 0;
  const soon = () => { if (!timer) timer = setTimeout(() => { timer = 0; load(); }, 250); };
  const known = new Set();
  const stop = follow('/v1/live', '', (row, event) => {
    const waits = row.waits_for === 'approval' || row.waits_for === 'reply';
    if (event === 'reset' || waits || known.has(row.session) || waiting.value?.some((a) => a.session === row.session)) soon();
    if (waits) known.add(row.session); else known.delete(row.session);
  });
  const each = setInterval(() => { if (waiting.value?.some((a) => a.gone)) soon(); }, 5000);
  return () => { stop(); clearTimeout(timer); clearInterval(each); };
}

/** @param {ArrayBuffer} buffer */
const hex = (buffer) => [...new Uint8Array(buffer)].map((b) => b.toString(16).padStart(2, '0')).join('');

/** Is the text that is displayed the one whose hash a decision names? @param {string} text */
function useHash(text) {
  const [hash, setHash] = useState('');
  useEffect(() => {
    let ended = false;
    crypto.subtle?.digest('SHA-256', new TextEncoder().encode(text)).then((sum) => { if (!ended) setHash(hex(sum)); });
    return () => { ended = true; };
  }, [text]);
  return hash;
}

/** The decision over a call: approve, approve with other arguments, deny with a reason. @param {{ a: WaitingCall, how: string, close: () => void }} props */
function Deciding({ a, how, close }) {
  const [text, setText] = useState(how === 'edit' ? pretty(a.arguments || '{}') : '');
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [sent, setSent] = useState(false);
  const [preview, setPreview] = useState(/** @type {Partial<API.Preview> | null} */ (null));
  const key = useMemo(newKey, [text]);
  const data = how === 'deny' ? { call: a.call, decision: 'deny', args_hash: a.args_hash, ...(text && { reason: text }) } : { call: a.call, decision: 'approve', args_hash: a.args_hash, arguments: text };
  useEffect(() => {
    const timer = setTimeout(() => post(of(a.session, '/preview'), { type: 'ApprovalDecided', door: 'approve', data }).then(setPreview, (e) => setPreview({ rejected: e.code, detail: e.message })), 250);
    return () => clearTimeout(timer);
  }, [text]);
  /** @param {Event} e */
  const submit = async (e) => {
    e.preventDefault();
    setSent(true);
    try {
      await decide(a, how === 'deny' ? { decision: 'deny', reason: text } : { decision: 'approve', arguments: text }, key);
      close();
    } catch (/** @type {any} */ problem) { setError(problem); setSent(false); }
  };
  /** @type {any} */
  const bad = preview?.rejected || (how === 'edit' && preview?.said?.find((n) => n.type === 'ToolRejected')?.data);
  return html`<${Dialog} title=${how === 'deny' ? `Deny ${a.tool}` : `Approve ${a.tool} with other arguments`} close=${close}><form onSubmit=${submit}>
    ${how === 'deny'
      ? html`<label class="field"><span>Why, which the model is shown</span><textarea class="input" rows="3" maxlength="4096" autofocus value=${text} onInput=${typed(setText)}></textarea></label>`
      : html`<label class="field"><span>Arguments, as JSON</span><textarea class="input mono" rows="12" spellcheck="false" autofocus value=${text} onInput=${typed(setText)}></textarea></label>`}
    ${bad ? html`<p class="note bad" role="status">It would be refused: ${plain(preview?.rejected || bad.code)}${plain(preview?.detail || bad.detail ? ` – ${preview?.detail || bad.detail}` : '')}</p>` : preview ? html`<p class="note">${preview.effects?.length ? `It would open ${preview.effects.map((f) => f.effect).join(', ')}.` : 'It would be taken.'}</p>` : null}
    ${error ? html`<${Wrong} error=${error} />` : null}
    <div class="foot"><button class=${how === 'deny' ? 'btn danger' : 'btn main'} disabled=${sent || Boolean(bad) || !preview}>${how === 'deny' ? 'Deny the call' : 'Approve with these'}</button></div>
  </form><//>`;
}

/** @param {WaitingCall} a @param {object} body @param {string} key */
const decide = (a, body, key) => post(of(a.session, `/approvals/${encodeURIComponent(a.call)}`), { args_hash: a.args_hash, ...(a.pack && { manifest: a.pack.manifest }), ...body }, key).then(load);

/**
 * Why the call waits: what asked, what the model said before, and its siblings.
 * @param {{ a: WaitingCall }} props
 */
function Context({ a }) {
  const state = useLoaded((stop) => get(of(a.session, '/batch'), stop), [a.session, a.call]);
  const batch = state.value;
  const mine = batch?.calls.find((c) => c.call === a.call);
  if (!batch || !mine) return null;
  const others = batch.calls.filter((c) => c.call !== a.call);
  return html`<div class="context">
    ${batch.text ? html`<div><h3>The model said before</h3><p class="said">${plain(batch.text)}</p></div>` : null}
    <dl class="pairs">
      ${mine.asked_by ? html`<dt>Asked by</dt><dd class="mono small">${plain(mine.asked_by)}</dd>` : null}
      ${others.length ? html`<dt>Beside it</dt><dd class="row wrap">${others.slice(0, 12).map((c) => html`<span class="tag" key=${c.call}>${plain(c.tool)} <span class="label">${c.call}</span> <span class="soft">${c.status.replaceAll('_', ' ')}</span></span>`)}${others.length > 12 ? html`<span class="label">and ${others.length - 12} more</span>` : null}</dd>` : null}
    </dl>
  </div>`;
}

/**
 * One call that waits.
 * @param {{ a: WaitingCall, alone?: boolean }} props
 */
export function Approval({ a, alone }) {
  const shown = useHash(a.arguments);
  const [deciding, setDeciding] = useState('');
  const [exact, setExact] = useState(false);
  const [sent, setSent] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const key = useMemo(newKey, [a.args_hash, error]);
  const proven = shown === a.args_hash;
  const off = !may('approve') || !proven || sent || a.gone;
  const approve = async () => {
    setSent(true);
    try {
      await decide(a, { decision: 'approve' }, key);
    } catch (/** @type {any} */ problem) { setError(problem); setSent(false); load(); }
  };
  const left = a.deadline ? a.deadline - now.value : 0;
  return html`<article class="card approval" data-refold-call=${a.call} data-refold-session=${a.session} style=${a.gone ? { opacity: 0.6 } : {}}>
    <div class="card-head">
      <div class="grow"><div class="row wrap"><h2 class="mono" style=${a.gone ? { textDecoration: 'line-through' } : {}}>${plain(a.tool)}</h2>${a.tool_id === a.tool ? null : html`<span class="label mono">${plain(a.tool_id)}</span>`}</div>
        <p class="label">${alone ? null : html`<${Link} to=${`/s/${encodeURIComponent(a.session)}`}>${plain(a.session)}<//> · `}run ${a.run} · <span class="mono">${a.call}</span></p>
        ${(a.parents ?? []).map((p) => html`<p class="label" data-refold-parent>for <span class="mono">${plain(p.call)}</span> of <${Link} to=${`/s/${encodeURIComponent(p.session)}`}>${plain(p.session)}<//></p>`)}</div>
      ${a.gone ? html`<span class="state">${a.became ? plain(a.became) : 'no longer waits'}</span>` : a.deadline ? html`<span class=${left < 300_000 ? 'tag bad num' : 'tag num'} title=${dateOf(a.deadline)}>${left > 0 ? `${took(Math.floor(left / 1000) * 1000)} left` : 'its time is over'}</span>` : null}
    </div>
    <div class="card-body stack">
      ${alone ? null : html`<${Context} a=${a} />`}
      <div><div class="row wrap" style=${{ marginBottom: '6px' }}><h3 class="grow">Arguments</h3><button type="button" class="btn bare" aria-pressed=${exact ? 'true' : 'false'} onClick=${() => setExact(!exact)}>${exact ? 'Indented' : 'Exact text'}</button><${Hash} hash=${a.args_hash} what="hash of the arguments" /></div>
        <${Code} text=${a.arguments || '{}'} exact=${exact} /></div>
      ${a.pack ? html`<div class="note warn"><p>It would enable the pack <b>${plain(a.pack.name)}</b>${a.pack.signer ? html`, signed by ${plain(a.pack.signer)}` : null}.</p>${Object.entries(a.pack.texts ?? {}).map(([path, text]) => html`<details><summary class="mono">${plain(path)}</summary><${Code} text=${text} exact /></details>`)}</div>` : null}
      ${a.code ? html`<p class="note warn">It would not run if it was approved now: ${plain(a.code)}${a.detail ? html` – ${plain(a.detail)}` : null}</p>` : null}
      ${!proven && shown ? html`<p class="note bad" role="alert">${caller.value?.redacts ? 'This server masks secrets, so the text shown is not what would run: decide with refold approve.' : 'The text shown does not have the hash that a decision would name: it can\'t be decided here.'}</p>` : null}
      ${!globalThis.crypto?.subtle ? html`<p class="note bad">This browser can't hash here: use HTTPS or a loopback address.</p>` : null}
      ${error ? html`<${Wrong} error=${error} />` : null}
      ${a.asks ? html`<${Answer} q=${a} off=${!mayAnswer(a) || !proven || a.gone} done=${load} />` : html`<div class="actions"><button type="button" class="btn main" disabled=${off} onClick=${approve}>Approve</button><button type="button" class="btn" disabled=${off} onClick=${() => setDeciding('edit')}>Approve with edits…</button><button type="button" class="btn danger" disabled=${off} onClick=${() => setDeciding('deny')}>Deny…</button>${may('approve') ? null : html`<span class="label">This token may not approve.</span>`}</div>`}
    </div>
    ${deciding ? html`<${Deciding} a=${a} how=${deciding} close=${() => setDeciding('')} />` : null}
  </article>`;
}

/** The calls of a session that wait. @param {string} sid */
export const waitingOf = (sid) => (waiting.value ?? []).filter((a) => a.session === sid && !a.gone);

/** Lets the person allow notifications. */
function Notify() {
  const [is, setIs] = useState(globalThis.Notification?.permission ?? 'none');
  if (is !== 'default') return is === 'granted' ? html`<span class="label">This tab tells when a call waits.</span>` : null;
  return html`<button type="button" class="btn" onClick=${() => Notification.requestPermission().then(setIs)}>Notify me</button>`;
}

export function Approvals() {
  useEffect(() => { document.title = `${waitingCount.value ? `(${waitingCount.value}) ` : ''}Approvals · Refold`; }, [waitingCount.value]);
  const all = waiting.value;
  let body = html`<div class="card"><${Skeleton} /></div>`;
  if (failed.value && !all) body = html`<${Wrong} error=${failed.value} again=${load} />`;
  else if (all?.length) body = html`<div class="stack" style=${{ maxWidth: '880px' }}>${all.map((a) => html`<${Approval} key=${keyOf(a)} a=${a} />`)}</div>`;
  else if (all) body = html`<div class="card"><${Empty} title="Nothing waits for a person"><p>A call that needs approval, or that somebody must answer, is shown here, with its arguments in full.</p><//></div>`;
  return html`<div class="page-head"><h1>Approvals</h1><p aria-live="assertive">${all ? `${waitingCount.value || 'No'} call${waitingCount.value === 1 ? '' : 's'} waiting` : ''}</p><span class="grow"></span><${Notify} /></div>${body}`;
}
