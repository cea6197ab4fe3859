# client: datadog-api-client 2.62.0 for Python
# sends: Datadog's intake
# to: http
# packages: datadog-api-client==2.62.0
import traceback
from datadog_api_client import ApiClient, Configuration
from datadog_api_client.v2.api.logs_api import LogsApi
from datadog_api_client.v2.model.content_encoding import ContentEncoding
from datadog_api_client.v2.model.http_log import HTTPLog
from datadog_api_client.v2.model.http_log_item import HTTPLogItem

configuration = Configuration(host=TO, api_key={"apiKeyAuth": "secret"})
configuration.server_index = None
configuration.server_operation_index = {}
configuration._servers = None
items = []
for e in EVENTS:
    more = {k: base64.b64encode(v).decode() if isinstance(v, bytes) else v for k, v in e.extra.items()}
    if e.error:
        more["error"] = {"kind": type(e.error).__name__, "message": str(e.error), "stack": "".join(traceback.format_exception(e.error))}
    items.append(HTTPLogItem(ddsource="python", service="shop", message=e.msg, status=e.level, logger={"name": "shop.cart"}, **more))
with ApiClient(configuration) as client:
    LogsApi(client).submit_log(content_encoding=ContentEncoding.GZIP, body=HTTPLog(items))
