// The dry run of a definition, made again after each change of its text.

import { useEffect, useState } from '../htm-preact.js';
import { asDryRun, unsendable } from './definitions.js';

/** A dry run waits for the end of a word. */
const PATIENCE = 500;

/**
 * `{own, diagnostics, late, error, next, again}`: `own` is a mistake that keeps the text from being sent, `diagnostics` are those of the
 * newest answer, `late` says that the text has none yet, `next` are the coming times of its schedule.
 */
export function useDryRun({ text, read, send, refused }) {
  const [{ of, diagnostics = [], next = [], error }, tell] = useState({});
  const [tries, count] = useState(0);
  const own = unsendable(read, text);
  useEffect(() => {
    if (refused || own) return undefined;
    let newest = true;
    const timer = setTimeout(async () => {
      try {
        const answer = await send(asDryRun(text, read));
        if (newest) tell({ of: text, diagnostics: answer.diagnostics, next: nextOf(answer) });
      } catch (error) {
        const { diagnostics } = error;
        if (newest) tell((before) => ({ ...before, of: text, ...(diagnostics?.length > 0 ? { diagnostics, error: null } : { error }) }));
      }
    }, PATIENCE);
    return () => {
      newest = false;
      clearTimeout(timer);
    };
  }, [text, refused, tries]);
  return { own, diagnostics, next, error, late: !refused && !own && of !== text, put: (told) => tell({ of: text, diagnostics: told }), again: () => count(tries + 1) };
}

/** The coming times of a schedule, where the answer has them. */
function nextOf({ next_occurrences: own, trigger_config: config }) {
  const times = own ?? config?.next_occurrences;
  return Array.isArray(times) ? times.map((time) => time?.at ?? time).filter((time) => typeof time === 'string') : [];
}
