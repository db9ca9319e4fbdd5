// Starts the page of an exported file: its modules, which name one another, become
// addresses of this document, each after those that it begins with. What a module imports
// later is looked up then.
(async () => {
  const urls = {};
  globalThis.refoldModule = (name) => urls[name];
  for (const [name, text] of JSON.parse(document.getElementById('modules').textContent)) {
    const linked = text.replace(/from '\.\/([a-z_]+\.js)'/g, (all, other) => `from '${urls[other]}'`)
      .replace(/import\('\.\/([a-z_]+\.js)'\)/g, (all, other) => `import(refoldModule('${other}'))`);
    urls[name] = URL.createObjectURL(new Blob([linked], { type: 'text/javascript' }));
  }
  document.documentElement.dataset.worker = urls['worker.js'];
  await import(urls['report.js']);
})();
