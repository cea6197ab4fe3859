# client: sentry-sdk 2.75.0 for Python, logs
# sends: Sentry's envelopes
# to: http
# packages: sentry-sdk==2.75.0
import sentry_sdk
from sentry_sdk.integrations.logging import LoggingIntegration

sentry_sdk.init(dsn=os.environ["DSN"], default_integrations=False, include_local_variables=False, enable_logs=True,
                integrations=[LoggingIntegration(level=None, event_level=None, sentry_logs_level=logging.DEBUG)])
log_all(logging.NullHandler())
sentry_sdk.flush(60)
