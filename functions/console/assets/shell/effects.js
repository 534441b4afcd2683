// Effects of several views.

import { useEffect, useRef } from '../htm-preact.js';

/** Takes each key that is pressed in the page. */
export function useKeys(onKeyDown) {
  const newest = useRef(null);
  newest.current = onKeyDown;
  useEffect(() => {
    const listen = (event) => newest.current(event);
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, []);
}

/** Acts once, `milliseconds` after the last change. */
export function useLater(act, milliseconds, changing = []) {
  useEffect(() => {
    const timer = setTimeout(act, milliseconds);
    return () => clearTimeout(timer);
  }, changing);
}
