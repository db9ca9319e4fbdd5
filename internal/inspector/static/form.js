// A form whose event is previewed before it is sent.
import { html, useEffect, useMemo, useState } from './preact.js';
import { newKey, of, post } from './api.js';
import { Wrong } from './ui.js';
import { plain } from './text.js';
import { Changes } from './state.js';

/** What would come of an event: what the fold makes of it on a copy. @param {string} sid @param {object | null | undefined} event @param {number} [after] */
export function usePreview(sid, event, after) {
  const [shown, setShown] = useState(/** @type {Partial<API.Preview> & { error?: Error } | null} */ (null));
  const key = JSON.stringify(event);
  useEffect(() => {
    if (!event) { setShown(null); return undefined; }
    const timer = setTimeout(() => post(of(sid, '/preview'), event).then(setShown, (error) => setShown({ error })), 250);
    return () => clearTimeout(timer);
  }, [sid, key, after]);
  return shown;
}

/** @param {{ shown: Partial<API.Preview> & { error?: Error } | null }} props */
export function Preview({ shown }) {
  if (!shown) return html`<p class="note" role="status">Trying it on a copy of the state…</p>`;
  if (shown.error) return html`<${Wrong} error=${shown.error} />`;
  const said = (shown.said ?? []).map((n) => n.type);
  const asks = (shown.effects ?? []).map((e) => e.effect);
  const tried = JSON.stringify({ rejected: shown.rejected ?? '', said, effects: asks, withdrawn: shown.withdrawn ?? [] });
  if (shown.rejected) return html`<p class="note bad" role="status" data-refold-preview=${tried}>It would have no effect: <b>${shown.rejected}</b>${shown.detail ? html` – ${plain(shown.detail)}` : null}</p>`;
  return html`<div class="note" role="status" data-refold-preview=${tried}><p><b>What would come of it</b>, tried on a copy after event ${shown.after}:</p>
    <p>${said.length ? `Notices: ${said.join(', ')}.` : 'No notice.'} ${asks.length ? `Asks: ${(shown.effects ?? []).map((e) => `${e.effect} of ${e.class}/${e.target}`).join(', ')}.` : 'Asks nothing.'} ${shown.withdrawn?.length ? `Withdraws ${shown.withdrawn.join(', ')}.` : ''}</p>
    <details><summary>${shown.changes?.length ?? 0} changes of the state</summary><${Changes} changes=${shown.changes ?? []} more=${shown.more} /></details></div>`;
}

/** Reads JSON that a person writes: {value}, or {error}. An empty text is no value. @type {(text: string) => { value?: any, error?: string }} */
export function readJSON(text) {
  try { return { value: text.trim() ? JSON.parse(text) : undefined }; } catch (/** @type {any} */ error) { return { error: error.message }; }
}

/**
 * A form with a preview: what would come of the event is told before it is sent. send posts
 * it with a key that is made here, so that pressing twice is pressing once.
 * @param {Asking & { event: object | null, send: (key: string) => Promise<unknown>, name: string, danger?: boolean, fault?: string, children?: Drawn }} props
 */
export function Form({ sid, view, event, send, name, danger, fault, close, children }) {
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [sent, setSent] = useState(false);
  const text = JSON.stringify(event);
  const key = useMemo(newKey, [text]);
  const shown = usePreview(sid, fault ? null : event, view.seq);
  /** @param {Event} e */
  const submit = async (e) => {
    e.preventDefault();
    setSent(true);
    try {
      await send(key);
      close();
    } catch (/** @type {any} */ problem) { setError(problem); setSent(false); }
  };
  return html`<form onSubmit=${submit}>${children}
    ${fault ? html`<p class="note bad" role="status">${plain(fault)}</p>` : event ? html`<${Preview} shown=${shown} />` : null}
    ${error ? html`<${Wrong} error=${error} />` : null}
    <div class="foot"><button class=${`btn ${danger ? 'danger' : 'main'}`} disabled=${sent || !event || Boolean(fault) || !shown || Boolean(shown.rejected || shown.error)}>${name}</button></div>
  </form>`;
}
