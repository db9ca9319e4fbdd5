// The conversation at the cursor: inputs, texts, calls with arguments and results,
// refusals, decisions, and what left the model's view.
import { html, useEffect, useMemo, useRef, useState } from './preact.js';
import { transcriptOf } from './api.js';
import { Approval, waitingOf } from './approvals.js';
import { Empty, Payload, State, loaded, save, useLoaded } from './ui.js';
import { limited, number, plain, timeOf } from './text.js';

/**
 * An entry of the transcript.
 * @typedef {{ kind: string, seq: number, time?: number, run?: number, turn?: string, call?: string, tool?: string, text?: string, arguments?: string,
 *   status?: string, code?: string, detail?: string, by?: string, line?: string, model?: string, finish_reason?: string }} Said
 */

/**
 * One call: its arguments, what was decided over it, its result.
 * @param {{ entry: Said, decided?: Said, result?: Said, [more: string]: any }} props
 */
function Call({ entry, decided, result }) {
  const status = result?.status ?? (decided?.status === 'deny' ? 'denied' : '');
  const wrong = result && result.status !== 'succeeded';
  return html`<details class=${`call ${wrong ? 'failed' : ''}`} data-refold-call=${entry.call}>
    <summary><b class="clip">${plain(entry.tool)}</b><span class="label mono clip grow">${plain((entry.arguments ?? '').slice(0, 160))}</span>${status ? html`<${State} state=${status} />` : html`<span class="label">no result yet</span>`}</summary>
    <div class="in">
      <div class="label">Arguments · <span class="mono">${entry.call}</span></div><${Payload} text=${entry.arguments || '{}'} name=${`${entry.call}-arguments.txt`} />
      ${decided ? html`<p class="note">${decided.status === 'approve' ? 'Approved' : 'Denied'}${decided.by ? html` by ${plain(decided.by)}` : null}${decided.detail ? html`: ${plain(decided.detail)}` : null}</p>` : null}
      ${decided?.arguments ? html`<div class="label">With these arguments instead</div><${Payload} text=${decided.arguments} name=${`${entry.call}-edited.txt`} />` : null}
      ${result?.code ? html`<p class="note bad"><b>${plain(result.code)}</b>${result.detail ? html` – ${plain(result.detail)}` : null}</p>` : null}
      ${result?.text ? html`<div class="label">Result</div><${Payload} text=${result.text} name=${`${entry.call}-result.txt`} />` : null}
    </div>
  </details>`;
}

/** @param {Said} e @param {Drawn} words */
const rule = (e, words) => html`<div class="rule" key=${`${e.kind}${e.seq}${e.call ?? ''}`}><span>${words}</span></div>`;

/** @param {string} words @param {Said} e */
const withReason = (words, e) => html`${plain(words)}${e.code ? html`: ${plain(e.code)}` : null}${e.detail ? html` – ${plain(e.detail)}` : null}`;

/** @param {{ e: Said, all: { decided: Map<string | undefined, Said>, results: Map<string | undefined, Said> }, [more: string]: any }} props */
function Entry({ e, all }) {
  /** @param {string | undefined} from @param {string | undefined} text @param {string} kind */
  const said = (from, text = '', kind) => html`<div class=${`turn ${kind}`} data-refold-seq=${e.seq}><span class="from" title=${e.time && timeOf(e.time)}>${from}</span><div class="said">${plain(limited(text))}${text.length > limited(text).length ? html` <button type="button" class="btn" onClick=${() => save(`${e.turn ?? e.kind}-${e.seq}.txt`, text)}>All of it</button>` : null}</div></div>`;
  switch (e.kind) {
    case 'run': return rule(e, html`Run ${e.run}${e.model ? html` · ${plain(e.model)}` : null}`);
    case 'input': return said('user', e.text, 'user');
    case 'steer': return said('steer', e.text, 'user');
    case 'repair': return said('repair', e.text, 'user');
    case 'text': return html`${e.text ? said(e.turn, e.text, 'model') : null}${e.finish_reason ? rule(e, plain(`ended by ${e.finish_reason}`)) : null}`;
    case 'call': return html`<div class="turn"><span class="from">${e.turn}</span><${Call} entry=${e} decided=${all.decided.get(e.call)} result=${all.results.get(e.call)} /></div>`;
    case 'failed': return html`<p class="note bad" data-refold-seq=${e.seq}>${withReason(`Turn ${e.turn ?? ''} failed`, e)}</p>`;
    case 'rejected': return html`<p class="note">${withReason(`${e.status || 'An event'} had no effect`, e)}</p>`;
    case 'paused': return html`<p class="note warn">${withReason('Paused', e)}</p>`;
    case 'window': return rule(e, plain(e.detail || e.line || 'something left what the model is shown'));
    case 'end': return rule(e, withReason(`Run ${e.run} ${e.status}`, e));
  }
  return null;
}

