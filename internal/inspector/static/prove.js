// Prove: the session is folded again in this browser, by a program that the server did not
// run, from the bytes of the log. The page asks for them and gives them to a worker, so
// the token stays here.
import { html, useEffect, useState } from './preact.js';
import { bytes, caller, newKey, of, post } from './api.js';
import { Hash, Wrong, setQuery } from './ui.js';
import { number, plain, took } from './text.js';

const hash = document.documentElement.dataset.program;

/** The one address that may become a worker. */
const address = document.documentElement.dataset.worker ?? new URL('./worker.js', import.meta.url).href;
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy('refold-worker', { createScriptURL: (/** @type {string} */ url) => { if (url !== address) throw new TypeError('no worker of these pages'); return url; } });

/**
 * The worker, as a promise of a function that asks it.
 * @typedef {(what: string, a?: Uint8Array, b?: Uint8Array) => Promise<{ value: any, ms: number }>} Ask
 * @type {Promise<{ ask: Ask, build: any, bytes: number }> | undefined}
 */
let started;

/** Starts the worker with the program, once. */
function start() {
  started ??= (async () => {
    const program = await bytes(`/program/${hash}`);
    const worker = new Worker(policy ? policy.createScriptURL(address) : address);
    const waiting = new Map();
    let last = 0;
    /** @param {Error} error */
    const fail = (error) => { waiting.forEach(({ reject }) => reject(error)); waiting.clear(); started = undefined; worker.terminate(); };
    worker.onmessage = ({ data: { id, value, error, took: ms } }) => {
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      if (error) reject(new Error(error)); else resolve({ value, ms });
    };
    worker.onerror = (e) => fail(new Error(`The worker failed: ${e.message ?? 'it does not start'}.`));
    /** @type {Ask} */
    const ask = (what, a, b) => new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      worker.postMessage({ id: last, what, a, b }, [a, b].filter(Boolean).map((part) => /** @type {Uint8Array} */ (part).buffer));
    });
    const build = await ask('load', program);
    return { ask, build: build.value, bytes: program.length };
  })();
  started.catch(() => { started = undefined; });
  return started;
}

/**
 * Folds a session again, and returns what was compared: {report, build, claims, folded,
 * whole}, times in milliseconds. Each page of the log is folded before the next one is
 * asked for.
 * @type {(sid: string, tell?: (more: object) => void, stop?: AbortSignal) => Promise<any>}
 */
export async function prove(sid, tell = () => {}, stop) {
  const begun = performance.now();
  tell({ words: 'Starting the program…' });
  const { ask, build } = await start();
  const text = await bytes(of(sid, '/proof'));
  const claims = JSON.parse(new TextDecoder().decode(text));
  await ask('begin', text, await bytes(of(sid, '/install')));
  let folded = 0;
  for (let from = 1; from;) {
    stop?.throwIfAborted();
    const { value, ms } = await ask('page', await bytes(of(sid, `/log?from=${from}&to=${claims.seq}`)));
    folded += ms;
    from = value.next;
    tell({ words: `Folded ${number(value.events)} of ${number(claims.events)} events`, part: value.events / claims.events });
  }
  const { value: report, ms } = await ask('end');
  return { report, build, claims, folded: folded + ms, whole: performance.now() - begun };
}

/**
 * What the program says of a session.
 * @typedef {{ n: number, text: string, expected?: string, found?: string }} Difference
 */

/** @param {{ differences: Difference[], events: API.EventHead[] }} props */
function Differences({ differences, events }) {
  /** @param {number} n */
  const seq = (n) => events[n - 1]?.seq;
  return html`<div class="note bad" role="alert"><p><b>${differences.length === 1 ? 'One difference' : `${differences.length} differences`}.</b> What the server shows is not what these events fold to here.</p></div>
    ${differences.map((d) => html`<div class="stack" style=${{ gap: '6px' }} data-refold-difference=${seq(d.n) ?? ''}>
      <p>${plain(d.text)}.</p>
      <div class="row wrap">${d.expected ? html`<span class="label">server</span><${Hash} hash=${d.expected} />` : null}${d.found ? html`<span class="label">here</span><${Hash} hash=${d.found} />` : null}
        ${seq(d.n) ? html`<button type="button" class="btn" onClick=${() => setQuery({ at: seq(d.n), tab: 'events' })}>Open event ${seq(d.n)}</button>` : null}</div></div>`)}`;
}

