// Parts that pages share.
import { computed, html, signal, useId, useLayoutEffect, useMemo, useRef, useState } from './preact.js';
import { base, Problem } from './api.js';
import { ago, code, dateOf, flat, plain, pretty, size } from './text.js';

/** The time, each second, for what says how long ago something was. */
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

/** Changes with the theme: what is drawn on a canvas reads it. */
export const shade = signal(0);
const reshade = () => { shade.value++; };
new MutationObserver(reshade).observe(document.documentElement, { attributeFilter: ['data-theme'] });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', reshade);

/** The address: path and query. Pages keep in it all that reproduces them. */
export const place = signal({ path: location.pathname.slice(base.length), query: new URLSearchParams(location.search) });
const readPlace = () => { place.value = { path: location.pathname.slice(base.length), query: new URLSearchParams(location.search) }; };
addEventListener('popstate', readPlace);

/** Goes to a page. @param {string} path */
export function go(path) {
  if (path === location.pathname.slice(base.length) + location.search) return;
  history.pushState(null, '', base + path);
  readPlace();
  if (!path.startsWith(`${location.pathname}?`)) scrollTo(0, 0);
}

/** Changes parts of the query, without an entry of the history of its own. @param {Record<string, any>} changes */
export function setQuery(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '' || value === null || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  history.replaceState(null, '', location.pathname + (text && `?${text}`));
  readPlace();
}

/** A part of the query, as a signal. @param {string} name */
export const queryOf = (name) => computed(() => place.value.query.get(name) ?? '');

/** A link within the pages. @param {{ to: string, children: Drawn, [more: string]: any }} props */
export function Link({ to, children, ...rest }) {
  /** @param {MouseEvent} e */
  const press = (e) => {
    if (e.metaKey || e.ctrlKey || e.shiftKey || e.button) return;
    e.preventDefault();
    go(to);
  };
  return html`<a href=${base + to} onClick=${press} ...${rest}>${children}</a>`;
}

/** @type {Record<string, string>} */
const tones = {
  running: 'run', interrupting: 'run', completed: 'good', failed: 'bad', quarantined: 'bad', waiting_input: 'warn', paused: 'warn',
  succeeded: 'good', open: '', awaiting_approval: 'warn', outcome_unknown: 'bad',
};

/** A state: a mark, a word, and a colour. @param {{ state: string, waits?: string }} props */
export function State({ state, waits }) {
  const needs = waits === 'approval' && state === 'running';
  const words = needs ? 'needs approval' : String(state || 'open').replaceAll('_', ' ');
  return html`<span class="state ${needs ? 'warn' : tones[state] ?? ''} ${state === 'running' && !needs ? 'pulse' : ''}">${words}</span>`;
}

/** How long ago, with the whole time as its title. @param {{ at: number }} props */
export const Ago = ({ at }) => html`<time class="num" dateTime=${new Date(at).toISOString()} title=${dateOf(at)}>${ago(at, now.value)}</time>`;

const paths = {
  copy: 'M6 6V3.5A1.5 1.5 0 0 1 7.500 2H12a2 2 0 0 1 2 2v4.500A1.500 1.500 0 0 1 12.500 10H10M3.500 6H8.500A1.500 1.500 0 0 1 10 7.500v5A1.500 1.500 0 0 1 8.500 14h-5A1.500 1.500 0 0 1 2 12.500v-5A1.500 1.500 0 0 1 3.500 6z',
  check: 'M3 8.500l3.500 3.500L13 4.500', light: 'M8 5.200a2.800 2.800 0 1 0 0 5.600a2.800 2.800 0 0 0 0-5.600zM8 1.500v1.300M8 13.200v1.300M1.500 8h1.300M13.200 8h1.300M3.400 3.400l.9.9M11.700 11.700l.9.9M12.600 3.400l-.9.9M4.300 11.700l-.9.9',
  dark: 'M13.500 9.500A5.800 5.800 0 0 1 6.500 2.500a5.800 5.800 0 1 0 7 7z', system: 'M2.500 3h11a.8.8 0 0 1 .8.8v6.400a.8.8 0 0 1-.8.8h-11a.8.8 0 0 1-.8-.8V3.800A.8.8 0 0 1 2.500 3zM5.500 13.500h5',
};

/** A small picture, beside words or with a label of its own. @param {{ name: keyof typeof paths }} props */
export const Icon = ({ name }) => html`<svg class="icon-svg" viewBox="0 0 16 16" aria-hidden="true"><path d=${paths[name]} /></svg>`;

