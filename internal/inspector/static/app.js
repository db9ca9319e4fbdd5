// The frame of all pages: where to go, who one is, the theme, and the keyboard.
import { effect, html, render, signal, useEffect, useMemo, useState } from './preact.js';
import { base, caller, enter, gate, takeToken, trouble, watchLog, whoAmI } from './api.js';
import { Approvals, waitingCount, watchApprovals } from './approvals.js';
import { commandsOf, keys, pressed } from './keys.js';
import { Sessions } from './sessions.js';
import { Dialog, Empty, Icon, Link, go, lazy, place, typed } from './ui.js';

// Pages that are loaded when they are first opened.
const Session = lazy(() => import('./session.js'), 'Session');
const Fleet = lazy(() => import('./fleet.js'), 'Fleet');
const System = lazy(() => import('./system.js'), 'System');

const themes = ['system', 'light', 'dark'];
const stored = () => { try { return localStorage.getItem('refold-theme') ?? ''; } catch { return ''; } };
const theme = signal(themes.includes(stored()) ? stored() : 'system');
effect(() => {
  if (theme.value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
  try { localStorage.setItem('refold-theme', theme.value); } catch { /* it is not kept */ }
});

const helping = signal(false);
const commanding = signal(false);

/** All that can be done here, by name: a command opens what asks before it sends. */
function Commands() {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const close = () => { commanding.value = false; };
  const all = useMemo(() => [
    ...commandsOf().filter((c) => !c.off),
    ...offered().map((p) => ({ name: `Go to ${p.name}`, run: () => go(p.path) })),
    ...themes.map((t) => ({ name: `Theme: ${t}`, run: () => { theme.value = t; } })),
    { name: 'Keyboard shortcuts', run: () => { helping.value = true; } },
  ], []);
  const words = text.toLowerCase().replace(/^\.+/, '').split(/\s+/); // the key that opened it may be in it
  const found = all.filter((c) => words.every((w) => c.name.toLowerCase().includes(w)));
  const chosen = Math.min(at, found.length - 1);
  /** @param {typeof all[number]} c */
  const run = (c) => { close(); setTimeout(c.run); };
  /** @param {KeyboardEvent} e */
  const key = (e) => {
    const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0;
    if (step) { e.preventDefault(); setAt(Math.max(0, Math.min(found.length - 1, chosen + step))); }
    if (e.key === 'Enter' && found[chosen]) { e.preventDefault(); run(found[chosen]); }
  };
  return html`<${Dialog} title="Commands" close=${close}><div class="card-body stack">
    <input class="input" role="combobox" aria-expanded="true" aria-controls="commands" aria-activedescendant=${found.length ? `command-${chosen}` : undefined} aria-label="Command" autofocus placeholder="What to do" value=${text} onInput=${typed((value) => { setText(value); setAt(0); })} onKeyDown=${key} />
    <div class="commands" id="commands" role="listbox" aria-label="Commands">${found.map((c, i) => html`<div role="option" key=${c.name} id=${`command-${i}`} aria-selected=${i === chosen ? 'true' : 'false'} onClick=${() => run(c)}>${c.name}</div>`)}</div>
    ${found.length ? null : html`<p class="label">No command has these words.</p>`}
  </div><//>`;
}

/** Asks for the token, which the page holds in memory alone. */
function Gate() {
  const [text, setText] = useState('');
  /** @param {Event} e */
  const submit = (e) => { e.preventDefault(); enter(text.trim()); };
  return html`<form class="card gate" onSubmit=${submit}>
    <div class="card-head"><h1>Token</h1></div>
    <div class="card-body stack">
      <p class="soft">This server asks who you are. The page holds the token in memory: a reload asks again.</p>
      ${gate.value === 'refused' ? html`<p class="note bad" role="alert">The server does not accept this token: it is not one of its own, or it has ended.</p>` : null}
      <label class="field"><span>Token</span><input class="input" type="password" autocomplete="off" autofocus value=${text} onInput=${typed(setText)} /></label>
      <div class="row"><button class="btn main" disabled=${!text.trim()}>Enter</button><span class="label">A link ending in #token=… enters by itself.</span></div>
    </div>
  </form>`;
}

const icon = /** @type {HTMLLinkElement} */ (document.querySelector('link[rel=icon]')).href;

const pages = [
  { path: '/', name: 'Sessions', key: 's' },
  { path: '/approvals', name: 'Approvals', key: 'a' },
  { path: '/fleet', name: 'Fleet', key: 'f', whole: true },
  { path: '/system', name: 'System', key: 'y', whole: true },
];
/** The pages of the caller: those about all sessions need a token without a scope. */
const offered = () => pages.filter((p) => !p.whole || !caller.value?.scoped);

function Top() {
  const here = place.value.path;
  /** @param {string} path */
  const isAt = (path) => (path === '/' ? here === '/' || here.startsWith('/s/') : here === path);
  const next = themes[(themes.indexOf(theme.value) + 1) % themes.length];
  return html`<header class="top"><div class="top-inner">
    <${Link} to="/" class="brand"><img src=${icon} alt="" />Refold<//>
    <nav class="nav" aria-label="Pages">${offered().map((p) => html`<${Link} key=${p.path} to=${p.path} aria-current=${isAt(p.path) ? 'page' : undefined}>${p.name}${p.path === '/approvals' && waitingCount.value ? html`<span class="count" aria-label=${`${waitingCount.value} waiting`}>${waitingCount.value}</span>` : null}<//>`)}</nav>
    <div class="row top-actions">
      ${caller.value ? html`<span class="who clip" title=${`Rights: ${caller.value.rights.join(', ') || 'none'}`}>${caller.value.subject}</span>` : null}
      <button type="button" class="btn bare" onClick=${() => { theme.value = next; }} aria-label=${`Theme: ${theme.value}. Change to ${next}.`} title=${`Theme: ${theme.value}`}><${Icon} name=${theme.value} /></button>
      <button type="button" class="btn bare" onClick=${() => { helping.value = true; }} aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)">?</button>
    </div>
  </div></header>`;
}

function Help() {
  return html`<${Dialog} title="Keyboard" close=${() => { helping.value = false; }}><div class="card-body"><dl class="pairs">
    ${keys.map(([key, what]) => html`<dt>${key.split(' ').map((k) => html`<kbd>${k}</kbd> `)}</dt><dd>${what}</dd>`)}
  </dl><p class="label">No single key sends an event.</p></div><//>`;
}

