// The part beside a list, or below it on a narrow screen, that shows the chosen thing.

import { html, useEffect, useRef } from '../htm-preact.js';

/** The `ref` of the part: it takes the focus when another `id` is chosen, and comes into view if it is too far below. */
export function useChosen(id) {
  const part = useRef(null);
  const shown = useRef(id);
  useEffect(() => {
    if (id && shown.current !== id) {
      part.current.focus({ preventScroll: true });
      if (part.current.getBoundingClientRect().top > innerHeight / 2) part.current.scrollIntoView();
    }
    shown.current = id;
  }, [id]);
  return part;
}

/** `id`: the person's choice, not a thing that is shown without one. */
export function Pane({ id, label, children }) {
  return html`<aside class="pane" tabindex="-1" ref=${useChosen(id)} aria-label=${label}>${children}</aside>`;
}
