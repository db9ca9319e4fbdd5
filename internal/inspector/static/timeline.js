// What took the time: a waterfall. Long gaps in which nobody worked are drawn as breaks,
// so that a burst after hours of waiting can be read.
import { html, useLayoutEffect, useMemo, useRef, useState } from './preact.js';
import { get, of } from './api.js';
import { Empty, loaded, now, place, setQuery, shade, typed, useLoaded } from './ui.js';
import { dateOf, flat, plain, timeOf, took } from './text.js';

/**
 * Returns the spans of an answer, which has them as columns.
 * @param {API.Timeline} t
 */
export function spansOf(t) {
  /** @type {Span[]} */
  const all = [];
  let [run, begin, seq] = [0, 0, 0];
  t.places.forEach((place, i) => {
    run += t.runs[i];
    begin += t.begins[i];
    seq += t.seqs[i];
    const [kind, label, outcome, code] = [t.kinds[i], t.labels[i], t.outcomes[i], t.codes[i]].map((n) => t.names[n]);
    all.push({
      place, parent: t.parents[i] ? t.places[i + t.parents[i]] : '', kind, run, begin, end: t.took[i] < 0 ? 0 : begin + t.took[i], seq, label, outcome, code,
      failed: t.failed[i] === 1, deadline: t.deadlines[i] ? begin + t.deadlines[i] : 0,
    });
  });
  return all;
}

const working = new Set(['attempt', 'call', 'step', 'compaction', 'space']);
const breakPart = 0.02; // of the whole span: a longer gap is a break
const breakWidth = 0.035; // of the width that a break gets

/** @param {Span[]} all @param {(s: Span) => number} of */
const least = (all, of) => all.reduce((n, s) => Math.min(n, of(s)), Infinity);
/** @param {Span[]} all @param {(s: Span) => number} of */
const most = (all, of) => all.reduce((n, s) => Math.max(n, of(s)), -Infinity);

/**
 * The parts of a time in which somebody works, and the gaps between them. A range is a part of it.
 * @param {Span[]} spans
 * @param {number} end
 * @param {[number, number] | null} [range]
 */
export function scaleOf(spans, end, range) {
  const begin = range ? range[0] : least(spans, (s) => s.begin);
  const last = range ? range[1] : Math.max(begin + 1, most(spans, (s) => s.end || end));
  const busy = spans.filter((s) => working.has(s.kind)).map((s) => /** @type {[number, number]} */ ([Math.max(begin, s.begin), Math.min(last, s.end || end)])).filter(([a, b]) => a <= b).sort((a, b) => a[0] - b[0]);
  const marks = [[begin, begin], ...busy, [last, last]];
  /** @type {[number, number][]} */
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
  /** The place of a time, 0 to 1. @param {number} t */
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
  /** The time at a place: what at does, the other way round. @param {number} place */
  const timeAt = (place) => {
    let low = begin;
    let high = last;
    for (let i = 0; i < 40; i++) { const mid = (low + high) / 2; if (at(mid) < place) low = mid; else high = mid; }
    return Math.round(high);
  };
  return { begin, last, gaps, at, timeAt };
}

/** @type {Record<string, string>} */
const kindsOf = { run: 'run', turn: 'turn', attempt: 'attempt', call: 'call', group: 'group', approval: 'approval', step: 'attempt', compaction: 'attempt', space: 'call', wake: 'wake' };

/** A span, and how deep it is in the tree. @typedef {Span & { depth: number }} Bar */

/**
 * Orders spans as a tree: children after their parents, by their beginning.
 * @param {Span[]} spans
 */
export function treeOf(spans) {
  /** @type {Map<string, Span[]>} */
  const children = new Map();
  const places = new Set(spans.map((s) => s.place));
  for (const s of spans) {
    const parent = s.parent && places.has(s.parent) && s.parent !== s.place ? s.parent : '';
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent)?.push(s);
  }
  /** @type {Bar[]} */
  const rows = [];
  /** @param {string} parent @param {number} depth */
  const add = (parent, depth) => {
    for (const s of (children.get(parent) ?? []).sort((a, b) => a.begin - b.begin)) {
      rows.push({ ...s, depth });
      if (depth < 8) add(s.place, depth + 1);
    }
  };
  add('', 0);
  return rows;
}

