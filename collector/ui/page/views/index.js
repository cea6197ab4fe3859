// The views, in the order of the navigation.

import { view as search } from './search.js'
import { view as live } from './live.js'
import { view as stats } from './stats.js'

/** @type {import('../types.js').View[]} */
export const views = [search, live, stats]
