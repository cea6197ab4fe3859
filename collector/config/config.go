// Package config defines the settings of a collector. One table, in fields.go, drives
// their defaults, the strict parser of the YAML file, and printing.
package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/forwarded"
)

// Config is the configuration of a collector. The zero Config is not usable; start from
// Default. A Config may be copied.
type Config struct {
	Listen    string // listen: host:port for HTTP; port 0 takes a free one
	ListenTCP string // listen_tcp: host:port for NDJSON over plain TCP; empty: off
	// ListenGRPC is listen_grpc: an additional host:port for gRPC; empty: off; "auto":
	// port 4317 of listen's host if listen has port 4318, else off.
	ListenGRPC string
	// DebugListen is debug_listen: host:port for profiles; empty: off.
	DebugListen string

	// ListenSyslog is listen_syslog: addresses for syslog, separated by blanks, as
	// ParseAddrs reads them; empty: off.
	ListenSyslog string
	// ListenForward is listen_forward: the same for the Fluent forward protocol.
	ListenForward string

	Data  string // data: the folder of the journal
	Hosts string // hosts: names, separated by blanks, under which readers and web pages may address the collector

	Access  Access  // access
	TLS     TLS     // tls
	Proxies Proxies // proxies

	// Enrich and Rules are enrich and rules, which package enrich parses; nil: none.
	Enrich *Block
	Rules  *Block

	Limits   Limits   // limits
	Journal  Journal  // journal
	Rejected Rejected // rejected
	Forward  Forward  // forward
	Kafka    Kafka    // kafka
	Timeouts Timeouts // timeouts
}

// Rejected configures the dead letter queue.
type Rejected struct {
	KeepSize Size // keep_size: bytes kept, the oldest are removed first; 0: none
}

// Access configures tokens.
type Access struct {
	Tokens string // tokens: a file of tokens, see package access; empty: everybody may do everything
}

// TLS configures encryption of HTTP and of tls:// addresses. Empty: HTTP is plain, and
// tls:// addresses are errors.
type TLS struct {
	Cert     string // cert: PEM file of the certificate, followed by intermediates
	Key      string // key: PEM file of its key
	ClientCA string // client_ca: PEM file of authorities, one of which must have signed the client's certificate
}

// Proxies configures trusted proxies in front of HTTP; see package forwarded.
type Proxies struct {
	Trusted string // trusted: their networks or addresses, separated by blanks; empty: none
	Header  string // header: the header that names the client, x-forwarded-for or forwarded
}

// Limits bounds a request, an event, and all requests together.
type Limits struct {
	MaxBody     Size          // max_body: bytes of one request as sent
	MaxUnpacked Size          // max_unpacked: bytes of one request after decompression
	MaxEvent    Size          // max_event: bytes of the line that one event becomes
	MaxDepth    int           // max_depth: levels of nesting in one event
	MaxFields   int           // max_fields: attributes of one event; keys inside values do not count
	MaxKey      Size          // max_key: bytes of a key of an event, at any depth
	MaxValue    Size          // max_value: bytes of a text or number, at any depth; 0: only max_event
	MaxEvents   int           // max_events: events in one request
	MaxFuture   time.Duration // max_future: how far ahead of its receipt an event's time may be without being marked; 0: any
	MaxPast     time.Duration // max_past: the same for the past
	InFlight    Size          // in_flight: bytes of all requests in progress, decompressed and as canonical lines, headers included
	MaxConns    int           // max_connections: HTTP and gRPC connections at a time; 0: as many as the limit on open files allows
	MaxStreams  int           // max_streams: connections at a time at each address other than HTTP
	UDPBuffer   Size          // udp_buffer: bytes of datagrams that the kernel buffers
}