/** What became of it, as a shape. @param {Span} s */
const shapeOf = (s) => (s.outcome === 'outcome_unknown' || s.code === 'outcome_unknown' ? 'unknown' : s.code === 'deadline_exceeded' || s.code === 'approval_expired' ? 'overdue' : s.outcome === 'cancelled' || s.code === 'cancelled' ? 'withdrawn' : s.failed ? 'failed' : '');

/** @typedef {ReturnType<typeof scaleOf>} Scale @param {{ s: Bar, scale: Scale, end: number, cursor: unknown, style: Style, n: number }} props */
function Line({ s, scale, end, cursor, style, n }) {
  const left = scale.at(s.begin);
  const right = scale.at(s.end || end);
  const shape = `${kindsOf[s.kind] ?? 'wait'} ${shapeOf(s)} ${s.end ? '' : 'open'}`;
  const length = (s.end || end) - s.begin;
  const words = [s.kind.replaceAll('_', ' '), s.label, s.outcome, s.code, took(length), s.end ? '' : 'open', s.deadline ? `until ${dateOf(s.deadline)}` : ''].filter(Boolean).join(' · ');
  const beside = right < 0.8 ? { left: `calc(${right * 100}% + 2px)` } : { right: `calc(${(1 - left) * 100}% + 2px)` };
  return html`<button type="button" class=${`line ${cursor ? 'at' : ''}`} style=${style} title=${flat(`${s.place}: ${words}`)} data-refold-place=${s.place} data-refold-kind=${s.kind} data-refold-row=${n} onClick=${() => s.seq && setQuery({ at: s.seq })}>
    <span class="what" style=${{ paddingLeft: `${8 + Math.min(s.depth, 5) * 12}px` }}><b>${s.place}</b><span class="clip soft">${plain(s.label || s.kind.replaceAll('_', ' '))}</span>${s.failed ? html`<span class="tag bad clip">${plain(s.code || 'failed')}</span>` : null}</span>
    <span class="track">${s.end || !s.deadline ? null : html`<span class="bar ghost" style=${{ left: `${right * 100}%`, right: 0 }}></span>`}<span class=${`bar ${shape}`} style=${{ left: `min(${left * 100}%, calc(100% - 3px))`, width: `max(3px, ${(right - left) * 100}%)` }}></span><span class="took" style=${beside}>${took(length)}${s.end ? '' : ' …'}</span></span>
  </button>`;
}

/**
 * All of the time in little, of which a range can be chosen by dragging.
 * @param {{ spans: Span[], end: number, range: [number, number] | null, choose: (range: number[] | null) => void }} props
 */
