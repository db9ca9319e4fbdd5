// The keyboard. No single key sends an event.

export const keys = [
  ['?', 'this help'], ['/', 'filter'], ['g s', 'sessions'], ['g a', 'approvals'], ['g f', 'fleet'], ['g y', 'system'],
  ['j k', 'next and previous row'], ['Enter', 'open'], ['[ ]', 'previous and next event'], ['{ }', 'previous and next turn'], ['l', 'live'], ['c', 'compare from here'], ['.', 'commands'],
];

let before = '';
let since = 0;

/** Is the key meant for what has the focus? @param {any} e */
const typing = (e) => e.target.closest?.('input:not([type=range]), textarea, select, dialog') || e.ctrlKey || e.metaKey || e.altKey;

/** Does what a key, or two of them, is for. @param {any} e @param {Record<string, () => void>} actions */
export function pressed(e, actions) {
  if (typing(e) || e.defaultPrevented) return;
  if (e.key === 'Enter' && e.target.closest?.('a, button, summary')) return; // it opens itself
  const two = before && performance.now() - since < 1200 ? before + e.key : '';
  const action = actions[two] ?? actions[e.key];
  before = e.key === 'g' ? 'g' : '';
  since = performance.now();
  if (!action) return;
  before = '';
  e.preventDefault();
  action();
}

/** Moves the focus among rows: j and k. @param {number} step @param {string} selector */
export function moveRow(step, selector) {
  const rows = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(selector))];
  if (!rows.length) return;
  const at = rows.indexOf(/** @type {any} */ (document.activeElement?.closest?.(selector)));
  rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))].focus();
}

/**
 * Commands of the page that is shown, for the palette.
 * @type {() => { name: string, run: () => void, off?: boolean }[]}
 */
let offered = () => [];
/** Offers commands while a page is shown. Returns what ends it. @param {typeof offered} commands */
export function offer(commands) {
  offered = commands;
  return () => { if (offered === commands) offered = () => []; };
}
export const commandsOf = () => offered();
