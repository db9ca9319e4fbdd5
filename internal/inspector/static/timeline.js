// What took the time: a waterfall. Long gaps in which nobody worked are drawn as breaks,
// so that a burst after hours of waiting can be read.
import { html, useMemo } from './preact.js';
import { get, of } from './api.js';
import { Empty, loaded, now, place, setQuery, useLoaded } from './ui.js';
import { dateOf, flat, plain, timeOf, took } from './text.js';

const working = new Set(['attempt', 'call', 'step', 'compaction', 'space']);
const breakPart = 0.02; // of the whole span: a longer gap is a break
const breakWidth = 0.035; // of the width that a break gets

/** The parts of a time in which somebody works, and the gaps between them. */
export function scaleOf(spans, end) {
  const begin = Math.min(...spans.map((s) => s.begin));
  const last = Math.max(begin + 1, ...spans.map((s) => s.end || end));
  const busy = spans.filter((s) => working.has(s.kind)).map((s) => [s.begin, s.end || end]).sort((a, b) => a[0] - b[0]);
  const marks = [[begin, begin], ...busy, [last, last]];
  const gaps = [];
  let reached = begin;
  for (const [from, to] of marks) {
    if (from - reached > Math.max(1000, (last - begin) * breakPart)) gaps.push([reached, from]);
    reached = Math.max(reached, to);
  }
  const hidden = gaps.reduce((sum, [a, b]) => sum + b - a, 0);
  const real = Math.max(1, last - begin - hidden);
  const room = Math.max(0.3, 1 - gaps.length * breakWidth);
  const each = gaps.length ? (1 - room) / gaps.length : 0;
  /** The place of a time, 0 to 1. */
  const at = (t) => {
    let x = 0;
    let from = begin;
    for (const [a, b] of gaps) {
      if (t <= a) break;
      x += ((a - from) / real) * room;
      if (t < b) return x + ((t - a) / (b - a)) * each;
      x += each;
      from = b;
    }
    return Math.min(1, x + ((Math.max(from, Math.min(t, last)) - from) / real) * room);
  };
  return { begin, last, gaps, at };
}

const kindsOf = { run: 'run', turn: 'turn', attempt: 'attempt', call: 'call', group: 'group', approval: 'approval', step: 'attempt', compaction: 'attempt', space: 'call' };

/** Orders spans as a tree: children after their parents, by their beginning. */
export function treeOf(spans) {
  const children = new Map();
  const places = new Set(spans.map((s) => s.place));
  for (const s of spans) {
    const parent = s.parent && places.has(s.parent) && s.parent !== s.place ? s.parent : '';
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(s);
  }
  const rows = [];
  const add = (parent, depth) => {
    for (const s of (children.get(parent) ?? []).sort((a, b) => a.begin - b.begin)) {
      rows.push({ ...s, depth });
      if (depth < 8) add(s.place, depth + 1);
    }
  };
  add('', 0);
  return rows;
}

function Line({ s, scale, end, cursor }) {
  const left = scale.at(s.begin);
  const right = scale.at(s.end || end);
  const shape = `${kindsOf[s.kind] ?? 'wait'} ${s.failed ? 'failed' : ''} ${s.end ? '' : 'open'}`;
  const length = (s.end || end) - s.begin;
  const words = [s.kind.replaceAll('_', ' '), s.label, s.outcome, s.code, took(length), s.end ? '' : 'open', s.deadline ? `until ${dateOf(s.deadline)}` : ''].filter(Boolean).join(' · ');
  const beside = right < 0.8 ? { left: `calc(${right * 100}% + 2px)` } : { right: `calc(${(1 - left) * 100}% + 2px)` };
  return html`<button type="button" class=${`line ${cursor ? 'at' : ''}`} title=${flat(`${s.place}: ${words}`)} data-refold-place=${s.place} onClick=${() => s.seq && setQuery({ at: s.seq })}>
    <span class="what" style=${{ paddingLeft: `${8 + Math.min(s.depth, 5) * 12}px` }}><b>${s.place}</b><span class="clip soft">${plain(s.label || s.kind.replaceAll('_', ' '))}</span>${s.failed ? html`<span class="tag bad clip">${plain(s.code || 'failed')}</span>` : null}</span>
    <span class="track"><span class=${`bar ${shape}`} style=${{ left: `${left * 100}%`, width: `max(3px, ${(right - left) * 100}%)` }}></span><span class="took" style=${beside}>${took(length)}${s.end ? '' : ' …'}</span></span>
  </button>`;
}

