// Addresses within the page: `#/{organization}/{page}/{id}?{filters}`.

/** Stands for the organization of a person who has only one and has not named it. */
const UNNAMED = '-';

/** `{slug, page, id, query}` of an address; null for one that leads to no page. */
export function route(hash) {
  if (!hash.startsWith('#/')) return null;
  const [path, search = ''] = hash.slice(2).split('?', 2);
  const [slug = '', page = '', id = ''] = path.split('/').map(plain);
  if (!slug || !page) return null;
  return { slug: slug === UNNAMED ? null : slug, page, id: id || null, query: Object.fromEntries(new URLSearchParams(search)) };
}

/** The address of a page; filters without a value are left out. */
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
