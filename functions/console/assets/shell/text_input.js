// A text that counts once it is whole.

import { html, useEffect, useRef } from '../htm-preact.js';

/** `onChange` is called after Enter or when the field is left. Until then a render keeps the typed text; another `value` replaces it. */
export function TextInput({ value, ...attributes }) {
  const input = useRef(null);
  useEffect(() => {
    input.current.value = value;
  }, [value]);
  return html`<input ref=${input} autocomplete="off" defaultValue=${value} ...${attributes} />`;
}
