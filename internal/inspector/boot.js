// Starts the page of an exported file: its modules, which name one another, become
// addresses of this document, each after those that it imports.
(async () => {
  const urls = {};
  for (const [name, text] of JSON.parse(document.getElementById('modules').textContent)) {
    const linked = text.replace(/(from |import\()'\.\/([a-z_]+\.js)'/g, (all, how, other) => `${how}'${urls[other]}'`);
    urls[name] = URL.createObjectURL(new Blob([linked], { type: 'text/javascript' }));
  }
  document.documentElement.dataset.worker = urls['worker.js'];
  await import(urls['report.js']);
})();