const linesMax = 400;
const runsOf = (spans) => [...new Set(spans.map((s) => s.run).filter(Boolean))].sort((a, b) => a - b);

export function Timeline({ sid, seq, at, events, index }) {
  const last = events.at(-1)?.seq;
  const state = useLoaded((stop) => get(of(sid, '/timeline'), stop), [sid, last]);
  const query = place.value.query;
  return loaded(state, ({ spans: all }) => html`<${Drawn} all=${all} run=${Number(query.get('run')) || 0} at=${at ? events[index]?.time : 0} seq=${seq} />`, 8);
}

function Drawn({ all, run, at, seq }) {
  const runs = runsOf(all);
  const chosen = run && runs.includes(run) ? run : runs.at(-1);
  const spans = useMemo(() => (run === -1 ? all : all.filter((s) => s.run === chosen || !s.run)), [all, chosen, run]);
  if (!all.length) return html`<${Empty} title="Nothing took time yet"><p>Runs, turns and calls are shown here.</p><//>`;
  const open = spans.some((s) => !s.end);
  const end = open ? Math.max(now.value, ...spans.map((s) => s.end || s.begin)) : Math.max(...spans.map((s) => s.end));
  const scale = scaleOf(spans, end);
  const rows = treeOf(spans);
  return html`<div class="card-head"><label class="row"><span class="label">Run</span><select class="input" value=${run === -1 ? '-1' : chosen} onChange=${(e) => setQuery({ run: e.target.value })}>${runs.map((r) => html`<option key=${r} value=${r}>${r}</option>`)}<option value="-1">all</option></select></label>
      <span class="label">${dateOf(scale.begin)} · ${took(scale.last - scale.begin)}${scale.gaps.length ? ` · ${scale.gaps.length} break${scale.gaps.length > 1 ? 's' : ''} in which nobody worked` : ''}</span></div>
    <div style=${{ padding: '0 16px 12px 8px' }}><div class="lines">
      <div class="ruler" aria-hidden="true"><span style=${{ left: 0 }}>${timeOf(scale.begin)}</span><span style=${{ left: '100%' }}>${timeOf(scale.last)}</span></div>
      <div style=${{ position: 'absolute', left: 'var(--label)', right: 0, top: 0, bottom: 0, pointerEvents: 'none' }} aria-hidden="true">
        ${scale.gaps.map(([a, b]) => html`<div class="gap" key=${a} style=${{ left: `${((scale.at(a) + scale.at(b)) / 2) * 100}%` }}><span>${took(b - a)}</span></div>`)}
        ${at ? html`<div class="at-line" style=${{ left: `${scale.at(at) * 100}%` }}></div>` : null}
      </div>
      ${rows.slice(0, linesMax).map((s) => html`<${Line} key=${s.place} s=${s} scale=${scale} end=${end} cursor=${s.seq === seq && at} />`)}
      ${rows.length > linesMax ? html`<p class="note">${rows.length - linesMax} more are not drawn: choose a run.</p>` : null}
    </div></div>
    <div class="legend">${[['attempt', 'model'], ['call', 'tool'], ['turn', 'run, turn'], ['wait', 'waits'], ['approval', 'waits for a person'], ['failed', 'failed']].map(([k, words]) => html`<span key=${k}><i><span class=${`bar ${k}`} style=${{ width: '18px' }}></span></i>${words}</span>`)}</div>`;
}
