package httpserver

import (
	"bytes"
	"net/http"
)

// proxyHeaders begin the connections of proxies that name the client by the PROXY
// protocol, in its text and in its binary form. Neither is a request.
var proxyHeaders = [][]byte{[]byte("PROXY "), []byte("\r\n\r\n\x00\r\nQUIT\n")}

func speaksProxy(begin []byte) bool {
	for _, b := range proxyHeaders {
		if bytes.HasPrefix(begin, b) {
			return true
		}
	}
	return false
}

// noProxy is the answer to such a proxy, or to the client that it forwards.
var noProxy = newRefusal(http.StatusBadRequest, "protocol", "the connection begins with a header of the PROXY protocol, which is not spoken here: "+
	"turn it off (send-proxy, proxy_protocol), and have the proxy name clients in X-Forwarded-For or Forwarded")