const shownMax = 160; // entries that are drawn at once
const step = 80; // by which the drawn part moves

/**
 * The entries up to an event.
 * @param {Said[]} entries
 * @param {number} seq
 */
export const upTo = (entries, seq) => {
  const end = entries.findIndex((e) => e.seq > seq);
  return end < 0 ? entries : entries.slice(0, end);
};

/** What the model is not shown any more, by kinds of windows: the latest one of each counts. @param {Said[]} entries */
const gone = (entries) => entries.filter((e) => e.kind === 'window').length;

/** A part of a list that moves: [from, to), and the buttons that move it. It follows the end. @param {number} count @param {unknown} reset */
function usePart(count, reset) {
  const [end, setEnd] = useState(0); // 0: the end of the list
  useEffect(() => setEnd(0), [reset]);
  const to = end && end < count ? end : count;
  const from = Math.max(0, to - shownMax);
  /** @param {number} by */
  const move = (by) => () => { const next = Math.max(shownMax, to + by); setEnd(next >= count ? 0 : next); };
  return { from, to, earlier: from > 0 ? move(-step) : null, later: to < count ? move(step) : null };
}

/**
 * The transcript up to an event at least. It is asked for at once, before it is known which
 * event is the last, and again as events come: every 300 ms at most.
 * @param {string} sid @param {number} seq @param {boolean} shown
 */
export function useTranscript(sid, seq, shown) {
  const asked = useRef(0); // the event for which it was asked for again
  const waits = useRef(false);
  const [tries, setTries] = useState(0);
  const state = useLoaded(async (stop) => (shown ? transcriptOf(sid, stop) : undefined), [sid, tries, shown]);
  useEffect(() => {
    if (waits.current || seq <= Math.max(asked.current, state.value?.through ?? Infinity)) return;
    waits.current = true;
    setTimeout(() => { waits.current = false; asked.current = seq; setTries((n) => n + 1); }, 300);
  });
  return state;
}

/** @param {Panel & { said: import('./ui.js').Loaded<{ entries: Said[] }> }} props */
export function Conversation({ sid, seq, at, view, streamed, said: state }) {
  const end = useRef(/** @type {HTMLDivElement | null} */ (null));
  const entries = state.value?.entries;
  const shown = useMemo(() => {
    const part = upTo(entries ?? [], seq);
    const results = new Map();
    const decided = new Map();
    for (const e of part) {
      if (e.kind === 'result') results.set(e.call, e);
      if (e.kind === 'decided') decided.set(e.call, e);
    }
    return { all: { results, decided }, visible: part.filter((e) => e.kind !== 'result' && e.kind !== 'decided' && e.kind !== 'asked') };
  }, [entries, seq]);
  const { all, visible } = shown;
  const part = usePart(visible.length, at);
  useEffect(() => { if (!at && streamed.value.text) end.current?.scrollIntoView?.({ block: 'nearest' }); }, [streamed.value.text]);
  return loaded(state, () => {
    const writing = !at && streamed.value.text && view.waits_for === 'model' ? streamed.value : null;
    const waiting = at ? [] : waitingOf(sid);
    if (!visible.length && !writing) return html`<${Empty} title="Nothing was said yet"><p>${at ? 'At this event the session has no conversation.' : 'The session has no run yet.'}</p><//>`;
    return html`<div class="talk">
      ${visible.length > shownMax ? html`<p class="label row"><span class="grow">Entries ${number(part.from + 1)} to ${number(part.to)} of ${number(visible.length)}</span><button type="button" class="btn" id="earlier" disabled=${!part.earlier} onClick=${part.earlier}>Earlier</button></p>` : null}
      ${gone(visible) ? html`<p class="note">The model is not shown all of this any more: rules between the entries say what was cleared, or replaced by a summary.</p>` : null}
      ${visible.slice(part.from, part.to).map((e, i) => html`<${Entry} key=${`${e.seq}-${e.kind}-${e.call ?? part.from + i}`} e=${e} all=${all} />`)}
      ${part.later ? html`<p class="row"><span class="grow"></span><button type="button" class="btn" id="later" onClick=${part.later}>Later</button></p>` : null}
      ${writing && !part.later ? html`<div class="turn model" id="streaming"><span class="from">${writing.turn}</span><div class="said" aria-live="off">${plain(writing.text)}</div></div>` : null}
      ${!at && streamed.value.again && !streamed.value.text && view.waits_for === 'model' ? html`<p class="note">The model begins this turn again.</p>` : null}
      ${waiting.map((a) => html`<${Approval} key=${a.call + a.args_hash} a=${a} alone />`)}
      <div ref=${end}></div>
    </div>`;
  }, 6);
}
