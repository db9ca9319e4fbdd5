// The conversation at the cursor: inputs, texts, calls with arguments and results,
// refusals, decisions, and what left the model's view.
import { html, useEffect, useRef } from './preact.js';
import { get, of } from './api.js';
import { Approval, waitingOf } from './approvals.js';
import { Code, Empty, State, loaded, useLoaded } from './ui.js';
import { limited, plain, timeOf } from './text.js';

/** One call: its arguments, what was decided over it, its result. */
function Call({ entry, decided, result }) {
  const status = result?.status ?? (decided?.status === 'deny' ? 'denied' : '');
  const wrong = result && result.status !== 'succeeded';
  return html`<details class=${`call ${wrong ? 'failed' : ''}`} data-refold-call=${entry.call}>
    <summary><b class="clip">${plain(entry.tool)}</b><span class="label mono clip grow">${plain((entry.arguments ?? '').slice(0, 160))}</span>${status ? html`<${State} state=${status} />` : html`<span class="label">no result yet</span>`}</summary>
    <div class="in">
      <div class="label">Arguments · <span class="mono">${entry.call}</span></div><${Code} text=${entry.arguments || '{}'} />
      ${decided ? html`<p class="note">${decided.status === 'approve' ? 'Approved' : 'Denied'}${decided.by ? html` by ${plain(decided.by)}` : null}${decided.detail ? html`: ${plain(decided.detail)}` : null}</p>` : null}
      ${decided?.arguments ? html`<div class="label">With these arguments instead</div><${Code} text=${decided.arguments} />` : null}
      ${result?.code ? html`<p class="note bad"><b>${plain(result.code)}</b>${result.detail ? html` – ${plain(result.detail)}` : null}</p>` : null}
      ${result?.text ? html`<div class="label">Result</div><${Code} text=${limited(result.text)} />` : null}
    </div>
  </details>`;
}

const rule = (e, words) => html`<div class="rule" key=${`${e.kind}${e.seq}${e.call ?? ''}`}><span>${words}</span></div>`;

const withReason = (words, e) => html`${words}${e.code ? html`: ${plain(e.code)}` : null}${e.detail ? html` – ${plain(e.detail)}` : null}`;

function Entry({ e, all }) {
  const said = (from, text, kind) => html`<div class=${`turn ${kind}`} data-refold-seq=${e.seq}><span class="from" title=${timeOf(e.time)}>${from}</span><div class="said">${plain(limited(text))}</div></div>`;
  switch (e.kind) {
    case 'run': return rule(e, html`Run ${e.run}${e.model ? html` · ${plain(e.model)}` : null}`);
    case 'input': return said('user', e.text, 'user');
    case 'steer': return said('steer', e.text, 'user');
    case 'repair': return said('repair', e.text, 'user');
    case 'text': return html`${e.text ? said(e.turn, e.text, 'model') : null}${e.finish_reason ? rule(e, `ended by ${e.finish_reason}`) : null}`;
    case 'call': return html`<div class="turn"><span class="from">${e.turn}</span><${Call} entry=${e} decided=${all.decided.get(e.call)} result=${all.results.get(e.call)} /></div>`;
    case 'failed': return html`<p class="note bad" data-refold-seq=${e.seq}>${withReason(`Turn ${e.turn ?? ''} failed`, e)}</p>`;
    case 'rejected': return html`<p class="note">${withReason(`${e.status || 'An event'} had no effect`, e)}</p>`;
    case 'paused': return html`<p class="note warn">${withReason('Paused', e)}</p>`;
    case 'window': return rule(e, plain(e.detail || e.line || 'something left what the model is shown'));
    case 'end': return rule(e, withReason(`Run ${e.run} ${e.status}`, e));
  }
  return null;
}

const shownMax = 300;

/** The entries up to an event. */
export const upTo = (entries, seq) => {
  const end = entries.findIndex((e) => e.seq > seq);
  return end < 0 ? entries : entries.slice(0, end);
};

export function Conversation({ sid, seq, at, view, streamed }) {
  const last = useRef(0);
  last.current = Math.max(last.current, seq);
  const state = useLoaded((stop) => get(of(sid, '/transcript'), stop), [sid, last.current]);
  const end = useRef(null);
  const near = useRef(true);
  useEffect(() => {
    if (near.current && !at) end.current?.scrollIntoView?.({ block: 'nearest' });
  }, [streamed.value.text]);
  return loaded(state, (entries) => {
    const shown = upTo(entries, seq);
    const all = { results: new Map(), decided: new Map() };
    for (const e of shown) {
      if (e.kind === 'result') all.results.set(e.call, e);
      if (e.kind === 'decided') all.decided.set(e.call, e);
    }
    const visible = shown.filter((e) => e.kind !== 'result' && e.kind !== 'decided' && e.kind !== 'asked');
    const writing = !at && streamed.value.text && view.waits_for === 'model' ? streamed.value : null;
    const waiting = at ? [] : waitingOf(sid);
    if (!visible.length && !writing) return html`<${Empty} title="Nothing was said yet"><p>${at ? 'At this event the session has no conversation.' : 'The session has no run yet.'}</p><//>`;
    return html`<div class="talk">
      ${visible.length > shownMax ? html`<p class="label">The first ${visible.length - shownMax} entries are not shown: <code>refold transcript ${sid}</code> prints all.</p>` : null}
      ${visible.slice(-shownMax).map((e, i) => html`<${Entry} key=${`${e.seq}-${e.kind}-${e.call ?? i}`} e=${e} all=${all} />`)}
      ${writing ? html`<div class="turn model" id="streaming"><span class="from">${writing.turn}</span><div class="said" aria-live="off">${plain(writing.text)}</div></div>` : null}
      ${!at && streamed.value.again && !streamed.value.text && view.waits_for === 'model' ? html`<p class="note">The model begins this turn again.</p>` : null}
      ${waiting.map((a) => html`<${Approval} key=${a.call + a.args_hash} a=${a} alone />`)}
      <div ref=${end}></div>
    </div>`;
  }, 6);
}