/** @param {{ result: any, events: API.EventHead[] }} props */
function Result({ result, events }) {
  const { report: r, build, claims } = result;
  return html`<div class="stack" data-refold-proof=${r.differences.length ? 'differs' : 'equal'}>
    ${r.differences.length ? html`<${Differences} differences=${r.differences} events=${events} />` : html`<p class="note good" role="status"><b>Equal.</b> ${number(r.events)} events fold to the same state in this browser.</p>`}
    <dl class="pairs">
      <dt>Events</dt><dd>${number(r.events)} of ${number(claims.events)}, each in the chain of the server's fold${r.rejected ? html` <span class="label">${number(r.rejected)} without effect</span>` : null}</dd>
      <dt>States</dt><dd>${number(r.states)} hashes are the same, the last one is <${Hash} hash=${r.hash} what="hash of the state" /></dd>
      <dt>Snapshot</dt><dd>${r.snapshot_at ? `of event ${r.snapshot_at}` : 'none is stored'}</dd>
      <dt>Effects</dt><dd>${r.unknown ? plain(`not compared: ${r.unknown}`) : `${number(r.effects_same)} stored with the bytes that the fold asks for, ${number(r.effects_gone)} no longer kept`}</dd>
      <dt>Program</dt><dd class="row wrap"><${Hash} hash=${build.hash} what="SHA-256 of the program" /><span class="label">commit ${plain(build.commit)}, ${plain(build.go)}</span></dd>
      <dt>Time</dt><dd>${took(result.whole)} <span class="label">${took(result.folded)} of it folding</span></dd>
    </dl></div>`;
}

/** What there is without a program: how to get one, and the same comparison on the server. @param {{ sid: string }} props */
function Without({ sid }) {
  const [state, setState] = useState(/** @type {any} */ ({}));
  const verify = () => { setState({ busy: true }); post(of(sid, '/verify'), undefined, newKey()).then((value) => setState({ value }), (error) => setState({ error })); };
  if (caller.value?.file) return html`<p>This file was written without the program that folds a session. <code>make wasm</code> in a checkout of Refold builds one: <code>refold export ${sid} --html --wasm FILE</code> puts it into the file.</p>`;
  return html`<p>This server has no program for the browser. <code>make wasm</code> in a checkout of Refold builds one: programs that are built after it have it, and others take it by <code>--wasm FILE</code>.</p>
    <p class="soft">The server can fold the session again itself. That compares the same, but this browser has to believe it.</p>
    ${state.error ? html`<${Wrong} error=${state.error} />` : null}
    ${state.value ? html`<p class=${`note ${state.value.differences?.length ? 'bad' : 'good'}`} role="status">${state.value.differences?.length ? plain(state.value.differences.join('; ')) : html`<b>Equal.</b> The server folded ${number(state.value.events)} events to the same state.`}</p>` : null}
    <p><button type="button" class="btn" disabled=${state.busy} onClick=${verify}>Verify on the server</button></p>`;
}

/** The panel: it begins when it is shown. @param {{ sid: string, events: API.EventHead[], close: () => void }} props */
export function Proof({ sid, events, close }) {
  const [state, setState] = useState(/** @type {any} */ ({ words: 'Starting…' }));
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (!hash) return undefined;
    const stop = new AbortController();
    /** @param {object} more */
    const tell = (more) => { if (!stop.signal.aborted) setState(more); };
    prove(sid, tell, stop.signal).then((result) => {
      tell({ result });
      const at = events[result.report.differences[0]?.n - 1]?.seq;
      if (at && !stop.signal.aborted) setQuery({ at, tab: 'events' });
    }, (error) => tell({ error }));
    return () => stop.abort();
  }, [sid, tries]);
  return html`<section class="card" id="proof" aria-label="Proof" style=${{ marginBottom: '16px' }}>
    <div class="card-head"><h2 class="grow">Proof</h2>${state.result ? html`<button type="button" class="btn" onClick=${() => setTries(tries + 1)}>Again</button>` : null}<button type="button" class="btn bare" onClick=${close}>Close</button></div>
    <div class="card-body stack">${!hash ? html`<${Without} sid=${sid} />` : state.error ? html`<${Wrong} error=${state.error} again=${() => setTries(tries + 1)} />` : state.result ? html`<${Result} result=${state.result} events=${events} />`
    : html`<p role="status">${state.words}</p><progress max="1" value=${state.part ?? 0} aria-label="Events folded"></progress>`}</div>
  </section>`;
}
