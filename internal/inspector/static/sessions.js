// The list of sessions: filters in the address, rows that follow the log. Rows keep their
// places while the pointer or the focus is in the list.
import { html, useEffect, useRef, useState } from './preact.js';
import { caller, follow, get, may, newKey, of, post } from './api.js';
import { moveRow, offer, pressed } from './keys.js';
import { Ago, Dialog, Empty, Link, Skeleton, State, Wrong, go, place, setQuery, typed } from './ui.js';
import { cost, flat, number, plain } from './text.js';

const states = ['running', 'waiting_input', 'paused', 'interrupting', 'completed', 'failed', 'cancelled', 'interrupted', 'open', 'closed', 'quarantined'];
const waits = ['approval', 'input', 'model', 'tools', 'step', 'host_loop', 'resume', 'retry', 'space'];
/** @type {[string, string, number][]} */
const spans = [['1h', 'the last hour', 3600e3], ['24h', 'the last day', 86400e3], ['7d', 'the last week', 7 * 86400e3]];
const filters = ['name', 'state', 'waits_for', 'model', 'since', 'all'];

/** @type {(query: URLSearchParams, after?: string) => `/v1/sessions?${string}`} */
const pathOf = (query, after) => {
  const q = new URLSearchParams();
  for (const name of filters) {
    const value = query.get(name);
    const span = name === 'since' && spans.find(([id]) => id === value);
    if (span) q.set('since', new Date(Date.now() - span[2]).toISOString().replace(/\.\d+/, ''));
    else if (value) q.set(name, value);
  }
  if (after) q.set('after', after);
  return `/v1/sessions?${q}`;
};

/** Does a row that came belong to the list? @param {API.SessionRow} row @param {URLSearchParams} query */
const matches = (row, query) => {
  const model = query.get('model');
  return row.session.startsWith(query.get('name') ?? '') && (!query.get('state') || row.state === query.get('state'))
    && (!query.get('waits_for') || row.waits_for === query.get('waits_for')) && (!model || model === row.model || model === `${row.provider}/${row.model}`);
};

/** What a list shows of the latest text. @param {API.SessionRow} r */
export const wordsOf = (r) => r.text || (r.code ? `${r.code}${r.detail ? `: ${r.detail}` : ''}` : r.calls?.length ? `calls ${r.calls.join(', ')}` : r.text_seq ? `(event ${r.text_seq})` : '');

/** @param {{ row: API.SessionRow }} props */
function Row({ row }) {
  /** @param {Press} e */
  const open = (e) => { if (!e.target.closest('a, button')) go(`/s/${encodeURIComponent(row.session)}`); };
  return html`<tr class="go" onClick=${open} data-refold-session=${row.session}>
    <td class="full"><${Link} to=${`/s/${encodeURIComponent(row.session)}`} class="name mono clip rowlink" title=${flat(row.session)}>${plain(row.session)}<//><span class="words clip">${plain(wordsOf(row)) || '\u00a0'}</span></td>
    <td><${State} state=${row.state} waits=${row.waits_for} /></td>
    <td class=${`opt soft ${row.waits_for ? '' : 'none'}`} data-label="waits for">${row.waits_for && row.waits_for !== 'nobody' ? row.waits_for.replaceAll('_', ' ') : '–'}${row.spent ? html` <span class="tag warn">budget</span>` : null}</td>
    <td class="r num opt" data-label="run">${row.run ?? '–'}${row.queued ? html` <span class="label">+${row.queued}</span>` : null}</td>
    <td class="soft clip" title=${flat(row.model)}>${plain(row.model ?? '–')}</td>
    <td class=${`r num ${row.tokens ? '' : 'none'}`} data-label="tokens">${row.tokens ? number(row.tokens) : '–'}</td>
    <td class=${`r num opt ${row.cost ? '' : 'none'}`} data-label="cost">${cost(row.cost)}</td>
    <td class="r soft">${row.at ? html`<${Ago} at=${row.at} />` : 'over a week ago'}</td>
  </tr>`;
}

