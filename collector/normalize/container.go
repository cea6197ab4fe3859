package normalize

import (
	"bytes"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// What collects the logs of containers says whose they are: Docker's drivers, Fluent Bit
// and Fluentd with their filter for Kubernetes, Vector, Promtail, Filebeat, and the
// Collector of OpenTelemetry. Of an event without a service, the service is the first of
// these that it has:
//
//  0. the label of Kubernetes that names the application, the service of Docker Compose
//  1. the label app or k8s-app
//  2. the deployment, or what else has made the pod
//  3. the container
//
// They stay in attrs.

// serviceRank returns the number above of a path in attrs; -1: it has none.
func serviceRank(path []byte) int {
	switch string(path) {
	case "app_kubernetes_io_name", "kubernetes.labels.app.kubernetes.io/name", "kubernetes.labels.app_kubernetes_io/name", "kubernetes.labels.app_kubernetes_io_name",
		"kubernetes.pod_labels.app.kubernetes.io/name", "com.docker.compose.service", "compose_service", "label.com.docker.compose.service",
		"container.labels.com_docker_compose_service":
		return 0
	case "k8s-app", "kubernetes.labels.app", "kubernetes.labels.k8s-app", "kubernetes.pod_labels.app", "kubernetes.pod_labels.k8s-app":
		return 1
	case "k8s.cronjob.name", "k8s.daemonset.name", "k8s.deployment.name", "k8s.job.name", "k8s.statefulset.name",
		"kubernetes.cronjob.name", "kubernetes.daemonset.name", "kubernetes.deployment.name", "kubernetes.job.name", "kubernetes.statefulset.name":
		return 2
	case "CONTAINER_NAME", "container", "container.name", "container_name", "k8s.container.name", "kubernetes.container.name", "kubernetes.container_name":
		return 3
	}
	return -1
}

// numRanks is one more than the last of them.
const numRanks = 4

// holdsMetadata reports whether an object of that path may hold names of a service.
func holdsMetadata(path []byte) bool {
	switch string(path) {
	case "container", "container.labels", "kubernetes", "kubernetes.container", "kubernetes.cronjob", "kubernetes.daemonset", "kubernetes.deployment",
		"kubernetes.job", "kubernetes.labels", "kubernetes.pod_labels", "kubernetes.statefulset", "label", "resource":
		return true
	}
	return false
}

// maxService is how long a name may be.
const maxService = 256

// nameService sets n.service, which is a part of attrs, to the name of the service.
func (n *Normalizer) nameService() {
	found := false
	for i := range n.names.len() {
		name := n.names.at(i)
		found = found || serviceRank(name) >= 0 || holdsMetadata(name)
	}
	if !found || n.lineSize()+maxService > n.limits.MaxEventBytes {
		return
	}
	var buf [maxService]byte
	best := numRanks
	for i := 0; i < len(n.attrs); i++ { // past a comma
		name := i
		i, _ = jsonwalk.SkipString(n.attrs, i)
		value := i + 1
		i = jsonwalk.SkipValue(n.attrs, value)
		best = n.rankService(buf[:0], n.attrs[name:value-1], jsonwalk.Span{Start: value, End: i}, best)
	}
}

// rankService looks at a member of attrs, or below it at path, for a name of a rank below
// best, and returns the best rank then.
func (n *Normalizer) rankService(path, name []byte, value jsonwalk.Span, best int) int {
	if len(path)+len(name) > cap(path) {
		return best
	}
	path = append(path, name[1:len(name)-1]...)
	switch raw := value.Of(n.attrs); {
	case raw[0] == '"':
		if rank := serviceRank(path); rank >= 0 && rank < best {
			text := bytes.TrimPrefix(raw[1:len(raw)-1], []byte(`\/`)) // as Docker begins names
			text = bytes.TrimPrefix(text, []byte("/"))
			if len(text) > 0 && len(text) <= maxService {
				best, n.service = rank, jsonwalk.Span{Start: value.End - 1 - len(text), End: value.End - 1}
			}
		}
	case raw[0] == '{' && holdsMetadata(path):
		if string(path) == "resource" { // of OpenTelemetry
			path = path[:0]
		} else {
			path = append(path, '.')
		}
		for w := jsonwalk.Members(n.attrs, value.Start); w.Next(); {
			best = n.rankService(path, w.RawName(), w.Value, best)
		}
	}
	return best
}
