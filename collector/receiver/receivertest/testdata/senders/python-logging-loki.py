# client: python-logging-loki 0.3.1 for Python
# sends: Loki
# to: http
# packages: python-logging-loki==0.3.1
import logging_loki

log_all(logging_loki.LokiHandler(url=TO + "/loki/api/v1/push", tags={"app": "shop"}, version="1"),
        lambda e: {"extra": {"tags": {k: str(v) for k, v in e.extra.items()}}})
