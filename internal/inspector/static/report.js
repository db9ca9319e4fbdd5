// The page of an exported file: one session, as it was.
import { html, render } from './preact.js';
import { caller } from './api.js';
import { Session } from './session.js';
import { dateOf, number, plain } from './text.js';

const { session, at, by, events, states } = /** @type {any} */ (caller.value).file;

render(html`<header class="top"><div class="top-inner"><span class="brand">Refold</span></div></header>
  <main class="page"><p class="label" id="about">Exported at ${dateOf(at)} by ${plain(by)}: the session as it was then.</p>${states < events ? html`<p class="note warn" style=${{ marginBottom: '16px' }}>This file has the states after the latest ${number(states)} of ${number(events)} events: the others would make it too large.</p>` : null}
    <${Session} sid=${session} /></main>`, /** @type {HTMLElement} */ (document.getElementById('app')));
document.documentElement.dataset.ready = '/';
