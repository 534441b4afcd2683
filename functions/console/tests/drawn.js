// The least of a document that the library needs to draw a view, for tests of views without a browser.

// The library looks for it while it is loaded, so a test imports this module first.
globalThis.requestAnimationFrame = (draw) => setTimeout(draw);
globalThis.cancelAnimationFrame = clearTimeout;

class Drawn {
  nodeType = 1;
  childNodes = [];
  parentNode = null;
  style = {};
  attributes = {};
  // The library asks for them to know the names of events.
  onchange = null;
  onclick = null;
  onclose = null;
  oninput = null;
  onsubmit = null;
  top = 0;
  #before = null;
  #listeners = {};

  constructor(localName) {
    this.localName = localName;
    this.namespaceURI = 'http://www.w3.org/1999/xhtml';
  }

  get firstChild() {
    return this.childNodes[0] ?? null;
  }

  get nextSibling() {
    const beside = this.parentNode?.childNodes ?? [];
    return beside[beside.indexOf(this) + 1] ?? null;
  }

  get isConnected() {
    return this === document.body || Boolean(this.parentNode?.isConnected);
  }

  get textContent() {
    return this.childNodes.map((node) => (node.nodeType === 3 ? node.data : node.textContent)).join('');
  }

  set textContent(text) {
    this.childNodes.forEach((node) => { node.parentNode = null; });
    this.childNodes = [];
    this.appendChild(new Words(text));
  }

  insertBefore(node, before) {
    node.remove();
    this.childNodes.splice(before ? this.childNodes.indexOf(before) : this.childNodes.length, 0, node);
    node.parentNode = this;
    return node;
  }

  appendChild(node) {
    return this.insertBefore(node, null);
  }

  removeChild(node) {
    node.remove();
  }

  remove() {
    const beside = this.parentNode?.childNodes;
    beside?.splice(beside.indexOf(this), 1);
    this.parentNode = null;
    if (document.activeElement && !document.activeElement.isConnected) document.activeElement = document.body;
  }

  contains(node) {
    return node === this || this.childNodes.some((inner) => inner.contains?.(node));
  }

  setAttribute(name, value) {
    this.attributes[name] = String(value);
  }

  removeAttribute(name) {
    delete this.attributes[name];
  }

  addEventListener(type, listener) {
    this.#listeners[type] = listener;
  }

  removeEventListener(type) {
    delete this.#listeners[type];
  }

  /** Of itself and below, in their order. */
  all(fits) {
    return [...(fits(this) ? [this] : []), ...this.childNodes.flatMap((node) => node.all?.(fits) ?? [])];
  }

  at(id) {
    return this.all(({ attributes }) => attributes.id === id)[0] ?? null;
  }

  querySelector() {
    return null;
  }

  /** Of a dialog. */
  showModal() {
    this.#before = document.activeElement;
  }

  /** Gives the focus back. */
  close() {
    if (this.#before.isConnected) this.#before.focus();
    setTimeout(() => this.fire('close'));
  }

  focus() {
    document.activeElement = this;
  }

  getBoundingClientRect() {
    return { top: this.top };
  }

  scrollIntoView() {
    this.top = 0;
  }

  /** A person's act: `type` with the members of its target. */
  fire(type, target = {}) {
    return this.#listeners[type]?.call(this, { type, target, preventDefault() {} });
  }
}

class Words {
  nodeType = 3;
  parentNode = null;

  constructor(data) {
    this.data = data;
  }

  get nextSibling() {
    return Object.getOwnPropertyDescriptor(Drawn.prototype, 'nextSibling').get.call(this);
  }

  remove() {
    Drawn.prototype.remove.call(this);
  }
}

/** A document for the library, and storage for the tab. Returns the stored values. */
export function aPage() {
  const kept = {};
  const nothing = () => {};
  globalThis.document = {
    baseURI: 'http://page/',
    visibilityState: 'visible',
    createElement: (name) => new Drawn(name),
    createElementNS: (_, name) => new Drawn(name),
    createTextNode: (data) => new Words(data),
    addEventListener: nothing,
    removeEventListener: nothing,
    getElementById: (id) => document.body.at(id),
    querySelector: () => null,
    querySelectorAll: () => [],
  };
  document.body = new Drawn('body');
  document.activeElement = document.body;
  Object.assign(globalThis, { addEventListener: nothing, removeEventListener: nothing, location: { hash: '', pathname: '/' }, innerHeight: 800 });
  globalThis.sessionStorage = {
    getItem: (name) => kept[name] ?? null,
    setItem: (name, value) => { kept[name] = String(value); },
    removeItem: (name) => { delete kept[name]; },
    clear: () => Object.keys(kept).forEach((name) => delete kept[name]),
  };
  return kept;
}

/** After everything that was begun has been drawn. */
export async function settled() {
  for (let turn = 0; turn < 8; turn += 1) await new Promise((go) => setTimeout(go, 2));
}