// Journal configures the journal.
type Journal struct {
	SegmentSize Size          // segment_size: bytes after which a new file begins
	Durability  Durability    // durability: what a 2xx answer promises
	MaxSize     Size          // max_size: bytes at which new lines are refused; 0: when the disk is full
	RetainSize  Size          // retain_size: bytes kept, the oldest segments are removed first; 0: all
	RetainAge   time.Duration // retain_age: age since the last write at which a segment is removed; 0: never
	Compression Compression   // compression: of full segments
	MaxKeys     int           // max_keys: idempotency keys remembered
	KeyAge      time.Duration // key_age: how long they are remembered
}

// Forward configures the credentials of clients of the Fluent forward protocol.
type Forward struct {
	SharedKeyFile string // shared_key_file: a file with the shared key; empty: none is required
	UsersFile     string // users_file: a file of lines USER:PASSWORD, one of them required too; empty: none is required
}

// Kafka configures the sink to a topic of Apache Kafka.
type Kafka struct {
	Brokers      string        // brokers: host:port of some brokers, separated by blanks; empty: no sink
	Topic        string        // topic: where lines go
	Key          string        // key: top-level key of a line whose value becomes the record's key; empty: none
	Compression  string        // compression: none, gzip, snappy, lz4 or zstd
	TLS          string        // tls: on or off
	TLSCA        string        // tls_ca: PEM file of authorities; empty: the system's
	TLSCert      string        // tls_cert: PEM file of a client certificate; empty: none
	TLSKey       string        // tls_key: PEM file of its key
	SASL         string        // sasl: none, plain, scram-sha-256 or scram-sha-512
	User         string        // user: for sasl
	PasswordFile string        // password_file: a file with the user's password
	PasswordEnv  string        // password_env: an environment variable with the password, instead of the file
	MaxRecord    Size          // max_record: bytes of a record, as the topic's max.message.bytes
	MaxEvents    int           // max_events: lines in a batch
	MaxBytes     Size          // max_bytes: bytes in a batch
	MaxAge       time.Duration // max_age: time for a batch to fill
	WhenFull     string        // when_full: hold or drop_oldest
}

// Values of Kafka.WhenFull.
const (
	Hold       = "hold"        // retention waits for the sink, and a full journal refuses lines
	DropOldest = "drop_oldest" // retention may delete what the sink has not delivered
)

// Timeouts bounds requests, connections and the stop of the collector.
type Timeouts struct {
	ReadHeader time.Duration // read_header: for the request line and the headers
	Read       time.Duration // read: for a whole request, body included
	Write      time.Duration // write: for an answer; a stream of lines is bounded per write instead
	Query      time.Duration // query: for a query's search, without the time that its client takes
	Idle       time.Duration // idle: for the next request on a kept connection
	Stream     time.Duration // stream: for the next bytes on a TCP connection other than HTTP
	Linger     time.Duration // linger: for a last request on a kept connection, when stopping
	Shutdown   time.Duration // shutdown: for requests in progress, when stopping
}

// Durability is what a 2xx answer promises about its lines.
type Durability string

const (
	Buffered Durability = "buffered" // they survive a crash of the process
	Synced   Durability = "synced"   // they survive a crash of the machine
)

// Compression is the compression of full segments.
type Compression string

const (
	Zstd          Compression = "zstd"
	NoCompression Compression = "none"
)

// Size counts bytes.
type Size int64

const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

