package httpfast

import (
	"bytes"
	"fmt"
)

// proxyHeaders are the beginnings of connections of proxies that name the client by
// the PROXY protocol, in its text and its binary form. Neither is a request.
var proxyHeaders = [][]byte{[]byte("PROXY "), []byte("\r\n\r\n\x00\r\nQUIT\n")}

func speaksProxy(begin []byte) bool {
	for _, b := range proxyHeaders {
		if bytes.HasPrefix(begin, b) {
			return true
		}
	}
	return false
}

// noProxy is what such a proxy, or the client behind it, is told.
var noProxy = func() []byte {
	const body = `{"error":"the connection begins with a header of the PROXY protocol, which is not spoken here: turn it off (send-proxy, proxy_protocol), and have the proxy name clients in X-Forwarded-For or Forwarded"}` + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()
