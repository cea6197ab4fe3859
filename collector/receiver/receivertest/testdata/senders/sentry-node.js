// client: @sentry/node 10.78.0, events
// sends: Sentry's envelopes
// to: http
// packages: @sentry/node@10.78.0
const Sentry = require('@sentry/node')
Sentry.init({ dsn: DSN, serverName: 'web-1', defaultIntegrations: false, integrations: [Sentry.linkedErrorsIntegration()] })
for (const e of EVENTS) {
  const scope = { level: e.level === 'warn' ? 'warning' : e.level, extra: e.attrs, tags: { logger: 'shop.cart' },
    contexts: e.trace.trace_id ? { trace: e.trace } : {} }
  e.error ? Sentry.captureException(e.error, scope) : Sentry.captureMessage(e.msg, scope)
}
Sentry.flush(60000).then(end)
