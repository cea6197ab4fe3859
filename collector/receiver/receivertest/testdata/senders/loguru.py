# client: loguru 0.7.3 for Python, serialize=True
# sends: lines of JSON over TCP
# to: tcp
# packages: loguru==0.7.3
from loguru import logger

out = output()
logger.remove()
logger.add(out, serialize=True, level="DEBUG", diagnose=False)
logger = logger.patch(lambda record: record.update(name="shop.cart"))
for e in EVENTS:
    log = logger.bind(**e.extra).opt(exception=e.error)
    log.log({"warn": "WARNING", "fatal": "CRITICAL"}.get(e.level, e.level.upper()), "{}", e.msg)
out.flush()