function Page() {
  const { path } = place.value;
  const sid = /^\/s\/([^/]+)$/.exec(path)?.[1];
  if (sid) return html`<${Session} key=${sid} sid=${decodeURIComponent(sid)} />`;
  switch (path) {
    case '/': return html`<${Sessions} />`;
    case '/approvals': return html`<${Approvals} />`;
    case '/fleet': return html`<${Fleet} />`;
    case '/system': return html`<${System} />`;
  }
  return html`<div class="card"><${Empty} title="There is no such page"><p><${Link} to="/">Sessions<//></p><//></div>`;
}

function App() {
  useEffect(watchApprovals, [caller.value]);
  useEffect(() => (caller.value ? watchLog() : undefined), [caller.value]);
  return html`<a class="skip" href="#main" onClick=${/** @param {Event} e */ (e) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>To the content</a>
    <${Top} />
    ${trouble.value ? html`<div class="offline" role="status">${trouble.value}</div>` : null}
    <main class="page" id="main" tabIndex="-1">${gate.value ? html`<${Gate} />` : caller.value ? html`<${Page} />` : null}</main>
    ${helping.value ? html`<${Help} />` : null}
    ${commanding.value ? html`<${Commands} />` : null}`;
}

addEventListener('keydown', (e) => pressed(e, {
  '?': () => { helping.value = true; },
  '.': () => { commanding.value = true; },
  ...Object.fromEntries(pages.map((p) => [`g${p.key}`, () => { if (offered().includes(p)) go(p.path); }])),
}));

// A link to this page with another token is no new page.
addEventListener('hashchange', () => { if (takeToken()) whoAmI(); });

takeToken();
await whoAmI();
const root = /** @type {HTMLElement} */ (document.getElementById('app'));
root.replaceChildren();
render(html`<${App} />`, root);
document.documentElement.dataset.ready = base || '/';
// The server may be away when the page is opened.
const again = setInterval(() => { if (caller.value) clearInterval(again); else if (!gate.value) whoAmI(); }, 2000);
