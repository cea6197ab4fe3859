# client: sentry-sdk 2.75.0 for Python, events
# sends: Sentry's envelopes
# to: http
# packages: sentry-sdk==2.75.0
import sentry_sdk
from sentry_sdk.integrations.logging import EventHandler

sentry_sdk.init(dsn=os.environ["DSN"], default_integrations=False, include_local_variables=False)
log_all(EventHandler(level=logging.DEBUG))
sentry_sdk.flush(60)
