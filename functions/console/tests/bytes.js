/** Bytes as a body of fetch gives them, this many at a time. */
export function inPieces(text, size = Infinity) {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
}

/** Everything that an asynchronous iterable gives. */
export async function all(iterable) {
  const given = [];
  for await (const one of iterable) given.push(one);
  return given;
}
