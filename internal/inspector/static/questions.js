// The answer to a call that waits for a reply.
import { html, useMemo, useState } from './preact.js';
import { may, newKey, of, post } from './api.js';
import { Wrong, typed } from './ui.js';
import { plain } from './text.js';

/** May this token answer the call? @param {WaitingCall} q */
export const mayAnswer = (q) => may('approve') || q.by === 'clients' && may('ask');

/** The options that the model suggests. @type {(q: WaitingCall) => string[]} */
function optionsOf(q) {
  try {
    const { options } = JSON.parse(q.arguments || '{}');
    return Array.isArray(options) ? options.filter((o) => typeof o === 'string') : [];
  } catch { return []; }
}

/** The field for an answer. off: nothing can be sent; done is called when it was. @param {{ q: WaitingCall, off: boolean, done: () => unknown }} props */
export function Answer({ q, off, done }) {
  const [text, setText] = useState('');
  const [sent, setSent] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const key = useMemo(newKey, [text, error]);
  /** @param {object} body */
  const send = async (body) => {
    setSent(true);
    try {
      await post(of(q.session, `/questions/${encodeURIComponent(q.call)}`), { args_hash: q.args_hash, ...body }, key);
      await done();
    } catch (/** @type {any} */ problem) { setError(problem); setSent(false); }
  };
  const no = off || sent;
  return html`<form onSubmit=${/** @param {Event} e */ (e) => { e.preventDefault(); send({ output: text }); }}>
    <label class="field"><span>Answer</span><textarea class="input" rows="2" value=${text} onInput=${typed(setText)}></textarea></label>
    ${error ? html`<${Wrong} error=${error} />` : null}
    <div class="actions">${optionsOf(q).map((o) => html`<button type="button" class="btn" disabled=${no} onClick=${() => setText(o)}>${plain(o)}</button>`)}<button class="btn main" disabled=${no || !text}>Answer</button><button type="button" class="btn danger" disabled=${no || !text} title="The text is the reason, which the model is shown" onClick=${() => send({ declined: text })}>Decline</button>${mayAnswer(q) ? null : html`<span class="label">This token may not answer.</span>`}</div>
  </form>`;
}
