// Builds the page into the given directory, in a few seconds.
import { copyFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const [outdir] = process.argv.slice(2);
await build({
  entryPoints: [here('page.jsx')],
  outdir,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  minify: true,
  define: { 'process.env.NODE_ENV': '"production"' },
  loader: { '.woff2': 'empty', '.woff': 'empty', '.ttf': 'empty' },
  logLevel: 'error',
});
await copyFile(here('index.html'), `${outdir}/index.html`);
