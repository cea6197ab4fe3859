# client: aws-lambda-powertools 3.37.0 for Python
# sends: lines of JSON over TCP
# to: tcp
# packages: aws-lambda-powertools==3.37.0
from aws_lambda_powertools import Logger

out = output()
log = Logger(service="shop", name="shop.cart", level="DEBUG", logger_handler=logging.StreamHandler(out))
for e in EVENTS:
    log.log(e.number, e.msg, exc_info=e.error, extra=e.extra)
out.flush()
