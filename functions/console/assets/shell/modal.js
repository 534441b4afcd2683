// A modal dialog of the browser's keeps the focus, and gives it back.

import { useEffect, useRef } from '../htm-preact.js';

/** The `ref` of a dialog that is open as long as it is drawn. */
export function useModal() {
  const dialog = useRef(null);
  useEffect(() => {
    const shown = dialog.current;
    shown.showModal();
    return () => shown.close();
  }, []);
  return dialog;
}
