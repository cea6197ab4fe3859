# client: graypy 2.1.0 for Python
# sends: GELF over UDP, in chunks
# to: gelf-udp
# packages: graypy==2.1.0
import graypy

log_all(graypy.GELFUDPHandler(HOST, PORT))
