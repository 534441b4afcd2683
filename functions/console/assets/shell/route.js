// Addresses within the page: `#/{organization}/{page}/{id}?{filters}`.

/** The only organization of a person, unnamed. */
const UNNAMED = '-';

/** `{slug, page, id, query}` of an address; null for an address without a page. */
export function route(hash) {
  if (!hash.startsWith('#/')) return null;
  const [path, search = ''] = hash.slice(2).split('?', 2);
  const [slug = '', page = '', id = ''] = path.split('/').map(plain);
  if (!slug || !page) return null;
  return { slug: slug === UNNAMED ? null : slug, page, id: id || null, query: Object.fromEntries(new URLSearchParams(search)) };
}

/** Without empty filters. */
export function addressOf({ slug, page, id = null, query = {} }) {
  const parts = [slug ?? UNNAMED, page, ...(id ? [id] : [])].map(encodeURIComponent);
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const search = new URLSearchParams(given).toString();
  return `#/${parts.join('/')}${search && `?${search}`}`;
}

function plain(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