function Overview({ spans, end, range, choose }) {
  const ref = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const from = useRef(/** @type {number | null} */ (null));
  const dragged = useRef(/** @type {[number, number] | null} */ (null)); // what is dragged now: events may come before it is drawn
  const [drag, draw] = useState(/** @type {[number, number] | null} */ (null));
  /** @param {[number, number] | null} part */
  const setDrag = (part) => { dragged.current = part; draw(part); };
  const scale = useMemo(() => scaleOf(spans, end), [spans, end]);
  void shade.value;
  useLayoutEffect(() => {
    const canvas = ref.current;
    const pen = canvas?.getContext('2d');
    if (!canvas || !pen) return;
    const width = canvas.clientWidth * devicePixelRatio;
    canvas.width = width;
    canvas.height = 36 * devicePixelRatio;
    /** @type {Record<string, string>} */
    const colors = {};
    for (const name of ['--bad', '--tool', '--warn', '--line-strong', '--accent']) { // the browser resolves what themes say
      canvas.style.color = `var(${name})`;
      colors[name] = getComputedStyle(canvas).color;
    }
    const lanes = ['run', 'turn', 'approval', 'wait', 'attempt', 'call'];
    for (const s of spans) {
      const kind = kindsOf[s.kind] ?? 'wait';
      pen.fillStyle = colors[s.failed ? '--bad' : kind === 'call' || kind === 'group' ? '--tool' : kind === 'approval' ? '--warn' : kind === 'wait' || kind === 'wake' ? '--line-strong' : kind === 'run' || kind === 'turn' ? '--line-strong' : '--accent'];
      const x = scale.at(s.begin) * width;
      const lane = Math.max(0, lanes.indexOf(kind === 'group' ? 'call' : kind === 'wake' ? 'wait' : kind));
      pen.fillRect(x, (3 + lane * 5) * devicePixelRatio, Math.max(1, scale.at(s.end || end) * width - x), 4 * devicePixelRatio);
    }
  });
  /** @param {PointerEvent} e */
  const place = (e) => { const box = /** @type {HTMLElement} */ (ref.current).getBoundingClientRect(); return Math.max(0, Math.min(1, (e.clientX - box.left) / box.width)); };
  /** @param {PointerEvent & { currentTarget: HTMLElement }} e */
  const down = (e) => { from.current = place(e); setDrag([from.current, from.current]); e.currentTarget.setPointerCapture(e.pointerId); };
  /** @param {PointerEvent} e */
  const move = (e) => { if (from.current !== null) { const x = place(e); setDrag([Math.min(from.current, x), Math.max(from.current, x)]); } };
  const up = () => {
    const part = dragged.current;
    from.current = null;
    if (part && part[1] - part[0] > 0.01) choose(part.map(scale.timeAt));
    else if (part) choose(null);
    setDrag(null);
  };
  const shown = drag ?? (range ? [scale.at(range[0]), scale.at(range[1])] : null);
  return html`<div class="overview" aria-hidden="true" title="Drag to choose a range" onPointerDown=${down} onPointerMove=${move} onPointerUp=${up}><canvas ref=${ref}></canvas>${shown ? html`<i style=${{ left: `${shown[0] * 100}%`, width: `${(shown[1] - shown[0]) * 100}%` }}></i>` : null}</div>`;
}

const screen = 540; // pixels of rows that are seen at once
const over = 8; // rows that are drawn beyond them

/** The rows that are seen, and a few more. @param {{ rows: Bar[], draw: (s: Bar, style: Style, n: number) => Drawn, children: Drawn }} props */
function Rows({ rows, draw, children }) {
  const ref = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [top, setTop] = useState(0);
  const tall = matchMedia('(max-width: 719px)').matches ? 34 : 26;
  const from = Math.max(0, Math.min(Math.floor(top / tall), rows.length - 1) - over);
  const to = Math.min(rows.length, from + Math.ceil(screen / tall) + 2 * over);
  return html`<div class="rows" ref=${ref} tabIndex="0" role="group" aria-label=${`${rows.length} bars`} style=${{ maxHeight: `${screen}px` }} onScroll=${/** @param {Event & { target: HTMLElement }} e */ (e) => setTop(e.target.scrollTop)}>${children}
    <div style=${{ height: `${rows.length * tall}px`, position: 'relative' }}>${rows.slice(from, to).map((s, i) => draw(s, { position: 'absolute', top: `${(from + i) * tall}px`, left: 0, right: 0 }, from + i))}</div></div>`;
}

/** @param {Span[]} spans */
const runsOf = (spans) => [...new Set(spans.map((s) => s.run).filter(Boolean))].sort((a, b) => a - b);

/** @param {Panel} props */
export function Timeline({ sid, seq, end, at, events, index }) {
  const state = useLoaded((stop) => get(of(sid, '/timeline'), stop).then(spansOf), [sid, end]);
  const { query } = place.value;
  const range = (query.get('range') ?? '').split('-').map(Number);
  return loaded(state, (all) => html`<${Drawn} all=${all} run=${Number(query.get('run')) || 0} range=${range.length === 2 && range[0] < range[1] ? range : null} timers=${query.get('timers') === '1'} at=${at ? events[index]?.time : 0} seq=${seq} />`, 8);
}

