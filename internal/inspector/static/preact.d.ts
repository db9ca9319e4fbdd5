// The types of preact.js, which npm/entry.js makes of others. It is not served.
export * from '../npm/entry.js';
