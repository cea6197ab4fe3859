// The views, in the order of the navigation.

import { view as search } from './search.js'
import { view as errors } from './errors.js'
import { view as live } from './live.js'
import { view as stats } from './stats.js'
import { view as pipeline } from './pipeline.js'
import { view as why } from './why.js'

/** @type {import('../types.js').View[]} */
export const views = [search, errors, live, stats, pipeline, why]