/** A hash or a name that can be copied. @param {{ text: string, shown?: string, what?: string }} props */
export function Copy({ text, shown, what }) {
  const [done, setDone] = useState(false);
  /** @param {MouseEvent} e */
  const press = (e) => {
    e.stopPropagation();
    navigator.clipboard?.writeText(text).then(() => { setDone(true); setTimeout(() => setDone(false), 1200); }, () => {});
  };
  return html`<button type="button" class="copy" onClick=${press} title=${`Copy ${what ?? 'it'}: ${flat(text)}`} aria-label=${`${flat(shown ?? text)}: copy ${what ?? 'it'}`}>${plain(shown ?? text)}<${Icon} name=${done ? 'check' : 'copy'} /></button>`;
}

/** @param {{ hash?: string, what?: string }} props */
export const Hash = ({ hash, what }) => (hash ? html`<${Copy} text=${hash} shown=${hash.slice(0, 8)} what=${what ?? 'hash'} />` : null);

/** What there is when there is nothing: never an empty page without a reason. @param {{ title: string, children?: Drawn }} props */
export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

/** Something is on its way. */
export const Skeleton = ({ lines = 5 }) => html`<div class="skeleton" role="status" aria-label="Loading">${Array.from({ length: lines }, () => html`<i></i>`)}</div>`;

/** Why something is not there, and a way to try again. @param {{ error: Error, again?: () => void }} props */
export const Wrong = ({ error, again }) => html`<div class="note bad" role="alert"><p>${plain(error.message)}</p>${error instanceof Problem ? html`<p class="label">${error.code}</p>` : null}${again ? html`<p><button type="button" class="btn" onClick=${again}>Try again</button></p>` : null}</div>`;

/**
 * What is loaded: the last value stays until there is another.
 * @template T
 * @typedef {{ value?: T, error?: Error, again: () => void }} Loaded
 */

/**
 * Loads a value when its keys change.
 * @type {<T>(load: (stop: AbortSignal) => Promise<T>, keys: unknown[]) => Loaded<T>}
 */
export function useLoaded(load, keys) {
  const [state, setState] = useState(/** @type {{ value?: any, error?: Error }} */ ({}));
  const [tries, setTries] = useState(0);
  useLayoutEffect(() => { // before the page is painted, which takes a frame
    const stop = new AbortController();
    load(stop.signal).then(
      (value) => { if (!stop.signal.aborted) setState({ value }); },
      (error) => { if (!stop.signal.aborted) setState((was) => ({ value: was.value, error })); },
    );
    return () => stop.abort();
  }, [...keys, tries]);
  return { ...state, again: () => setTries((n) => n + 1) };
}

/**
 * Shows what useLoaded has: the value by a function, or what there is in its place.
 * @type {<T>(state: Loaded<T>, show: (value: T) => any, lines?: number) => any}
 */
export function loaded(state, show, lines) {
  if (state.value !== undefined) return [state.error ? html`<${Wrong} error=${state.error} again=${state.again} />` : null, show(state.value)];
  return state.error ? html`<div class="panel-body"><${Wrong} error=${state.error} again=${state.again} /></div>` : html`<${Skeleton} lines=${lines} />`;
}

/**
 * Tabs, by arrow keys too.
 * @param {{ tabs: { id: string, name: string, count?: number | string }[], at: string, choose: (id: string) => void, label: string, children: Drawn }} props
 */
export function Tabs({ tabs, at, choose, label, children }) {
  const id = useId();
  /** @param {KeyboardEvent} e */
  const key = (e) => {
    const i = tabs.findIndex((t) => t.id === at);
    const next = /** @type {Record<string, number>} */ ({ ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 })[e.key];
    if (next === undefined) return;
    e.preventDefault();
    const to = tabs[(next + tabs.length) % tabs.length].id;
    choose(to);
    document.getElementById(`${id}-${to}`)?.focus();
  };
  return html`<div class="card">
    <div class="tabs" role="tablist" aria-label=${label} onKeyDown=${key}>${tabs.map((t) => html`<button type="button" class="tab" role="tab" key=${t.id} id=${`${id}-${t.id}`} aria-selected=${t.id === at ? 'true' : 'false'} aria-controls=${`${id}-panel`} tabIndex=${t.id === at ? 0 : -1} onClick=${() => choose(t.id)}>${t.name}${t.count === undefined ? null : html`<span class="label">${t.count}</span>`}</button>`)}</div>
    <div role="tabpanel" id=${`${id}-panel`} aria-labelledby=${`${id}-${at}`} tabIndex="0">${children}</div>
  </div>`;
}

