// preact, its hooks and htm, which the page is made of.
export * from '../vendor/htm-preact.js'
