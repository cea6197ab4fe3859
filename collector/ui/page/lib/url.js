// The URL's fragment has all that a link shows: #/search?q=level>=error&since=1h

/**
 * @param {string} hash @param {string} first the view without one in the hash
 * @returns {Place}
 */
export function parsePlace(hash, first) {
  const [, path, query] = /^#?\/?([^?]*)\??(.*)$/s.exec(hash) ?? []
  /** @type {Record<string, string>} */
  const state = Object.fromEntries(new URLSearchParams(query))
  const { q = '', since = '', until = '', ...rest } = state
  return { view: path || first, q, since: since || (until ? '' : '1h'), until, state: rest }
}

/** What of a view's state outlives a new question: how it looks. @param {Record<string, string>} state */
export const keptState = (state) => Object.fromEntries(Object.entries(state).filter(([name]) => ['cols', 'wrap', 'facets', 'tab', 'as', 'order'].includes(name)))

/** @param {Place} place */
export function formatPlace({ view, q, since, until, state }) {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries({ q, since: since === '1h' && !until ? '' : since, until, ...state })) {
    if (value) params.set(name, value)
  }
  const query = String(params)
  return '#/' + view + (query && '?' + query)
}