/** A dialog. Escape, and the button Close, close it. @param {{ title: string, close: () => void, children: Drawn }} props */
export function Dialog({ title, close, children }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useLayoutEffect(() => { ref.current?.showModal(); }, []);
  return html`<dialog ref=${ref} aria-labelledby=${id} onClose=${close} onClick=${/** @param {Event} e */ (e) => { if (e.target === ref.current) ref.current?.close(); }}>
    <div class="card-head"><h2 class="grow" id=${id}>${title}</h2><button type="button" class="btn bare" onClick=${() => ref.current?.close()}>Close</button></div>
    ${children}
  </dialog>`;
}

/** Returns a handler that passes on what a field holds. @param {(value: string) => void} take */
export const typed = (take) => (/** @type {FieldEvent} */ e) => take(e.target.value);

/** Code in its own colours. @param {{ text: string, exact?: boolean, flatten?: boolean }} props */
export const Code = ({ text, exact, flatten }) => {
  const nodes = useMemo(() => code(exact ? text : pretty(text)), [text, exact]);
  return html`<pre class="code ${flatten ? 'flat' : ''}" tabIndex="0">${nodes}</pre>`;
};

/**
 * A component of a module that is loaded when it is first shown: lines of a skeleton stand for it meanwhile.
 * @type {(load: () => Promise<Record<string, any>>, name: string, lines?: number) => (props: any) => Drawn}
 */
export function lazy(load, name, lines = 5) {
  return (props) => {
    const state = useLoaded(load, []);
    const Part = state.value?.[name];
    if (Part) return html`<${Part} ...${props} />`;
    return state.error ? html`<${Wrong} error=${state.error} again=${state.again} />` : lines ? html`<${Skeleton} lines=${lines} />` : html`<template class="skeleton"></template>`;
  };
}

/** Gives a text to the browser as a file, which it never shows. @param {string} name @param {string} text */
export function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/octet-stream' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const briefMax = 4 << 10;
const openMax = 64 << 10;

/** A text of any length: its beginning, more of it, and all of it as a file. @param {{ text: string, name: string }} props */
export function Payload({ text, name }) {
  const [open, setOpen] = useState(false);
  const long = text.length > (open ? openMax : briefMax);
  return html`<${Code} text=${long ? `${text.slice(0, open ? openMax : briefMax)}…` : text} />
    ${long ? html`<div class="row"><span class="label grow">${open ? '64' : '4'} KiB of ${size(new Blob([text]).size)}</span>${open || text.length <= briefMax ? null : html`<button type="button" class="btn" onClick=${() => setOpen(true)}>More of it</button>`}<button type="button" class="btn" onClick=${() => save(name, text)}>All of it</button></div>` : null}`;
}

const treeMax = 200;

/** A value of JSON as a tree. @param {{ name?: string, value: unknown, depth?: number, open?: number }} props */
export function Tree({ name, value, depth = 0, open = 1 }) {
  const head = name === undefined ? null : html`<span class="k">${plain(name)}</span>: `;
  if (value === null || typeof value !== 'object') {
    const kind = value === null ? 'nul' : typeof value === 'string' ? 'str' : 'lit';
    return html`<div class="leaf">${head}<span class=${kind}>${plain(JSON.stringify(value).slice(0, 4096))}</span></div>`;
  }
  const entries = Object.entries(value);
  const isList = Array.isArray(value);
  const [shown, setShown] = useState(depth < open);
  const count = html`<span class="nul">${isList ? `[${entries.length}]` : `{${entries.length}}`}</span>`;
  if (entries.length === 0) return html`<div class="leaf">${head}<span class="nul">${isList ? '[]' : '{}'}</span></div>`;
  return html`<details open=${shown} onToggle=${/** @param {Event & { currentTarget: HTMLDetailsElement }} e */ (e) => { if (e.target === e.currentTarget) setShown(e.currentTarget.open); }}><summary>${head}${count}</summary>${shown ? html`<div>
    ${entries.slice(0, treeMax).map(([k, v]) => html`<${Tree} key=${k} name=${k} value=${v} depth=${depth + 1} open=${open} />`)}
    ${entries.length > treeMax ? html`<div class="leaf nul">… ${entries.length - treeMax} more</div>` : null}</div>` : null}</details>`;
}
