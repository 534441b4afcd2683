// Style sheets beside the one in the page.

import { inTime } from './unreachable.js';

const SHEETS = new Map();

/** Loads a sheet once; the promise of its having come. */
export function sheet(href) {
  if (!SHEETS.has(href)) {
    const come = inTime(new Promise((come, fail) => {
      document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href, onload: come, onerror: () => fail(new Error(href)) }));
    }));
    SHEETS.set(href, come);
    come.catch(() => SHEETS.delete(href));
  }
  return SHEETS.get(href);
}
