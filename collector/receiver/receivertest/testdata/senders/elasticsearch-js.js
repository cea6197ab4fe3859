// client: @elastic/elasticsearch 9.5.1 for Node.js, helpers.bulk
// sends: Elasticsearch's bulk API
// to: http
// packages: @elastic/elasticsearch@9.5.1
const { Client } = require('@elastic/elasticsearch')
const datasource = EVENTS.map((e) => ({ '@timestamp': new Date(), message: e.msg, log: { level: e.level, logger: 'shop.cart' }, ...e.attrs,
  ...(e.error ? { error: { type: e.error.name, message: e.error.message, stack_trace: e.error.stack } } : {}),
  ...(e.trace.trace_id ? { trace: { id: e.trace.trace_id }, span: { id: e.trace.span_id } } : {}) }))
new Client({ node: TO }).helpers.bulk({ datasource, onDocument: () => ({ create: { _index: 'logs-shop-default' } }) }).then(end)