/** @param {{ query: URLSearchParams }} props */
function Filters({ query }) {
  /** @param {string} name @param {string} title @param {string} none @param {[string, string][]} options */
  const select = (name, title, none, options) => html`<label class="field"><span>${title}</span><select class="input" value=${query.get(name) ?? ''} onChange=${typed((value) => setQuery({ [name]: value }))}><option value="">${none}</option>${options.map(([id, words]) => html`<option value=${id} key=${id}>${words}</option>`)}</select></label>`;
  const any = filters.some((f) => query.get(f));
  const [open, setOpen] = useState(any);
  const timer = useRef(0);
  /** @param {string} name */
  const later = (name) => typed((value) => { clearTimeout(timer.current); timer.current = setTimeout(() => setQuery({ [name]: value.trim() }), 200); });
  return html`<form class=${`filters ${open ? '' : 'closed'}`} role="search" aria-label="Filter sessions" onSubmit=${/** @param {Event} e */ (e) => e.preventDefault()}>
    <div class="wide"><label class="field grow"><span>Name begins with</span><input class="input" id="filter" placeholder="All sessions" spellcheck="false" autocomplete="off" defaultValue=${query.get('name') ?? ''} key=${`n${any}`} onInput=${later('name')} /></label><button type="button" class="btn toggle" aria-expanded=${open ? 'true' : 'false'} onClick=${() => setOpen(!open)}>Filters</button></div>
    ${select('state', 'State', 'Any', states.map((s) => [s, s.replaceAll('_', ' ')]))}
    ${select('waits_for', 'Waits for', 'Anything', waits.map((s) => [s, s.replaceAll('_', ' ')]))}
    <label class="field"><span>Model</span><input class="input" placeholder="Any" spellcheck="false" autocomplete="off" defaultValue=${query.get('model') ?? ''} key=${`m${any}`} onInput=${later('model')} /></label>
    ${select('since', 'Active within', 'Any time', spans.map(([id, words]) => [id, words]))}
    <button type="button" class="btn" disabled=${!any} onClick=${() => setQuery(Object.fromEntries(filters.map((f) => [f, ''])))}>Clear</button>
  </form>`;
}

/** A box that starts a run, in a new or an old session. @param {{ close: () => void }} props */
function NewRun({ close }) {
  const agents = ['default', ...(caller.value?.agents ?? []).filter((a) => a !== 'default')];
  const [form, setForm] = useState({ sid: `s-${Math.random().toString(36).slice(2, 8)}`, agent: caller.value?.agents?.[0] ?? 'default', input: '', key: newKey() });
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  /** @param {string} name */
  const set = (name) => typed((value) => setForm({ ...form, [name]: value, key: newKey() }));
  /** @param {Event} e */
  const submit = async (e) => {
    e.preventDefault();
    try {
      await post(of(form.sid, '/runs'), { agent: form.agent, input: form.input }, form.key);
      go(`/s/${encodeURIComponent(form.sid)}`);
    } catch (/** @type {any} */ failed) { setError(failed); }
  };
  return html`<${Dialog} title="Start a run" close=${close}><form onSubmit=${submit}>
    <label class="field"><span>Session: a new one, or one that exists</span><input class="input mono" required pattern="[A-Za-z0-9_\\-]{1,64}" value=${form.sid} onInput=${set('sid')} /></label>
    <label class="field"><span>Agent</span><select class="input" value=${form.agent} onChange=${set('agent')}>${agents.map((a) => html`<option key=${a}>${a}</option>`)}</select></label>
    <label class="field"><span>Input</span><textarea class="input" rows="5" required autofocus value=${form.input} onInput=${set('input')}></textarea></label>
    ${error ? html`<${Wrong} error=${error} />` : null}
    <div class="foot"><button class="btn main" disabled=${!form.input || !form.sid}>Start the run</button></div>
  </form><//>`;
}

/** The rows of the address, and those that came since. @param {URLSearchParams} query @param {{ current: HTMLElement | null }} element */
function useRows(query, element) {
  const [list, setList] = useState(/** @type {{ rows?: API.SessionRow[], next?: string, error?: Error }} */ ({}));
  const [came, setCame] = useState(/** @type {Map<string, API.SessionRow>} */ (new Map()));
  const isBusy = () => element.current?.contains(document.activeElement) || element.current?.matches(':hover');
  const key = filters.map((f) => query.get(f)).join('\n');
  /** @param {API.SessionRow[]} rows @param {typeof came} more */
  const merge = (rows, more) => {
    const next = rows.filter((r) => !more.has(r.session));
    return [...[...more.values()].filter((r) => matches(r, query)), ...next].sort((a, b) => (b.at ?? 0) - (a.at ?? 0));
  };
  useEffect(() => {
    let stop = () => {};
    let ended = false;
    const load = () => get(pathOf(query)).then((page) => {
      if (ended) return;
      setList({ rows: page.sessions, next: page.next });
      setCame(new Map());
    }, (error) => { if (!ended) setList((was) => ({ ...was, error })); });
    load();
    stop = follow('/v1/live', '', (row, event) => {
      if (event === 'reset') load();
      else setCame((was) => new Map(was).set(row.session, row));
    });
    return () => { ended = true; stop(); };
  }, [key]);
  /** @param {typeof came} taken */
  const take = (taken) => setCame((was) => new Map([...was].filter(([sid, row]) => taken.get(sid) !== row))); // not what came meanwhile
  const show = () => { setList((was) => ({ ...was, rows: merge(was.rows ?? [], came) })); take(came); };
  // What changes in rows that are shown, shows at once; what would move rows, waits.
  useEffect(() => {
    const { rows } = list;
    if (!came.size || !rows) return;
    if (!isBusy()) { show(); return; }
    const known = new Map([...came].filter(([sid]) => rows.some((r) => r.session === sid)));
    if (known.size) {
      setList((was) => ({ ...was, rows: was.rows?.map((r) => known.get(r.session) ?? r) }));
      take(known);
    }
  }, [came, list]);
  const more = () => get(pathOf(query, list.next)).then((page) => {
    const rows = list.rows ?? [];
    const known = new Set(rows.map((r) => r.session));
    setList({ rows: [...rows, ...page.sessions.filter((r) => !known.has(r.session))], next: page.next });
  }, (error) => setList({ ...list, error }));
  const waiting = [...came.values()].filter((r) => matches(r, query)).length;
  return { ...list, waiting, show, more };
}

