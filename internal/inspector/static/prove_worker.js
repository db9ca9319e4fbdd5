// The worker that folds a session again, with the program of cmd/prove. It comes after
// Go's wasm_exec.js in one file, asks nobody for anything, and sees no page: it gets the
// program and the bytes of the session as messages {id, what, a, b}, and answers {id,
// value} or {id, error}.
const go = new Go();
const none = new Uint8Array();

/** Starts the program, and returns which one it is. @param {BufferSource} program */
async function load(program) {
  const { instance } = await WebAssembly.instantiate(program, go.importObject);
  go.run(instance).catch(() => {});
  const sum = globalThis.crypto?.subtle ? new Uint8Array(await crypto.subtle.digest('SHA-256', program)) : none;
  return { ...ask('build'), hash: [...sum].map((b) => b.toString(16).padStart(2, '0')).join('') };
}

/** @param {string} what */
function ask(what, a = none, b = none) {
  const answer = JSON.parse(globalThis.refoldProve(what, a, b));
  if (answer.error) throw new Error(answer.error);
  return answer.value;
}

onmessage = async ({ data: { id, what, a, b } }) => {
  const begun = performance.now();
  try {
    const value = what === 'load' ? await load(a) : ask(what, a, b);
    postMessage({ id, value, took: performance.now() - begun });
  } catch (/** @type {any} */ e) {
    postMessage({ id, error: String(e.message ?? e) });
  }
};
