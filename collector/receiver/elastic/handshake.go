package elastic

import (
	"encoding/json"
	"net/http"
	"strings"
)

// version is what clients are told: that of an Elasticsearch they all know.
const version = "8.17.0"

// Prefix is a path below which a client may also look for an Elasticsearch.
const Prefix = "/elastic"

// Handshake answers what clients ask of an Elasticsearch beside taking documents: who it
// is, its license and health, and whether an index, a template, a policy or a pipeline is
// there: it is, and to set one up does nothing. Other requests go to next, and so do those
// for the root that no client makes, as people look for a page there.
func Handshake(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, below := strings.CutPrefix(r.URL.Path, Prefix)
		if !below || path != "" && path[0] != '/' {
			path, below = r.URL.Path, false
		}
		answer := reply(r, strings.Split(strings.Trim(path, "/"), "/"), below || fromClient(r))
		if answer == nil {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h["X-Elastic-Product"] = product
		h.Set("Content-Type", "application/json")
		if v := vendorVersion(r.Header); v > 0 {
			h["Content-Type"] = vendorTypes[v]
		}
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodHead {
			json.NewEncoder(w).Encode(answer) // a client that is gone needs no answer
		}
	})
}

// fromClient reports whether a client of Elasticsearch asks, not a person.
func fromClient(r *http.Request) bool {
	if vendorVersion(r.Header) > 0 {
		return true
	}
	agent := strings.ToLower(r.UserAgent())
	for _, name := range []string{"elastic", "opensearch", "logstash", "fluent", "vector/"} {
		if strings.Contains(agent, name) {
			return true
		}
	}
	return false
}

type object map[string]any

// reply returns what is answered, nil if the request is not for an
// Elasticsearch. client tells whether it is where one need not ask.
func reply(r *http.Request, path []string, client bool) any {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	write := r.Method == http.MethodPut || r.Method == http.MethodPost
	if !read && !write {
		return nil
	}
	switch path[0] {
	case "":
		if read && client {
			return greeting()
		}
		return nil
	case "_license":
		return object{"license": license}
	case "_xpack":
		return object{
			"build":    object{"hash": "rollway", "date": "2026-01-01T00:00:00.000Z"},
			"license":  license,
			"features": object{"ilm": object{"available": false, "enabled": false}, "security": object{"available": false, "enabled": false}},
		}
	case "_cluster":
		if len(path) > 1 && path[1] == "health" {
			return health
		}
		return nil
	case "_nodes":
		return object{
			"_nodes": object{"total": 1, "successful": 1, "failed": 0}, "cluster_name": "rollway",
			"nodes": object{"rollway": object{"name": "rollway", "version": version, "roles": []string{"data", "ingest"},
				"http": object{"publish_address": r.Host}}},
		}
	case "_ilm", "_index_template", "_component_template", "_template", "_data_stream", "_ingest", "_alias", "_slm":
		if write {
			return acknowledged
		}
		return object{}
	case "_refresh", "_flush":
		return shards
	}
	if strings.HasPrefix(path[0], "_") || !client && len(path) < 2 {
		return nil
	}
	switch {
	case len(path) == 1 && r.Method == http.MethodHead:
		return object{}
	case len(path) == 1 && r.Method == http.MethodPut:
		return object{"acknowledged": true, "shards_acknowledged": true, "index": path[0]}
	case len(path) == 2 && (path[1] == "_refresh" || path[1] == "_flush"):
		return shards
	}
	return nil
}

var (
	acknowledged = object{"acknowledged": true}
	shards       = object{"_shards": object{"total": 1, "successful": 1, "failed": 0}}
	license      = object{"status": "active", "uid": "rollway", "type": "basic", "mode": "basic", "issued_to": "rollway", "issuer": "rollway"}
	health       = object{"cluster_name": "rollway", "status": "green", "timed_out": false, "number_of_nodes": 1, "number_of_data_nodes": 1,
		"active_primary_shards": 1, "active_shards": 1, "relocating_shards": 0, "initializing_shards": 0, "unassigned_shards": 0}
)

func greeting() object {
	return object{
		"name": "rollway", "cluster_name": "rollway", "cluster_uuid": "rollway",
		"version": object{"number": version, "build_flavor": "default", "build_type": "tar", "build_hash": "rollway",
			"build_date": "2026-01-01T00:00:00.000Z", "build_snapshot": false, "lucene_version": "9.12.0",
			"minimum_wire_compatibility_version": "7.17.0", "minimum_index_compatibility_version": "7.0.0"},
		"tagline": "You Know, for Search",
	}
}
