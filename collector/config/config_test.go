package config

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func TestSampleFileIsTheDefaults(t *testing.T) {
	path := filepath.Join("..", "cmd", "rollway", "rollway.example.yaml")
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("%s differs from the defaults:\ngot  %+v\nwant %+v", path, got, want)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	l := loader{name: path, config: &c, seen: make(map[string]*yaml.Node)}
	l.document(text)
	for _, key := range Keys() {
		if l.seen[key] == nil {
			t.Errorf("%s does not show %s", path, key)
		}
	}
}

func TestYAMLReadsBack(t *testing.T) {
	c := Default()
	c.ListenForward = "tcp://:24224"
	c.ListenSyslog = "udp://:514 tcp://[::1]:0"
	c.Listen, c.ListenTCP, c.Data = "[::1]:0", ":5170", "/var/lib/a \"quoted\" \\ folder"
	c.Limits.MaxEvent, c.Limits.MaxDepth = 1000, 7
	c.Kafka = Kafka{"k1:9092 k2:9092", "all.logs", "service", "lz4", "on", "ca.pem", "cert.pem", "key.pem", "scram-sha-512", "shop", "password", "", 2 * MiB, 9, 2 * KiB, time.Second, DropOldest}
	c.Journal = Journal{SegmentSize: 3 * MiB, Durability: Synced, MaxSize: 2 * TiB, RetainSize: GiB, RetainAge: 36 * time.Hour, Compression: Zstd, MaxKeys: 7, KeyAge: time.Minute}
	c.Timeouts.Idle, c.Timeouts.Read = 90*time.Second, 250*time.Millisecond
	blocks, err := Parse("x.yaml", []byte("enrich:\n  host: true\n  fields:\n    a: |\n      two\n\n      lines\nrules: [{drop: {where: 'a=\"b\"'}}]\njournal: {tenants: {shop: {retain_size: 1GiB}, \"\": {retain_age: 7d}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c.Enrich, c.Rules, c.Journal.Tenants = blocks.Enrich, blocks.Rules, blocks.Journal.Tenants
	got, err := Parse("x.yaml", []byte(c.YAML()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, c.YAML())
	}
	if got.YAML() != c.YAML() {
		t.Errorf("got  %+v\nwant %+v", got, c)
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", "listen: \"127.0.0.1:1\"\nlisten_tpc: \"\"\n", "f.yaml:2:1: unknown key listen_tpc; did you mean listen_tcp?"},
		{"unknown key in a section", "limits:\n  max_bdy: 1MiB\n", "f.yaml:2:3: unknown key limits.max_bdy; did you mean limits.max_body?"},
		{"key of another section", "segment_size: 1MiB\n", "f.yaml:1:1: unknown key segment_size; did you mean journal.segment_size?"},
		{"key with dashes", "limits:\n  max-body: 1MiB\n", "f.yaml:2:3: unknown key limits.max-body; did you mean limits.max_body?"},
		{"unknown section", "timeout:\n  read: 1s\n", "f.yaml:1:1: unknown key timeout; did you mean timeouts?"},
		{"nothing near", "colour: red\n", "f.yaml:1:1: unknown key colour"},
		{"twice", "data: a\ndata: b\n", "f.yaml:2:1: data: given twice; the first is in line 1"},
		{"tenants as a list", "journal:\n  tenants: [shop]\n", "f.yaml:2:3: journal.tenants: names of tenants are wanted, each with retain_size or retain_age; this is a list"},
		{"a tenant without limits", "journal:\n  tenants:\n    shop: 1GiB\n", "f.yaml:3:5: journal.tenants.shop: wanted once, with retain_size or retain_age below it"},
		{"unknown limit of a tenant", "journal:\n  tenants:\n    shop: {max_size: 1GiB}\n", "f.yaml:3:12: journal.tenants.shop.max_size: unknown key; known are retain_size and retain_age"},
		{"limit of a tenant out of range", "journal:\n  tenants:\n    shop: {retain_size: 1KiB}\n", "f.yaml:3:12: journal.tenants.shop.retain_size: 1KiB is out of range: it must be at least 1MiB, or 0 for no limit"},
		{"limits of tenants without blocks", "journal:\n  compression: none\n  tenants: {shop: {retain_age: 7d}}\n", "f.yaml:3:3: journal.tenants: limits of tenants need journal.compression: zstd, since only packed segments have blocks of one tenant"},
		{"section twice", "limits:\n  max_depth: 3\nlimits:\n  max_depth: 4\n", "f.yaml:3:1: limits: given twice; the first is in line 1"},
		{"number for a string", "data: 12\n", `f.yaml:1:7: data: a string in quotes is wanted; this is the number 12`},
		{"bare port", "listen: 4318\n", `f.yaml:1:9: listen: a string in quotes is wanted; this is the number 4318`},
		{"no port", "listen: localhost\n", `f.yaml:1:9: listen: "localhost" is not an address: write host:port, as in 127.0.0.1:4318 or [::1]:4318`},
		{"named port", "listen: \"localhost:http\"\n", `f.yaml:1:9: listen: "localhost:http" has no usable port: write a number from 0 (any free port) to 65535`},
		{"port too large", "listen: \"localhost:70000\"\n", `f.yaml:1:9: listen: "localhost:70000" has no usable port: write a number from 0 (any free port) to 65535`},
		{"bad size", "limits:\n  max_body: 16 megs\n", `f.yaml:2:13: limits.max_body: "16 megs" is not a size: write a whole number of bytes or a unit, as in 64KiB, 64MiB, 2GiB`},
		{"truth for a size", "limits:\n  max_body: yes\n", `f.yaml:2:13: limits.max_body: "yes" is not a size: write a whole number of bytes or a unit, as in 64KiB, 64MiB, 2GiB`},
		{"true for a size", "limits:\n  max_body: true\n", `f.yaml:2:13: limits.max_body: a size such as 64MiB is wanted; this is the truth value true`},
		{"size too small", "limits:\n  max_body: 12\n", "f.yaml:2:13: limits.max_body: 12 is out of range: it must be at least 1KiB"},
		{"size too large", "limits:\n  max_event: 1GiB\n", "f.yaml:2:14: limits.max_event: 1GiB is out of range: it must be at most 64MiB"},
		{"size not countable", "limits:\n  max_body: 99999999TiB\n", `f.yaml:2:13: limits.max_body: "99999999TiB" is more than can be counted`},
		{"count in quotes", "limits:\n  max_depth: \"5\"\n", `f.yaml:2:14: limits.max_depth: a whole number is wanted; this is the text "5"`},
		{"fraction", "limits:\n  max_depth: 5.5\n", "f.yaml:2:14: limits.max_depth: a whole number is wanted; this is the number 5.5"},
		{"zero where a limit is needed", "limits:\n  max_depth: 0\n", "f.yaml:2:14: limits.max_depth: 0 is out of range: it must be at least 1"},
		{"too small, zero allowed", "journal:\n  max_size: 5\n", "f.yaml:2:13: journal.max_size: 5 is out of range: it must be at least 1MiB, or 0 for no limit"},
		{"duration without unit", "timeouts:\n  read: 30\n", "f.yaml:2:9: timeouts.read: a duration such as 30s or 7d is wanted; this is the number 30"},
		{"bad duration", "timeouts:\n  read: 30 seconds\n", `f.yaml:2:9: timeouts.read: "30 seconds" is not a duration: write a number and a unit, as in 500ms, 30s, 10m, 12h, 7d`},
		{"duration too long", "timeouts:\n  shutdown: 7d\n", "f.yaml:2:13: timeouts.shutdown: 7d is out of range: it must be at most 1h"},
		{"bad choice", "journal:\n  durability: fsync\n", `f.yaml:2:15: journal.durability: "fsync" is neither buffered nor synced`},
		{"no value", "data:\n", "f.yaml:1:1: data: no value: a string in quotes is wanted; remove the line for the default"},
		{"empty string", "data: \"\"\n", "f.yaml:1:7: data: it must not be empty"},
		{"list for a value", "data: [a]\n", "f.yaml:1:7: data: a string in quotes is wanted; this is a list"},
		{"value for a section", "limits: 12\n", "f.yaml:1:9: limits: a section with keys below it is wanted; this is the number 12"},
		{"list as file", "- a\n", `f.yaml:1:1: the file must hold keys and values, as in "listen: 127.0.0.1:4318"; this is a list`},
		{"not YAML", "listen: \"a\n", "f.yaml:2: not valid YAML: found unexpected end of stream"},
		{"tab", "limits:\n\tmax_body: 1\n", "f.yaml:2: not valid YAML: found character that cannot start any token"},
		{"two documents", "data: a\n---\ndata: b\n", "f.yaml:2:1: a second document begins here: a file contains one configuration"},
		{"address of syslog", "listen_syslog: \"udp://127.0.0.1:514 http://:1\"\n", `f.yaml:1:16: listen_syslog: "http://:1" is not an address: write udp:// or tcp:// or tls://host:port, with blanks between several`},
		{"port of syslog", "listen_syslog: \"udp://127.0.0.1:x\"\n", `f.yaml:1:16: listen_syslog: "127.0.0.1:x" has no usable port: write a number from 0 (any free port) to 65535`},
		{"syslog over TLS without a certificate", "listen_syslog: \"tls://:1\"\n", "f.yaml:1:1: listen_syslog: tls://127.0.0.1:1 begins with tls://: set tls.cert and tls.key too"},
		{"syslog open to the network", "access: {tokens: t}\nlisten_syslog: \"udp://:1 tcp://0.0.0.0:2\"\n", "f.yaml:2:1: listen_syslog: tcp://0.0.0.0:2 is open to the network, and its protocol has no place for a token (access.tokens): listen on 127.0.0.1, or use tls:// and tls.client_ca"},
		{"option of syslog", "listen_syslog: \"udp://:1?tenat=a\"\n", `f.yaml:1:16: listen_syslog: "udp://:1?tenat=a": ?tenant=NAME is all that an address takes, with 1 to 64 letters, digits, dots, hyphens and underscores`},
		{"tenant of syslog", "listen_syslog: \"udp://:1?tenant=a/b\"\n", `f.yaml:1:16: listen_syslog: "udp://:1?tenant=a/b": ?tenant=NAME is all that an address takes, with 1 to 64 letters, digits, dots, hyphens and underscores`},
		{"contradiction", "limits:\n  max_unpacked: 1MiB\n  max_event: 2MiB\n", "f.yaml:3:3: limits.max_event: 2MiB is more than limits.max_unpacked (1MiB): no request could carry such an event"},
		{"in flight too small", "limits:\n  in_flight: 100MiB\n", "f.yaml:2:3: limits.in_flight: 100MiB is less than three times limits.max_unpacked (64MiB): the largest request allowed could never be accepted"},
		{"segment over the whole", "journal:\n  max_size: 1MiB\n", "f.yaml:2:3: journal.max_size: 1MiB is less than one segment (journal.segment_size is 128MiB)"},
		{"alias in a block", "data: &d x\nenrich: {fields: {a: *d}}\n", "f.yaml:2:22: enrich: aliases are not allowed: write out the value"},
		{"all of them", "lisen: a\ndata: 1\nlimits:\n  max_depth: x\n",
			"f.yaml:1:1: unknown key lisen; did you mean listen?\n" +
				"f.yaml:2:7: data: a string in quotes is wanted; this is the number 1\n" +
				"f.yaml:4:14: limits.max_depth: a whole number is wanted; this is the text \"x\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(tt.text))
			if err == nil {
				t.Fatalf("no error for\n%s", tt.text)
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

func TestParseAccepts(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "limits:\n", "---\n", "data: &d /tmp/x\n", "journal: {max_size: 0, retain_age: 0}\n"} {
		if _, err := Parse("f.yaml", []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSet(t *testing.T) {
	c := Default()
	for key, text := range map[string]string{"listen": ":0", "journal.durability": "synced", "limits.max_body": "1 kib"} {
		if err := c.Set(key, text); err != nil {
			t.Errorf("%s = %s: %v", key, text, err)
		}
	}
	if c.Listen != ":0" || c.Journal.Durability != Synced || c.Limits.MaxBody != KiB {
		t.Errorf("got %+v", c)
	}
	for key, text := range map[string]string{"listen": "x", "journal.durability": "", "nothing": "1"} {
		if err := c.Set(key, text); err == nil {
			t.Errorf("%s = %q: no error", key, text)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none.yaml")); !os.IsNotExist(unwrap(err)) {
		t.Errorf("missing file: %v", err)
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, make([]byte, maxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(large); err == nil || !strings.Contains(err.Error(), "larger than 1MiB") {
		t.Errorf("large file: %v", err)
	}
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return err
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "12": 12, "12B": 12, "1KiB": 1024, "3 mib": 3 << 20, "2GB": 2e9, "8191PiB": -1, "": -1, "MiB": -1, "-1": -1, "1.5GiB": -1, "9223372036854775807": math.MaxInt64, "9223372036854775808": -1} {
		got, err := ParseSize(text)
		if want == -1 {
			if err == nil {
				t.Errorf("%q: got %d, want an error", text, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
		if again, err := ParseSize(got.String()); err != nil || again != got {
			t.Errorf("%q: printed as %s, read back as %d, %v", text, got, again, err)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "ab", 2}, {"tail", "tial", 1}, {"serve", "server", 1}, {"query", "qeury", 1}, {"send", "tail", 4}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q to %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	c := Default()
	f.Add(c.YAML())
	f.Add("limits:\n  max_body: [1, {a: b}]\n")
	f.Add("a: &a {b: *a}\n<<: *a\n")
	f.Add("enrich:\n  # why\n  fields: {a: 1, b: [x]} # so\nrules:\n- drop: \"a\\nb\"\n-\n  - |\n    x\n\n    y\n")
	f.Add("journal: {retain_age: 7d, max_size: 0x10}\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f", []byte(text))
		if err != nil {
			return
		}
		// What was accepted is printed as a file that means the same.
		again, err := Parse("f", []byte(c.YAML()))
		if err != nil || again.YAML() != c.YAML() {
			t.Fatalf("%q\nread as %+v\nprinted as\n%s\nread back as %+v, %v", text, c, c.YAML(), again, err)
		}
	})
}

func TestAddrGRPC(t *testing.T) {
	for _, tt := range [][3]string{
		{"127.0.0.1:4318", "auto", "127.0.0.1:4317"},
		{"[::]:4318", "auto", "[::]:4317"},
		{"127.0.0.1:0", "auto", ""},
		{":8080", "auto", ""},
		{"127.0.0.1:4318", "", ""},
		{"127.0.0.1:0", "127.0.0.1:5317", "127.0.0.1:5317"},
	} {
		c := Default()
		if err := errors.Join(c.Set("listen", tt[0]), c.Set("listen_grpc", tt[1])); err != nil {
			t.Fatal(err)
		}
		if got := c.AddrGRPC(); got != tt[2] {
			t.Errorf("listen %s, listen_grpc %q: %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
	if c := Default(); c.Set("listen_grpc", "4317") == nil {
		t.Error("a port is taken for an address")
	}
}

// Proxies keep idle connections for a minute, as nginx, some for two and some for
// ten, as Google's load balancers. One that the collector closes first may be given a
// request at that moment, which is lost.
func TestIdleConnectionsOutlastThoseOfProxies(t *testing.T) {
	if idle := Default().Timeouts.Idle; idle <= 10*time.Minute {
		t.Errorf("timeouts.idle is %v", idle)
	}
}