// String writes s in the largest binary unit that divides it: 64MiB, 1000.
func (s Size) String() string {
	for _, u := range []struct {
		size Size
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if s >= u.size && s%u.size == 0 {
			return fmt.Sprintf("%d%s", s/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d", int64(s))
}

// Default returns the default settings.
func Default() Config {
	return Config{
		Listen:     "127.0.0.1:4318",
		ListenGRPC: Auto,
		Data:       "./data",
		Proxies:    Proxies{Header: forwarded.XForwardedFor},
		Limits: Limits{
			MaxBody:     16 * MiB,
			MaxUnpacked: 64 * MiB,
			MaxEvent:    1 * MiB,
			MaxDepth:    64,
			MaxFields:   1024,
			MaxKey:      1 * KiB,
			MaxEvents:   100_000,
			MaxFuture:   24 * time.Hour,
			MaxPast:     365 * 24 * time.Hour,
			InFlight:    256 * MiB,
			MaxStreams:  1024,
			UDPBuffer:   4 * MiB,
		},
		Journal: Journal{
			SegmentSize: 128 * MiB,
			Durability:  Buffered,
			Compression: Zstd,
			MaxKeys:     1_000_000,
			KeyAge:      time.Hour,
		},
		Rejected: Rejected{KeepSize: 64 * MiB},
		Kafka: Kafka{
			Topic:       "logs",
			Compression: "none",
			TLS:         "off",
			SASL:        "none",
			MaxRecord:   1_000_000,
			MaxEvents:   1000,
			MaxBytes:    1 * MiB,
			MaxAge:      100 * time.Millisecond,
			WhenFull:    Hold,
		},
		Timeouts: Timeouts{
			ReadHeader: 10 * time.Second,
			Read:       time.Minute,
			Write:      30 * time.Second,
			Query:      2 * time.Minute,
			Idle:       11 * time.Minute,
			Stream:     time.Hour,
			Linger:     250 * time.Millisecond,
			Shutdown:   10 * time.Second,
		},
	}
}

// Auto derives a setting from others.
const Auto = "auto"

// AddrGRPC resolves ListenGRPC; "": off.
func (c *Config) AddrGRPC() string {
	if c.ListenGRPC != Auto {
		return c.ListenGRPC
	}
	if host, port, err := net.SplitHostPort(c.Listen); err == nil && port == "4318" {
		return net.JoinHostPort(host, "4317")
	}
	return ""
}

// Set parses text, by the rules of the file, as the value of a key such as
// "limits.max_body". The error does not name the key: the caller knows the source.
func (c *Config) Set(key, text string) error {
	for _, f := range fields {
		if f.key == key {
			return f.set(c, text)
		}
	}
	return fmt.Errorf("no setting is called %s", key)
}

// Keys returns the keys of all settings in documented order.
func Keys() []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

// Check reports settings that contradict each other. Single settings are checked when
// they are set.
func (c *Config) Check() error {
	var list Errors
	for _, e := range c.contradictions() {
		list = append(list, &Error{Key: e.key, Message: e.message})
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// Difference returns the key of the first setting in which c and other differ, or "".
func (c *Config) Difference(other *Config) string {
	for _, f := range fields {
		if f.yaml(c) != f.yaml(other) {
			return f.key
		}
	}
	return ""
}

type contradiction struct{ key, message string }

func (c *Config) contradictions() (list []contradiction) {
	l, j := c.Limits, c.Journal
	if l.MaxEvent > l.MaxUnpacked {
		list = append(list, contradiction{"limits.max_event",
			fmt.Sprintf("%v is more than limits.max_unpacked (%v): no request could carry such an event", l.MaxEvent, l.MaxUnpacked)})
	}
	if 2*l.MaxUnpacked > l.InFlight {
		list = append(list, contradiction{"limits.in_flight",
			fmt.Sprintf("%v is less than twice limits.max_unpacked (%v): the largest request allowed could never be accepted", l.InFlight, l.MaxUnpacked)})
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		list = append(list, contradiction{"tls.cert", "tls.cert and tls.key must be set together"})
	}
	if c.TLS.ClientCA != "" && c.TLS.Cert == "" {
		list = append(list, contradiction{"tls.client_ca", "client certificates need TLS: set tls.cert and tls.key too"})
	}
	if c.Access.Tokens != "" && c.ListenTCP != "" && !loopback(c.ListenTCP) {
		list = append(list, contradiction{"listen_tcp", fmt.Sprintf("%s is open to the network, and NDJSON over TCP cannot carry a token (access.tokens): listen on 127.0.0.1, or use HTTP", c.ListenTCP)})
	}
	if j.MaxSize > 0 && j.MaxSize < j.SegmentSize {
		list = append(list, contradiction{"journal.max_size",
			fmt.Sprintf("%v is less than one segment (journal.segment_size is %v)", j.MaxSize, j.SegmentSize)})
	}
	if j.MaxSize > 0 && j.RetainSize > j.MaxSize {
		list = append(list, contradiction{"journal.retain_size",
			fmt.Sprintf("%v is more than journal.max_size (%v): new lines would be refused before old ones are removed", j.RetainSize, j.MaxSize)})
	}
	list = append(list, c.Kafka.contradictions()...)
	list = append(list, c.streamContradictions("listen_syslog", c.ListenSyslog)...)
	if c.Forward.SharedKeyFile == "" {
		list = append(list, c.streamContradictions("listen_forward", c.ListenForward)...)
	}
	if c.Forward.UsersFile != "" && c.Forward.SharedKeyFile == "" {
		list = append(list, contradiction{"forward.users_file", "users need a shared key: set forward.shared_key_file too"})
	}
	return list
}

// streamContradictions checks the addresses of one setting.
func (c *Config) streamContradictions(key, text string) (list []contradiction) {
	addrs, _ := ParseAddrs(text, "udp", "tcp", "tls") // it was checked
	for _, a := range addrs {
		switch {
		case a.Network == "tls" && c.TLS.Cert == "":
			list = append(list, contradiction{key, a.String() + " begins with tls://: set tls.cert and tls.key too"})
		case c.Access.Tokens != "" && !loopback(a.Host) && (a.Network != "tls" || c.TLS.ClientCA == ""):
			list = append(list, contradiction{key, a.String() + " is open to the network, and its protocol has no place for a token (access.tokens): listen on 127.0.0.1, or use tls:// and tls.client_ca"})
		}
	}
	return list
}

func (k *Kafka) contradictions() (list []contradiction) {
	if k.TLS != "on" && (k.TLSCA != "" || k.TLSCert != "" || k.TLSKey != "") {
		list = append(list, contradiction{"kafka.tls", "certificates are of use within TLS only: set kafka.tls to on"})
	}
	if (k.TLSCert == "") != (k.TLSKey == "") {
		list = append(list, contradiction{"kafka.tls_cert", "kafka.tls_cert and kafka.tls_key are must be set together"})
	}
	secrets := 0
	for _, s := range []string{k.PasswordFile, k.PasswordEnv} {
		if s != "" {
			secrets++
		}
	}
	switch {
	case k.SASL == "none" && (k.User != "" || secrets > 0):
		list = append(list, contradiction{"kafka.sasl", "there is a user or a password, but kafka.sasl is none"})
	case k.SASL != "none" && (k.User == "" || secrets != 1):
		list = append(list, contradiction{"kafka.sasl", k.SASL + " takes kafka.user and one of kafka.password_file and kafka.password_env"})
	case k.SASL == "plain" && k.TLS != "on" && !k.local():
		list = append(list, contradiction{"kafka.sasl", "plain sends the password as it is: set kafka.tls to on, or use scram-sha-512"})
	}
	return list
}

// local reports whether all brokers are on this machine.
func (k *Kafka) local() bool {
	for _, broker := range strings.Fields(k.Brokers) {
		if !loopback(broker) {
			return false
		}
	}
	return true
}

// loopback reports whether only this machine can reach addr.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// YAML writes all settings as a file that Load reads back to the same Config.
func (c *Config) YAML() string {
	var b strings.Builder
	var open []string // sections written, so that each heading comes once
	for _, f := range fields {
		if f.isBlock() {
			b.WriteString(f.key + ": " + f.yaml(c) + "\n")
			continue
		}
		indent, name := "", f.key
		if section, rest, ok := strings.Cut(f.key, "."); ok {
			if !slices.Contains(open, section) {
				open = append(open, section)
				b.WriteString(section + ":\n")
			}
			indent, name = "  ", rest
		}
		fmt.Fprintf(&b, "%s%s: %s\n", indent, name, f.yaml(c))
	}
	return b.String()
}
