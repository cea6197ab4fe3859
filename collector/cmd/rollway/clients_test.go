package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/clients"
)

// The table and the JSON have the rows that are asked for, in the order that is asked for.
func TestClientsCommand(t *testing.T) {
	now := time.Now()
	failed := now.Add(-time.Minute)
	answer := map[string]any{"since": now.Add(-time.Hour), "clients": []clients.Client{
		{Client: "10.1.2.3", Token: "w", Tenant: "shop", Receiver: "/api/logs", Agent: "curl/8.0", Requests: 12_345, Events: 20_000, Bytes: 5_000_000, Rejected: 7,
			First: now.Add(-time.Hour), Last: now.Add(-2 * time.Second)},
		{Client: "2001:db8::/64", Receiver: "syslog", Requests: 1, Refused: 1, Error: "unauthorized: no \x1b[2Jtoken", ErrorTime: failed, First: failed, Last: failed},
		{Client: "192.0.2.1", Receiver: "/v1/logs", Agent: "OTel-OTLP", Requests: 3, First: now.Add(-3 * time.Hour), Last: now.Add(-3 * time.Hour)},
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/clients" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	for _, tt := range []struct{ args, want string }{
		{"", "10.1.2.3 2001:db8::/64 192.0.2.1"},
		{"-r", "192.0.2.1 2001:db8::/64 10.1.2.3"},
		{"-sort client", "10.1.2.3 192.0.2.1 2001:db8::/64"},
		{"-sort bytes -n 1", "10.1.2.3"},
		{"-sort refused -n 1", "2001:db8::/64"},
		{"-sort error_time -n 1", "2001:db8::/64"},
		{"-sort requests", "10.1.2.3 192.0.2.1 2001:db8::/64"},
		{"-filter client=10.0.0.0/8", "10.1.2.3"},
		{"-filter client=192.0.2.1", "192.0.2.1"},
		{"-filter client=2001:db8::/32", "2001:db8::/64"},
		{"-filter token=w -filter tenant=shop", "10.1.2.3"},
		{"-filter token=w -filter tenant=x", ""},
		{"-filter receiver=/v1/logs", "192.0.2.1"},
		{"-filter error=unauthorized", "2001:db8::/64"},
		{"-filter agent=OTel", "192.0.2.1"},
		{"-sort agent", "2001:db8::/64 192.0.2.1 10.1.2.3"},
	} {
		args := append([]string{"clients", "-addr", server.URL}, strings.Fields(tt.args)...)
		r := cli(t, "", args...)
		r.want(t, 0)
		var got []string
		for line := range strings.Lines(r.stdout) {
			got = append(got, strings.Fields(line)[0])
		}
		if strings.Join(got[1:], " ") != tt.want || got[0] != "CLIENT" {
			t.Errorf("%s: %q\n%s", tt.args, got, r.stdout)
		}
		r = cli(t, "", append(args, "-o", "json")...)
		r.want(t, 0)
		var printed []clients.Client
		if err := json.Unmarshal([]byte(r.stdout), &printed); err != nil || len(printed) != len(got)-1 {
			t.Errorf("%s -o json: %v\n%s", tt.args, err, r.stdout)
		}
	}
	table := cli(t, "", "clients", "-addr", server.URL).stdout
	for _, want := range []string{
		`CLIENT +TOKEN +TENANT +RECEIVER +AGENT +REQUESTS +EVENTS +BYTES +REJECTED +REFUSED +FIRST +LAST +ERROR_TIME +ERROR\n`,
		`\n10\.1\.2\.3 +w +shop +/api/logs +curl/8\.0 +12,345 +20,000 +5,000,000 +7 +0 +1h0m\d+s ago +\d+s ago +- +-\n`,
		`\n2001:db8::/64 +- +- +syslog +- +1 +0 +0 +0 +1 +1m\d+s ago +1m\d+s ago +1m\d+s ago +unauthorized: no \\x1b\[2Jtoken\n`,
	} {
		if !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("the table lacks %s\n%s", want, table)
		}
	}
	for args, want := range map[string]string{"-sort x": "use client, token", "-filter x": "\"x\" is no column", "-filter x=y": "\"x\" is no column"} {
		cli(t, "", append([]string{"clients"}, strings.Fields(args)...)...).want(t, exitUsage, want)
	}
}