/** @param {{ all: Span[], run: number, range: [number, number] | null, timers: boolean, at: number, seq: number }} props */
function Drawn({ all, run, range, timers, at, seq }) {
  const runs = useMemo(() => runsOf(all), [all]);
  const chosen = run && runs.includes(run) ? run : runs.at(-1);
  const ofRun = useMemo(() => (run === -1 ? all : all.filter((s) => s.run === chosen || !s.run)), [all, chosen, run]);
  const wakes = ofRun.filter((s) => s.kind === 'wake').length;
  const spans = useMemo(() => (timers ? ofRun : ofRun.filter((s) => s.kind !== 'wake')), [ofRun, timers]);
  if (!spans.length) return html`<${Empty} title="Nothing took time yet"><p>Runs, turns and calls are shown here.</p><//>`;
  const open = spans.some((s) => !s.end);
  const end = open ? Math.max(now.value, most(spans, (s) => s.end || s.begin)) : most(spans, (s) => s.end);
  const scale = scaleOf(spans, end, range);
  const middles = scale.gaps.map(([a, b]) => [b - a, (scale.at(a) + scale.at(b)) / 2]);
  const room = !middles.some(([, x]) => x > 0.8); // beside the label of a break
  const rows = treeOf(range ? spans.filter((s) => s.begin <= range[1] && (s.end || end) >= range[0]) : spans);
  return html`<div class="card-head"><label class="row"><span class="label">Run</span><select class="input" value=${run === -1 ? '-1' : chosen} onChange=${typed((value) => setQuery({ run: value, range: '' }))}>${runs.map((r) => html`<option key=${r} value=${r}>${r}</option>`)}<option value="-1">all</option></select></label>
      ${wakes ? html`<label class="row check"><input type="checkbox" checked=${timers} onChange=${/** @param {FieldEvent} e */ (e) => setQuery({ timers: e.target.checked ? '1' : '' })} /><span class="label">${wakes} timer${wakes > 1 ? 's' : ''}</span></label>` : null}
      <span class="label grow" id="span">${dateOf(scale.begin)} · ${took(scale.last - scale.begin)}${scale.gaps.length ? ` · ${scale.gaps.length} break${scale.gaps.length > 1 ? 's' : ''} in which nobody worked` : ''}${range ? ` · ${rows.length} of ${spans.length} bars` : ''}</span>
      ${range ? html`<button type="button" class="btn" onClick=${() => setQuery({ range: '' })}>The whole time</button>` : null}</div>
    <div class="timeline"><${Overview} spans=${spans} end=${end} range=${range} choose=${/** @param {number[] | null} r */ (r) => setQuery({ range: r ? r.join('-') : '' })} /><div class="lines">
      <${Rows} rows=${rows} draw=${/** @type {(s: Bar, style: Style, n: number) => Drawn} */ (s, style, n) => html`<${Line} key=${s.place} s=${s} scale=${scale} end=${end} cursor=${s.seq === seq && at} style=${style} n=${n} />`}>
        <div class="ruler" aria-hidden="true"><span style=${{ left: 0 }}>${timeOf(scale.begin)}</span>${room ? html`<span class="to" style=${{ left: '100%' }}>${timeOf(scale.last)}</span>` : null}${middles.map(([ms, x]) => html`<span class=${`break ${x > 0.9 ? 'to' : ''}`} key=${x} style=${{ left: `${x > 0.9 ? 100 : x * 100}%` }}>${took(ms)}</span>`)}</div>
        <div class="over" style=${{ height: `calc(${rows.length} * var(--row))` }} aria-hidden="true">
          ${middles.map(([ms, x]) => html`<div class="gap" key=${x} data-refold-gap=${ms} style=${{ left: `${x * 100}%` }}></div>`)}
          ${at ? html`<div class="at-line" style=${{ left: `${scale.at(at) * 100}%` }}></div>` : null}
        </div>
      <//>
    </div></div>
    <div class="legend">${[['attempt', 'model'], ['call', 'tool'], ['turn', 'run, turn'], ['wait', 'waits'], ['approval', 'waits for a person'], ['failed', 'failed'], ['overdue', 'overdue'], ['unknown', 'outcome unknown'], ['withdrawn', 'withdrawn']].map(([k, words]) => html`<span key=${k}><i><span class=${`bar ${k}`} style=${{ width: '18px' }}></span></i>${words}</span>`)}</div>`;
}