export function Sessions() {
  const { query } = place.value;
  const list = useRef(/** @type {HTMLDivElement | null} */ (null));
  const { rows, next, error, waiting, show, more } = useRows(query, list);
  const [starting, setStarting] = useState(false);
  useEffect(() => { document.title = 'Sessions · Refold'; }, []);
  useEffect(() => {
    /** @param {KeyboardEvent} e */
    const press = (e) => pressed(e, {
      '/': () => document.getElementById('filter')?.focus(), j: () => moveRow(1, '.rowlink'), k: () => moveRow(-1, '.rowlink'),
    });
    addEventListener('keydown', press);
    const ended = offer(() => [{ name: 'Start a run', run: () => setStarting(true), off: !may('ask') }, { name: 'Filter', run: () => document.getElementById('filter')?.focus() }]);
    return () => { removeEventListener('keydown', press); ended(); };
  }, []);
  const any = filters.some((f) => query.get(f));
  let body = html`<${Skeleton} lines=${9} />`;
  if (rows?.length) {
    body = html`<div class="table-wrap"><table class="cards">
      <colgroup><col /><col style=${{ width: '148px' }} /><col class="opt" style=${{ width: '120px' }} /><col class="opt" style=${{ width: '70px' }} /><col style=${{ width: '150px' }} /><col style=${{ width: '92px' }} /><col class="opt" style=${{ width: '84px' }} /><col style=${{ width: '116px' }} /></colgroup>
      <thead><tr><th>Session</th><th>State</th><th class="opt">Waits for</th><th class="r opt">Run</th><th>Model</th><th class="r">Tokens</th><th class="r opt">Cost</th><th class="r">Last activity</th></tr></thead>
      <tbody>${rows.map((r) => html`<${Row} key=${r.session} row=${r} />`)}</tbody></table></div>`;
  } else if (rows && any) {
    body = html`<${Empty} title="No session matches"><p>${[...query].filter(([n]) => filters.includes(n)).map(([n, v]) => `${n.replaceAll('_', ' ')}: ${v}`).join(', ')}</p><button type="button" class="btn" onClick=${() => setQuery(Object.fromEntries(filters.map((f) => [f, ''])))}>Clear the filters</button><//>`;
  } else if (rows) {
    body = html`<${Empty} title="No session yet"><p>A session begins with its first run.</p><pre>refold run hello "What is here?"</pre><//>`;
  }
  return html`<div class="page-head"><h1>Sessions</h1><span class="grow"></span>${may('ask') ? html`<button type="button" class="btn main" onClick=${() => setStarting(true)}>Start a run</button>` : null}</div>
    <${Filters} query=${query} />
    <section class="card sessions" aria-label="Sessions" ref=${list}>
      ${waiting ? html`<button type="button" class="newer" onClick=${show}>${waiting} newer</button>` : null}
      ${error ? html`<${Wrong} error=${error} />` : null}
      ${body}
      ${next ? html`<div class="more"><button type="button" class="btn" onClick=${more}>More sessions</button></div>` : null}
    </section>
    <p class="label" style=${{ marginTop: '12px' }}>${query.get('all') ? 'Also sessions that did nothing for a week.' : html`Sessions that did nothing for a week are not listed. <button type="button" class="copy" onClick=${() => setQuery({ all: 'true' })}>Search all sessions</button>`}</p>
    ${starting ? html`<${NewRun} close=${() => setStarting(false)} />` : null}`;
}
