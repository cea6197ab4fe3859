// client: @sentry/node 10.78.0, logs
// sends: Sentry's envelopes
// to: http
// packages: @sentry/node@10.78.0
const Sentry = require('@sentry/node')
Sentry.init({ dsn: DSN, serverName: 'web-1', defaultIntegrations: false, enableLogs: true })
for (const e of EVENTS) {
  const log = () => Sentry.logger[e.level](e.msg, e.error ? { ...e.attrs, error: e.error } : e.attrs)
  e.trace.trace_id ? Sentry.continueTrace({ sentryTrace: e.trace.trace_id + '-' + e.trace.span_id + '-1' }, log) : log()
}
Sentry.flush(60000).then(end)
