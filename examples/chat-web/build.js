// Builds the page into dist. `node build.js six` builds it into six/dist, with the packages
// of the folder six: version 6 of the AI SDK.
import { build } from 'esbuild';
import { cpSync } from 'node:fs';
import { join } from 'node:path';

const root = import.meta.dirname;
const six = process.argv[2] === 'six';
const from = six ? join(root, 'six') : root;
const packages = ['ai', '@ai-sdk/react', 'react', 'react-dom'];
await build({
  entryPoints: [join(root, 'page/main.jsx')],
  outdir: join(from, 'dist'),
  alias: Object.fromEntries(packages.map((name) => [name, join(from, 'node_modules', name)])),
  define: { AI_SDK: six ? '6' : '7', 'process.env.NODE_ENV': '"production"' },
  bundle: true, minify: true, format: 'esm', target: 'es2022', jsx: 'automatic',
  loader: { '.woff2': 'file' }, assetNames: '[name]', logLevel: 'warning',
});
cpSync(join(root, 'page/index.html'), join(from, 'dist/index.html'));
