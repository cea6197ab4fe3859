package normalize

import (
	"encoding/json"
	"testing"
)

// Events as what collects the logs of containers sends them, and their services.
func TestServiceOfContainer(t *testing.T) {
	for event, want := range map[string]string{
		`{"log":"x","container_id":"0af","container_name":"/shop-1","source":"stdout"}`:                                                            "shop-1", // Docker's fluentd
		`{"log":"x","container_name":"\/shop-1"}`:                                                                                                  "shop-1", // the same by PHP
		`{"MESSAGE":"x","CONTAINER_NAME":"shop-1","CONTAINER_ID":"0af"}`:                                                                           "shop-1", // Docker's journald
		`{"log":"x","com.docker.compose.service":"cart","container_name":"/p-cart-1"}`:                                                             "cart",   // with labels
		`{"log":"x","kubernetes":{"pod_name":"shop-7d","namespace_name":"prod","container_name":"web","labels":{"tier":"a"}}}`:                     "web",    // Fluent Bit
		`{"log":"x","kubernetes":{"container_name":"web","labels":{"app":"shop","app.kubernetes.io/name":"cart"}}}`:                                "cart",   // its labels
		`{"message":"x","kubernetes":{"container_name":"web","pod_labels":{"app":"shop"},"pod_name":"shop-7d"},"stream":"stdout"}`:                 "shop",   // Vector
		`{"message":"x","container_name":"web","label":{"com.docker.compose.service":"cart"}}`:                                                     "cart",   // Vector
		`{"message":"x","kubernetes":{"container":{"name":"web"},"deployment":{"name":"shop"},"labels":{"tier":"a"}},"container":{"id":"0af"}}`:    "shop",   // Filebeat
		`{"message":"x","container":{"name":"web","image":{"name":"shop:1"}}}`:                                                                     "web",    // Filebeat of Docker
		`{"msg":"x","container":"web","namespace":"prod","pod":"shop-7d"}`:                                                                         "web",    // Promtail
		`{"msg":"x","container":"web","app_kubernetes_io_name":"cart"}`:                                                                            "cart",   // its labels
		`{"msg":"x","resource":{"k8s.pod.name":"shop-7d","k8s.deployment.name":"shop","k8s.container.name":"web"}}`:                                "shop",   // OpenTelemetry
		`{"msg":"x","resource":{"container.name":"web"}}`:                                                                                          "web",    // of Docker
		`{"msg":"x","service":"own","container_name":"/web"}`:                                                                                      "own",    // it has one
		`{"msg":"x","SYSLOG_IDENTIFIER":"own","container_name":"/web"}`:                                                                            "own",    // under a second name
		`{"msg":"x","container_name":"/"}`:                                                                                                         "",       // empty
		`{"msg":"x","container":7,"kubernetes":"x","resource":[],"user":{"container_name":"web"},"kubernetes_2":{"container_name":"web"}}`:         "",       // something else
		`{"msg":"x","a":1,"a":2,"container_name":"` + string(make([]byte, 0)) + `","kubernetes":{"labels":{"a":{"container_name":"web"}},"x":[]}}`: "",       // deeper
		`{"log":"{\"service\":\"own\",\"msg\":\"x\"}","container_name":"/web"}`:                                                                    "own",    // in the payload
	} {
		b, err := normalizeBody(t, Limits{}, event)
		var line struct{ Service string }
		if err != nil || json.Unmarshal(b.Lines, &line) != nil || line.Service != want {
			t.Errorf("%s: service %q, expected %q: %s", event, line.Service, want, b.Lines)
		}
	}
}
